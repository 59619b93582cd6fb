/* Failures that a log of NCCL names: shared memory, locked memory, adapters, interfaces, ranks on
 * the same card. */
#include "comm.h"

#include <math.h>

/* ---- look-ups ---- */

/* The first complaint of a class, from any number of ranks' logs. */
static const tv_note *warn_of(const tv_sighting *s, const char *class)
{
    const tv_note *list = tv_noted(&s->facts, "warn");
    for (const tv_note *item = list ? list->first : NULL; item; item = item->next)
        if (tv_noted_is(item, "class", class))
            return item;
    return NULL;
}

static const tv_note *call_failed(const tv_sighting *s, const char *call, double number)
{
    const tv_note *list = tv_noted(&s->facts, "warn");
    for (const tv_note *item = list ? list->first : NULL; item; item = item->next)
        if (tv_noted_is(item, "class", "ib-call") &&
            tv_str_starts(tv_noted_str(item, "call"), tv_str_of(call)) &&
            fabs(tv_noted_num(item, "errno") - number) < 0.5)
            return item;
    return NULL;
}

static const tv_sighting *next_nccl(const tv_inquiry *q, const tv_sighting *s)
{
    return s ? tv_scene_next(s, "nccl") : tv_scene_first(q->scene, "nccl");
}

static void also_consequences(tv_inquiry *q, tv_finding *f, const tv_sighting *s)
{
    const tv_note *first = tv_noted(&s->facts, "consequence_warn");
    if (first)
        tv_found_also(q, f, s, first);
}

/* ---- C05 ---- */

/* The first complaint often has no number, the next one has. */
static double shm_errno(const tv_sighting *s)
{
    const tv_note *list = tv_noted(&s->facts, "warn");
    for (const tv_note *item = list ? list->first : NULL; item; item = item->next)
        if (tv_noted_is(item, "class", "shm") && tv_noted(item, "errno"))
            return tv_noted_num(item, "errno");
    return (double)NAN;
}

static void judge_shm(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = next_nccl(q, NULL); s; s = next_nccl(q, s)) {
        const tv_note *warn = warn_of(s, "shm");
        const double number = shm_errno(s);
        if (!warn || (!isnan(number) && fabs(number - 28) > 0.5 && fabs(number - 12) > 0.5))
            continue;
        tv_finding *f = tv_found(q, rule, s, warn);
        if (isnan(number))
            f->sure = TV_MEDIUM;
        const double need = tv_noted_num(&s->facts, "need_bytes");
        tv_found_num(q, f, "need_bytes", TV_ARG_MEMORY, need);
        if (!isnan(need))
            f->cause =
                N_("NCCL could not get {need_bytes} more in /dev/shm, where ranks of one host "
                   "hand data over: it is full. Containers get 64 MB of it unless told "
                   "otherwise. Errors of sockets and of the proxy after it are "
                   "consequences.");
        tv_found_str(q, f, "path", tv_noted_str(&s->facts, "path"));
        also_consequences(q, f, s);
        tv_ask(q, "df -h /dev/shm", N_("It shows how large shared memory is, and what is left."));
    }
}

/* ---- C06 ---- */

static double memlock_of(const tv_inquiry *q, const tv_sighting **where)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "limits"); s;
         s = tv_scene_next(s, "limits")) {
        const double v = tv_noted_num(&s->facts, "memlock_bytes");
        const bool unlimited = tv_noted_is(&s->facts, "memlock_bytes", "unlimited");
        if (!isnan(v) || unlimited) {
            *where = s;
            return unlimited ? (double)INFINITY : v;
        }
    }
    return (double)NAN;
}

/* Registering buffers of every channel takes hundreds of MB; distributions allow 64 KiB to 8 MiB.
 */
#define SMALL_MEMLOCK_BYTES 0x1p30

