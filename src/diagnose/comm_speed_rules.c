/* Communication that works and is slower than it could be: a worse path than the topology allows,
 * no GPUDirect, copies across sockets, bandwidth under what the links carry. */
#include "comm.h"

#include <math.h>

static const tv_sighting *next_nccl(const tv_inquiry *q, const tv_sighting *s)
{
    return s ? tv_scene_next(s, "nccl") : tv_scene_first(q->scene, "nccl");
}

/* ---- C04: data goes through the host although cards could reach each other ---- */

static double paths_via(const tv_sighting *s, const char *transport)
{
    const double n = tv_noted_num(tv_noted(&s->facts, "transports"), transport);
    return isnan(n) ? 0 : n;
}

static const tv_note *path_via(const tv_sighting *s, const char *transport)
{
    const tv_note *list = tv_noted(&s->facts, "paths");
    for (const tv_note *item = list ? list->first : NULL; item; item = item->next)
        if (tv_noted_is(item, "transport", transport))
            return item;
    return NULL;
}

static const tv_sighting *p2p_table(const tv_inquiry *q)
{
    const tv_sighting *s = tv_scene_first(q->scene, "topo");
    while (s && !tv_noted(&s->facts, "p2p"))
        s = tv_scene_next(s, "topo");
    return s;
}

static bool is_card_without_p2p(const tv_inquiry *q)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "device-record"); s;
         s = tv_scene_next(s, "device-record"))
        if (!tv_noted_bool(&s->facts, "p2p_over_pcie", true))
            return true;
    return false;
}

static tv_reach nearest_pair(const tv_sighting *topo)
{
    size_t counts[TV_REACH_UNKNOWN + 1];
    tv_topo_counts(topo, counts);
    for (unsigned i = 0; i < TV_REACH_UNKNOWN; i++)
        if (counts[i])
            return (tv_reach)i;
    return TV_REACH_UNKNOWN;
}

static void explain_shm(tv_inquiry *q, tv_finding *f, const tv_sighting *s, tv_reach nearest)
{
    const tv_sighting *table = p2p_table(q);
    const tv_str state = table ? tv_noted_str(&table->facts, "all_p2p") : (tv_str){0};
    const tv_note *settings = tv_noted(&s->facts, "settings");
    if (tv_noted_is(settings, "NCCL_P2P_DISABLE", "1")) {
        f->sure = TV_HIGH;
        f->cause =
            N_("NCCL_P2P_DISABLE=1 is set: every channel goes through the host's memory (SHM) "
               "although the cards could reach each other directly.");
        tv_found_also(q, f, s, tv_noted(settings, "NCCL_P2P_DISABLE"));
        return;
    }
    if (state.n && !tv_str_is(state, "OK")) {
        f->sure = TV_HIGH;
        f->cause = N_("Every channel goes through the host's memory (SHM), because the driver does "
                      "not allow the cards to reach each other: topo -p2p says {p2p_state}.");
        tv_found_str(q, f, "p2p_state", state);
        tv_found_also(q, f, table, tv_noted(&table->facts, "all_p2p"));
        return;
    }
    if (is_card_without_p2p(q) && nearest != TV_REACH_NVLINK) {
        f->severity = TV_INFO;
        f->cause = N_("Every channel goes through the host's memory (SHM): the driver offers no "
                      "peer-to-peer between cards of this kind. It is slower than a direct path "
                      "and cannot be changed.");
        return;
    }
    if (nearest == TV_REACH_NVLINK)
        f->sure = TV_HIGH;
    else if (nearest > TV_REACH_PXB) /* there NCCL itself prefers SHM on Intel hosts */
        f->sure = TV_LOW;
}

