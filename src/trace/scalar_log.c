/* Files of recorded scalars: VisualDL's (records of a length and a message) and TensorBoard's (the
 * same with checksums). Which scalars there are, and where they are times of a training, its log.
 * Formats: VisualDL visualdl/proto/record.proto; TensorFlow core/util/event.proto,
 * core/framework/summary.proto. Images, audio and the rest are passed over. */
#include <math.h>
#include <string.h>

#include "base/limits.h"
#include "codec/wire.h"
#include "train_run.h"

enum {
    MOST_TAGS = 256,
    /* A record of scalars has some dozen bytes, one of an image may have megabytes. */
    MOST_RECORD_BYTES = 1 << 16,
};

typedef struct scalar {
    double at_s; /* since 1970; NaN: not told */
    double step;
    tv_str tag;
    double value;
} scalar;

typedef struct tag_sum {
    tv_str tag;
    uint64_t n;
    double first, last, least, most;
    double first_step, last_step, first_s, last_s;
} tag_sum;

typedef struct recording {
    tv_arena *a;      /* of what is kept */
    tv_arena *record; /* given back after each record */
    bool board;       /* TensorBoard's */
    tag_sum tags[MOST_TAGS];
    size_t n;
    uint64_t records, scalars;
    tv_train_run *run;
    tv_moment now;
} recording;

/* ---- one scalar ---- */

/* "Train/batch_cost", "train/data_time", "time" */
static bool is_tag(tv_str tag, const char *name)
{
    const size_t n = strlen(name);
    return tv_str_ends(tag, (tv_str){name, n}) &&
           (tag.n == n || strchr("/_ .-", tag.p[tag.n - n - 1]));
}

