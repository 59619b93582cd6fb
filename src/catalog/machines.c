/* Servers, the links between the cards of one machine, and disks. A link's bytes per second are one
 * direction of one card; what a collective reaches on it is for the prediction to say. */
#include "records.h"

TV_BLOB(links);
TV_BLOB(servers);
TV_BLOB(storage);

/* NCCL's own model of a hop (source: nccl-src, protocol Simple): NVLink, PCIe, network. */
static const double nvlink_hop_s = 3.4e-6, pcie_hop_s = 5.7e-6, network_hop_s = 14e-6;
/* A copy from card to card through host memory (source: rtx6kpro). */
static const double staged_hop_s = 14e-6;

/* Gen3 and Gen5 slots reach 0.78 and 0.88 of the wire (sources: rrze, mleng); where a generation
 * was not measured we take 0.80, the least being a cloud's pass mark of 0.67 (source: azhc). */
static const double slot_share = 0.80, slot_share_lo = 0.67, slot_share_hi = 0.88;
/* Staging through host memory shares its bandwidth among all cards. Nothing measured is at hand:
 * half of the slot, between a fifth and all of it. */
static const double staged_share = 0.5, staged_share_lo = 0.2;

static tv_fact scaled(tv_fact f, double share, double lo, double hi)
{
    const double v = f.v;
    f.v = v * share;
    f.lo = v * lo;
    f.hi = v * hi;
    f.origin = TV_ASSUMED;
    return f;
}

static const tv_err *links_doc(tv_catalog *c, const tv_json **links)
{
    if (!c->links)
        TV_TRY(tv_blob_parse(c->a, "links", TV_BLOB_OF(links), &c->links));
    *links = c->links;
    return NULL;
}

static bool same(double x, int y)
{
    return x > y - 0.5 && x < y + 0.5;
}

/* Rows [gen, lanes, bytes_per_s, reached_bytes_per_s, basis, sources]. */
const tv_err *tv_catalog_pcie(tv_catalog *c, int gen, int lanes, tv_fact *wire, tv_fact *reached)
{
    *wire = *reached = (tv_fact){0};
    const tv_json *links;
    TV_TRY(links_doc(c, &links));
    const tv_json *rows = tv_json_path(links, "pcie.rows");
    for (size_t i = 0; i < rows->n; i++) {
        const tv_json *row = &rows->items[i];
        if (!same(tv_json_num(tv_json_at(row, 0), 0), gen) ||
            !same(tv_json_num(tv_json_at(row, 1), 0), lanes))
            continue;
        const tv_str source = tv_json_str(tv_json_at(tv_json_at(row, 5), 1));
        *wire = tv_fact_of(tv_json_num(tv_json_at(row, 2), 0), TV_CATALOG, TV_S("derived"));
        *reached = scaled(*wire, slot_share, slot_share_lo, slot_share_hi);
        if (tv_json_is_num(tv_json_at(row, 3)))
            *reached = tv_fact_of(tv_json_at(row, 3)->number, TV_CATALOG, source);
    }
    return NULL;
}

static const tv_err *slot(tv_catalog *c, const tv_device *d, tv_fact *reached)
{
    tv_fact wire;
    *reached = (tv_fact){0};
    if (!tv_known(d->pcie_gen))
        return NULL;
    const int lanes = tv_known(d->pcie_lanes) ? (int)d->pcie_lanes.v : 16;
    return tv_catalog_pcie(c, (int)d->pcie_gen.v, lanes, &wire, reached);
}

const tv_err *tv_catalog_host_link(tv_catalog *c, const tv_device *d, tv_link *link)
{
    *link = (tv_link){.kind = TV_LINK_PCIE_P2P, .name = TV_S("PCIe"), .latency_s = pcie_hop_s};
    return slot(c, d, &link->bytes_per_s);
}

static const tv_err *pcie_link(tv_catalog *c, const tv_device *d, tv_link *link)
{
    TV_TRY(tv_catalog_host_link(c, d, link));
    if (d->p2p_over_pcie == 1)
        return NULL;
    link->kind = TV_LINK_PCIE_HOST;
    link->name = TV_S("PCIe, through host memory");
    link->latency_s = staged_hop_s;
    link->bytes_per_s = scaled(link->bytes_per_s, staged_share, staged_share_lo, 1);
    if (!(link->bytes_per_s.v > 0))
        link->bytes_per_s = (tv_fact){0};
    return NULL;
}