static void judge_shm_path(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *topo = tv_topo_seen(q->scene, NULL);
    for (const tv_sighting *s = next_nccl(q, NULL); s; s = next_nccl(q, s)) {
        if (paths_via(s, "SHM") < 1 || paths_via(s, "P2P") > 0 ||
            tv_noted_n(&s->facts, "hosts") > 1)
            continue;
        const bool told = tv_noted_is(tv_noted(&s->facts, "settings"), "NCCL_P2P_DISABLE", "1");
        if (!topo && !told && !p2p_table(q)) {
            tv_ask(q, "nvidia-smi topo -m; nvidia-smi topo -p2p r",
                   N_("Channels go through the host's memory; this shows whether the cards could "
                      "reach each other directly."));
            continue;
        }
        const tv_reach nearest = topo ? nearest_pair(topo) : TV_REACH_UNKNOWN;
        if (topo && nearest >= TV_REACH_SYS && !told)
            continue;
        tv_finding *f = tv_found(q, rule, s, path_via(s, "SHM"));
        if (topo)
            tv_found_also(q, f, topo, NULL);
        explain_shm(q, f, s, nearest);
        return;
    }
}

/* ---- C12: adapters are there and not used ---- */

static const tv_note *active_port(const tv_inquiry *q, const tv_sighting **where)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "ib"); s; s = tv_scene_next(s, "ib")) {
        const tv_note *ports = tv_noted(&s->facts, "ports");
        for (const tv_note *p = ports ? ports->first : NULL; p; p = p->next)
            if (tv_noted_bool(p, "active", false)) {
                *where = s;
                return p;
            }
    }
    return NULL;
}

static bool is_without_ib(const tv_sighting *s)
{
    return !tv_noted_bool(&s->facts, "ib_available", true) ||
           tv_noted_is(&s->facts, "net", "Socket");
}

static void judge_unused_ib(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *where = NULL;
    const tv_note *port = active_port(q, &where);
    for (const tv_sighting *s = next_nccl(q, NULL); port && s; s = next_nccl(q, s)) {
        if (!is_without_ib(s))
            continue;
        const tv_note *net = tv_noted(&s->facts, "net");
        tv_finding *f = tv_found(q, rule, s, net ? net : tv_noted(&s->facts, "ib_available"));
        tv_found_also(q, f, where, port);
        tv_found_str(q, f, "dev", tv_noted_str(port, "dev"));
        if (tv_nccl_is_local(s))
            f->severity = TV_INFO;
        const tv_note *settings = tv_noted(&s->facts, "settings");
        if (tv_noted_is(settings, "NCCL_IB_DISABLE", "1")) {
            f->cause =
                N_("{dev} is up, but NCCL_IB_DISABLE=1 is set: all traffic between hosts goes "
                   "through sockets.");
            tv_found_also(q, f, s, tv_noted(settings, "NCCL_IB_DISABLE"));
        }
        return;
    }
}

/* ---- C13, C14: data takes the way over the host's memory to the adapter ---- */

/* What lsmod told of either module: 1 loaded, 0 not, -1 not told. */
static int peermem_state(const tv_inquiry *q, const tv_sighting **where)
{
    int state = -1;
    for (const tv_sighting *s = tv_scene_first(q->scene, "modules"); s;
         s = tv_scene_next(s, "modules")) {
        const tv_note *now = tv_noted(&s->facts, "nvidia_peermem");
        const tv_note *old = tv_noted(&s->facts, "nv_peer_mem");
        if ((now && now->yes) || (old && old->yes)) {
            *where = s;
            return 1;
        }
        if (now || old) {
            *where = s;
            state = 0;
        }
    }
    return state;
}

static const tv_note *gdr_off(const tv_sighting *s)
{
    const tv_note *list = tv_noted(&s->facts, "gdr");
    for (const tv_note *item = list ? list->first : NULL; item; item = item->next)
        if (!tv_noted_bool(item, "enabled", true))
            return item;
    return NULL;
}