static double *place_of(tv_moment *m, tv_str tag, double *unit)
{
    static const struct {
        const char *name;
        size_t at;
        double unit;
    } rows[] = {
        {"reader_cost", offsetof(tv_moment, data_s), 1},
        {"data_cost", offsetof(tv_moment, data_s), 1},
        {"data_time", offsetof(tv_moment, data_s), 1},
        {"batch_cost", offsetof(tv_moment, step_s), 1},
        {"batch_time", offsetof(tv_moment, step_s), 1},
        {"iter_time", offsetof(tv_moment, step_s), 1},
        {"time", offsetof(tv_moment, step_s), 1},
        {"ips", offsetof(tv_moment, samples_per_s), 1},
        {"samples_per_second", offsetof(tv_moment, samples_per_s), 1},
        {"tokens_per_second", offsetof(tv_moment, tokens_per_s), 1},
        {"max_mem", offsetof(tv_moment, mem_bytes), 0x1p20},
        {"memory", offsetof(tv_moment, mem_bytes), 0x1p20},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (is_tag(tag, rows[i].name)) {
            *unit = rows[i].unit;
            return (double *)(void *)((char *)m + rows[i].at);
        }
    return NULL;
}

static void end_moment(recording *g)
{
    if (tv_moment_any(&g->now))
        tv_train_add(g->run, &g->now);
    g->now = tv_moment_none(0);
}

static tag_sum *sum_of(recording *g, const scalar *s)
{
    for (size_t i = 0; i < g->n; i++)
        if (tv_str_eq(g->tags[i].tag, s->tag))
            return &g->tags[i];
    if (g->n == MOST_TAGS)
        return NULL;
    tag_sum *t = &g->tags[g->n++];
    *t = (tag_sum){.tag = tv_str_copy(g->a, tv_str_take(s->tag, 256)),
                   .first = s->value,
                   .least = s->value,
                   .most = s->value,
                   .first_step = s->step,
                   .first_s = s->at_s};
    return t;
}

static void take_scalar(recording *g, const scalar *s)
{
    tag_sum *t = sum_of(g, s);
    g->scalars++;
    if (t) {
        t->n++;
        t->last = s->value;
        t->least = fmin(t->least, s->value);
        t->most = fmax(t->most, s->value);
        t->last_step = s->step;
        t->last_s = s->at_s;
    }
    double unit;
    if (g->now.step < s->step || g->now.step > s->step)
        end_moment(g);
    g->now.step = s->step;
    double *place = s->value >= 0 ? place_of(&g->now, s->tag, &unit) : NULL;
    if (place)
        *place = s->value * unit;
}

/* ---- VisualDL ---- */

static const tv_err *read_value(recording *g, tv_wire w)
{
    scalar s = {(double)NAN, (double)NAN, {0}, (double)NAN};
    bool has_value = false;
    for (bool more = true;;) {
        tv_wire_field f;
        int64_t v;
        TV_TRY(tv_wire_next(&w, &f, &more));
        if (!more)
            break;
        if (f.number == 1 || f.number == 3) {
            TV_TRY(tv_wire_i64(&w, &f, &v));
            if (f.number == 1)
                s.step = (double)v;
            else
                s.at_s = (double)v / 1000;
        } else if (f.number == 2) {
            TV_TRY(tv_wire_str(&w, &f, &s.tag));
        } else if (f.number == 4) {
            TV_TRY(tv_wire_f32(&w, &f, &s.value));
            has_value = true;
        }
    }
    if (has_value && s.tag.n)
        take_scalar(g, &s);
    return NULL;
}

static const tv_err *read_record(recording *g, tv_wire w)
{
    for (bool more = true;;) {
        tv_wire_field f;
        tv_wire inner;
        TV_TRY(tv_wire_next(&w, &f, &more));
        if (!more)
            return NULL;
        if (f.number != 1)
            continue;
        TV_TRY(tv_wire_enter(&w, &f, &inner));
        TV_TRY(read_value(g, inner));
    }
}

/* ---- TensorBoard ---- */

/* TensorProto: float_val = 5, or four bytes of tensor_content = 4. */
static const tv_err *read_tensor(tv_wire w, scalar *s, bool *has_value)
{
    for (bool more = true;;) {
        tv_wire_field f;
        TV_TRY(tv_wire_next(&w, &f, &more));
        if (!more)
            return NULL;
        if (f.number == 5 && f.type == TV_WIRE_FIXED32) {
            TV_TRY(tv_wire_f32(&w, &f, &s->value));
            *has_value = true;
        } else if ((f.number == 5 || f.number == 4) && f.type == TV_WIRE_BYTES && f.bytes.n == 4) {
            float v;
            memcpy(&v, f.bytes.p, 4);
            s->value = (double)v;
            *has_value = true;
        }
    }
}

static const tv_err *read_summary_value(recording *g, tv_wire w, scalar s)
{
    bool has_value = false;
    for (bool more = true;;) {
        tv_wire_field f;
        tv_wire inner;
        TV_TRY(tv_wire_next(&w, &f, &more));
        if (!more)
            break;
        if (f.number == 1) {
            TV_TRY(tv_wire_str(&w, &f, &s.tag));
        } else if (f.number == 2) {
            TV_TRY(tv_wire_f32(&w, &f, &s.value));
            has_value = true;
        } else if (f.number == 8) {
            TV_TRY(tv_wire_enter(&w, &f, &inner));
            TV_TRY(read_tensor(inner, &s, &has_value));
        }
    }
    if (has_value && s.tag.n)
        take_scalar(g, &s);
    return NULL;
}

static const tv_err *read_summary(recording *g, tv_wire w, scalar s)
{
    for (bool more = true;;) {
        tv_wire_field f;
        tv_wire inner;
        TV_TRY(tv_wire_next(&w, &f, &more));
        if (!more)
            return NULL;
        if (f.number != 1)
            continue;
        TV_TRY(tv_wire_enter(&w, &f, &inner));
        TV_TRY(read_summary_value(g, inner, s));
    }
}

/* wall_time = 1 and step = 2 stand before summary = 5. */
static const tv_err *read_event(recording *g, tv_wire w)
{
    scalar s = {(double)NAN, 0, {0}, (double)NAN};
    for (bool more = true;;) {
        tv_wire_field f;
        tv_wire inner;
        int64_t step;
        TV_TRY(tv_wire_next(&w, &f, &more));
        if (!more)
            return NULL;
        if (f.number == 1) {
            TV_TRY(tv_wire_f64(&w, &f, &s.at_s));
        } else if (f.number == 2) {
            TV_TRY(tv_wire_i64(&w, &f, &step));
            s.step = (double)step;
        } else if (f.number == 5) {
            TV_TRY(tv_wire_enter(&w, &f, &inner));
            TV_TRY(read_summary(g, inner, s));
        }
    }
}

/* ---- the file ---- */

static uint64_t length_at(tv_str s)
{
    uint64_t v = 0;
    for (size_t i = 8; i-- > 0;)
        v = v << 8 | (unsigned char)s.p[i];
    return v;
}

static const tv_err *next_record(recording *g, tv_stream *stream, tv_str name, bool *more)
{
    const tv_mark mark = tv_arena_mark(g->record);
    const size_t head = g->board ? 12 : 8, tail = g->board ? 4 : 0;
    tv_str h, body;
    *more = false;
    TV_TRY(tv_stream_take(stream, g->record, head, &h));
    if (h.n < head)
        return NULL;
    const uint64_t n = length_at(h);
    if (n > MOST_RECORD_BYTES) {
        *more = n < TV_LIMIT_DATABASE_BYTES; /* else it is no length */
        if (*more)
            TV_TRY(tv_stream_skip(stream, n + tail));
    } else {
        TV_TRY(tv_stream_take(stream, g->record, (size_t)n, &body));
        if (body.n == n) {
            const tv_bytes_view view = {(const unsigned char *)body.p, body.n};
            const tv_wire w = tv_wire_in(g->record, name, view);
            /* A damaged record ends the file: what follows it cannot be found. */
            *more = !(g->board ? read_event(g, w) : read_record(g, w));
        }
        if (tail)
            TV_TRY(tv_stream_skip(stream, tail));
    }
    g->records += *more;
    tv_arena_rewind(g->record, mark);
    return NULL;
}

static void put(tv_arena *a, tv_note *in, const char *key, double v)
{
    if (isfinite(v))
        (void)tv_note_num(a, in, key, v);
}

static void note_tags(recording *g, tv_note *facts)
{
    tv_note *list = tv_note_list(g->a, facts, "tags");
    double longest = 0;
    for (size_t i = 0; i < g->n; i++) {
        const tag_sum *t = &g->tags[i];
        tv_note *one = tv_note_map(g->a, list, NULL);
        (void)tv_note_str(g->a, one, "tag", t->tag);
        (void)tv_note_num(g->a, one, "n", (double)t->n);
        put(g->a, one, "first", t->first);
        put(g->a, one, "last", t->last);
        put(g->a, one, "least", t->least);
        put(g->a, one, "most", t->most);
        put(g->a, one, "first_step", t->first_step);
        put(g->a, one, "last_step", t->last_step);
        const double steps = t->last_step - t->first_step;
        if (steps > longest && t->last_s > t->first_s) {
            longest = steps;
            put(g->a, facts, "wall_step_s", (t->last_s - t->first_s) / steps);
        }
    }
}

static void write_facts(recording *g, tv_str name, tv_scene *scene)
{
    tv_sighting *s = tv_scene_add(g->a, scene, "scalars", name, 0,
                                  g->board ? TV_S("TensorBoard events") : TV_S("VisualDL records"));
    tv_note *facts = &s->facts;
    (void)tv_note_str(g->a, facts, "format", g->board ? TV_S("tensorboard") : TV_S("visualdl"));
    (void)tv_note_num(g->a, facts, "records", (double)g->records);
    (void)tv_note_num(g->a, facts, "scalars", (double)g->scalars);
    note_tags(g, facts);
    const tv_sheet sheet = {.file = name};
    tv_reading r = {g->a, scene, &sheet};
    tv_train_end(&r, g->run);
}

static bool is_board(tv_str head)
{
    return head.n > 40 && tv_str_has(tv_str_take(head, 64), TV_S("brain.Event:"));
}

/* A length, and a message whose first field is a message of that length or less. */
static bool is_visualdl(tv_str name, tv_str head)
{
    if (head.n < 12 || !tv_str_has(tv_path_name(name), TV_S("vdlrecords")))
        return false;
    const uint64_t n = length_at(head);
    return n < TV_LIMIT_DATABASE_BYTES && (n == 0 || head.p[8] == 0x0a);
}

static bool is(const tv_input *in)
{
    return is_board(in->head) || is_visualdl(in->name, in->head);
}

static const tv_err *read(tv_arena *a, tv_input *in, tv_scene *scene)
{
    tv_arena *scratch = tv_arena_child(a, TV_LIMIT_ARENA_BYTES);
    const tv_mark mark = tv_arena_mark(scratch);
    recording *g = tv_new(scratch, recording, 1);
    g->a = a;
    g->record = tv_arena_child(scratch, TV_LIMIT_ARENA_BYTES);
    g->board = is_board(in->head);
    g->run = tv_new(scratch, tv_train_run, 1);
    g->run->dialect = g->board ? "tensorboard" : "visualdl";
    g->run->framework = g->board ? "pytorch" : "paddle";
    g->run->gpus = (double)NAN;
    g->now = tv_moment_none(0);
    const tv_err *e = NULL;
    for (bool more = true; more && !e;)
        e = next_record(g, in->stream, in->name, &more);
    end_moment(g);
    if (g->records)
        write_facts(g, in->name, scene);
    tv_arena_rewind(scratch, mark);
    return e;
}

extern const tv_dump_format tv_dump_format_scalar_log;
const tv_dump_format tv_dump_format_scalar_log = {"scalars", is, read};