static void judge_memlock(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *limits = NULL;
    const double limit = memlock_of(q, &limits);
    for (const tv_sighting *s = next_nccl(q, NULL); s; s = next_nccl(q, s)) {
        const tv_note *warn = call_failed(s, "ibv_", 12);
        const double told = tv_noted_num(&s->facts, "memlock_bytes");
        if (!warn && isnan(told))
            continue;
        if (isnan(told) && limit >= SMALL_MEMLOCK_BYTES)
            continue; /* it was not the limit */
        tv_finding *f = tv_found(q, rule, s, warn);
        tv_found_str(q, f, "call", tv_noted_str(&s->facts, "call"));
        const double known = isnan(told) ? limit : told;
        tv_found_num(q, f, "memlock_bytes", TV_ARG_MEMORY, known);
        if (!isnan(known))
            f->cause =
                N_("Memory could not be locked for the network adapter: the process may lock "
                   "{memlock_bytes} only (ulimit -l). The host's memory is not full.");
        if (isnan(told) && limits)
            tv_found_also(q, f, limits, tv_noted(&limits->facts, "memlock_bytes"));
        if (isnan(known)) {
            f->sure = TV_MEDIUM;
            tv_ask(q, "ulimit -l",
                   N_("In the job itself (inside mpirun, Slurm or the container): anything but "
                      "\"unlimited\" settles it."));
        }
        also_consequences(q, f, s);
    }
}

/* ---- C07, C08: retries of the adapter ran out ---- */

static bool is_retry(const tv_sighting *s)
{
    return warn_of(s, "ib-completion") && fabs(tv_noted_num(&s->facts, "status") - 12) < 0.5;
}

static bool is_worked(const tv_sighting *s)
{
    return tv_noted_bool(&s->facts, "worked_before", false);
}

/* The log begins with the start of NCCL and no step of training stands before the error. */
static bool is_at_start(const tv_sighting *s)
{
    return !is_worked(s) && (tv_noted(&s->facts, "ifname") || tv_noted(&s->facts, "ranks_started"));
}

static void put_completion(tv_inquiry *q, tv_finding *f, const tv_sighting *s)
{
    const double gid = tv_noted_num(tv_noted(&s->facts, "settings"), "NCCL_IB_GID_INDEX");
    tv_found_str_or(q, f, "peer", tv_noted_str(&s->facts, "peer"), N_("another rank"));
    tv_found_str(q, f, "local_gid", tv_noted_str(&s->facts, "local_gid.0"));
    tv_found_str(q, f, "remote_gid", tv_noted_str(&s->facts, "remote_gid.0"));
    tv_found_num(q, f, "vendor_err", TV_ARG_NUMBER, tv_noted_num(&s->facts, "vendor_err"));
    tv_found_num(q, f, "gid_index", TV_ARG_NUMBER, gid);
    also_consequences(q, f, s);
}

static void judge_first_traffic(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = next_nccl(q, NULL); s; s = next_nccl(q, s)) {
        if (!is_retry(s) || is_worked(s))
            continue;
        tv_finding *f = tv_found(q, rule, s, warn_of(s, "ib-completion"));
        f->sure = is_at_start(s) ? TV_MEDIUM : TV_LOW;
        put_completion(q, f, s);
        tv_ask(q, "show_gids", N_("Both ends need a GID of the same kind (RoCE v2) that routes."));
    }
}

/* Of an adapter's events only these tell of a lost link. */
static bool is_port_event(tv_str text)
{
    return tv_str_has(text, TV_S("port error")) || tv_str_has(text, TV_S("PORT_ERR")) ||
           tv_str_has(text, TV_S("device fatal")) || tv_str_has(text, TV_S("DEVICE_FATAL"));
}