static bool is_gdr_on(const tv_sighting *s)
{
    const tv_note *list = tv_noted(&s->facts, "gdr");
    for (const tv_note *item = list ? list->first : NULL; item; item = item->next)
        if (tv_noted_bool(item, "enabled", false))
            return true;
    return tv_noted_bool(&s->facts, "gdr_used", false);
}

/* Other networks (EFA, sockets) print the same line of adapters that never had it. */
static bool is_gdr_of_mlx(const tv_sighting *s)
{
    const tv_note *off = gdr_off(s);
    return off && (tv_str_has(off->text, TV_S("NET/IB")) || !tv_str_has(off->text, TV_S("NET/")));
}

/* The line that shows it; NULL: GPUDirect is used, or nothing of it is told. */
static const tv_note *without_gdr(const tv_sighting *s)
{
    const bool ib = tv_noted_n(&s->facts, "hcas") || paths_via(s, "NET/IB") > 0 ||
                    tv_str_starts(tv_noted_str(&s->facts, "net"), TV_S("IB")) || is_gdr_of_mlx(s);
    if (!ib || is_gdr_on(s))
        return NULL;
    const tv_note *off = gdr_off(s);
    if (off)
        return off;
    return paths_via(s, "NET/IB") > 0 ? path_via(s, "NET/IB") : NULL;
}

static bool is_far_from_nics(const tv_inquiry *q, const tv_sighting **where)
{
    const tv_sighting *topo = tv_topo_seen(q->scene, NULL);
    const size_t n = topo ? tv_topo_gpus(topo) : 0;
    for (size_t x = 0; x < n; x++)
        if (tv_topo_nic_reach(topo, x) <= TV_REACH_PXB)
            return false;
    *where = topo;
    return n > 0 && tv_noted_n(&topo->facts, "near_nic_link") > 0;
}

static bool is_told_far(const tv_note *off)
{
    return off && !isnan(tv_noted_num(off, "distance"));
}

static void judge_peermem(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *where = NULL, *topo = NULL;
    const int state = peermem_state(q, &where);
    for (const tv_sighting *s = next_nccl(q, NULL); s; s = next_nccl(q, s)) {
        const tv_note *at = without_gdr(s);
        if (!at || is_without_ib(s) || is_told_far(gdr_off(s)) || state > 0)
            continue;
        if (state < 0 && is_far_from_nics(q, &topo))
            continue; /* the distance alone explains it */
        tv_finding *f = tv_found(q, rule, s, at);
        if (tv_nccl_is_local(s))
            f->severity = TV_INFO;
        if (state == 0) {
            tv_found_also(q, f, where, NULL);
            return;
        }
        f->sure = TV_MEDIUM;
        f->cause = N_("NCCL does not use GPUDirect RDMA: data between hosts is copied through the "
                      "host's memory. Most often the module nvidia_peermem is not loaded; the log "
                      "alone does not show it.");
        tv_ask(q, "lsmod | grep nvidia_peermem", N_("Empty: the module is missing (C13)."));
        return;
    }
}

static void judge_far_nic(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *modules = NULL, *topo = NULL;
    const int state = peermem_state(q, &modules);
    for (const tv_sighting *s = next_nccl(q, NULL); s; s = next_nccl(q, s)) {
        const tv_note *at = without_gdr(s);
        if (!at || is_without_ib(s))
            continue;
        const bool told = is_told_far(gdr_off(s));
        const bool far = is_far_from_nics(q, &topo);
        if (!told && !far) {
            if (state > 0)
                tv_ask(q, "nvidia-smi topo -m",
                       N_("The module is loaded; the distance between card and adapter tells "
                          "whether NCCL may use GPUDirect."));
            continue;
        }
        tv_finding *f = tv_found(q, rule, s, at);
        if (tv_nccl_is_local(s))
            f->severity = TV_INFO;
        if (!told)
            f->sure = state > 0 ? TV_HIGH : TV_MEDIUM;
        if (far)
            tv_found_also(q, f, topo, tv_noted(&topo->facts, "near_nic_link"));
        if (state > 0)
            tv_found_also(q, f, modules, NULL);
        return;
    }
}

