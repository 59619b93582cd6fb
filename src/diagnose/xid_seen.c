/* Order within a log is the order of time; between files nothing is said. */
#include "xid_seen.h"

#include <math.h>

/* ---- addresses ---- */

static unsigned hex(tv_str s, bool *ok)
{
    unsigned v = 0;
    *ok = s.n >= 1 && s.n <= 8;
    for (size_t i = 0; i < s.n && *ok; i++) {
        const char c = (char)(s.p[i] | 32);
        const bool digit = c >= '0' && c <= '9';
        *ok = digit || (c >= 'a' && c <= 'f');
        v = v << 4 | (unsigned)(digit ? c - '0' : c - 'a' + 10);
    }
    return v;
}

tv_pci tv_pci_of(tv_str s)
{
    tv_pci pci = {.function = -1};
    const tv_cut dot = tv_str_cut(s, '.');
    const tv_cut first = tv_str_cut(dot.head, ':');
    const tv_cut second = tv_str_cut(first.tail, ':');
    if (!first.found)
        return pci;
    bool ok[3] = {true, false, false};
    if (second.found)
        pci.domain = hex(first.head, &ok[0]);
    pci.bus = hex(second.found ? second.head : first.head, &ok[1]);
    pci.device = hex(second.found ? second.tail : first.tail, &ok[2]);
    if (dot.found && dot.tail.n == 1 && dot.tail.p[0] >= '0' && dot.tail.p[0] <= '7')
        pci.function = dot.tail.p[0] - '0';
    pci.ok = ok[0] && ok[1] && ok[2];
    return pci;
}

bool tv_pci_same(tv_str x, tv_str y)
{
    const tv_pci a = tv_pci_of(x), b = tv_pci_of(y);
    return a.ok && b.ok && a.domain == b.domain && a.bus == b.bus && a.device == b.device &&
           (a.function < 0 || b.function < 0 || a.function == b.function);
}

static void put_hex(tv_buf *b, unsigned v, unsigned digits)
{
    for (unsigned k = digits; k--;)
        tv_putc(b, "0123456789abcdef"[v >> (4 * k) & 15]);
}

tv_str tv_pci_bus_id(tv_arena *a, tv_str s)
{
    const tv_pci pci = tv_pci_of(s);
    if (!pci.ok)
        return (tv_str){0};
    tv_buf b = tv_buf_in(a);
    put_hex(&b, pci.domain, 4);
    tv_putc(&b, ':');
    put_hex(&b, pci.bus, 2);
    tv_putc(&b, ':');
    put_hex(&b, pci.device, 2);
    tv_puts(&b, ".0");
    return tv_buf_str(&b);
}

const tv_note *tv_pci_device(const tv_scene *scene, tv_str pci, const tv_sighting **of)
{
    for (const tv_sighting *s = tv_scene_first(scene, "lspci"); s; s = tv_scene_next(s, "lspci")) {
        const tv_note *list = tv_noted(&s->facts, "devices");
        for (const tv_note *d = list ? list->first : NULL; d; d = d->next)
            if (tv_pci_same(tv_noted_str(d, "bdf"), pci)) {
                if (of)
                    *of = s;
                return d;
            }
    }
    return NULL;
}

static bool listed(const tv_note *list, tv_str pci)
{
    for (const tv_note *item = list ? list->first : NULL; item; item = item->next)
        if (tv_pci_same(tv_noted_str(item, "pci"), pci))
            return true;
    return false;
}

bool tv_pci_is_gpu(const tv_scene *scene, tv_str pci)
{
    const tv_note *device = tv_pci_device(scene, pci, NULL);
    if (device)
        return tv_noted_bool(device, "gpu", false);
    for (const tv_sighting *s = tv_scene_first(scene, "xid"); s; s = tv_scene_next(s, "xid"))
        if (listed(tv_noted(&s->facts, "events"), pci) ||
            listed(tv_noted(&s->facts, "named_gpus"), pci) ||
            listed(tv_noted(&s->facts, "init_failures"), pci) ||
            tv_pci_same(tv_noted_str(&s->facts, "pci"), pci))
            return true;
    return false;
}

