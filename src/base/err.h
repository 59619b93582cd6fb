/* Errors: made where they are known, wrapped where we know what we were doing, printed once at
 * the door. NULL is success. Codes say what a caller can do and are the exit status. */
#ifndef TV_ERR_H
#define TV_ERR_H

#include "text.h"

typedef enum tv_code {
    TV_OK = 0,
    TV_NO = 1,          /* answered "no" where a yes was asked */
    TV_USAGE = 2,       /* the command line is wrong or names several things */
    TV_INPUT = 3,       /* the input is broken */
    TV_LIMIT = 3,       /* the input is larger than a ceiling in limits.h */
    TV_UNSUPPORTED = 4, /* understood, but not handled */
    TV_UNAVAILABLE = 5, /* not there: a file, a device, a service */
    TV_INFEASIBLE = 6,  /* no choice satisfies the request */
    TV_BUG = 70,
    TV_SYSTEM = 71, /* the operating system said no */
} tv_code;

typedef struct tv_err tv_err;
struct tv_err {
    tv_code code;
    tv_text what; /* one line, lower case, no full stop */
    tv_text hint; /* a sentence: what to try; msgid NULL when there is none */
    tv_str file;  /* empty when no file is concerned */
    uint64_t offset;
    bool has_offset;
    const tv_err *cause;
};

#define TV_CHECKED __attribute__((warn_unused_result))

/* TV_FAIL(a, code, id, msgid, args...) and TV_FAIL0 without arguments. */
#define TV_FAIL(a, code, id, msgid, ...)                                                           \
    tv_fail((a), (code), TV_TEXT((a), (id), (msgid), __VA_ARGS__))
#define TV_FAIL0(a, code, id, msgid) tv_fail((a), (code), TV_TEXT0((id), (msgid)))

tv_err *tv_fail(tv_arena *a, tv_code code, tv_text what);
/* The same with the place: a file and a byte in it. */
tv_err *tv_fail_at(tv_arena *a, tv_code code, tv_text what, tv_str file, uint64_t offset);
/* Adds what to try, and yields the error. */
tv_err *tv_hint(tv_err *e, tv_text hint);
tv_err *tv_in_file(tv_err *e, tv_str file);
/* Wraps: what we were doing when e came. Keeps e's code. */
tv_err *tv_while(tv_arena *a, const tv_err *e, tv_text doing);

/* Hands an error on. */
#define TV_TRY(expression)                                                                         \
    do {                                                                                           \
        const tv_err *tv_try_e = (expression);                                                     \
        if (tv_try_e)                                                                              \
            return tv_try_e;                                                                       \
    } while (0)

/* "FILE:OFFSET: doing: what" and, on its own line, the hint. */
void tv_put_err(tv_buf *b, tv_lang lang, const tv_err *e);

/* The words for an errno value. */
tv_str tv_errno_text(tv_arena *a, int number);

#endif