/* ---- C38, C16: bandwidth under what the links carry ---- */

/* What a card of the test has over NVLink to its partners; NaN: not known. Up to Volta the links of
 * a card are shared out among its neighbours, so that only a test of all cards uses them all. */
static double nvlink_of(const tv_inquiry *q, tv_str product, double ranks)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "device-record"); s;
         s = tv_scene_next(s, "device-record"))
        if (tv_str_eq(tv_noted_str(&s->facts, "name"), product))
            return tv_noted_num(&s->facts, "compute_capability") >= 8 || ranks >= 8
                       ? tv_noted_num(&s->facts, "nvlink_bytes_per_s")
                       : (double)NAN;
    return (double)NAN;
}

/* Node checkers' limits are 0.74 to 0.79 of NVLink's one direction on eight cards and 0.64 on
 * bridged pairs (azurehpc-health-checks); under 0.55 something is wrong. */
#define GOOD_SHARE_OF_NVLINK 0.75
#define LOW_SHARE_OF_NVLINK 0.55
/* Smaller messages are bound by latency. */
#define LARGE_MESSAGE_BYTES 67108864.0

static bool has_nvlink(const tv_inquiry *q)
{
    const tv_sighting *topo = tv_topo_seen(q->scene, NULL);
    return !topo || tv_noted_bool(&topo->facts, "nvlink_unknown", false) ||
           tv_noted_bool(&topo->facts, "nvlink", false);
}

/* SXM boards always have it; cards for slots only with a bridge that topo -m shows. */
static bool is_form_with_nvlink(const tv_inquiry *q, tv_str product)
{
    return tv_str_has(product, TV_S("SXM")) || tv_str_has(product, TV_S("HBM3")) ||
           tv_topo_seen(q->scene, NULL) != NULL;
}

static void judge_busbw(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "nccl-tests"); s;
         s = tv_scene_next(s, "nccl-tests")) {
        const tv_str product = tv_noted_str(&s->facts, "product");
        const double nvlink = nvlink_of(q, product, tv_noted_num(&s->facts, "ranks"));
        const double most = tv_noted_num(&s->facts, "max_busbw_bytes_per_s");
        const double at = tv_noted_num(&s->facts, "max_busbw_at_bytes");
        if (!(nvlink > 0) || !(most > 0) || !(at >= LARGE_MESSAGE_BYTES) ||
            tv_noted_n(&s->facts, "hosts") > 1 || tv_noted_num(&s->facts, "ranks") < 2 ||
            !has_nvlink(q) || !is_form_with_nvlink(q, product) ||
            most >= LOW_SHARE_OF_NVLINK * nvlink)
            continue;
        tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "max_busbw_bytes_per_s"));
        tv_found_num(q, f, "busbw_bytes_per_s", TV_ARG_RATE, most);
        tv_found_num(q, f, "expected_bytes_per_s", TV_ARG_RATE, GOOD_SHARE_OF_NVLINK * nvlink);
        tv_found_num(q, f, "nvlink_bytes_per_s", TV_ARG_RATE, nvlink);
        f->weight = 1 - most / (GOOD_SHARE_OF_NVLINK * nvlink);
        if (most < 0.25 * nvlink)
            f->sure = TV_HIGH;
        tv_ask(q, "nvidia-smi nvlink -s", N_("It shows whether every link is up, and how fast."));
    }
}

