/* PyTorch's flight recorder: the last collectives of one rank, as a pickle or as JSON. What is
 * pending is kept, and how far each process group came; which rank is at fault, rules tell. */
#include "glean.h"
#include "trace.h"

#include <math.h>
#include <string.h>

#include "codec/pickle.h"

/* A value of either encoding; both NULL: not there. */
typedef struct value {
    const tv_pickle_node *p;
    const tv_json *j;
} value;

/* torch writes typed lists as calls: torch.jit._pickle.restore_type_tag(list, "List[int]") */
static const tv_pickle_node *unwrapped(const tv_pickle_node *p)
{
    for (unsigned depth = 0; p && p->kind == TV_PICKLE_OBJECT && depth < 8; depth++) {
        if (!tv_str_starts(tv_pickle_class(p), TV_S("torch.jit._pickle.")))
            return p;
        p = tv_pickle_at(p->object->args, 0);
    }
    return p;
}

static value get(value v, const char *key)
{
    if (v.j)
        return (value){.j = tv_json_get(v.j, key)};
    return (value){.p = unwrapped(tv_pickle_get(tv_pickle_pairs(v.p), key))};
}

static bool is_list(value v)
{
    return v.j ? v.j->type == TV_JSON_ARRAY
               : v.p && (v.p->kind == TV_PICKLE_LIST || v.p->kind == TV_PICKLE_TUPLE);
}

static size_t count(value v)
{
    return !is_list(v) ? 0 : v.j ? v.j->n : v.p->n;
}

static value item(value v, size_t i)
{
    if (v.j)
        return (value){.j = tv_json_at(v.j, i)};
    return (value){.p = unwrapped(tv_pickle_at(v.p, i))};
}

/* The i-th member of a map. */
static size_t members(value v)
{
    if (v.j)
        return v.j->type == TV_JSON_OBJECT ? v.j->n : 0;
    const tv_pickle_node *pairs = tv_pickle_pairs(v.p);
    return pairs ? pairs->n / 2 : 0;
}

static value member(value v, size_t i, tv_str *key)
{
    if (v.j) {
        *key = v.j->items[i].key;
        return (value){.j = &v.j->items[i]};
    }
    const tv_pickle_node *pairs = tv_pickle_pairs(v.p);
    *key = tv_pickle_str(tv_pickle_at(pairs, 2 * i));
    return (value){.p = unwrapped(tv_pickle_at(pairs, 2 * i + 1))};
}

static tv_str text(value v)
{
    return v.j ? tv_json_str(v.j) : tv_pickle_str(v.p);
}

static double number(value v)
{
    if (v.j)
        return tv_json_num(v.j, (double)NAN);
    if (!v.p)
        return (double)NAN;
    if (v.p->kind == TV_PICKLE_INT)
        return (double)v.p->i;
    return v.p->kind == TV_PICKLE_FLOAT ? v.p->f : (double)NAN;
}

/* ---- the rank ---- */

/* "nccl_trace_rank_3", "dump_rank3.json", "host_12.pkl": the number behind the last "rank", or the
 * last one of the name. */
static tv_double_read rank_of(tv_str name)
{
    tv_str base = name, rest;
    while (tv_past(base, "/", &rest))
        base = rest;
    tv_double_read r = {0};
    for (tv_str s = base; tv_past(s, "rank", &s);) {
        tv_str digits = s;
        while (digits.n && (*digits.p == '_' || *digits.p == '-' || *digits.p == '='))
            digits = tv_str_drop(digits, 1);
        const tv_u64_read v = tv_take_u64(&digits);
        if (v.ok && v.v < 1000000)
            r = (tv_double_read){(double)v.v, true};
    }
    if (r.ok)
        return r;
    for (size_t i = 0; i < base.n; i++) {
        tv_str digits = tv_str_drop(base, i);
        const bool begins = !i || base.p[i - 1] < '0' || base.p[i - 1] > '9';
        const tv_u64_read v = begins && *digits.p >= '0' && *digits.p <= '9' ? tv_take_u64(&digits)
                                                                             : (tv_u64_read){0};
        if (v.ok && v.v < 1000000)
            r = (tv_double_read){(double)v.v, true};
    }
    return r;
}

/* ---- process groups ---- */

/* ranks: a list, or "[0, 1, 2]" */
static size_t ranks_in(value ranks)
{
    if (is_list(ranks))
        return count(ranks);
    tv_str s = text(ranks);
    size_t n = 0;
    if (!tv_past(s, "[", &s))
        return 0;
    for (tv_u64_read v = tv_take_u64(&s); v.ok; v = tv_take_u64(&s)) {
        n++;
        if (!tv_str_starts(tv_str_trim(s), TV_S(",")))
            break;
        s = tv_str_drop(tv_str_trim(s), 1);
    }
    return n;
}