static void judge_link_lost(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = next_nccl(q, NULL); s; s = next_nccl(q, s)) {
        const tv_note *event = warn_of(s, "ib-event");
        if (event && !is_port_event(tv_noted_str(event, "text")))
            event = NULL;
        if (!event && !is_retry(s))
            continue;
        tv_finding *f = tv_found(q, rule, s, event ? event : warn_of(s, "ib-completion"));
        f->sure = is_worked(s) || event ? TV_HIGH : is_at_start(s) ? TV_LOW : TV_MEDIUM;
        if (!is_worked(s) && !event)
            f->cause =
                N_("The adapter sent to {peer} again and again and got no answer (status 12). "
                   "Frequent causes are a link that flaps, a bad cable or a lossy fabric; the "
                   "log does not show whether it had worked before.");
        put_completion(q, f, s);
        tv_ask(q, "mlxlink -d mlx5_0 -c",
               N_("The adapter's own counters of symbol errors and link downs, on both ends."));
    }
}

/* ---- C09, C10: the queue pair does not come up ---- */

static void judge_qp(tv_inquiry *q, const tv_rule *rule, const double *numbers, size_t n)
{
    for (const tv_sighting *s = next_nccl(q, NULL); s; s = next_nccl(q, s))
        for (size_t i = 0; i < n; i++) {
            const tv_note *warn = call_failed(s, "ibv_modify_qp", numbers[i]);
            if (!warn)
                continue;
            tv_finding *f = tv_found(q, rule, s, warn);
            tv_found_str(q, f, "errno_text", tv_noted_str(warn, "errno_text"));
            tv_found_num(q, f, "rank", TV_ARG_NUMBER, tv_noted_num(&s->facts, "rank_reporting"));
            tv_found_str(q, f, "dev", tv_noted_str(&s->facts, "dev"));
            also_consequences(q, f, s);
            break;
        }
}

static void judge_rail_only(tv_inquiry *q, const tv_rule *rule)
{
    static const double timed_out[] = {110};
    judge_qp(q, rule, timed_out, 1);
}

static void judge_unreachable(tv_inquiry *q, const tv_rule *rule)
{
    static const double unreachable[] = {101, 113, 22};
    judge_qp(q, rule, unreachable, 3);
}

/* ---- C11: the interface ---- */

/* No connection to another rank, where nothing else went wrong before. */
static const tv_note *unreached_of(const tv_sighting *s)
{
    const tv_note *warn = warn_of(s, "connect");
    const tv_note *list = tv_noted(&s->facts, "warn");
    if (!warn || !tv_noted_bool(warn, "root", false))
        return NULL;
    for (const tv_note *item = list->first; item && item != warn; item = item->next)
        if (tv_noted_bool(item, "root", false))
            return NULL;
    return warn;
}

static void judge_interface(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = next_nccl(q, NULL); s; s = next_nccl(q, s)) {
        const tv_note *none = warn_of(s, "no-interface");
        const tv_note *suspect = tv_noted(&s->facts, "suspect_interface");
        const bool only_local =
            tv_noted_is(&s->facts, "suspect_interface", "lo") && tv_noted_n(&s->facts, "hosts") < 2;
        const tv_note *unreached = unreached_of(s);
        if (!none && !unreached && (!suspect || only_local))
            continue;
        tv_finding *f = tv_found(q, rule, s, none ? none : unreached ? unreached : suspect);
        if (unreached && !none) {
            f->severity = TV_CRITICAL;
            f->cause = N_("A rank could not be reached: {errno_text}. NCCL chose an interface that "
                          "does not join the hosts, or a firewall stands between them.");
            tv_found_str(q, f, "errno_text", tv_noted_str(unreached, "errno_text"));
            tv_found_str(q, f, "used", tv_noted_str(&s->facts, "ifname"));
        }
        if (none) {
            f->severity = TV_CRITICAL;
            f->sure = TV_HIGH;
            f->cause = N_("NCCL found no interface that it may use: NCCL_SOCKET_IFNAME names none "
                          "that exists here, or only loopback and container interfaces are up.");
        }
        if (f->severity == TV_WARNING && tv_nccl_is_local(s))
            f->severity = TV_INFO;
        tv_found_str(q, f, "interface", tv_noted_str(&s->facts, "suspect_interface"));
        const tv_note *names = tv_noted(&s->facts, "interfaces");
        for (const tv_note *item = names ? names->first : NULL; item; item = item->next)
            if (!tv_str_eq(item->s, tv_noted_str(&s->facts, "suspect_interface"))) {
                tv_found_str(q, f, "good", item->s);
                break;
            }
    }
}

