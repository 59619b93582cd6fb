/* Sentences with named, typed arguments. */
#include "text.h"

#include <math.h>
#include <string.h>

#include "message.h"
#include "unit.h"

tv_arg tv_arg_str(const char *name, tv_str s)
{
    return (tv_arg){.name = name, .kind = TV_ARG_STR, .s = s};
}

tv_arg tv_arg_word(const char *name, const char *msgid)
{
    return (tv_arg){.name = name, .kind = TV_ARG_WORD, .s = tv_str_of(msgid)};
}

tv_arg tv_arg_num(const char *name, tv_arg_kind kind, double v)
{
    return (tv_arg){.name = name, .kind = kind, .v = v};
}

tv_text tv_text_make(tv_arena *a, const char *id, const char *msgid, const tv_arg *args, size_t n)
{
    tv_arg *copy = tv_new(a, tv_arg, n ? n : 1);
    if (n)
        memcpy(copy, args, n * sizeof *args);
    return (tv_text){id, msgid, copy, n};
}

/* Up to four significant digits, no zeros behind the last one that counts. */
static void put_plain_number(tv_buf *b, double v)
{
    if (v == floor(v) && fabs(v) < 1e15) {
        tv_put_fixed(b, v, 0);
        return;
    }
    tv_put_short(b, v, 4);
    const tv_str s = tv_buf_str(b);
    const bool exponent = tv_str_has(tv_str_drop(s, s.n > 5 ? s.n - 5 : 0), TV_S("e"));
    while (!exponent && b->n && b->p[b->n - 1] == '0')
        b->n--;
    if (b->n && b->p[b->n - 1] == '.')
        b->n--;
}

void tv_put_arg(tv_buf *b, tv_lang lang, const tv_arg *arg)
{
    switch (arg->kind) {
    case TV_ARG_STR:
        tv_put(b, arg->s);
        break;
    case TV_ARG_WORD:
        tv_puts(b, tv_message(lang, tv_cstr(b->a, arg->s)));
        break;
    case TV_ARG_NUMBER:
        put_plain_number(b, arg->v);
        break;
    case TV_ARG_COUNT:
        tv_put_count(b, arg->v);
        break;
    case TV_ARG_MEMORY:
        tv_put_memory(b, arg->v);
        break;
    case TV_ARG_DISK:
        tv_put_disk(b, arg->v);
        break;
    case TV_ARG_RATE:
        tv_put_disk(b, arg->v);
        tv_puts(b, "/s");
        break;
    case TV_ARG_SECONDS:
        tv_put_seconds(b, arg->v);
        break;
    case TV_ARG_RATIO:
        tv_put_percent(b, arg->v);
        break;
    case TV_ARG_FLOPS:
        tv_put_flops(b, arg->v);
        break;
    case TV_ARG_WATTS:
        tv_put_short(b, arg->v, 3);
        tv_puts(b, " W");
        break;
    }
}

static const tv_arg *find(tv_text t, tv_str name)
{
    for (size_t i = 0; i < t.n_args; i++)
        if (tv_str_is(name, t.args[i].name))
            return &t.args[i];
    return NULL;
}

void tv_put_text(tv_buf *b, tv_lang lang, tv_text t)
{
    tv_str rest = tv_str_of(t.msgid ? tv_message(lang, t.msgid) : "");
    while (rest.n) {
        const tv_cut open = tv_str_cut(rest, '{');
        tv_put(b, open.head);
        if (!open.found)
            return;
        const tv_cut close = tv_str_cut(open.tail, '}');
        const tv_arg *arg = close.found ? find(t, close.head) : NULL;
        if (arg) {
            tv_put_arg(b, lang, arg);
        } else {
            tv_putc(b, '{');
            tv_put(b, close.head);
            if (close.found)
                tv_putc(b, '}');
        }
        rest = close.tail;
    }
}

tv_str tv_text_in(tv_arena *a, tv_lang lang, tv_text t)
{
    tv_buf b = tv_buf_in(a);
    tv_put_text(&b, lang, t);
    return tv_buf_str(&b);
}
