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

/* ---- D10 ---- */

/* "server:/export", "//server/share", and the file systems that the host's own list names. */
static const tv_note *remote_mount(const tv_inquiry *q, const tv_sighting **where)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "host"); s; s = tv_scene_next(s, "host"))
        if (tv_noted_n(&s->facts, "remote_mounts")) {
            *where = s;
            return tv_noted(&s->facts, "remote_mounts.0");
        }
    for (const tv_sighting *s = tv_scene_first(q->scene, "disk-space"); s;
         s = tv_scene_next(s, "disk-space")) {
        const tv_note *mounts = tv_noted(&s->facts, "mounts");
        for (const tv_note *m = mounts ? mounts->first : NULL; m; m = m->next) {
            const tv_str device = tv_noted_str(m, "device");
            if (tv_str_has(device, TV_S(":/")) || tv_str_starts(device, TV_S("//")) ||
                tv_str_has(device, TV_S("@tcp")) || tv_str_has(device, TV_S("@o2ib"))) {
                *where = s;
                return m;
            }
        }
    }
    return NULL;
}

/* The most inodes that a remote file system has in use; NaN: not told. */
static double remote_files(const tv_inquiry *q)
{
    double most = (double)NAN;
    for (const tv_sighting *s = tv_scene_first(q->scene, "disk-space"); s;
         s = tv_scene_next(s, "disk-space")) {
        const tv_note *mounts = tv_noted(&s->facts, "mounts");
        for (const tv_note *m = mounts ? mounts->first : NULL; m; m = m->next)
            if (tv_str_has(tv_noted_str(m, "device"), TV_S(":/")))
                most = fmax(most, tv_noted_num(m, "inodes_used"));
    }
    return most;
}

static void judge_metadata(tv_inquiry *q, const tv_rule *rule)
{
    const tv_host_load load = tv_host_load_of(q->scene);
    const tv_sighting *where = NULL;
    const tv_note *mount = remote_mount(q, &where);
    const double files = remote_files(q);
    if (!mount || !(load.system_frac >= 0.25 || files >= 1e6))
        return;
    for (const tv_sighting *s = q->scene->first; s; s = s->next) {
        tv_wait w;
        if (!tv_wait_of(s, &w) || !(w.share >= TV_WAIT_FINDING) || w.hidden)
            continue;
        tv_finding *f = tv_found(q, rule, s, w.at);
        tv_found_also(q, f, where, mount);
        f->weight = w.share > 1 ? 1 : w.share;
        const tv_str at = tv_noted_str(mount, "at");
        tv_found_num(q, f, "wait_frac", TV_ARG_RATIO, w.share);
        tv_found_str(q, f, "mount", at.n ? at : tv_noted_str(mount, "mount"));
        tv_found_num(q, f, "system_frac", TV_ARG_RATIO, load.system_frac);
        tv_found_num(q, f, "files", TV_ARG_COUNT, files);
        tv_ask(
            q, "strace -c -f -p PID",
            N_("Ten seconds of a loader's process: open, stat and close above read mean that the "
               "time goes into finding files, not into reading them."));
        return;
    }
}

/* ---- D11 ---- */

/* What speaks for it: a container whose limit the cache fills, or a host with no memory to spare.
 */
static bool cache_is_short(const tv_inquiry *q, double *limit_bytes)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "host"); s; s = tv_scene_next(s, "host")) {
        const double limit = tv_noted_num(&s->facts, "cgroup.mem_limit_bytes");
        if (tv_noted_num(&s->facts, "cgroup.mem_used_bytes") >= 0.9 * limit) {
            *limit_bytes = limit;
            return true;
        }
        const double total = tv_noted_num(&s->facts, "mem_total_bytes");
        if (tv_noted_num(&s->facts, "mem_available_bytes") < 0.1 * total) {
            *limit_bytes = total;
            return true;
        }
    }
    for (const tv_sighting *s = tv_scene_first(q->scene, "free"); s; s = tv_scene_next(s, "free")) {
        const double total = tv_noted_num(&s->facts, "mem_total_bytes");
        if (tv_noted_num(&s->facts, "mem_available_bytes") < 0.1 * total) {
            *limit_bytes = total;
            return true;
        }
    }
    return false;
}

