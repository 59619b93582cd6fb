/* Storage: judged by how long reads wait and how many wait, never by %util (a device that serves
 * many requests at once is "100 %" busy with one in flight; sysstat/sysstat#187). */
#include "waits.h"

#include <math.h>
#include <string.h>

static double device_num(const tv_note *d, const char *key)
{
    return tv_noted_num(d, key);
}

static double read_wait_s(const tv_note *d)
{
    const double r = device_num(d, "r_await_s");
    return isnan(r) ? device_num(d, "await_s") : r;
}

/* ---- walking the reports ---- */

typedef struct disk {
    const tv_sighting *s;
    const tv_note *d;
    tv_str name;
} disk;

static bool is_disk(const tv_note *d)
{
    return d->type == TV_NOTE_MAP && tv_noted(d, "util_frac");
}

/* The devices of a report, one after the other; a report since boot has none. */
static void each_disk(tv_inquiry *q, const tv_rule *rule,
                      void (*see)(tv_inquiry *q, const tv_rule *rule, const disk *disk))
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "iostat"); s;
         s = tv_scene_next(s, "iostat")) {
        if (tv_noted_bool(&s->facts, "since_boot", false) && tv_noted_num(&s->facts, "samples") < 2)
            continue;
        for (const tv_note *d = s->facts.first; d; d = d->next) {
            const bool sample = d->key && d->key[0] == 's' && tv_str_u64(tv_str_of(d->key + 1)).ok;
            if (!is_disk(d) || sample)
                continue;
            const disk one = {s, d, tv_str_of(d->key)};
            see(q, rule, &one);
        }
    }
}

static void put_disk(tv_inquiry *q, tv_finding *f, const disk *x)
{
    tv_found_str(q, f, "device", x->name);
    tv_found_num(q, f, "util_frac", TV_ARG_RATIO, device_num(x->d, "util_frac"));
    tv_found_num(q, f, "read_wait_s", TV_ARG_SECONDS, read_wait_s(x->d));
    tv_found_num(q, f, "queue", TV_ARG_NUMBER, device_num(x->d, "aqu_sz"));
    tv_found_num(q, f, "reads_per_s", TV_ARG_NUMBER, device_num(x->d, "r_s"));
    tv_found_num(q, f, "read_bytes_per_s", TV_ARG_RATE, device_num(x->d, "r_bytes_per_s"));
    tv_found_num(q, f, "request_bytes", TV_ARG_MEMORY, device_num(x->d, "rareq_bytes"));
}

/* ---- D08 ---- */

static bool idle_only(const tv_note *d)
{
    return device_num(d, "util_frac") >= 0.9 && read_wait_s(d) < 0.3e-3 &&
           device_num(d, "aqu_sz") < 4;
}

/* The same device in the other reports, at other loads: what shows that 100 % means nothing. */
static void put_other_loads(tv_inquiry *q, tv_finding *f, const disk *x)
{
    double least = device_num(x->d, "r_s"), most = least;
    for (const tv_note *n = x->s->facts.first; n; n = n->next) {
        const tv_note *d = tv_noted(n, "util_frac") ? n : tv_noted(n, x->d->key);
        const bool sample = n->type == TV_NOTE_MAP && n->key && n->key[0] == 's' &&
                            tv_str_u64(tv_str_of(n->key + 1)).ok;
        if (!sample || !d || tv_noted_bool(n, "since_boot", false) || !idle_only(d))
            continue;
        least = fmin(least, device_num(d, "r_s"));
        most = fmax(most, device_num(d, "r_s"));
        tv_found_also(q, f, x->s, d);
    }
    if (!(most > 1.5 * least))
        return;
    tv_found_num(q, f, "least_reads_per_s", TV_ARG_NUMBER, least);
    tv_found_num(q, f, "most_reads_per_s", TV_ARG_NUMBER, most);
    f->cause = N_("{device} is never without a request, and that is all that {util_frac} means: it "
                  "is so at {most_reads_per_s} and at {least_reads_per_s} reads a second alike. "
                  "Reads wait {read_wait_s}, {queue} of them at a time: the disk is far from its "
                  "limit.");
}

