/* A sentence before it has a language: an id, an English pattern and typed arguments. Errors,
 * advice, reasons and findings are made of it; writers say it in the request's language and the
 * JSON shows {id, args, text}. A pattern names its arguments: "needs {need}, {gpu} has {have}". */
#ifndef TV_TEXT_H
#define TV_TEXT_H

#include "buf.h"

/* Marks an English pattern for translation where it stands as data. */
#define N_(msgid) msgid

typedef enum tv_lang { TV_EN, TV_ZH } tv_lang;

typedef enum tv_arg_kind {
    TV_ARG_STR,    /* shown as it is */
    TV_ARG_WORD,   /* a msgid of its own, translated */
    TV_ARG_NUMBER, /* a plain number, up to four significant digits, whole below 10^15 */
    TV_ARG_COUNT,  /* a whole number with thousands separators */
    TV_ARG_MEMORY, /* bytes, shown in GiB, MiB */
    TV_ARG_DISK,   /* bytes, shown in GB, MB */
    TV_ARG_RATE,   /* bytes per second, shown in GB/s */
    TV_ARG_SECONDS,
    TV_ARG_RATIO, /* shown in percent */
    TV_ARG_FLOPS, /* FLOP/s, shown in TFLOP/s */
    TV_ARG_WATTS,
} tv_arg_kind;

typedef struct tv_arg {
    const char *name;
    tv_arg_kind kind;
    tv_str s;
    double v;
} tv_arg;

typedef struct tv_text {
    const char *id;    /* language-free, stable: "vram.too-small" */
    const char *msgid; /* English pattern, also the key of the translation; NULL: no text */
    const tv_arg *args;
    size_t n_args;
} tv_text;

tv_arg tv_arg_str(const char *name, tv_str s);
tv_arg tv_arg_word(const char *name, const char *msgid);
tv_arg tv_arg_num(const char *name, tv_arg_kind kind, double v);

/* TV_TEXT(a, id, msgid, args...): the arguments are copied into the arena. */
#define TV_TEXT(a, id, msgid, ...)                                                                 \
    tv_text_make((a), (id), (msgid), (const tv_arg[]){__VA_ARGS__},                                \
                 sizeof((const tv_arg[]){__VA_ARGS__}) / sizeof(tv_arg))
#define TV_TEXT0(id_, msgid_) ((tv_text){.id = (id_), .msgid = (msgid_)})
tv_text tv_text_make(tv_arena *a, const char *id, const char *msgid, const tv_arg *args, size_t n);

/* The pattern in that language with its arguments filled in. */
void tv_put_text(tv_buf *b, tv_lang lang, tv_text t);
tv_str tv_text_in(tv_arena *a, tv_lang lang, tv_text t);

/* One argument as a person reads it. */
void tv_put_arg(tv_buf *b, tv_lang lang, const tv_arg *arg);

#endif
