/* What NCCL tells at INFO: version, network, adapters, paths, ranks. */
#include "nccl_parts.h"

#include <math.h>
#include <string.h>

static void once_str(tv_nccl *n, const char *key, tv_str s, size_t at)
{
    if (s.n && !tv_noted(n->facts, key))
        (void)tv_at(n->r, tv_note_str(n->r->a, n->facts, key, s), at);
}

static void once_num(tv_nccl *n, const char *key, tv_double_read v, size_t at)
{
    if (v.ok && !tv_noted(n->facts, key))
        (void)tv_at(n->r, tv_note_num(n->r->a, n->facts, key, v.v), at);
}

static void add_word(tv_nccl *n, const char *key, tv_str s, size_t at)
{
    if (!s.n)
        return;
    tv_note *list = tv_note_list(n->r->a, n->facts, key);
    for (const tv_note *item = list->first; item; item = item->next)
        if (tv_str_eq(item->s, s))
            return;
    if (list->n < 64)
        (void)tv_at(n->r, tv_note_str(n->r->a, list, NULL, s), at);
}

/* ---- versions ---- */

static tv_str until(tv_str s, const char *ends)
{
    size_t k = 0;
    while (k < s.n && !strchr(ends, s.p[k]))
        k++;
    return tv_str_take(s, k);
}

static bool read_version(tv_nccl *n, const tv_nccl_line *line)
{
    tv_str rest;
    const bool rccl = tv_past(line->text, "RCCL version", &rest);
    if (!rccl && !tv_past(line->text, "NCCL version ", &rest))
        return false;
    rest = tv_str_trim(rest);
    if (tv_str_starts(rest, TV_S(":")))
        rest = tv_str_trim(tv_str_drop(rest, 1));
    const tv_str word = tv_take_word(&rest);
    if (!word.n || word.p[0] < '0' || word.p[0] > '9')
        return false;
    once_str(n, "library", rccl ? TV_S("rccl") : TV_S("nccl"), line->at);
    once_str(n, "version", until(word, "+-"), line->at);
    add_word(n, "versions", until(word, "+-"), line->at);
    once_str(n, "cuda", until(tv_enclosed(word, "+cuda", ""), "+-"), line->at);
    once_str(n, "hip", until(tv_enclosed(word, "+hip", ""), "+-"), line->at);
    return true;
}

/* ---- network ---- */