static void see_not_full(tv_inquiry *q, const tv_rule *rule, const disk *x)
{
    if (!idle_only(x->d))
        return;
    tv_finding *f = tv_found(q, rule, x->s, x->d);
    put_disk(q, f, x);
    put_other_loads(q, f, x);
    tv_ask(q, "py-spy top --subprocesses --pid PID",
           N_("Shows where the loader's processes stand: in read and open it is the storage, in "
              "decoding and transforms the CPU."));
}

static void judge_not_full(tv_inquiry *q, const tv_rule *rule)
{
    each_disk(q, rule, see_not_full);
}

/* ---- D09 ---- */

static bool seeks(const disk *x)
{
    const tv_note *d = x->d;
    double bytes = device_num(d, "rareq_bytes");
    if (isnan(bytes))
        bytes = device_num(d, "r_bytes_per_s") / device_num(d, "r_s");
    return !tv_str_starts(x->name, TV_S("nvme")) && read_wait_s(d) > 8e-3 &&
           device_num(d, "r_s") >= 20 && device_num(d, "r_s") < 600 && bytes < 512.0 * 1024 &&
           device_num(d, "r_bytes_per_s") < 80e6 && device_num(d, "util_frac") >= 0.5;
}

/* The busiest of the devices that show it stands for all: volumes share their disks. */
static void judge_seeks(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "iostat"); s;
         s = tv_scene_next(s, "iostat")) {
        tv_finding *f = NULL;
        disk worst = {0};
        if (tv_noted_bool(&s->facts, "since_boot", false) && tv_noted_num(&s->facts, "samples") < 2)
            continue;
        for (const tv_note *d = s->facts.first; d; d = d->next) {
            const disk x = {s, d, tv_str_of(d->key)};
            if (!is_disk(d) || !seeks(&x))
                continue;
            if (!f)
                f = tv_found(q, rule, s, d);
            else
                tv_found_also(q, f, s, d);
            if (!worst.d || device_num(d, "util_frac") > device_num(worst.d, "util_frac"))
                worst = x;
        }
        if (f) {
            put_disk(q, f, &worst);
            f->weight = device_num(worst.d, "util_frac");
            tv_ask(q, "lsblk -o NAME,ROTA,TRAN,MODEL,SIZE,MOUNTPOINT",
                   N_("ROTA 1 is a rotating disk; a volume of a cloud or of a storage network is "
                      "slow for another reason."));
        }
    }
}

/* ---- D03 ---- */

static void judge_latency(tv_inquiry *q, const tv_rule *rule)
{
    const tv_host_load load = tv_host_load_of(q->scene);
    if (tv_has_found(q, "D09") || !tv_storage_waits(&load))
        return;
    const disk x = {load.s, load.device, load.device ? tv_str_of(load.device->key) : (tv_str){0}};
    for (const tv_sighting *s = q->scene->first; s; s = s->next) {
        tv_wait w;
        if (!tv_wait_of(s, &w) || !(w.share >= TV_WAIT_FINDING) || w.hidden)
            continue;
        tv_finding *f = tv_found(q, rule, s, w.at);
        f->weight = w.share > 1 ? 1 : w.share;
        tv_found_num(q, f, "wait_frac", TV_ARG_RATIO, w.share);
        tv_found_num(q, f, "iowait_frac", TV_ARG_RATIO, load.iowait_frac);
        if (x.d) {
            tv_found_also(q, f, x.s, x.d);
            put_disk(q, f, &x);
        }
        if (!x.d || isnan(load.read_wait_s))
            f->cause = N_("The training waits {wait_frac} of its time for data, and for "
                          "{iowait_frac} of the time the cores wait for disks: the storage is what "
                          "it waits for.");
        else if (isnan(load.iowait_frac))
            f->cause = N_("The training waits {wait_frac} of its time for data, and reads of "
                          "{device} take {read_wait_s}: the storage is what it waits for.");
        return;
    }
    /* Disks alone: only a queue that waits long says that they are the wall. */
    if (!x.d || !(load.read_wait_s >= 5e-3 && load.queue >= 4 && load.read_bytes_per_s >= 1e6))
        return;
    tv_finding *f = tv_found(q, rule, x.s, x.d);
    f->sure = TV_MEDIUM;
    f->weight = 0.3;
    f->cause = N_("Reads of {device} wait {read_wait_s} with {queue} of them in its queue: it "
                  "delivers {read_bytes_per_s} and not more. Whether the training waits for it, a "
                  "profile of the loader must say.");
    put_disk(q, f, &x);
    tv_ask(q, "py-spy top --subprocesses --pid PID",
           N_("Shows where the loader's processes stand: in read and open it is the storage, in "
              "decoding and transforms the CPU."));
}