/* ---- C25, C26 ---- */

static void judge_same_gpu(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = next_nccl(q, NULL); s; s = next_nccl(q, s)) {
        const tv_note *warn = warn_of(s, "same-gpu");
        if (!warn)
            continue;
        tv_finding *f = tv_found(q, rule, s, warn);
        if (!tv_noted(&s->facts, "same_gpu_other_rank"))
            f->cause = N_("Several ranks chose the same card. Each rank needs one of its own.");
        tv_found_num(q, f, "rank", TV_ARG_NUMBER, tv_noted_num(&s->facts, "same_gpu_rank"));
        tv_found_num(q, f, "other_rank", TV_ARG_NUMBER,
                     tv_noted_num(&s->facts, "same_gpu_other_rank"));
        tv_found_str_or(q, f, "bus", tv_noted_str(&s->facts, "same_gpu_bus"), N_("the same one"));
    }
}

static void judge_versions(tv_inquiry *q, const tv_rule *rule)
{
    tv_str seen = {0};
    const tv_sighting *first = NULL;
    for (const tv_sighting *s = next_nccl(q, NULL); s; s = next_nccl(q, s)) {
        const tv_note *warn = warn_of(s, "version-mismatch");
        const tv_str version = tv_noted_str(&s->facts, "version");
        const tv_str second = tv_noted_str(&s->facts, "versions.1");
        const bool across = first && version.n && !tv_str_eq(version, seen);
        if (!warn && !second.n && !across) {
            first = first ? first : version.n ? s : NULL;
            seen = seen.n ? seen : version;
            continue;
        }
        tv_finding *f = tv_found(q, rule, s, warn ? warn : tv_noted(&s->facts, "version"));
        if (across)
            tv_found_also(q, f, first, tv_noted(&first->facts, "version"));
        /* two jobs in one log print two versions as well */
        f->sure = warn ? TV_HIGH : across ? TV_MEDIUM : TV_LOW;
        f->severity = warn ? TV_CRITICAL : TV_WARNING;
        const tv_str one = across ? seen : version, two = across ? version : second;
        tv_found_str(q, f, "version", one);
        tv_found_str(q, f, "other_version", two);
        if (one.n && two.n)
            f->cause = N_("One rank runs NCCL {version}, another {other_version}: they may not "
                          "understand each other.");
        return;
    }
}

/* ---- C46: status 4, 9 or 10 ---- */

static void judge_protection(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = next_nccl(q, NULL); s; s = next_nccl(q, s)) {
        const double status = tv_noted_num(&s->facts, "status");
        const tv_note *warn = warn_of(s, "ib-completion");
        if (!warn || !(fabs(status - 4) < 0.5 || fabs(status - 9) < 0.5 || fabs(status - 10) < 0.5))
            continue;
        tv_finding *f = tv_found(q, rule, s, warn);
        tv_found_num(q, f, "status", TV_ARG_NUMBER, status);
        put_completion(q, f, s);
    }
}

/* ---- C50: peers of one process ---- */

static void judge_mappings(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = next_nccl(q, NULL); s; s = next_nccl(q, s)) {
        const tv_note *warn = warn_of(s, "peer-mappings");
        if (!warn)
            continue;
        tv_finding *f = tv_found(q, rule, s, warn);
        tv_found_num(q, f, "ranks", TV_ARG_NUMBER, tv_noted_num(&s->facts, "nranks"));
    }
}

/* ---- C48: NCCL failed and does not say of what ---- */

static bool is_told(const tv_sighting *s)
{
    const tv_note *list = tv_noted(&s->facts, "warn");
    for (const tv_note *item = list ? list->first : NULL; item; item = item->next)
        if (tv_noted_bool(item, "root", false))
            return true;
    return false;
}