/* What all links of one card carry together towards n - 1 others of a mesh. */
static tv_fact mesh_share(tv_fact all, double pair_bytes_per_s, uint32_t group, uint32_t n)
{
    const double pair = pair_bytes_per_s > 0 ? pair_bytes_per_s
                        : group > 1          ? all.v / (group - 1)
                                             : all.v;
    const double v = pair * (n - 1);
    if (v < all.v) {
        all.v = all.lo = v;
        all.origin = TV_COMPUTED;
    }
    return all;
}

static tv_link fabric_link(const tv_device *d, tv_fabric_shape shape, tv_fact rate, double pair,
                           uint32_t group, uint32_t n)
{
    const bool nvlink = tv_str_is(d->fabric, "NVLink") || !d->fabric.n;
    tv_link link = {
        .kind = nvlink ? TV_LINK_NVLINK : TV_LINK_FABRIC,
        .name = nvlink ? TV_S("NVLink") : d->fabric,
        .bytes_per_s = rate,
        .latency_s = nvlink_hop_s,
        .group = group,
    };
    if (shape == TV_FABRIC_SWITCH && nvlink) {
        link.kind = TV_LINK_NVSWITCH;
        link.name = TV_S("NVLink, NVSwitch");
        /* The third switch generation reduces in the switch (source: mleng). */
        link.in_network_reduction = d->compute_capability >= 90;
    }
    if (shape == TV_FABRIC_MESH && tv_known(rate))
        link.bytes_per_s = mesh_share(rate, pair, group, n);
    return link;
}

static tv_fabric_shape shape_of(tv_str s)
{
    static const char *const names[] = {"", "bridge", "mesh", "switch", "torus"};
    for (size_t i = 1; i < sizeof names / sizeof *names; i++)
        if (tv_str_is(s, names[i]))
            return (tv_fabric_shape)i;
    return TV_FABRIC_UNKNOWN;
}

const tv_err *tv_catalog_link(tv_catalog *c, const tv_device *d, const tv_server *server,
                              uint32_t n, tv_link *link)
{
    *link = (tv_link){0};
    if (n < 2)
        return NULL;
    const tv_json *record = server ? server->record : NULL;
    const tv_str text = tv_json_str(tv_json_get(record, "fabric_shape"));
    if (record && text.n) {
        const tv_fact rate =
            tv_known(server->intra.bytes_per_s) ? server->intra.bytes_per_s : d->nvlink_bytes_per_s;
        if (tv_str_is(text, "none"))
            return pcie_link(c, d, link);
        *link = fabric_link(d, shape_of(text), rate,
                            tv_json_num(tv_json_get(record, "pair_bytes_per_s"), 0),
                            server->gpu_count, n);
        return NULL;
    }
    const uint32_t group = d->nvlink_group > 0 ? (uint32_t)d->nvlink_group : 0;
    const bool joined = d->fabric.n && !tv_str_is(d->fabric, "none") && group >= n;
    if (!joined)
        return pcie_link(c, d, link);
    *link = fabric_link(d, d->fabric_shape, d->nvlink_bytes_per_s, 0, group, n);
    return NULL;
}

tv_link tv_catalog_network(tv_fact bytes_per_s)
{
    return (tv_link){
        .kind = TV_LINK_NETWORK,
        .name = TV_S("network"),
        .bytes_per_s = bytes_per_s,
        .latency_s = network_hop_s,
    };
}

static void strings(tv_catalog *c, const tv_json *j, const tv_str **v, size_t *n)
{
    tv_str *texts = tv_new(c->a, tv_str, j->n);
    for (size_t i = 0; i < j->n; i++)
        texts[i] = tv_json_str(&j->items[i]);
    *v = texts;
    *n = j->n;
}

typedef struct number_key {
    const char *key;
    double min, max;
    tv_fact *fact;
} number_key;

