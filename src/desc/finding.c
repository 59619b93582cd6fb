/* Scenes are lists in the order of reading; commands are filled with care, for the values come
 * from files that nobody vouches for. */
#include "finding.h"

#include <string.h>

tv_sighting *tv_scene_add(tv_arena *a, tv_scene *scene, const char *kind, tv_str file,
                          uint64_t line, tv_str text)
{
    tv_sighting *s = tv_new(a, tv_sighting, 1);
    *s = (tv_sighting){.kind = kind,
                       .file = file,
                       .line = line,
                       .text =
                           tv_str_copy(a, tv_str_take(tv_str_trim(text), TV_LIMIT_EVIDENCE_BYTES)),
                       .facts = {.type = TV_NOTE_MAP}};
    if (scene->n >= TV_LIMIT_SIGHTINGS)
        return s; /* written to, and not looked at */
    if (scene->last)
        scene->last->next = s;
    else
        scene->first = s;
    scene->last = s;
    scene->n++;
    return s;
}

static const tv_sighting *of_kind(const tv_sighting *s, const char *kind)
{
    while (s && kind && strcmp(s->kind, kind) != 0)
        s = s->next;
    return s;
}

const tv_sighting *tv_scene_first(const tv_scene *scene, const char *kind)
{
    return of_kind(scene->first, kind);
}

const tv_sighting *tv_scene_next(const tv_sighting *s, const char *kind)
{
    return of_kind(s->next, kind);
}

/* ---- commands ---- */

static const tv_arg *value_of(const tv_finding *f, tv_str name)
{
    for (size_t i = 0; i < f->values.n; i++)
        if (tv_str_is(name, f->values.v[i].name))
            return &f->values.v[i];
    return NULL;
}

/* The next {name} of a pattern: head is what stands before it; not found: a stray brace is text. */
typedef struct slot {
    tv_str before;
    tv_str name;
    tv_str after;
    bool found;
} slot;

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

static slot next_slot(tv_str rest)
{
    for (size_t i = 0; i < rest.n; i++) {
        if (rest.p[i] != '{')
            continue;
        size_t end = i + 1;
        while (end < rest.n && is_name(rest.p[end]))
            end++;
        if (end > i + 1 && end < rest.n && rest.p[end] == '}')
            return (slot){tv_str_take(rest, i),
                          {rest.p + i + 1, end - i - 1},
                          tv_str_drop(rest, end + 1),
                          true};
    }
    return (slot){.before = rest};
}

bool tv_step_holds(const char *pattern, const tv_finding *f)
{
    for (slot s = next_slot(tv_str_of(pattern)); s.found; s = next_slot(s.after))
        if (!value_of(f, s.name))
            return false;
    return true;
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("_.:/@%+=,-", c));
}

static void put_quoted(tv_buf *b, tv_str s)
{
    bool plain = s.n > 0;
    for (size_t i = 0; i < s.n; i++)
        plain = plain && is_plain(s.p[i]);
    if (plain) {
        tv_put(b, s);
        return;
    }
    tv_putc(b, '\'');
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '\'')
            tv_puts(b, "'\\''");
        else if ((unsigned char)s.p[i] >= 32)
            tv_putc(b, s.p[i]);
    tv_putc(b, '\'');
}

static void put_value(tv_buf *b, const tv_arg *arg)
{
    if (arg->kind == TV_ARG_STR || arg->kind == TV_ARG_WORD)
        put_quoted(b, arg->s);
    else
        tv_put_double(b, arg->v);
}

tv_str tv_step_command(tv_arena *a, const char *pattern, const tv_finding *f)
{
    if (!tv_step_holds(pattern, f))
        return (tv_str){0};
    tv_buf b = tv_buf_in(a);
    slot s = next_slot(tv_str_of(pattern));
    for (; s.found; s = next_slot(s.after)) {
        tv_put(&b, s.before);
        put_value(&b, value_of(f, s.name));
    }
    tv_put(&b, s.before);
    return tv_buf_str(&b);
}

/* ---- words ---- */

const char *tv_severity_name(tv_severity severity)
{
    static const char *const names[] = {
        [TV_INFO] = N_("info"), [TV_WARNING] = N_("warning"), [TV_CRITICAL] = N_("critical")};
    return names[severity];
}

const char *tv_confidence_name(tv_confidence sure)
{
    static const char *const names[] = {
        [TV_LOW] = N_("low"), [TV_MEDIUM] = N_("medium"), [TV_HIGH] = N_("high")};
    return names[sure];
}
