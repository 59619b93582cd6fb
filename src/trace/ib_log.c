/* Adapters as ibstat, ibstatus, ibv_devinfo, ibdev2netdev, rdma link and show_gids list them. */
#include "glean.h"
#include "trace.h"

#include <math.h>

typedef struct ib_list {
    tv_reading *r;
    tv_note *facts; /* NULL: none yet */
    tv_note *port;  /* that is being told; NULL: none */
    tv_str device;
} ib_list;

static void begin(ib_list *b, size_t i)
{
    if (!b->facts)
        b->facts = &tv_see(b->r, "ib", i)->facts;
}

/* The port of a device: the one that is there already, or a new one. */
static tv_note *port_of(ib_list *b, tv_str device, double number, size_t i)
{
    begin(b, i);
    tv_note *ports = tv_note_list(b->r->a, b->facts, "ports");
    for (tv_note *p = ports->first; p; p = p->next)
        if (tv_str_eq(tv_noted_str(p, "dev"), device) &&
            fabs(tv_noted_num(p, "port") - number) < 0.5)
            return p;
    if (ports->n >= 256)
        return ports->last;
    tv_note *p = tv_note_map(b->r->a, ports, NULL);
    (void)tv_at(b->r, p, i);
    (void)tv_note_str(b->r->a, p, "dev", device);
    (void)tv_note_num(b->r->a, p, "port", number);
    return p;
}

static void put_state(ib_list *b, tv_note *port, tv_str state)
{
    (void)tv_note_str(b->r->a, port, "state", state);
    (void)tv_note_bool(b->r->a, port, "active", tv_holds_nocase(state, "active"));
}

static tv_str value_of(tv_str s)
{
    return tv_str_trim(tv_str_cut(s, ':').tail);
}

static bool is_key(tv_str s, const char *key)
{
    const tv_str k = tv_str_of(key);
    return s.n > k.n && tv_str_eq_nocase(tv_str_take(s, k.n), k) &&
           (s.p[k.n] == ':' || s.p[k.n] == ' ' || s.p[k.n] == '\t');
}

/* "CA 'mlx5_0'", "hca_id: mlx5_0", "Infiniband device 'mlx5_0' port 1 status:" */
static bool read_device(ib_list *b, tv_str s, size_t i)
{
    if (tv_str_starts(s, TV_S("CA '"))) {
        begin(b, i);
        b->device = tv_enclosed(s, "'", "'");
        b->port = NULL;
        return true;
    }
    if (is_key(s, "hca_id")) {
        begin(b, i);
        b->device = value_of(s);
        b->port = NULL;
        return true;
    }
    if (tv_str_starts(s, TV_S("Infiniband device '"))) {
        b->device = tv_enclosed(s, "'", "'");
        const tv_double_read port = tv_number_past(s, "port ");
        b->port = port_of(b, b->device, port.ok ? port.v : 1, i);
        return true;
    }
    return false;
}

/* "Port 1:", "port:   1" */
static bool read_port(ib_list *b, tv_str s, size_t i)
{
    if (!b->device.n || s.n < 6 || s.n > 24 || (s.p[4] != ':' && s.p[4] != ' ') ||
        !tv_str_eq_nocase(tv_str_take(s, 4), TV_S("port")))
        return false;
    tv_double_read n = tv_number_past(tv_str_drop(s, 4), "");
    if (!n.ok)
        n = tv_number_past(s, ":");
    if (!n.ok)
        return false;
    b->port = port_of(b, b->device, n.v, i);
    return true;
}

static bool read_detail(ib_list *b, tv_str s)
{
    if (!b->port)
        return false;
    tv_arena *a = b->r->a;
    const tv_str v = value_of(s);
    if (is_key(s, "State") || is_key(s, "state"))
        put_state(b, b->port, v);
    else if (is_key(s, "Physical state") || is_key(s, "phys state"))
        (void)tv_note_str(a, b->port, "physical_state", v);
    else if (is_key(s, "Rate")) {
        const tv_double_read rate = tv_number_past(v, "");
        if (rate.ok)
            (void)tv_note_num(a, b->port, "rate_bytes_per_s", rate.v * 1e9 / 8);
    } else if (is_key(s, "Link layer") || is_key(s, "link_layer"))
        (void)tv_note_str(a, b->port, "link_layer", v);
    else
        return false;
    return true;
}