/* Plain numbers of a record; its own list of sources is theirs. */
static const tv_err *read_numbers(const tv_catalog *c, const tv_record *r, const number_key *keys,
                                  size_t n)
{
    const tv_str source = tv_json_str(tv_json_at(tv_json_get(r->json, "sources"), 0));
    tv_source_note note;
    const bool known = tv_catalog_source(c, source, &note);
    for (size_t i = 0; i < n; i++) {
        TV_TRY(tv_record_fact(c, r, tv_json_get(r->json, keys[i].key), keys[i].min, keys[i].max,
                              keys[i].fact));
        if (!tv_known(*keys[i].fact) || !known)
            continue;
        keys[i].fact->origin = TV_CATALOG;
        keys[i].fact->source = source;
        keys[i].fact->as_of = note.date;
    }
    return NULL;
}

static const tv_err *read_server(tv_catalog *c, const tv_record *r, tv_server *s)
{
    const tv_json *j = r->json;
    tv_fact count = {0};
    *s = (tv_server){
        .slug = tv_json_str(tv_json_get(j, "slug")),
        .name = tv_json_str(tv_json_get(j, "name")),
        .kind = tv_json_str(tv_json_get(j, "kind")),
        .gpu = tv_json_str(tv_json_get(j, "gpu")),
        .cpu_model = tv_json_str(tv_json_get(j, "cpu_model")),
        .nvlink_topology = tv_json_str(tv_json_get(j, "fabric_text")),
        .pcie_topology = tv_json_str(tv_json_get(j, "pcie_text")),
        .record = j,
    };
    const number_key keys[] = {
        {"cpu_cores", 1, 1e5, &s->cpu_cores},
        {"sockets", 1, 64, &s->sockets},
        {"ram_bytes", 1e9, 1e15, &s->ram_bytes},
        {"node_w", 10, 1e6, &s->node_w},
        {"network_bytes_per_s", 1e6, 1e13, &s->network_bytes_per_s},
        {"fabric_bytes_per_s", 1e9, 1e13, &s->intra.bytes_per_s},
        {"gpu_count", 1, 1024, &count},
    };
    TV_TRY(read_numbers(c, r, keys, sizeof keys / sizeof *keys));
    s->gpu_count = tv_known(count) ? (uint32_t)count.v : 0;
    const tv_fabric_shape shape = shape_of(tv_json_str(tv_json_get(j, "fabric_shape")));
    if (shape != TV_FABRIC_UNKNOWN) {
        s->intra.kind = shape == TV_FABRIC_SWITCH ? TV_LINK_NVSWITCH : TV_LINK_NVLINK;
        s->intra.group = s->gpu_count;
        s->intra.latency_s = nvlink_hop_s;
    }
    s->inter = tv_catalog_network(s->network_bytes_per_s);
    strings(c, tv_json_get(j, "notes"), &s->notes, &s->n_notes);
    return NULL;
}

const tv_err *tv_catalog_servers(tv_catalog *c, tv_server_list *servers)
{
    if (!c->servers) {
        tv_records records = {0};
        TV_TRY(tv_records_load(c, "servers", "servers", "slug", TV_BLOB_OF(servers), &records));
        tv_server *list = tv_new(c->a, tv_server, records.n);
        for (size_t i = 0; i < records.n; i++) {
            TV_TRY(tv_record_read(c, &records.v[i]));
            TV_TRY(read_server(c, &records.v[i], &list[i]));
        }
        c->servers = list;
        c->n_servers = records.n;
    }
    *servers = (tv_server_list){.v = c->servers, .n = c->n_servers};
    return NULL;
}

const tv_err *tv_catalog_server(tv_catalog *c, tv_str slug, const tv_server **server)
{
    tv_server_list list;
    TV_TRY(tv_catalog_servers(c, &list));
    for (size_t i = 0; i < list.n; i++)
        if (tv_str_eq_nocase(list.v[i].slug, slug)) {
            *server = &list.v[i];
            return NULL;
        }
    tv_str near = {0};
    size_t least = 1 + slug.n / 2;
    for (size_t i = 0; i < list.n; i++) {
        const size_t far = tv_str_distance(c->a, slug, list.v[i].slug, least);
        if (far < least) {
            least = far;
            near = list.v[i].slug;
        }
    }
    tv_err *e = TV_FAIL(c->a, TV_USAGE, "server.unknown", N_("no server is called \"{name}\""),
                        tv_arg_str("name", slug));
    return near.n ? tv_hint(e, TV_TEXT(c->a, "gpu.did-you-mean", N_("did you mean {names}?"),
                                       tv_arg_str("names", near)))
                  : e;
}