/* The measured rate of an adapter against its port's. */
static void judge_ib_rate(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "bandwidth"); s;
         s = tv_scene_next(s, "bandwidth")) {
        const tv_str dev = tv_noted_str(&s->facts, "dev");
        const double got = tv_noted_num(&s->facts, "bw_bytes_per_s");
        for (const tv_sighting *ib = tv_scene_first(q->scene, "ib"); dev.n && got > 0 && ib;
             ib = tv_scene_next(ib, "ib")) {
            const tv_note *ports = tv_noted(&ib->facts, "ports");
            for (const tv_note *p = ports ? ports->first : NULL; p; p = p->next) {
                const double rate = tv_noted_num(p, "rate_bytes_per_s");
                if (!tv_str_eq(tv_noted_str(p, "dev"), dev) || !(rate > 0) || got >= 0.8 * rate ||
                    tv_noted_num(&s->facts, "transfer_bytes") < 32768)
                    continue;
                tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "bw_bytes_per_s"));
                tv_found_also(q, f, ib, p);
                tv_found_str(q, f, "dev", dev);
                tv_found_num(q, f, "got_bytes_per_s", TV_ARG_RATE, got);
                tv_found_num(q, f, "rate_bytes_per_s", TV_ARG_RATE, rate);
                f->weight = 1 - got / rate;
            }
        }
    }
}

static void judge_topo_file(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = next_nccl(q, NULL); s; s = next_nccl(q, s)) {
        const tv_note *file = tv_noted(&s->facts, "topo_file");
        const tv_note *warns = tv_noted(&s->facts, "warn");
        const tv_note *broken = NULL;
        for (const tv_note *w = warns ? warns->first : NULL; w && !broken; w = w->next)
            broken = tv_noted_is(w, "class", "topo-file") ? w : NULL;
        if (!broken && (!file || !tv_has_found(q, "C38")))
            continue;
        tv_finding *f = tv_found(q, rule, s, file ? file : broken);
        tv_found_str(q, f, "file", tv_noted_str(&s->facts, "topo_file"));
        if (broken) {
            tv_found_also(q, f, s, broken);
            f->cause = N_("NCCL complains of the topology that it was given: the file does not "
                          "describe this machine, or cannot be read.");
        }
        return;
    }
}

/* ---- C41: direct copies slower than those over the host ---- */

static void judge_slow_p2p(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "bandwidth"); s;
         s = tv_scene_next(s, "bandwidth")) {
        const double direct = tv_noted_num(&s->facts, "uni_p2p_least_bytes_per_s");
        const double host = tv_noted_num(&s->facts, "uni_host_least_bytes_per_s");
        if (!(direct > 0) || !(host > 0) || direct >= 0.7 * host)
            continue;
        tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "uni_p2p_bytes_per_s"));
        tv_found_num(q, f, "p2p_bytes_per_s", TV_ARG_RATE, direct);
        tv_found_num(q, f, "host_bytes_per_s", TV_ARG_RATE, host);
        f->weight = 1 - direct / host;
        tv_ask(q, "sudo lspci -vvv | grep -E '^[0-9a-f]|ACSCtl'",
               N_("SrcValid+, ReqRedir+ or CmpltRedir+ on a bridge above the cards settles it."));
    }
}

/* ---- C42: wrong values ---- */

static void judge_wrong(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "nccl-tests"); s;
         s = tv_scene_next(s, "nccl-tests")) {
        const double n = tv_noted_num(&s->facts, "wrong_values");
        if (!(n > 0))
            continue;
        tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "wrong_at"));
        tv_found_num(q, f, "wrong", TV_ARG_COUNT, n);
    }
}

/* ---- C43: ports that are down ---- */

static void judge_ports(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "ib"); s; s = tv_scene_next(s, "ib")) {
        const tv_note *ports = tv_noted(&s->facts, "ports");
        for (const tv_note *p = ports ? ports->first : NULL; p; p = p->next) {
            const tv_str state = tv_noted_str(p, "state");
            const bool polling = tv_noted_is(p, "physical_state", "Polling") ||
                                 tv_noted_is(p, "physical_state", "LinkErrorRecovery");
            const bool managed = tv_str_has(state, TV_S("Init"));
            if (!managed && !polling)
                continue;
            tv_finding *f = tv_found(q, rule, s, p);
            tv_found_str(q, f, "dev", tv_noted_str(p, "dev"));
            tv_found_str(q, f, "state", managed ? state : tv_noted_str(p, "physical_state"));
            if (managed)
                f->cause =
                    N_("The port of {dev} is {state}: its cable is good, but no subnet manager "
                       "has set it up, so it carries no traffic.");
        }
    }
}

