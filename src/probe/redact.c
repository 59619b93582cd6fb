/* One pass over each text; what was replaced is remembered, so that it is replaced alike. */
#include "redact.h"

#include <string.h>

#include "redact_shapes.h"

#include "base/buf.h"

typedef struct stand_in {
    const char *word;
    tv_str original;
    tv_str shown;
    uint64_t hash;
} stand_in;

typedef struct redaction {
    tv_arena *a;
    struct {
        stand_in *v;
        size_t n, cap;
    } all;
    struct {
        stand_in *v; /* names that are known beforehand: of this host, of this user */
        size_t n, cap;
    } names;
} redaction;

/* Different originals that are told apart; beyond them all look alike. */
enum { most_stand_ins = 20000 };

static tv_str shown_as(redaction *r, const char *word, tv_str original)
{
    const uint64_t hash = tv_str_hash(original);
    size_t same = 0;
    for (size_t i = 0; i < r->all.n; i++) {
        const stand_in *s = &r->all.v[i];
        if (strcmp(s->word, word) != 0)
            continue;
        if (s->hash == hash && tv_str_eq(s->original, original))
            return s->shown;
        same++;
    }
    tv_buf b = tv_buf_in(r->a);
    tv_puts(&b, word);
    tv_putc(&b, '-');
    tv_put_u64(&b, same + 1);
    if (r->all.n < most_stand_ins)
        *tv_push(r->a, &r->all) = (stand_in){word, original, tv_buf_str(&b), hash};
    return tv_buf_str(&b);
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

/* A name that is known, whole; empty: none stands here. */
static const stand_in *name_at(const redaction *r, tv_str text, size_t i)
{
    const tv_str rest = tv_str_drop(text, i);
    for (size_t k = 0; k < r->names.n; k++) {
        const tv_str name = r->names.v[k].original;
        if (tv_str_starts(rest, name) && (rest.n == name.n || !is_name_byte(rest.p[name.n])))
            return &r->names.v[k];
    }
    return NULL;
}

/* ".py", ".json": what kind of file it is may be told. */
static tv_str extension(tv_str path)
{
    const char *dot = path.n ? memrchr(path.p, '.', path.n) : NULL;
    const tv_str e = dot ? tv_str_span(dot, path.p + path.n) : (tv_str){0};
    for (size_t i = 1; i < e.n; i++)
        if (!is_name_byte(e.p[i]))
            return (tv_str){0};
    return e.n > 1 && e.n <= 8 ? e : (tv_str){0};
}

/* Writes what stands for the part, and yields how far it goes. */
static size_t replace(redaction *r, tv_buf *b, tv_str text, size_t i, tv_redact_part part)
{
    const tv_str original = {text.p + i + part.keep, part.n};
    tv_put(b, (tv_str){text.p + i, part.keep});
    size_t n = part.keep + part.n;
    const bool common = strcmp(part.word, "user") == 0 && tv_redact_is_common(original);
    tv_put(b, common ? original : shown_as(r, part.word, original));
    if (strcmp(part.word, "path") == 0)
        tv_put(b, extension(original));
    /* what lies below a home is this user's own as well */
    if (strcmp(part.word, "user") != 0 || i + n >= text.n ||
        (text.p[i + n] != '/' && text.p[i + n] != '\\') || part.keep < 6)
        return n;
    const size_t begin = i + n + 1;
    size_t k = begin;
    while (k < text.n && (unsigned char)text.p[k] > 32 && !strchr("\"'<>;,:", text.p[k]))
        k++;
    if (k == begin)
        return n;
    const tv_str below = {text.p + begin, k - begin};
    tv_putc(b, text.p[i + n]);
    tv_put(b, shown_as(r, "path", below));
    tv_put(b, extension(below));
    return k - i;
}

static tv_str redacted(redaction *r, tv_str text)
{
    tv_buf b = tv_buf_in(r->a);
    for (size_t i = 0; i < text.n;) {
        const bool begins = tv_redact_begins(text, i);
        const stand_in *name = begins ? name_at(r, text, i) : NULL;
        if (name) {
            tv_put(&b, shown_as(r, name->word, name->original));
            i += name->original.n;
            continue;
        }
        const tv_redact_part part = begins ? tv_redact_at(text, i) : (tv_redact_part){0};
        if (part.n) {
            i += replace(r, &b, text, i, part);
            continue;
        }
        tv_putc(&b, text.p[i++]);
    }
    return tv_buf_str(&b);
}

static void know(redaction *r, const char *word, tv_str name)
{
    if (name.n && !tv_redact_is_common(name))
        *tv_push(r->a, &r->names) = (stand_in){.word = word, .original = name};
}

void tv_redact(tv_arena *a, const tv_redact_names *names, const tv_documents *all,
               tv_documents *clean)
{
    redaction *r = tv_new(a, redaction, 1);
    r->a = a;
    know(r, "host", names->host);
    know(r, "host", tv_str_cut(names->host, '.').head);
    know(r, "user", names->user);
    for (size_t i = 0; i < all->n; i++)
        *tv_push(a, clean) = (tv_document){all->v[i].name, redacted(r, all->v[i].text)};
}