static int rank_of(tv_str kind)
{
    static const char *const order[] = {"appliance", "server", "board", "workstation", "cloud"};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (tv_str_is(kind, order[i]))
            return (int)i;
    return (int)(sizeof order / sizeof *order);
}

const tv_err *tv_catalog_server_for(tv_catalog *c, const tv_device *d, uint32_t n,
                                    const tv_server **server)
{
    tv_server_list list;
    *server = NULL;
    TV_TRY(tv_catalog_servers(c, &list));
    for (size_t i = 0; i < list.n; i++) {
        const tv_server *s = &list.v[i], *best = *server;
        if (!tv_str_eq(s->gpu, d->slug) || s->gpu_count < n)
            continue;
        if (!best || s->gpu_count < best->gpu_count ||
            (s->gpu_count == best->gpu_count && rank_of(s->kind) < rank_of(best->kind)))
            *server = s;
    }
    return NULL;
}

static const tv_err *read_disk(tv_catalog *c, const tv_record *r, tv_disk *d)
{
    *d = (tv_disk){
        .id = tv_json_str(tv_json_get(r->json, "id")),
        .name = tv_json_str(tv_json_get(r->json, "name")),
        .kind = tv_json_str(tv_json_get(r->json, "kind")),
    };
    const number_key keys[] = {
        {"read_bytes_per_s", 1e6, 1e13, &d->read_bytes_per_s},
        {"write_bytes_per_s", 1e6, 1e13, &d->write_bytes_per_s},
        {"read_iops", 1, 1e9, &d->read_iops},
        {"latency_s", 1e-8, 10, &d->latency_s},
        {"open_s", 1e-8, 10, &d->open_s},
    };
    TV_TRY(read_numbers(c, r, keys, sizeof keys / sizeof *keys));
    if (tv_known(d->open_s))
        d->open_s.source = tv_json_str(tv_json_get(r->json, "open_source"));
    return NULL;
}

const tv_err *tv_catalog_disks(tv_catalog *c, tv_disk_list *disks)
{
    if (!c->disks) {
        tv_records records = {0};
        TV_TRY(tv_records_load(c, "storage", "disks", "id", TV_BLOB_OF(storage), &records));
        tv_disk *list = tv_new(c->a, tv_disk, records.n);
        for (size_t i = 0; i < records.n; i++) {
            TV_TRY(tv_record_read(c, &records.v[i]));
            TV_TRY(read_disk(c, &records.v[i], &list[i]));
        }
        c->disks = list;
        c->n_disks = records.n;
    }
    *disks = (tv_disk_list){.v = c->disks, .n = c->n_disks};
    return NULL;
}

static tv_str disk_ids(tv_arena *a, tv_disk_list list)
{
    tv_buf b = tv_buf_in(a);
    for (size_t i = 0; i < list.n; i++) {
        tv_puts(&b, i ? ", " : "");
        tv_put(&b, list.v[i].id);
    }
    return tv_buf_str(&b);
}

const tv_err *tv_catalog_disk(tv_catalog *c, tv_str id, const tv_disk **disk)
{
    tv_disk_list list;
    TV_TRY(tv_catalog_disks(c, &list));
    for (size_t i = 0; i < list.n; i++)
        if (tv_str_eq_nocase(list.v[i].id, id)) {
            *disk = &list.v[i];
            return NULL;
        }
    return tv_hint(TV_FAIL(c->a, TV_USAGE, "disk.unknown", N_("no disk class is called \"{name}\""),
                           tv_arg_str("name", id)),
                   TV_TEXT(c->a, "disk.names", N_("known are {names}"),
                           tv_arg_str("names", disk_ids(c->a, list))));
}
