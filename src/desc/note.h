/* What was seen, as a tree: numbers, words, lists and maps under the names that `facts` shows. A
 * reader writes notes, a rule reads them; neither knows the other. Every note may carry the line
 * that it was read from, so that a finding can cite it. Units are the suffix of the name, SI base
 * units; shares are fractions (`util_frac`). The zero value is "unknown" (null). */
#ifndef TV_NOTE_H
#define TV_NOTE_H

#include "base/json.h"

typedef enum tv_note_type {
    TV_NOTE_NULL, /* asked and not known */
    TV_NOTE_NUMBER,
    TV_NOTE_BOOL,
    TV_NOTE_STR,
    TV_NOTE_LIST,
    TV_NOTE_MAP,
} tv_note_type;

typedef struct tv_note tv_note;
struct tv_note {
    tv_note_type type;
    bool yes;
    const char *key; /* inside a map */
    double number;
    tv_str s;
    tv_note *first, *last; /* of a list or map, in the order of writing */
    tv_note *next;
    size_t n;      /* items that are kept */
    size_t more;   /* items past TV_LIMIT_NOTE_ITEMS, which are dropped */
    uint64_t line; /* from 1; 0: none of its own */
    tv_str text;   /* that line, cut to TV_LIMIT_EVIDENCE_BYTES */
};

/* ---- writing. key NULL appends to a list; in a map an existing key is written over. The key must
 * outlive the note (tv_cstr for names that come from the input); texts are copied. Each yields the
 * note, never NULL, so that a place can be given to it. ---- */

tv_note *tv_note_num(tv_arena *a, tv_note *in, const char *key, double v); /* NaN: null */
tv_note *tv_note_bool(tv_arena *a, tv_note *in, const char *key, bool yes);
tv_note *tv_note_str(tv_arena *a, tv_note *in, const char *key, tv_str s);
tv_note *tv_note_null(tv_arena *a, tv_note *in, const char *key);
/* A list or map that is already there under the key is yielded as it is. */
tv_note *tv_note_list(tv_arena *a, tv_note *in, const char *key);
tv_note *tv_note_map(tv_arena *a, tv_note *in, const char *key);
/* Where it was read. */
tv_note *tv_note_place(tv_arena *a, tv_note *note, uint64_t line, tv_str text);

/* ---- reading. `in` may be NULL, what is not there is NULL or the fallback; path names members
 * with dots, list items by number: "gpus.0.temp_c". ---- */

const tv_note *tv_noted(const tv_note *in, const char *path);
double tv_noted_num(const tv_note *in, const char *path); /* NaN: unknown */
bool tv_noted_bool(const tv_note *in, const char *path, bool fallback);
tv_str tv_noted_str(const tv_note *in, const char *path); /* empty: unknown */
bool tv_noted_is(const tv_note *in, const char *path, const char *word);
size_t tv_noted_n(const tv_note *in, const char *path);

/* As JSON: integers whole, unknown null. */
void tv_json_note(tv_json_out *w, const tv_note *note);

#endif
