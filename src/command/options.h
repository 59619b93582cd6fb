/* Options: one row per option, and everything is read from the row: argv, a query string or a
 * JSON body, --help, the man page, completion. Knows nothing of any command. */
#ifndef TV_OPTIONS_H
#define TV_OPTIONS_H

#include "base/err.h"

typedef enum tv_option_kind {
    TV_OPTION_FLAG,    /* bool */
    TV_OPTION_COUNT,   /* uint32_t: a whole number */
    TV_OPTION_NUMBER,  /* double; 7e9, 7B, 350k */
    TV_OPTION_BYTES,   /* double; 80GB, 80GiB */
    TV_OPTION_SECONDS, /* double; 90, 3ms, 2h */
    TV_OPTION_TEXT,    /* tv_str */
    TV_OPTION_TEXTS,   /* tv_texts: the option may be given several times */
    TV_OPTION_WORD,    /* int-sized enum: one word of a list */
    TV_OPTION_DATE,    /* tv_str, YYYY-MM-DD */
    TV_OPTION_SIZE,    /* uint32_t[2]: HxW, or one number for both */
} tv_option_kind;

typedef struct tv_texts {
    tv_str *v;
    size_t n;
    size_t cap;
} tv_texts;

typedef struct tv_option {
    const char *name; /* without dashes; also the key in a query or a JSON body */
    char letter;      /* short form, or 0 */
    tv_option_kind kind;
    size_t offset;         /* of the field in the group's struct */
    const char *value;     /* what stands for the value in help ("N"); NULL: the kind's own */
    const char *help;      /* msgid: one phrase, no full stop */
    const char *otherwise; /* msgid: what is taken when it is not said; NULL: nothing */
    double low, high;      /* allowed range, both included; both 0: any number from 0 on */
    double scale;          /* of a bare number of seconds (3600: hours); 0: 1 */
    /* TV_OPTION_WORD: the word for each value in [0, n_words); NULL or "" where there is none. */
    const char *(*word)(int value);
    int n_words;
} tv_option;

/* Rows that fill one struct. A command lists its groups with the place of each struct. */
typedef struct tv_option_group {
    const char *title; /* msgid of the heading in help */
    const tv_option *rows;
    size_t n;
    size_t offset; /* of the group's struct in the command's options */
} tv_option_group;

/* A group with the struct that it fills. */
typedef struct tv_option_target {
    const tv_option *rows;
    size_t n;
    void *fields;
} tv_option_target;

typedef struct tv_rows {
    const tv_option **v;
    size_t n;
    size_t cap;
} tv_rows;

/* What stood on the command line beside the options' values. */
typedef struct tv_args {
    tv_str *v; /* positional words, in order */
    size_t n;
    size_t cap;
    tv_rows stated; /* rows that were given */
    size_t used;    /* words of argv that were read (see until_word) */
} tv_args;

/* True when the option of that name was given. */
bool tv_stated(const tv_args *args, const char *name);

/* Reads argv[0..argc) into the targets. until_word: stops before the first positional word. All
 * words are read even after a mistake (so that --lang still holds); the first mistake is
 * returned, with code TV_USAGE. */
const tv_err *tv_options_parse(tv_arena *a, const tv_option_target *targets, size_t n_targets,
                               int argc, const char *const *argv, bool until_word,
                               tv_args *args) TV_CHECKED;

/* Sets one field from its text: the step that every door shares. */
const tv_err *tv_option_set(tv_arena *a, const tv_option *row, void *fields,
                            tv_str text) TV_CHECKED;

/* The row of that name, or NULL. */
const tv_option *tv_option_find(const tv_option *rows, size_t n, tv_str name);

/* "N", "BYTES", ...: what stands for the value in help; NULL for a flag. */
const char *tv_option_value(const tv_option *row);

/* The words of a TV_OPTION_WORD with a separator between them. */
tv_str tv_option_words(tv_arena *a, const tv_option *row, tv_str separator);

/* The nearest of n names to a mistyped one, or the empty text where none is near. */
tv_str tv_nearest(tv_arena *a, tv_str text, const tv_str *names, size_t n);

#endif