/* Interfaces of containers, virtual machines and private tunnels: no network between hosts. */
static bool is_suspect(tv_str name)
{
    static const char *const begins[] = {
        "docker",       "tun",    "virbr",      "cali",  "veth",  "br-", "flannel",
        "cni",          "vxlan",  "kube",       "weave", "vmnet", "lxc", "podman",
        "nodelocaldns", "cilium", "dummy",      "lxdbr", "vnet",  "usb", "tailscale",
        "wg",           "zt",     "Cloudflare", "tap"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (tv_str_starts(name, tv_str_of(begins[i])))
            return true;
    return tv_str_is(name, "lo");
}

static void add_interface(tv_nccl *n, tv_str name, size_t at)
{
    if (!name.n || name.n > 32)
        return;
    add_word(n, "interfaces", name, at);
    if (is_suspect(name))
        once_str(n, "suspect_interface", name, at);
}

/* "[0]em1:10.0.0.3<0> [1]tunl0:10.0.1.12<0>", "eth0:10.0.0.40<0>" */
static tv_str next_interface(tv_str *rest)
{
    tv_str s = tv_str_trim(*rest);
    if (tv_str_starts(s, TV_S("["))) {
        tv_str inner;
        if (!tv_past(s, "]", &inner))
            return (tv_str){0};
        s = inner;
    }
    const tv_cut cut = tv_str_cut(s, ':');
    const tv_cut next = tv_str_cut(cut.tail, ' ');
    *rest = next.tail;
    return cut.found ? cut.head : (tv_str){0};
}

static bool read_bootstrap(tv_nccl *n, const tv_nccl_line *line)
{
    tv_str rest;
    if (!tv_str_starts(line->text, TV_S("Bootstrap")) || !tv_past(line->text, "Using ", &rest))
        return false;
    const tv_str name = next_interface(&rest);
    once_str(n, "ifname", name, line->at);
    if (is_suspect(name))
        once_str(n, "suspect_interface", name, line->at);
    return true;
}

static bool read_socket(tv_nccl *n, const tv_nccl_line *line)
{
    tv_str rest;
    if (!tv_holds(line->text, "NET/Socket") || !tv_past(line->text, "Using ", &rest))
        return false;
    for (unsigned i = 0; i < 32 && rest.n; i++) {
        const tv_str name = next_interface(&rest);
        if (!name.n)
            break;
        add_interface(n, name, line->at);
    }
    return true;
}

/* "[0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB ib0:10.0.0.1<0>" */
static bool read_ib(tv_nccl *n, const tv_nccl_line *line)
{
    if (!tv_holds(line->text, "NET/IB"))
        return false;
    if (tv_holds(line->text, "No device found")) {
        (void)tv_at(n->r, tv_note_bool(n->r->a, n->facts, "ib_available", false), line->at);
        (void)tv_at(n->r, tv_note_bool(n->r->a, n->facts, "ib_no_device", true), line->at);
        return true;
    }
    tv_str rest;
    if (!tv_past(line->text, "Using ", &rest))
        return false;
    tv_str oob;
    if (tv_past(rest, "OOB ", &oob))
        once_str(n, "oob_ifname", next_interface(&oob), line->at);
    rest = tv_str_cut(rest, ';').head;
    tv_str words[64];
    const size_t count = tv_words(rest, words, 64);
    for (size_t i = 0; i < count && i < 64; i++) {
        const tv_str dev = tv_enclosed(words[i], "]", ":");
        if (!dev.n)
            continue;
        add_word(n, "hcas", dev, line->at);
        (void)tv_note_bool(n->r->a, n->facts, "ib_available", true);
        const tv_str kind = tv_enclosed(words[i], "/", "");
        once_str(n, "hca_kind", kind, line->at);
    }
    return true;
}

/* "Using network IB", "Using network AWS Libfabric" */
static bool read_network(tv_nccl *n, const tv_nccl_line *line)
{
    const tv_str name = tv_enclosed(line->text, "Using network ", "");
    if (!name.n)
        return false;
    once_str(n, "net", name, line->at);
    return true;
}

/* "GPU Direct RDMA Disabled for HCA 0 'mlx5_0'", "... for GPU 5 / HCA 2 (distance 9 > 4)" */
static bool read_gdr(tv_nccl *n, const tv_nccl_line *line)
{
    tv_str rest;
    if (!tv_past(line->text, "GPU Direct RDMA", &rest))
        return false;
    const bool on = tv_holds_nocase(rest, "enabled");
    if (!on && !tv_holds_nocase(rest, "disabled"))
        return false;
    tv_arena *a = n->r->a;
    tv_note *gdr = tv_note_map(a, tv_note_list(a, n->facts, "gdr"), NULL);
    (void)tv_at(n->r, gdr, line->at);
    (void)tv_note_bool(a, gdr, "enabled", on);
    const tv_double_read gpu = tv_number_past(line->text, "for GPU ");
    const tv_double_read hca = tv_number_past(line->text, "HCA ");
    const tv_str name = tv_enclosed(line->text, "'", "'");
    const tv_str how = tv_enclosed(rest, "(", ")");
    if (how.n && rest.n && rest.p[1] == '(') /* DMABUF, nvidia-peermem */
        (void)tv_note_str(a, gdr, "by", how);
    const tv_double_read distance = tv_number_past(line->text, "(distance ");
    if (gpu.ok)
        (void)tv_note_num(a, gdr, "gpu", gpu.v);
    if (hca.ok)
        (void)tv_note_num(a, gdr, "hca", hca.v);
    if (name.n)
        (void)tv_note_str(a, gdr, "name", name);
    if (distance.ok)
        (void)tv_note_num(a, gdr, "distance", distance.v);
    return true;
}

/* ---- paths ---- */

/* "P2P/CUMEM/read" is P2P, "direct shared memory" SHM, "NET/IB/0(3)/GDRDMA" NET/IB. */
static tv_str transport_of(tv_str via)
{
    if (tv_holds_nocase(via, "shared memory") || tv_str_starts(via, TV_S("SHM")))
        return TV_S("SHM");
    if (tv_str_starts(via, TV_S("P2P")))
        return TV_S("P2P");
    if (tv_str_starts(via, TV_S("NVLS")))
        return TV_S("NVLS");
    if (tv_str_starts(via, TV_S("NET/")) || tv_str_starts(via, TV_S("COLLNET/"))) {
        tv_str rest = tv_str_cut(via, '/').tail;
        size_t k = 0;
        while (k < rest.n && rest.p[k] != '/' && rest.p[k] != '(')
            k++;
        if (tv_str_starts(rest, TV_S("IB"))) /* IBext_v8 of a plugin is InfiniBand too */
            return TV_S("NET/IB");
        return tv_str_span(via.p, rest.p + k);
    }
    return tv_str_starts(via, TV_S("direct")) ? TV_S("P2P") : until(via, "/ ");
}

static void count_up(tv_nccl *n, const char *map, tv_str key)
{
    tv_note *in = tv_note_map(n->r->a, n->facts, map);
    for (tv_note *item = in->first; item; item = item->next)
        if (tv_str_eq(tv_str_of(item->key), key)) {
            item->number += 1;
            return;
        }
    if (in->n < 16)
        (void)tv_note_num(n->r->a, in, tv_cstr(n->r->a, key), 1);
}

/* "2[3d000]", "0[0]", "1": the rank and, in brackets, its bus or device */
static void put_end(tv_nccl *n, tv_note *path, const char *key, const char *in_key, tv_str s)
{
    tv_str rest = s;
    const tv_u64_read rank = tv_take_u64(&rest);
    if (rank.ok)
        (void)tv_note_num(n->r->a, path, key, (double)rank.v);
    const tv_str inner = tv_enclosed(s, "[", "]");
    if (inner.n)
        (void)tv_note_str(n->r->a, path, in_key, inner);
}

static void put_path(tv_nccl *n, const tv_nccl_line *line, tv_str ends, tv_str via,
                     tv_str transport)
{
    tv_arena *a = n->r->a;
    tv_note *paths = tv_note_list(a, n->facts, "paths");
    if (paths->n >= 512) /* a ring of 64 ranks over 8 channels says it all */
        return;
    tv_note *path = tv_note_map(a, paths, NULL);
    (void)tv_at(n->r, path, line->at);
    const tv_str from = tv_str_trim(tv_str_cut(ends, '-').head);
    put_end(n, path, "from", "from_bus", from);
    put_end(n, path, "to", "to_bus", tv_enclosed(ends, "->", ""));
    (void)tv_note_str(a, path, "via", via);
    (void)tv_note_str(a, path, "transport", transport);
    if (!isnan(line->device))
        (void)tv_note_num(a, path, "device", line->device);
}

/* "Channel 00/0 : 0[1a000] -> 1[1b000] via P2P/IPC", "Ring 00 : 0 -> 1 [send] via NET/IB/0" */
static bool read_channel(tv_nccl *n, const tv_nccl_line *line)
{
    tv_str rest, via;
    if ((!tv_str_starts(line->text, TV_S("Channel ")) &&
         !tv_str_starts(line->text, TV_S("Ring "))) ||
        !tv_past(line->text, " via ", &via) || !tv_holds(line->text, "->"))
        return false;
    via = tv_str_trim(via);
    rest = tv_str_cut(line->text, ' ').tail;
    const tv_u64_read id = tv_take_u64(&rest);
    if (id.ok && id.v < 256)
        n->channels[id.v / 64] |= (uint64_t)1 << (id.v % 64);
    n->channel_lines++;
    const tv_str transport = transport_of(via);
    count_up(n, "transports", transport);
    if (tv_holds(via, "GDRDMA"))
        (void)tv_note_bool(n->r->a, n->facts, "gdr_used", true);
    else if (tv_str_starts(via, TV_S("NET/")) && !tv_noted(n->facts, "gdr_used"))
        (void)tv_at(n->r, tv_note_bool(n->r->a, n->facts, "gdr_used", false), line->at);
    put_path(n, line, tv_enclosed(rest, ":", " via "), via, transport);
    return true;
}

/* ---- ranks ---- */

static void add_number(tv_nccl *n, const char *key, double v)
{
    tv_note *list = tv_note_list(n->r->a, n->facts, key);
    for (const tv_note *item = list->first; item; item = item->next)
        if (fabs(item->number - v) < 0.5)
            return;
    if (list->n < 1024)
        (void)tv_note_num(n->r->a, list, NULL, v);
}

/* "comm 0x55 rank 0 nranks 8 cudaDev 0 [nvmlDev 0] busId 7000 [commId 0x..] - Init COMPLETE" */
static bool read_init(tv_nccl *n, const tv_nccl_line *line)
{
    const tv_double_read rank = tv_number_past(line->text, " rank ");
    tv_double_read ranks = tv_number_past(line->text, " nranks ");
    if (!ranks.ok)
        ranks = tv_number_past(line->text, " nRanks ");
    if (!rank.ok || !ranks.ok || ranks.v > 1e6 || rank.v < 0 || rank.v > 1e6)
        return false;
    const double known = tv_noted_num(n->facts, "nranks");
    if (isnan(known) || ranks.v > known)
        (void)tv_at(n->r, tv_note_num(n->r->a, n->facts, "nranks", ranks.v), line->at);
    once_num(n, "rank", rank, line->at);
    if (tv_holds(line->text, "Init COMPLETE"))
        add_number(n, "ranks_ready", rank.v);
    else if (!tv_holds(line->text, "estroy") && !tv_holds(line->text, "Abort"))
        add_number(n, "ranks_started", rank.v);
    const tv_double_read device = tv_number_past(line->text, "cudaDev ");
    if (device.ok) {
        tv_note *devices = tv_note_map(n->r->a, n->facts, "rank_devices");
        tv_buf b = tv_buf_in(n->r->a);
        tv_put_u64(&b, (uint64_t)rank.v);
        if (devices->n < 512)
            (void)tv_note_num(n->r->a, devices, tv_cstr(n->r->a, tv_buf_str(&b)), device.v);
    }
    return true;
}

/* ---- settings ---- */

/* "NCCL_P2P_DISABLE set by environment to 1." */
static bool read_setting(tv_nccl *n, const tv_nccl_line *line)
{
    tv_str value, rest = line->text;
    if (!tv_past(line->text, " set by environment to ", &value) &&
        (!tv_str_starts(line->text, TV_S("NCCL_")) || !tv_past(line->text, " set to ", &value)))
        return false;
    const tv_str name = tv_take_word(&rest);
    value = tv_str_trim(value);
    if (value.n && value.p[value.n - 1] == '.')
        value = tv_str_take(value, value.n - 1);
    tv_note *env = tv_note_map(n->r->a, n->facts, "settings");
    if (name.n && env->n < 64)
        (void)tv_at(n->r, tv_note_str(n->r->a, env, tv_cstr(n->r->a, name), value), line->at);
    if (tv_str_is(name, "NCCL_TOPO_FILE"))
        once_str(n, "topo_file", value, line->at);
    return true;
}

static bool read_others(tv_nccl *n, const tv_nccl_line *line)
{
    once_str(n, "topo_file", tv_enclosed(line->text, "Loading topology file ", ""), line->at);
    once_num(n, "coll_channels",
             tv_holds(line->text, " coll channels")
                 ? tv_number_past((tv_str){line->text.p, line->text.n}, "")
                 : (tv_double_read){0},
             line->at);
    if (tv_holds(line->text, "Could not enable P2P between dev") ||
        tv_holds(line->text, "P2P is disabled between connected GPUs"))
        (void)tv_at(n->r, tv_note_bool(n->r->a, n->facts, "p2p_refused", true), line->at);
    if (tv_str_starts(line->text, TV_S("Trees [")) && !tv_noted(n->facts, "trees")) {
        double trees = 0;
        for (tv_str rest = line->text; tv_past(rest, "->", &rest) && tv_past(rest, "->", &rest);)
            trees++;
        (void)tv_note_num(n->r->a, n->facts, "trees", trees);
    }
    const tv_double_read gpu = tv_number_past(line->text, "Setting affinity for GPU ");
    if (gpu.ok) {
        tv_note *map = tv_note_map(n->r->a, n->facts, "gpu_affinity_masks");
        tv_buf b = tv_buf_in(n->r->a);
        tv_put_u64(&b, (uint64_t)(gpu.v > 0 && gpu.v < 1e6 ? gpu.v : 0));
        if (map->n < 256)
            (void)tv_note_str(n->r->a, map, tv_cstr(n->r->a, tv_buf_str(&b)),
                              tv_enclosed(line->text, " to ", ""));
    }
    return true;
}

/* "transport/shm.cc:551 -> 2": where the call went wrong on its way out, and what it gave */
static bool read_result(tv_nccl *n, const tv_nccl_line *line)
{
    static const char *const names[] = {
        "ncclSuccess",       "ncclUnhandledCudaError", "ncclSystemError",
        "ncclInternalError", "ncclInvalidArgument",    "ncclInvalidUsage",
        "ncclRemoteError",   "ncclInProgress",         "ncclTimeout"};
    tv_str rest, words[3];
    if (!tv_past(line->text, " -> ", &rest) || tv_words(line->text, words, 3) < 3 ||
        !tv_holds(words[0], ":") || !tv_str_is(words[1], "->"))
        return false;
    const tv_u64_read code = tv_str_u64(words[2]);
    if (!code.ok || code.v >= sizeof names / sizeof *names)
        return false;
    if (!tv_noted(n->facts, "nccl_result")) {
        once_num(n, "nccl_result", (tv_double_read){(double)code.v, true}, line->at);
        once_str(n, "result_name", tv_str_of(names[code.v]), line->at);
    }
    return true;
}

void tv_nccl_told(tv_nccl *n, const tv_nccl_line *line)
{
    static bool (*const readers[])(tv_nccl *, const tv_nccl_line *) = {
        read_channel, read_result,  read_version, read_bootstrap, read_socket, read_gdr,
        read_ib,      read_network, read_init,    read_setting,   read_others};
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (readers[i](n, line))
            return;
}

/* ---- the sum ---- */

static void sum_transport(tv_nccl *n)
{
    const tv_note *all = tv_noted(n->facts, "transports");
    if (!all)
        return;
    const tv_note *most = all->first;
    bool p2p = false;
    for (const tv_note *item = all->first; item; item = item->next) {
        most = item->number > most->number ? item : most;
        p2p |= strcmp(item->key, "P2P") == 0;
    }
    if (most)
        (void)tv_note_str(n->r->a, n->facts, "transport", tv_str_of(most->key));
    (void)tv_note_bool(n->r->a, n->facts, "p2p_used", p2p);
    double rings = 0;
    for (unsigned i = 0; i < 256; i++)
        rings += (n->channels[i / 64] >> (i % 64)) & 1 ? 1 : 0;
    (void)tv_note_num(n->r->a, n->facts, "rings", rings);
    (void)tv_note_num(n->r->a, n->facts, "ring_lines", (double)n->channel_lines);
}

void tv_nccl_sum(tv_nccl *n)
{
    sum_transport(n);
    if (!tv_noted(n->facts, "net") && tv_noted_bool(n->facts, "ib_available", false))
        (void)tv_note_str(n->r->a, n->facts, "net", TV_S("IB"));
    else if (!tv_noted(n->facts, "net") && tv_noted_n(n->facts, "interfaces"))
        (void)tv_note_str(n->r->a, n->facts, "net", TV_S("Socket"));
    if (!tv_noted(n->facts, "ifname") && tv_noted_n(n->facts, "interfaces"))
        (void)tv_note_str(n->r->a, n->facts, "ifname", tv_noted_str(n->facts, "interfaces.0"));
}