static void judge_second_epoch(tv_inquiry *q, const tv_rule *rule)
{
    const tv_host_load load = tv_host_load_of(q->scene);
    if (!(load.read_bytes_per_s >= 20e6) && !tv_storage_waits(&load))
        return;
    for (const tv_sighting *s = tv_scene_first(q->scene, "train-log"); s;
         s = tv_scene_next(s, "train-log")) {
        const double first = tv_noted_num(&s->facts, "epochs.0.data_frac");
        const double second = tv_noted_num(&s->facts, "epochs.1.data_frac");
        if (!(first >= TV_WAIT_FINDING) || !(second >= 0.9 * first))
            continue;
        double limit_bytes = (double)NAN;
        const bool is_short = cache_is_short(q, &limit_bytes);
        tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "data_s"));
        if (load.s)
            tv_found_also(q, f, load.s, load.device);
        f->sure = is_short ? TV_MEDIUM : TV_LOW;
        f->weight = 0.9 * (second > 1 ? 1 : second);
        tv_found_num(q, f, "first_frac", TV_ARG_RATIO, first);
        tv_found_num(q, f, "second_frac", TV_ARG_RATIO, second);
        tv_found_num(q, f, "read_bytes_per_s", TV_ARG_RATE, load.read_bytes_per_s);
        tv_found_num(q, f, "limit_bytes", TV_ARG_MEMORY, limit_bytes);
        if (!is_short)
            tv_ask(
                q, "free -h; cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory.current",
                N_("Tells whether the data could stay in memory at all: compare with its size."));
    }
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
    {
        .id = "D10",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("Many small files on a file system of the network"),
        .cause = N_("The training waits {wait_frac} of its time for data that lies on {mount}, a "
                    "file system of the network, and the signs are those of many small files: each "
                    "open and stat is a question to a server."),
        .decided =
            N_("A wait for batches of 10 % or more, a mounted network file system (NFS, "
               "Lustre, GPFS, CIFS), and either 25 % or more of the CPU's time in the kernel "
               "or a million files or more on it."),
        .unless =
            N_("The data may lie elsewhere: look at the path of the data set. Few large files "
               "on such a file system read well."),
        .source = "https://github.com/stas00/ml-engineering/tree/master/storage",
        .steps = {{.command = "strace -c -f -p PID",
                   .why = N_("Counts the calls of a loader's process: open, stat and close above "
                             "read confirm it. It slows the process while it runs.")},
                  {.why = N_("Pack the files into archives of 100 MB or more (tar shards, LMDB, "
                             "RecordIO), or copy them to a local disk before the training.")},
                  {.command = "lfs getstripe FILE",
                   .why = N_("Lustre: small files want one stripe (lfs setstripe -c 1 FOLDER, for "
                             "files that are written later).")}},
        .outranks = "D05",
        .judge = judge_metadata,
    },
    {
        .id = "D11",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("The second epoch reads everything again"),
        .cause =
            N_("The second epoch waits for its data as the first did ({second_frac} against "
               "{first_frac} of the time), and the disks still deliver: nothing of it stays in "
               "memory. Either the data is larger than the memory that is free, or the "
               "container's limit counts the page cache."),
        .decided =
            N_("A log whose first two epochs both wait 10 % or more, the second at least 0.9 "
               "times as much as the first, while disks are read at 20 MB/s or more or make "
               "the cores wait. Medium where memory is seen to be short (a container at 90 % "
               "of its limit, or less than 10 % available), low otherwise."),
        .unless =
            N_("Disks at rest in the second epoch mean that the data is in memory and the wait "
               "is decoding (D02)."),
        .source = "https://docs.kernel.org/admin-guide/cgroup-v2.html",
        .steps = {{.command = "cat /sys/fs/cgroup/memory.max",
                   .why = N_("The limit that the page cache counts against; raise it (docker run "
                             "--memory, resources.limits.memory) if the host has more.")},
                  {.why = N_("Keep the data on a local SSD, or in a smaller form: resized images, "
                             "packed tokens.")}},
        .judge = judge_second_epoch,
    },
};

extern const tv_rule_group tv_rule_group_storage_rules;
const tv_rule_group tv_rule_group_storage_rules = {"storage", N_("Storage"), rules,
                                                   sizeof rules / sizeof *rules};