static void put_number(tv_arena *a, tv_note *in, const char *key, double v)
{
    if (!isnan(v))
        (void)tv_note_num(a, in, key, v);
}

static void put_groups(tv_arena *a, tv_note *facts, value dump)
{
    const value config = get(dump, "pg_config"), status = get(dump, "pg_status");
    tv_note *groups = tv_note_list(a, facts, "groups");
    double world = (double)NAN;
    for (size_t i = 0; i < members(config) && i < 1024; i++) {
        tv_str key;
        const value group = member(config, i, &key);
        tv_note *note = tv_note_map(a, groups, NULL);
        (void)tv_note_str(a, note, "pg", key);
        if (text(get(group, "desc")).n)
            (void)tv_note_str(a, note, "desc", text(get(group, "desc")));
        const double n = (double)ranks_in(get(group, "ranks"));
        if (n > 0)
            (void)tv_note_num(a, note, "size", n);
        if (n > 0 && (isnan(world) || n > world))
            world = n;
        const value now = get(status, tv_cstr(a, tv_str_take(key, 200)));
        put_number(a, note, "last_enqueued", number(get(now, "last_enqueued_collective")));
        put_number(a, note, "last_started", number(get(now, "last_started_collective")));
        put_number(a, note, "last_completed", number(get(now, "last_completed_collective")));
    }
    put_number(a, facts, "world_size", world);
}

/* ---- collectives ---- */

/* Elements over all tensors: [[1024, 8], [3]] */
static double elements(value sizes)
{
    double sum = 0;
    for (size_t i = 0; i < count(sizes) && i < 4096; i++) {
        const value shape = item(sizes, i);
        double product = 1;
        for (size_t k = 0; k < count(shape) && k < 16; k++)
            product *= number(item(shape, k));
        sum += product;
    }
    return count(sizes) ? sum : (double)NAN;
}

/* "train.py:88 step": the innermost frame that is not the framework's own */
static tv_str frame_of(tv_arena *a, value entry)
{
    const value frames = get(entry, "frames");
    for (size_t i = 0; i < count(frames) && i < 256; i++) {
        const value frame = item(frames, i);
        const tv_str file = text(get(frame, "filename"));
        if (!file.n || tv_holds(file, "torch/") || tv_holds(file, "??"))
            continue;
        const double line = number(get(frame, "line"));
        tv_buf b = tv_buf_in(a);
        tv_put(&b, tv_str_take(file, 200));
        tv_putc(&b, ':');
        tv_put_u64(&b, line > 0 && line < 1e9 ? (uint64_t)line : 0);
        tv_putc(&b, ' ');
        tv_put(&b, tv_str_take(text(get(frame, "name")), 100));
        return tv_buf_str(&b);
    }
    return (tv_str){0};
}

static bool is_pending(value entry)
{
    const tv_str state = text(get(entry, "state"));
    return tv_str_is(state, "scheduled") || tv_str_is(state, "started");
}

static tv_str group_of(value entry)
{
    const value group = get(entry, "process_group");
    return is_list(group) ? text(item(group, 0)) : text(group);
}

static double seq_of(value entry)
{
    const double collective = number(get(entry, "collective_seq_id"));
    return collective > 0 ? collective : number(get(entry, "seq_id"));
}

/* The first pending collective of each group: the later ones wait behind it. */
static bool is_told(const tv_note *events, tv_str group)
{
    for (const tv_note *e = events->first; e; e = e->next)
        if (tv_str_eq(tv_noted_str(e, "pg_name"), group))
            return true;
    return false;
}

static tv_str op_of(value entry)
{
    const tv_str name = text(get(entry, "profiling_name"));
    return tv_str_starts(name, TV_S("nccl:")) ? tv_str_drop(name, 5) : name;
}

static void put_event(tv_arena *a, tv_note *events, value entry, tv_double_read rank)
{
    tv_note *e = tv_note_map(a, events, NULL);
    if (rank.ok)
        (void)tv_note_num(a, e, "rank", rank.v);
    put_number(a, e, "seq", seq_of(entry));
    (void)tv_note_str(a, e, "optype", op_of(entry));
    (void)tv_note_str(a, e, "state", text(get(entry, "state")));
    (void)tv_note_str(a, e, "pg_name", group_of(entry));
    const tv_u64_read pg = tv_str_u64(group_of(entry));
    if (pg.ok)
        (void)tv_note_num(a, e, "pg", (double)pg.v);
    put_number(a, e, "numel_in", elements(get(entry, "input_sizes")));
    put_number(a, e, "numel_out", elements(get(entry, "output_sizes")));
    const double limit = number(get(entry, "timeout_ms"));
    put_number(a, e, "timeout_s", limit / 1000);
    const tv_str frame = frame_of(a, entry);
    if (frame.n)
        (void)tv_note_str(a, e, "frame", frame);
}

