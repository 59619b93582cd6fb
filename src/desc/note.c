/* Notes are linked in the order of writing: maps have few members, lists are walked. */
#include "note.h"

#include <math.h>
#include <string.h>

/* The member of that name, at most `length` bytes of it. */
static tv_note *member(const tv_note *in, const char *key, size_t length)
{
    for (tv_note *note = in->first; note; note = note->next)
        if (note->key && strncmp(note->key, key, length) == 0 && !note->key[length])
            return note;
    return NULL;
}

static tv_note *put(tv_arena *a, tv_note *in, const char *key)
{
    tv_note *old = key ? member(in, key, strlen(key)) : NULL;
    if (old)
        return old;
    tv_note *note = tv_new(a, tv_note, 1);
    note->key = key;
    if (in->n >= TV_LIMIT_NOTE_ITEMS) {
        in->more++;
        return note;
    }
    if (in->last)
        in->last->next = note;
    else
        in->first = note;
    in->last = note;
    in->n++;
    return note;
}

tv_note *tv_note_num(tv_arena *a, tv_note *in, const char *key, double v)
{
    tv_note *note = put(a, in, key);
    note->type = isnan(v) ? TV_NOTE_NULL : TV_NOTE_NUMBER;
    note->number = v;
    return note;
}

tv_note *tv_note_bool(tv_arena *a, tv_note *in, const char *key, bool yes)
{
    tv_note *note = put(a, in, key);
    note->type = TV_NOTE_BOOL;
    note->yes = yes;
    return note;
}

tv_note *tv_note_str(tv_arena *a, tv_note *in, const char *key, tv_str s)
{
    tv_note *note = put(a, in, key);
    note->type = TV_NOTE_STR;
    note->s = tv_str_copy(a, tv_str_take(s, TV_LIMIT_NOTE_TEXT_BYTES));
    return note;
}

tv_note *tv_note_null(tv_arena *a, tv_note *in, const char *key)
{
    tv_note *note = put(a, in, key);
    note->type = TV_NOTE_NULL;
    return note;
}

static tv_note *container(tv_arena *a, tv_note *in, const char *key, tv_note_type type)
{
    tv_note *note = put(a, in, key);
    note->type = type;
    return note;
}

tv_note *tv_note_list(tv_arena *a, tv_note *in, const char *key)
{
    return container(a, in, key, TV_NOTE_LIST);
}

tv_note *tv_note_map(tv_arena *a, tv_note *in, const char *key)
{
    return container(a, in, key, TV_NOTE_MAP);
}

tv_note *tv_note_place(tv_arena *a, tv_note *note, uint64_t line, tv_str text)
{
    note->line = line;
    note->text = tv_str_copy(a, tv_str_take(tv_str_trim(text), TV_LIMIT_EVIDENCE_BYTES));
    return note;
}

static const tv_note *step(const tv_note *in, tv_str name)
{
    if (in->type != TV_NOTE_LIST)
        return member(in, name.p, name.n);
    tv_u64_read i = tv_str_u64(name);
    if (!i.ok)
        return NULL;
    const tv_note *note = in->first;
    while (note && i.v--)
        note = note->next;
    return note;
}

const tv_note *tv_noted(const tv_note *in, const char *path)
{
    tv_str rest = tv_str_of(path);
    while (in && rest.n) {
        const tv_cut cut = tv_str_cut(rest, '.');
        in = step(in, cut.head);
        rest = cut.tail;
    }
    return in;
}

double tv_noted_num(const tv_note *in, const char *path)
{
    const tv_note *note = tv_noted(in, path);
    return note && note->type == TV_NOTE_NUMBER ? note->number : (double)NAN;
}

bool tv_noted_bool(const tv_note *in, const char *path, bool fallback)
{
    const tv_note *note = tv_noted(in, path);
    return note && note->type == TV_NOTE_BOOL ? note->yes : fallback;
}

tv_str tv_noted_str(const tv_note *in, const char *path)
{
    const tv_note *note = tv_noted(in, path);
    return note && note->type == TV_NOTE_STR ? note->s : (tv_str){0};
}

bool tv_noted_is(const tv_note *in, const char *path, const char *word)
{
    return tv_str_is(tv_noted_str(in, path), word);
}

size_t tv_noted_n(const tv_note *in, const char *path)
{
    const tv_note *note = tv_noted(in, path);
    return note ? note->n : 0;
}

void tv_json_note(tv_json_out *w, const tv_note *note)
{
    switch (note->type) {
    case TV_NOTE_NULL:
        tv_json_put_null(w);
        return;
    case TV_NOTE_NUMBER:
        tv_json_put_num(w, note->number);
        return;
    case TV_NOTE_BOOL:
        tv_json_put_bool(w, note->yes);
        return;
    case TV_NOTE_STR:
        tv_json_put_str(w, note->s);
        return;
    case TV_NOTE_LIST:
    case TV_NOTE_MAP:
        break;
    }
    const char bracket = note->type == TV_NOTE_LIST ? '[' : '{';
    tv_json_begin(w, bracket);
    for (const tv_note *item = note->first; item; item = item->next) {
        if (note->type == TV_NOTE_MAP)
            tv_json_key(w, item->key);
        tv_json_note(w, item);
    }
    tv_json_end(w, note->type == TV_NOTE_LIST ? ']' : '}');
}