static void judge_silent(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *failed = NULL;
    for (const tv_sighting *s = next_nccl(q, NULL); s; s = next_nccl(q, s)) {
        if (is_told(s) || tv_noted_n(&s->facts, "consequences"))
            return;
        if (!failed && tv_noted(&s->facts, "framework_error"))
            failed = s;
    }
    if (!failed || tv_scene_first(q->scene, "watchdog"))
        return; /* who waits or ended first says more */
    const tv_note *error = tv_noted(&failed->facts, "framework_error");
    tv_finding *f = tv_found(q, rule, failed, error);
    tv_str name = tv_noted_str(&failed->facts, "result_name");
    if (!name.n)
        name = tv_noted_str(error, "result_name");
    tv_found_str(q, f, "result", name.n ? name : TV_S("NCCL error"));
    if (tv_str_is(name, "ncclSystemError"))
        tv_ask(q, "df -h /dev/shm",
               N_("The most frequent cause of a system error in a container."));
    tv_ask(q, "NCCL_DEBUG=INFO torchrun train.py",
           N_("NCCL then names the call that failed; the first WARN is the cause."));
}

/* ---- C40: the driver is old ---- */

static void judge_driver(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = next_nccl(q, NULL); s; s = next_nccl(q, s)) {
        const tv_note *warn = warn_of(s, "driver-old");
        if (warn)
            (void)tv_found(q, rule, s, warn);
    }
}