static const tv_rule rules[] = {
    {
        .id = "D09",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("Small reads all over the disk"),
        .cause = N_("Reads of {device} wait {read_wait_s} and carry {request_bytes} each: "
                    "{reads_per_s} a second make only {read_bytes_per_s}. The disk spends its time "
                    "on finding the places, not on reading."),
        .decided = N_("On a device that is no NVMe: reads wait more than 8 ms, 20 to 600 of them a "
                      "second, below 512 KiB each and 80 MB/s together, and the device is busy for "
                      "half of the time or more. Reports since boot are not judged."),
        .unless = N_("A volume with a limit on requests (a cloud's, a network's) looks the same; "
                     "lsblk tells a rotating disk."),
        .source = "https://www.kernel.org/doc/Documentation/iostats.txt",
        .steps = {{.why = N_("Store the samples in large files that are read in order (tar shards "
                             "of WebDataset, LMDB, RecordIO): a rotating disk then delivers 100 to "
                             "250 MB/s.")},
                  {.why = N_("Or copy the data to a local SSD before the training.")},
                  {.command = "free -h",
                   .why = N_("Data that fits into free memory is read from the disk only in the "
                             "first epoch.")}},
        .outranks = "D03 D05",
        .judge = judge_seeks,
    },
    {
        .id = "D03",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("The storage does not keep up"),
        .cause = N_("The training waits {wait_frac} of its time for data, and the storage is what "
                    "it waits for: reads take {read_wait_s}, the cores wait for input for "
                    "{iowait_frac} of the time."),
        .decided = N_("A wait for batches of 10 % or more of the step together with iowait of 15 % "
                      "or more, or reads that wait 2 ms or more. Without a profile: reads that "
                      "wait 5 ms or more with 4 or more in the queue (medium). %util is not "
                      "looked at."),
        .unless = N_("Full cores and read waits below a millisecond mean decoding (D02)."),
        .source = "https://github.com/stas00/ml-engineering/tree/master/storage",
        .steps = {{.why = N_("Keep a copy of the data on a local NVMe disk.")},
                  {.why = N_("Pack small files into shards of 100 MB or more and read them in "
                             "order.")},
                  {.command = "sudo blockdev --setra 8192 /dev/DEVICE",
                   .undo = "sudo blockdev --setra 256 /dev/DEVICE",
                   .why = N_("A longer read-ahead (4 MiB) for files that are read in order; note "
                             "the old value first with blockdev --getra.")}},
        .outranks = "D05",
        .judge = judge_latency,
    },
    {
        .id = "D08",
        .severity = TV_INFO,
        .sure = TV_HIGH,
        .title = N_("The disk is busy but not full"),
        .cause =
            N_("{device} shows {util_frac} busy, but reads wait only {read_wait_s} and {queue} "
               "are under way at a time: it is far from its limit. %util says only that it "
               "was never without a request."),
        .decided = N_("%util of 90 or more while reads wait less than 0.3 ms and fewer than 4 "
                      "requests are under way."),
        .unless = N_("A disk that serves one request at a time is full at 100 %; its reads then "
                     "wait longer."),
        .source = "https://github.com/sysstat/sysstat/issues/187",
        .steps = {{.command = "py-spy top --subprocesses --pid PID",
                   .why = N_("Look at the loader instead: a faster disk changes nothing here.")}},
        .judge = judge_not_full,
    },
};

extern const tv_rule_group tv_rule_group_storage_rules;
const tv_rule_group tv_rule_group_storage_rules = {"storage", N_("Storage"), rules,
                                                   sizeof rules / sizeof *rules};