tv_above tv_pci_above_gpu(const tv_scene *scene, tv_str bridge)
{
    const tv_sighting *s = NULL;
    const tv_note *device = tv_pci_device(scene, bridge, &s);
    bool ok[2] = {false, false};
    const unsigned from = hex(tv_noted_str(device, "secondary"), &ok[0]);
    const unsigned to = hex(tv_noted_str(device, "subordinate"), &ok[1]);
    const double gpus = s ? tv_noted_num(&s->facts, "gpus_on_bus") : (double)NAN;
    if (!device || !ok[0] || !ok[1] || !(gpus > 0))
        return tv_pci_is_gpu(scene, bridge) ? TV_ABOVE_YES : TV_ABOVE_UNKNOWN;
    const tv_pci own = tv_pci_of(tv_noted_str(device, "bdf"));
    const tv_note *list = tv_noted(&s->facts, "devices");
    for (const tv_note *d = list ? list->first : NULL; d; d = d->next) {
        const tv_pci pci = tv_pci_of(tv_noted_str(d, "bdf"));
        if (tv_noted_bool(d, "gpu", false) && pci.domain == own.domain && pci.bus >= from &&
            pci.bus <= to)
            return TV_ABOVE_YES;
    }
    return TV_ABOVE_NO;
}

/* ---- events ---- */

/* Clean-up and notices: they say nothing where another event stands before them. */
static bool cleans_up(unsigned code)
{
    return code == 43 || code == 45 || code == 154;
}

static bool of_nvlink(unsigned code)
{
    return code == 74 || (code >= 144 && code <= 150) || code == 45;
}

static bool explains(const tv_xid_seen *first, const tv_xid_seen *then)
{
    if (first->s != then->s || first->follows)
        return false;
    if (first->code != 79 && (cleans_up(first->code) || !cleans_up(then->code)))
        return false;
    const bool same = tv_pci_same(first->pci, then->pci);
    if (first->code == 79)
        return (same && then->code != 79) || (!same && of_nvlink(then->code));
    return same;
}

enum { CODES = 10000 }; /* what a reader takes for a code */

/* "caused by previous Xid 149" where no file has that one: the line stands for it. */
static void name_root(tv_xid_list *list)
{
    bool printed[CODES] = {false};
    for (size_t i = 0; i < list->n; i++)
        if (list->v[i].code < CODES)
            printed[list->v[i].code] = true;
    for (size_t i = 0; i < list->n; i++) {
        const double by = tv_noted_num(list->v[i].event, "caused_by_xid");
        if (by > 0 && by < CODES && !printed[(unsigned)by])
            list->v[i].code = (unsigned)by;
    }
}

static void mark(tv_xid_list *list)
{
    /* The first event of a code on a GPU stands for its repeats, so few are compared. */
    enum { FIRSTS = 256 };
    size_t firsts[FIRSTS];
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++) {
        tv_xid_seen *x = &list->v[i];
        const double by = tv_noted_num(x->event, "caused_by_xid");
        x->follows = by > 0 && x->code != (unsigned)by;
        bool repeat = false;
        for (size_t k = 0; k < n; k++) {
            const tv_xid_seen *first = &list->v[firsts[k]];
            x->follows = x->follows || explains(first, x);
            repeat = repeat ||
                     (first->s == x->s && first->code == x->code && tv_str_eq(first->pci, x->pci));
        }
        x->first = !repeat && n < FIRSTS;
        if (x->first)
            firsts[n++] = i;
    }
}

tv_xid_list tv_xids_seen(tv_inquiry *q)
{
    tv_xid_list list = {0};
    size_t n = 0;
    for (const tv_sighting *s = tv_scene_first(q->scene, "xid"); s; s = tv_scene_next(s, "xid"))
        n += tv_noted_n(&s->facts, "events");
    list.v = tv_new(q->a, tv_xid_seen, n + 1);
    for (const tv_sighting *s = tv_scene_first(q->scene, "xid"); s; s = tv_scene_next(s, "xid")) {
        const tv_note *events = tv_noted(&s->facts, "events");
        for (const tv_note *e = events ? events->first : NULL; e && list.n < n; e = e->next) {
            const double code = tv_noted_num(e, "xid");
            if (!(code >= 0))
                continue;
            list.v[list.n++] = (tv_xid_seen){
                s, e, (unsigned)code, tv_noted_str(e, "pci"), tv_noted_num(e, "n"), false, false};
        }
    }
    name_root(&list);
    mark(&list);
    return list;
}

void tv_found_event(tv_inquiry *q, tv_finding *f, const tv_xid_seen *x)
{
    tv_found_num(q, f, "xid", TV_ARG_NUMBER, x->code);
    tv_found_str(q, f, "pci", x->pci);
    tv_found_str(q, f, "bus_id", tv_pci_bus_id(q->a, x->pci));
    tv_found_str(q, f, "time", tv_noted_str(x->event, "time"));
    tv_found_str(q, f, "process", tv_noted_str(x->event, "name"));
    tv_found_num(q, f, "pid", TV_ARG_NUMBER, tv_noted_num(x->event, "pid"));
}