static const tv_rule rules[] = {
    {
        .id = "C05",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("/dev/shm is too small for NCCL"),
        .cause =
            N_("NCCL could not get room in /dev/shm, where ranks of one host hand data over: it "
               "is full. Containers get 64 MB of it unless told otherwise. Errors of sockets "
               "and of the proxy after it are consequences."),
        .decided =
            N_("NCCL complains of posix_fallocate, ftruncate or a shared memory segment, and "
               "the system says that no space is left."),
        .unless = N_("\"Permission denied\" there is a matter of rights, not of size. A full disk "
                     "elsewhere is D17."),
        .source = "https://github.com/NVIDIA/nccl/issues/290",
        .steps = {{.command = "df -h /dev/shm", .why = N_("See how large it is.")},
                  {.command = "docker run --shm-size=16g IMAGE",
                   .why = N_("Give the container more, or share the host's with --ipc=host. In "
                             "Kubernetes mount an emptyDir with medium Memory at /dev/shm.")},
                  {.command = "export NCCL_SHM_DISABLE=1",
                   .undo = "unset NCCL_SHM_DISABLE",
                   .why = N_("A stop-gap: data then goes through sockets and is slower.")}},
        .outranks = "C18 C39 C37",
        .judge = judge_shm,
    },
    {
        .id = "C06",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("The process may not lock enough memory for the network adapter"),
        .cause = N_("An ibv_ call failed with \"Cannot allocate memory\": registering buffers with "
                    "the adapter locks them, and the limit of locked memory (ulimit -l) is usually "
                    "what stops it. The host's memory is not full."),
        .decided =
            N_("An ibv_ call fails with ENOMEM while ulimit -l is under 1 GiB or unknown, or "
               "UCX or libibverbs name the limit themselves."),
        .unless = N_("With ulimit -l unlimited the adapter's own tables may be full."),
        .source = "https://github.com/NVIDIA/nccl-tests/issues/206",
        .steps = {{.command = "ulimit -l",
                   .why = N_("In the job itself: limits of a login shell are not those of mpirun, "
                             "Slurm or a container.")},
                  {.command =
                       "printf '* soft memlock unlimited\\n* hard memlock unlimited\\n' | sudo "
                       "tee /etc/security/limits.d/memlock.conf",
                   .undo = "sudo rm /etc/security/limits.d/memlock.conf",
                   .why = N_("Takes effect at the next login; restart the batch system's daemon.")},
                  {.command = "docker run --ulimit memlock=-1:-1 IMAGE",
                   .why = N_("For containers.")},
                  {.why = N_("For Slurm: PropagateResourceLimitsExcept=MEMLOCK in slurm.conf, and "
                             "LimitMEMLOCK=infinity for slurmd.")}},
        .outranks = "C18 C39 C37",
        .judge = judge_memlock,
    },
    {
        .id = "C09",
        .severity = TV_CRITICAL,
        .sure = TV_MEDIUM,
        .title = N_("Two adapters cannot reach each other: a fabric of separate rails"),
        .cause =
            N_("ibv_modify_qp timed out: this adapter and the other rank's are on networks that "
               "do not reach each other. In a rail-only fabric that is so for every adapter "
               "that is not the same one on both hosts."),
        .decided = N_("ibv_modify_qp fails with \"Connection timed out\"."),
        .unless =
            N_("A firewall or a missing route looks the same; then same-numbered adapters fail "
               "too."),
        .source = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
        .steps = {{.command = "export NCCL_CROSS_NIC=0",
                   .undo = "unset NCCL_CROSS_NIC",
                   .why = N_("Use the same adapter on both ends.")},
                  {.command = "ib_write_bw -d mlx5_0 HOST",
                   .why = N_("Test the pair that failed, and one on the same rail.")}},
        .outranks = "C18 C39 C37",
        .judge = judge_rail_only,
    },
    {
        .id = "C10",
        .severity = TV_CRITICAL,
        .sure = TV_MEDIUM,
        .title = N_("The chosen adapter has no route to the other host"),
        .cause =
            N_("ibv_modify_qp failed: {errno_text}. The adapter or the GID that NCCL chose does "
               "not lead to the other rank. Errors of sockets and of the proxy after it are "
               "consequences."),
        .decided =
            N_("ibv_modify_qp fails with \"Network is unreachable\", \"No route to host\" or "
               "\"Invalid argument\"."),
        .unless =
            N_("When only pairs of unlike adapters fail, the fabric is built of rails (C09)."),
        .source = "https://github.com/NVIDIA/nccl-tests/issues/185",
        .steps = {{.command = "ibdev2netdev",
                   .why = N_("See which ports are up, and on which net.")},
                  {.command = "export NCCL_IB_HCA=mlx5_0,mlx5_1",
                   .undo = "unset NCCL_IB_HCA",
                   .why =
                       N_("Name the adapters that are cabled to the job's network, only these.")},
                  {.command = "show_gids",
                   .why = N_("On RoCE choose the index of a routable RoCE v2 GID on all hosts: "
                             "NCCL_IB_GID_INDEX.")}},
        .outranks = "C18 C39 C37",
        .judge = judge_unreachable,
    },
    {
        .id = "C08",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("The network lost packets until the adapter gave up"),
        .cause =
            N_("The adapter sent to {peer} again and again and got no answer (status 12), after "
               "the job had worked: a link that flaps, a bad cable or optic, or a host that is "
               "gone."),
        .decided = N_("A completion with status 12 (transport retry counter exceeded), or an "
                      "adapter's event of a port error; high where steps of training stand before "
                      "it."),
        .unless =
            N_("At the very first traffic the configuration is likelier (C07). The other rank "
               "may simply have died: look at its log first."),
        .source = "https://github.com/NVIDIA/nccl/issues/1405",
        .steps = {{.command = "mlxlink -d mlx5_0 -c",
                   .why = N_("Counters of symbol errors and link downs, on both ends.")},
                  {.command = "ibdiagnet -pc",
                   .why = N_("The whole InfiniBand fabric, from one host; clears the counters so "
                             "that a second run shows what is new.")},
                  {.command = "dmesg -T | grep -iE 'mlx5|link (down|up)'",
                   .why = N_("When the link went down.")},
                  {.command = "export NCCL_IB_TIMEOUT=22",
                   .undo = "unset NCCL_IB_TIMEOUT",
                   .why = N_("Only covers short losses; the link stays bad.")}},
        .outranks = "C18 C39 C37",
        .judge = judge_link_lost,
    },
    {
        .id = "C07",
        .severity = TV_CRITICAL,
        .sure = TV_MEDIUM,
        .title = N_("The first packets over RoCE or InfiniBand were never answered"),
        .cause =
            N_("The adapter got no answer (status 12) although nothing had been sent before: the "
               "two ends use GIDs that do not match or do not route, or the network does not "
               "carry the traffic class (VLAN, PFC)."),
        .decided = N_("A completion with status 12 and no step of training before it; medium where "
                      "the log begins with NCCL's start."),
        .unless = N_("After hours of work it is the link (C08)."),
        .source = "https://github.com/pytorch/pytorch/issues/81628",
        .steps = {{.command = "show_gids",
                   .why = N_("Find the index of the RoCE v2 GID with the job's address.")},
                  {.command = "export NCCL_IB_GID_INDEX=3",
                   .undo = "unset NCCL_IB_GID_INDEX",
                   .why = N_("Set that index on all hosts.")},
                  {.command = "ib_write_bw -x 3 -d mlx5_0 HOST",
                   .why = N_("The same path without NCCL.")}},
        .outranks = "C18 C39 C37",
        .judge = judge_first_traffic,
    },
    {
        .id = "C25",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("Two ranks use the same card"),
        .cause =
            N_("Rank {rank} and rank {other_rank} both chose the device {bus}. Each rank needs "
               "a card of its own."),
        .decided = N_("NCCL names a duplicate GPU, or several ranks on one."),
        .unless = N_("MIG slices and containers that hide cards can show one bus twice."),
        .source = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
        .steps = {{.command = "torch.cuda.set_device(int(os.environ['LOCAL_RANK']))",
                   .why =
                       N_("Before the process group is made; no more ranks per host than cards.")},
                  {.command = "echo $CUDA_VISIBLE_DEVICES",
                   .why = N_("The same single card for every rank is the other way to get here.")}},
        .outranks = "C18 C39 O15",
        .judge = judge_same_gpu,
    },
    {
        .id = "C26",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("Ranks run different versions of NCCL"),
        .cause =
            N_("One rank runs NCCL {version}, another {other_version}: they may not understand "
               "each other."),
        .decided = N_("NCCL names a mismatch, or the logs of one job show two versions."),
        .unless = N_("Logs of two different jobs in one folder show two versions as well."),
        .source = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
        .steps = {{.command = "python -c \"import torch; print(torch.cuda.nccl.version())\"",
                   .why = N_("On every host.")},
                  {.why = N_("Use the same image on all hosts; look for a second libnccl in "
                             "LD_LIBRARY_PATH.")}},
        .outranks = "C18 C39",
        .judge = judge_versions,
    },
    {
        .id = "C11",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("NCCL uses an interface that leads to no other host"),
        .cause = N_("{interface} belongs to containers, virtual machines or a tunnel, yet NCCL "
                    "listed it for "
                    "its connections. Between hosts, connections over it hang or fail."),
        .decided =
            N_("Bootstrap or NET/Socket names docker*, br-*, virbr*, tunl*, cali*, flannel*, "
               "cni*, veth*, weave*, tun*, wg* and their like, or lo with several hosts; critical "
               "where NCCL finds no "
               "interface at all, or a connection to a rank is its first failure."),
        .unless = N_("With all ranks on one host it does no harm. Some clusters do route their "
                     "overlay."),
        .source = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
        .steps = {{.command = "export NCCL_SOCKET_IFNAME={good}",
                   .undo = "unset NCCL_SOCKET_IFNAME",
                   .why = N_("Name the interface that joins the hosts.")},
                  {.command = "export NCCL_SOCKET_IFNAME=^{interface},lo",
                   .undo = "unset NCCL_SOCKET_IFNAME",
                   .why = N_("Or shut this one out.")},
                  {.command = "export GLOO_SOCKET_IFNAME={good}",
                   .undo = "unset GLOO_SOCKET_IFNAME",
                   .why = N_("Gloo chooses for itself.")},
                  {.command = "ip -br addr", .why = N_("The interfaces and their addresses.")}},
        .judge = judge_interface,
    },
    {
        .id = "C46",
        .severity = TV_CRITICAL,
        .sure = TV_MEDIUM,
        .title = N_("The adapter was not allowed to touch the memory it was given"),
        .cause =
            N_("A completion with status {status} (protection or access error): the buffer that "
               "was registered with the adapter cannot be reached through it. With GPUDirect "
               "RDMA that means that direct access to the card's memory is broken: by IOMMU or "
               "ACS, or by modules that do not fit each other."),
        .decided = N_("An adapter's completion with status 4, 9 or 10."),
        .unless = N_("A rank that ended early takes its buffers away: look for its error first."),
        .source = "https://github.com/NVIDIA/nccl/issues/1052",
        .steps = {{.command = "NCCL_NET_GDR_LEVEL=LOC torchrun train.py",
                   .why = N_("A test without GPUDirect: if it runs, the direct way is at fault.")},
                  {.command = "modinfo -F version nvidia_peermem nvidia",
                   .why = N_("Both must be of one version.")},
                  {.command = "sudo lspci -vvv | grep ACSCtl",
                   .why = N_("SrcValid+ on bridges: see C01.")}},
        .outranks = "C18 C39",
        .judge = judge_protection,
    },
    {
        .id = "C50",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("A card has more peers than it can map"),
        .cause = N_("CUDA allows a card eight direct peers where no NVSwitch joins them; with more "
                    "cards in one job \"peer mapping resources exhausted\" follows."),
        .decided = N_("NCCL reports \"peer mapping resources exhausted\"."),
        .unless = NULL,
        .source = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/",
        .steps = {{.command = "mpirun -np 10 all_reduce_perf -b 8 -e 1G -f 2 -g 1",
                   .why = N_("One process per card: NCCL then maps its neighbours alone.")},
                  {.command = "export NCCL_P2P_DISABLE=1",
                   .undo = "unset NCCL_P2P_DISABLE",
                   .why = N_("A stop-gap, slower: through the host's memory.")},
                  {.why = N_("Or keep to eight cards in one job.")}},
        .outranks = "C18 C39",
        .judge = judge_mappings,
    },
    {
        .id = "C48",
        .severity = TV_CRITICAL,
        .sure = TV_LOW,
        .title = N_("NCCL failed, and the log does not say of what"),
        .cause = N_("The framework passes on {result} alone; the call that failed is only named in "
                    "NCCL's own log."),
        .decided = N_("A framework reports an error of NCCL, and no complaint of NCCL's own that "
                      "could be the cause is there."),
        .unless = N_("Another rank's log may hold it."),
        .source = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
        .steps = {{.command = "NCCL_DEBUG=INFO torchrun train.py",
                   .why = N_("Run again and give the whole log: the first WARN is the cause.")},
                  {.command = "df -h /dev/shm",
                   .why = N_("For a system error in a container look here first.")}},
        .judge = judge_silent,
    },
    {
        .id = "C40",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("The driver is too old for this NCCL"),
        .cause = N_("NCCL found a CUDA driver below the version that it was built to need."),
        .decided = N_("NCCL's complaint of the CUDA driver version."),
        .source = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
        .steps = {{.command = "nvidia-smi --query-gpu=driver_version --format=csv",
                   .why = N_("Compare with what the framework's build needs.")},
                  {.why =
                       N_("Install a newer driver, or the framework's build for the older CUDA.")}},
        .outranks = "C18 C39",
        .judge = judge_driver,
    },
};

extern const tv_rule_group tv_rule_group_nccl_rules;
const tv_rule_group tv_rule_group_nccl_rules = {"nccl", N_("Failures of NCCL"), rules,
                                                sizeof rules / sizeof *rules};
