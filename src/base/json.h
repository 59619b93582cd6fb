/* JSON: one bounded pull scanner; documents are built on it in the arena; one writer.
 * The scanner touches each byte once and allocates nothing but unescaped strings. */
#ifndef TV_JSON_H
#define TV_JSON_H

#include "err.h"
#include "limits.h"

typedef enum tv_json_type {
    TV_JSON_END, /* the document is over; also the zero node: "absent" */
    TV_JSON_NULL,
    TV_JSON_FALSE,
    TV_JSON_TRUE,
    TV_JSON_NUMBER,
    TV_JSON_STRING,
    TV_JSON_KEY, /* scanner only */
    TV_JSON_ARRAY,
    TV_JSON_OBJECT,
    TV_JSON_CLOSE, /* scanner only: the end of the innermost array or object */
} tv_json_type;

/* One event of the scanner. s is the text of a string, key or number. Strings without escapes
 * are views of the input; others are unescaped into the arena (invalid UTF-16 pairs become
 * U+FFFD). offset is where the token starts. */
typedef struct tv_json_event {
    tv_json_type type;
    tv_str s;
    uint64_t offset;
} tv_json_event;

typedef struct tv_json_scan {
    tv_arena *a;
    tv_str file; /* for messages */
    tv_str text;
    size_t at;
    unsigned depth;
    bool in_object[TV_LIMIT_JSON_DEPTH];
    bool expects_value; /* after a key, or a comma in an array */
    bool after_value;
    bool done;
    bool lenient; /* accepts NaN, Infinity and -Infinity as Python writes them */
    bool raw;     /* strings are delivered with their escapes: for what is passed over */
} tv_json_scan;

/* The scanner looks at text only; file names it in errors (may be empty). A leading UTF-8 byte
 * order mark is skipped. */
tv_json_scan tv_json_open(tv_arena *a, tv_str file, tv_str text);

/* The next event. After the outermost value: TV_JSON_END; anything but space behind it is an
 * error. Errors carry the byte offset. */
const tv_err *tv_json_next(tv_json_scan *s, tv_json_event *event) TV_CHECKED;

/* Skips the rest of the value whose opening event was just delivered. */
const tv_err *tv_json_skip(tv_json_scan *s, tv_json_event event) TV_CHECKED;

/* A document. Members keep their order; a duplicate key is an error. */
typedef struct tv_json tv_json;
struct tv_json {
    tv_json_type type;
    tv_str key;           /* inside an object */
    tv_str s;             /* string, or the number's own text */
    double number;        /* TV_JSON_NUMBER */
    const tv_json *items; /* array elements or object members */
    size_t n;
    uint64_t offset;
};

const tv_err *tv_json_parse(tv_arena *a, tv_str file, tv_str text, const tv_json **doc) TV_CHECKED;
/* Python's json module also writes NaN and Infinity; they are read as null. */
const tv_err *tv_json_parse_file(tv_arena *a, tv_str path, const tv_json **doc) TV_CHECKED;

/* A part of a document that is scanned: the whole value whose opening event was just delivered. */
const tv_err *tv_json_value(tv_json_scan *s, tv_json_event event, tv_json *node) TV_CHECKED;

/* Look-ups never fail: a missing member is the absent node (type TV_JSON_END), so that they
 * chain. j may be NULL. */
const tv_json *tv_json_get(const tv_json *j, const char *key);
/* "a.b.c" through nested objects. */
const tv_json *tv_json_path(const tv_json *j, const char *path);
const tv_json *tv_json_at(const tv_json *j, size_t i);
bool tv_json_has(const tv_json *j, const char *key); /* present and not null */

/* Values with a fallback for absent, null or another type. */
double tv_json_num(const tv_json *j, double fallback);
bool tv_json_bool(const tv_json *j, bool fallback);
tv_str tv_json_str(const tv_json *j); /* empty when it is no string */
bool tv_json_is_num(const tv_json *j);
/* A whole number in [0, 2^64): exact. */
tv_u64_read tv_json_u64(const tv_json *j);

/* The writer: two-space indentation, members in the order they are written. */
typedef struct tv_json_out {
    tv_buf *b;
    unsigned depth;
    bool some[TV_LIMIT_JSON_DEPTH];
    bool after_key;
} tv_json_out;

tv_json_out tv_json_write(tv_buf *b);
void tv_json_begin(tv_json_out *w, char bracket); /* '{' or '[' */
void tv_json_end(tv_json_out *w, char bracket);   /* '}' or ']' */
void tv_json_key(tv_json_out *w, const char *key);
void tv_json_key_str(tv_json_out *w, tv_str key);
void tv_json_put_str(tv_json_out *w, tv_str s);
void tv_json_put_num(tv_json_out *w, double v); /* NaN and infinite are null */
void tv_json_put_bool(tv_json_out *w, bool v);
void tv_json_put_null(tv_json_out *w);
void tv_json_put_tree(tv_json_out *w, const tv_json *j);
/* {id, args, text} */
void tv_json_put_text(tv_json_out *w, tv_lang lang, tv_text t);

#endif
