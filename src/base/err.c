/* Errors with a code, a sentence, a place and a cause. */
#include "err.h"

#include <string.h>

#include "message.h"

tv_err *tv_fail(tv_arena *a, tv_code code, tv_text what)
{
    tv_err *e = tv_new(a, tv_err, 1);
    e->code = code;
    e->what = what;
    return e;
}

tv_err *tv_fail_at(tv_arena *a, tv_code code, tv_text what, tv_str file, uint64_t offset)
{
    tv_err *e = tv_fail(a, code, what);
    e->file = file;
    e->offset = offset;
    e->has_offset = true;
    return e;
}

tv_err *tv_hint(tv_err *e, tv_text hint)
{
    e->hint = hint;
    return e;
}

tv_err *tv_in_file(tv_err *e, tv_str file)
{
    e->file = file;
    return e;
}

tv_err *tv_while(tv_arena *a, const tv_err *e, tv_text doing)
{
    tv_err *outer = tv_fail(a, e->code, doing);
    outer->cause = e;
    return outer;
}

static void put_chain(tv_buf *b, tv_lang lang, const tv_err *e)
{
    if (e->file.n) {
        tv_put(b, e->file);
        if (e->has_offset) {
            tv_putc(b, ':');
            tv_put_u64(b, e->offset);
        }
        tv_puts(b, ": ");
    }
    tv_put_text(b, lang, e->what);
    if (e->cause) {
        tv_puts(b, ": ");
        put_chain(b, lang, e->cause);
    }
}

void tv_put_err(tv_buf *b, tv_lang lang, const tv_err *e)
{
    put_chain(b, lang, e);
    tv_putc(b, '\n');
    for (; e; e = e->cause) {
        if (!e->hint.msgid)
            continue;
        tv_puts(b, tv_message(lang, N_("hint: ")));
        tv_put_text(b, lang, e->hint);
        tv_putc(b, '\n');
    }
}

tv_str tv_errno_text(tv_arena *a, int number)
{
    char text[160] = "";
    const char *words = strerror_r(number, text, sizeof text);
    return tv_str_copy(a, tv_str_of(words));
}