/* "mlx5_0 port 1 ==> ib0 (Up)" */
static bool read_netdev(ib_list *b, tv_str s, size_t i)
{
    tv_str words[8];
    const size_t n = tv_words(s, words, 8);
    if (n < 5 || n > 8 || !tv_str_is(words[1], "port") || !tv_str_is(words[3], "==>"))
        return false;
    const tv_u64_read port = tv_str_u64(words[2]);
    tv_note *p = port_of(b, words[0], port.ok ? (double)port.v : 1, i);
    (void)tv_note_str(b->r->a, p, "netdev", words[4]);
    if (n > 5) {
        (void)tv_note_bool(b->r->a, p, "up", tv_holds(words[5], "Up"));
        if (!tv_noted(p, "active"))
            (void)tv_note_bool(b->r->a, p, "active", tv_holds(words[5], "Up"));
    }
    return true;
}

/* "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev eth0" */
static bool read_rdma_link(ib_list *b, tv_str s, size_t i)
{
    if (!tv_str_starts(s, TV_S("link ")) || !tv_holds(s, " physical_state "))
        return false;
    tv_str rest = tv_str_drop(s, 5);
    const tv_cut cut = tv_str_cut(tv_take_word(&rest), '/');
    const tv_u64_read port = tv_str_u64(cut.tail);
    tv_note *p = port_of(b, cut.head, port.ok ? (double)port.v : 1, i);
    put_state(b, p, tv_enclosed(s, " state ", " "));
    tv_str name;
    if (tv_past(s, " netdev ", &name))
        (void)tv_note_str(b->r->a, p, "netdev", tv_take_word(&name));
    return true;
}

/* "mlx5_0  1  3  0000:0000:0000:0000:0000:ffff:0a00:0001  10.0.0.1  v2  eth0" of show_gids */
static bool read_gid(ib_list *b, tv_str s, size_t i)
{
    tv_str w[8];
    const size_t n = tv_words(s, w, 8);
    if (n < 5 || n > 7 || !tv_str_u64(w[1]).ok || !tv_str_u64(w[2]).ok || w[3].n != 39)
        return false;
    begin(b, i);
    tv_arena *a = b->r->a;
    tv_note *gids = tv_note_list(a, b->facts, "gids");
    if (gids->n >= 256)
        return true;
    tv_note *gid = tv_note_map(a, gids, NULL);
    (void)tv_at(b->r, gid, i);
    (void)tv_note_str(a, gid, "dev", w[0]);
    (void)tv_note_num(a, gid, "index", (double)tv_str_u64(w[2]).v);
    (void)tv_note_str(a, gid, "gid", w[3]);
    (void)tv_note_str(a, gid, "version", w[n == 7 ? 5 : 4]);
    return true;
}

static void sum(ib_list *b)
{
    if (!b->facts)
        return;
    double active = 0, n = 0;
    const tv_note *ports = tv_noted(b->facts, "ports");
    for (const tv_note *p = ports ? ports->first : NULL; p; p = p->next) {
        n++;
        active += tv_noted_bool(p, "active", false);
    }
    if (n > 0) {
        (void)tv_note_num(b->r->a, b->facts, "ib_ports", n);
        (void)tv_note_num(b->r->a, b->facts, "ib_ports_active", active);
    }
}

static void read(tv_reading *r)
{
    ib_list b = {.r = r};
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str s = tv_str_trim(tv_bare(r->sheet->v[i].s));
        if (!s.n || s.n > 400)
            continue;
        if (!read_device(&b, s, i) && !read_netdev(&b, s, i) && !read_rdma_link(&b, s, i) &&
            !read_gid(&b, s, i) && !read_port(&b, s, i))
            (void)read_detail(&b, s);
    }
    sum(&b);
}

static const char *const needles[] = {"CA 'mlx",
                                      "CA 'bnxt",
                                      "CA 'roce",
                                      "CA 'ib",
                                      "CA 'hfi",
                                      "CA 'irdma",
                                      "CA 'rocep",
                                      "hca_id:",
                                      "Infiniband device '",
                                      " ==> ",
                                      " physical_state ",
                                      "DEV\tPORT\tINDEX",
                                      "DEV     PORT    INDEX",
                                      NULL};

extern const tv_log_format tv_log_format_ib_log;
const tv_log_format tv_log_format_ib_log = {"ib", needles, read};