static const tv_rule rules[] = {
    {
        .id = "C04",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("Data between cards goes through the host's memory"),
        .cause = N_("Every channel of NCCL is \"via SHM\", although the topology shows cards near "
                    "enough to reach each other directly: peer-to-peer is off, by ACS, by a "
                    "container that sees each card alone, or for cards of this kind."),
        .decided =
            N_("All channels between ranks of one host go via SHM, none via P2P, and topo -m "
               "shows a pair nearer than SYS; high with NVLink between them, with "
               "NCCL_P2P_DISABLE=1, or where topo -p2p refuses every pair; low where the "
               "nearest pair is PHB or NODE."),
        .unless = N_("On Intel hosts NCCL itself prefers SHM beyond one PCIe switch. GeForce cards "
                     "from RTX 40 on have no peer-to-peer: then it is told for information."),
        .source = "https://github.com/NVIDIA/nccl/issues/1127",
        .steps = {{.command = "nvidia-smi topo -p2p r",
                   .why = N_("OK: the driver allows it; CNS, GNS, TNS: it does not.")},
                  {.command = "unset NCCL_P2P_DISABLE",
                   .undo = "export NCCL_P2P_DISABLE=1",
                   .why = N_("Only where it was set as a stop-gap that is no longer needed.")},
                  {.command = "docker run --ipc=host --gpus all IMAGE",
                   .why = N_("One container that sees all cards, with the host's shared memory.")},
                  {.command = "sudo lspci -vvv | grep ACSCtl",
                   .why = N_("SrcValid+ and ReqRedir+ on bridges: see C01.")}},
        .judge = judge_shm_path,
    },
    {
        .id = "C12",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("InfiniBand is up, NCCL uses sockets"),
        .cause = N_("{dev} is active, yet NCCL found no InfiniBand device and sends everything "
                    "between hosts through sockets: the image lacks libibverbs, or the container "
                    "does not see /dev/infiniband."),
        .decided = N_("A port is active, and NCCL says \"NET/IB : No device found\", cannot open "
                      "libibverbs, or uses the network Socket."),
        .unless = N_("Ranks on one host alone need no network."),
        .source = "https://github.com/NVIDIA/nccl/issues/857",
        .steps = {{.command = "docker run --device=/dev/infiniband --cap-add=IPC_LOCK --ulimit "
                              "memlock=-1:-1 IMAGE",
                   .why = N_("Let the container see the adapters.")},
                  {.command = "apt-get install libibverbs1 ibverbs-providers rdma-core",
                   .undo = "apt-get remove libibverbs1 ibverbs-providers rdma-core",
                   .why = N_("In the image.")},
                  {.command = "unset NCCL_IB_DISABLE",
                   .undo = "export NCCL_IB_DISABLE=1",
                   .why = N_("Where it is set.")}},
        .judge = judge_unused_ib,
    },
    {
        .id = "C13",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("GPUDirect RDMA is off: nvidia_peermem is not loaded"),
        .cause =
            N_("NCCL does not use GPUDirect RDMA, and the module nvidia_peermem that it needs is "
               "not loaded: data between hosts is copied through the host's memory."),
        .decided = N_("\"GPU Direct RDMA Disabled\", or channels via NET/IB without /GDRDMA; high "
                      "where lsmod shows neither nvidia_peermem nor nv_peer_mem."),
        .unless = N_("With the open kernel modules and Linux 5.12 or later NCCL can do without it "
                     "(DMA-BUF). GB10 and other cards with shared memory have no GPUDirect. A card "
                     "far from its adapter is C14."),
        .source = "https://docs.nvidia.com/cuda/gpudirect-rdma/",
        .steps = {{.command = "sudo modprobe nvidia_peermem",
                   .undo = "sudo modprobe -r nvidia_peermem",
                   .why = N_("Load it now; NCCL finds it at its next start.")},
                  {.command =
                       "echo nvidia_peermem | sudo tee /etc/modules-load.d/nvidia-peermem.conf",
                   .undo = "sudo rm /etc/modules-load.d/nvidia-peermem.conf",
                   .why = N_("Load it at every start.")}},
        .judge = judge_peermem,
    },
    {
        .id = "C14",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("GPUDirect RDMA is off: the adapter is too far from the card"),
        .cause =
            N_("NCCL uses GPUDirect RDMA only where card and adapter share a PCIe switch (PIX, "
               "PXB). Here they are farther apart, so data between hosts is copied through the "
               "host's memory."),
        .decided = N_("GPUDirect is off in NCCL's log, and the log gives a distance over its limit "
                      "or topo -m shows no adapter at PIX or PXB for any card."),
        .unless = N_("When the module is missing too, load it first (C13). Where card and adapter "
                     "share no switch, the way over the host is often the faster one: measure."),
        .source = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
        .steps = {{.why = N_("Move the adapter into a slot under the cards' switch.")},
                  {.command = "export NCCL_NET_GDR_LEVEL=PHB",
                   .undo = "unset NCCL_NET_GDR_LEVEL",
                   .why =
                       N_("Allow it across the root complex; measure before and after, it can be "
                          "slower.")}},
        .judge = judge_far_nic,
    },
    {
        .id = "C38",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("Bus bandwidth is far under what NVLink carries"),
        .cause =
            N_("Large messages reached {busbw_bytes_per_s}; cards of this kind carry "
               "{nvlink_bytes_per_s} each way over NVLink, and about {expected_bytes_per_s} is "
               "usual. Links are down, peer-to-peer is off, or the data takes another path."),
        .decided =
            N_("nccl-tests on one host with cards that have NVLink: the best bus bandwidth at "
               "64 MiB or more is under 0.55 of NVLink's one direction (0.75 is usual); high "
               "under 0.25."),
        .unless = N_("Cards without a bridge have no NVLink: topo -m shows it. Other jobs on the "
                     "cards slow the test."),
        .source = "https://github.com/Azure/azurehpc-health-checks",
        .steps = {{.command = "nvidia-smi nvlink -s", .why = N_("All links up, at full speed?")},
                  {.command = "nvidia-smi topo -m", .why = N_("NV# between all pairs?")},
                  {.command = "NCCL_DEBUG=INFO all_reduce_perf -b 1G -e 1G -g 8",
                   .why = N_("The path of each channel: P2P, not SHM or NET.")}},
        .judge = judge_busbw,
    },
    {
        .id = "C44",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("An adapter is slower than its link"),
        .cause =
            N_("{dev} moved {got_bytes_per_s}, its link carries {rate_bytes_per_s}: a PCIe slot "
               "that is too narrow, memory of the other socket, or a lossy link."),
        .decided = N_("perftest's average at 32 KiB or more is under 0.8 of the port's rate."),
        .unless = N_("Small messages and one queue pair alone may not fill a fast link."),
        .source = "https://github.com/Azure/azurehpc-health-checks",
        .steps = {{.command = "sudo lspci -vv -d 15b3: | grep -E 'LnkCap|LnkSta'",
                   .why = N_("The slot's width and speed.")},
                  {.command = "numactl --cpunodebind=0 ib_write_bw -d {dev} HOST",
                   .why = N_("Bound to the adapter's node: cat /sys/class/infiniband/DEV/device/"
                             "numa_node.")}},
        .judge = judge_ib_rate,
    },
    {
        .id = "C16",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("NCCL is given a topology that does not fit the machine"),
        .cause = N_("NCCL takes the topology from {file} instead of looking, and the bandwidth is "
                    "far under what the links carry: the file is for another machine or too old."),
        .decided =
            N_("NCCL_TOPO_FILE is in force and bus bandwidth is low (C38), or NCCL complains "
               "of the file."),
        .unless = N_("Cloud images need their file: compare with and without."),
        .source = "https://github.com/NVIDIA/nccl/issues/1303",
        .steps = {{.command = "env -u NCCL_TOPO_FILE all_reduce_perf -b 1G -e 1G -g 8",
                   .why = N_("The same test without the file.")},
                  {.command = "grep -r NCCL_TOPO_FILE /etc/nccl.conf ~/.nccl.conf",
                   .why = N_("Where else it may be set.")}},
        .outranks = "C38",
        .judge = judge_topo_file,
    },
    {
        .id = "C41",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("Direct copies between cards are slower than those over the host"),
        .cause =
            N_("With peer-to-peer a pair of cards moves {p2p_bytes_per_s}, without it "
               "{host_bytes_per_s}: the direct way is turned back at a bridge (ACS, IOMMU), or "
               "crosses the processors' interconnect badly."),
        .decided =
            N_("p2pBandwidthLatencyTest: the slowest pair with P2P enabled is under 0.7 of the "
               "slowest without."),
        .unless = NULL,
        .source = "https://github.com/NVIDIA/nccl/issues/667",
        .steps = {{.command = "sudo lspci -vvv | grep -E '^[0-9a-f]|ACSCtl'",
                   .why = N_("SrcValid+, ReqRedir+ or CmpltRedir+ on a bridge above the cards: see "
                             "C01.")},
                  {.command = "export NCCL_P2P_DISABLE=1",
                   .undo = "unset NCCL_P2P_DISABLE",
                   .why = N_("A stop-gap: the faster way over the host.")}},
        .judge = judge_slow_p2p,
    },
    {
        .id = "C42",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("A collective returned wrong values"),
        .cause = N_("nccl-tests counted {wrong} wrong values: data is damaged on its way between "
                    "cards. Results of any job on this host are in doubt."),
        .decided =
            N_("The #wrong column of nccl-tests is above zero, or its last line says FAILED."),
        .unless = N_(
            "The error column of older versions is the largest difference of rounding: it is not "
            "counted."),
        .source = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
        .steps = {{.command = "NCCL_P2P_DISABLE=1 all_reduce_perf -b 8 -e 1G -f 2 -g 2",
                   .why = N_("Right now: peer-to-peer through the IOMMU damages it (C01, C02).")},
                  {.command = "dcgmi diag -r 3",
                   .why =
                       N_("Still wrong: memory or links of a card; end your jobs on it first, the "
                          "test takes the whole card.")}},
        .judge = judge_wrong,
    },
    {
        .id = "C43",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("An adapter's port does not come up"),
        .cause = N_("The port of {dev} is {state}: the adapter looks for a partner and finds none. "
                    "The cable or optic is missing, bad, or its other end is off."),
        .decided = N_("A port is in the state Initializing (no subnet manager), or its physical "
                      "state is Polling or LinkErrorRecovery."),
        .unless = N_("Ports that nobody uses are Disabled or Down with no cable: they are not "
                     "counted."),
        .source = "https://github.com/leptonai/gpud",
        .steps = {{.command = "ibstat {dev}", .why = N_("Look again after a minute.")},
                  {.command = "sminfo", .why = N_("Is there a subnet manager?")},
                  {.command = "mlxlink -d {dev} -m",
                   .why = N_("The cable's and optic's own data.")}},
        .judge = judge_ports,
    },
};

extern const tv_rule_group tv_rule_group_comm_speed_rules;
const tv_rule_group tv_rule_group_comm_speed_rules = {"communication", N_("Slow communication"),
                                                      rules, sizeof rules / sizeof *rules};