static void put_entries(tv_arena *a, tv_note *facts, value dump, tv_double_read rank)
{
    const value entries = get(dump, "entries");
    const size_t n = count(entries);
    tv_note *events = tv_note_list(a, facts, "events");
    (void)tv_note_num(a, facts, "entries", (double)n);
    double last = (double)NAN;
    for (size_t i = 0; i < n; i++) {
        const value entry = item(entries, i);
        const double seq = seq_of(entry);
        if (!is_pending(entry))
            last = !(seq <= last) ? seq : last;
        else if (events->n < 256 && !is_told(events, group_of(entry)))
            put_event(a, events, entry, rank);
    }
    put_number(a, facts, "last_completed", last);
    const tv_note *first = events->first;
    if (first) {
        put_number(a, facts, "seq", tv_noted_num(first, "seq"));
        (void)tv_note_str(a, facts, "optype", tv_noted_str(first, "optype"));
        (void)tv_note_str(a, facts, "state", tv_noted_str(first, "state"));
    }
}

/* ---- the file ---- */

/* A buffer of 20,000 collectives with their frames takes some ten MB. */
enum { MOST_DUMP_BYTES = 48 << 20 };

static bool is(const tv_input *in)
{
    const bool pickle =
        tv_pickle_is((tv_bytes_view){(const unsigned char *)in->head.p, in->head.n});
    const bool json = tv_str_starts(tv_str_trim(in->head), TV_S("{"));
    return (pickle || json) && tv_holds(in->head, "entries") &&
           (tv_holds(in->head, "pg_config") || tv_holds(in->head, "nccl_comm_state") ||
            tv_holds(in->head, "collective_seq_id"));
}

static const tv_err *parse(tv_arena *a, const tv_input *in, tv_str bytes, value *dump)
{
    const tv_bytes_view view = {(const unsigned char *)bytes.p, bytes.n};
    if (!tv_pickle_is(view))
        return tv_json_parse(a, in->name, bytes, &dump->j);
    tv_pickle p = {.file = in->name, .bytes = view};
    TV_TRY(tv_pickle_next(a, &p, &dump->p));
    dump->p = unwrapped(dump->p);
    return NULL;
}

static void put_text(tv_arena *a, tv_sighting *s)
{
    tv_buf b = tv_buf_in(a);
    tv_puts(&b, "flight recorder");
    const tv_str op = tv_noted_str(&s->facts, "optype");
    const double seq = tv_noted_num(&s->facts, "seq");
    if (op.n && seq >= 0 && seq < 1e15) {
        tv_puts(&b, ": ");
        tv_put(&b, tv_noted_str(&s->facts, "state"));
        tv_puts(&b, " in ");
        tv_put(&b, op);
        tv_puts(&b, " number ");
        tv_put_u64(&b, (uint64_t)seq);
        const tv_str frame = tv_noted_str(&s->facts, "events.0.frame");
        if (frame.n) {
            tv_puts(&b, ", from ");
            tv_put(&b, frame);
        }
    }
    s->text = tv_buf_str(&b);
}

static const tv_err *read(tv_arena *a, tv_input *in, tv_scene *scene)
{
    tv_arena *own = tv_arena_child(a, TV_LIMIT_ARENA_BYTES);
    const tv_mark blank = tv_arena_mark(own);
    tv_sighting *s = tv_scene_add(a, scene, "flight", in->name, 0, (tv_str){0});
    tv_str bytes;
    value dump = {0};
    const tv_err *e = tv_stream_take(in->stream, own, MOST_DUMP_BYTES, &bytes);
    if (!e)
        e = parse(own, in, bytes, &dump);
    if (e) {
        (void)tv_note_bool(a, &s->facts, "damaged", true);
        tv_arena_rewind(own, blank); /* and with it the error's own words */
        return TV_FAIL0(a, TV_INPUT, "flight.damaged",
                        N_("the flight recorder's dump is cut off or damaged"));
    }
    const tv_double_read rank = rank_of(in->name);
    if (rank.ok)
        (void)tv_note_num(a, &s->facts, "rank", rank.v);
    if (text(get(dump, "version")).n)
        (void)tv_note_str(a, &s->facts, "version_of_dump", text(get(dump, "version")));
    put_groups(a, &s->facts, dump);
    put_entries(a, &s->facts, dump, rank);
    put_text(a, s);
    tv_arena_rewind(own, blank);
    return NULL;
}

extern const tv_dump_format tv_dump_format_flight_dump;
const tv_dump_format tv_dump_format_flight_dump = {"flight-recorder", is, read};
