/* Reads option values and argv. Messages name what was wrong and what to try. */
#include "options.h"

#include <getopt.h>
#include <math.h>
#include <string.h>

#include "base/unit.h"

bool tv_stated(const tv_args *args, const char *name)
{
    for (size_t i = 0; i < args->stated.n; i++)
        if (strcmp(args->stated.v[i]->name, name) == 0)
            return true;
    return false;
}

const tv_option *tv_option_find(const tv_option *rows, size_t n, tv_str name)
{
    for (size_t i = 0; i < n; i++)
        if (tv_str_is(name, rows[i].name))
            return &rows[i];
    return NULL;
}

const char *tv_option_value(const tv_option *row)
{
    if (row->value)
        return row->value;
    switch (row->kind) {
    case TV_OPTION_FLAG:
        return NULL;
    case TV_OPTION_COUNT:
    case TV_OPTION_NUMBER:
        return "N";
    case TV_OPTION_BYTES:
        return "BYTES";
    case TV_OPTION_SECONDS:
        return "TIME";
    case TV_OPTION_TEXT:
    case TV_OPTION_TEXTS:
        return "TEXT";
    case TV_OPTION_WORD:
        return "WORD";
    case TV_OPTION_DATE:
        return "DATE";
    case TV_OPTION_SIZE:
        return "HxW";
    }
    return NULL;
}

tv_str tv_nearest(tv_arena *a, tv_str text, const tv_str *names, size_t n)
{
    size_t best = 4; /* more than three edits is another word */
    tv_str found = {0};
    for (size_t i = 0; i < n; i++) {
        const size_t d = tv_str_distance(a, text, names[i], best - 1);
        /* Half of a short word changed is another word, too. */
        if (d < best && d * 2 <= names[i].n) {
            best = d;
            found = names[i];
        }
    }
    return found;
}

/* ---- one value ---- */

static tv_str dashed(tv_arena *a, const char *name)
{
    return tv_str_join(a, TV_S("--"), tv_str_of(name));
}

static tv_err *bad_value(tv_arena *a, const tv_option *row, tv_str text, const char *takes)
{
    return TV_FAIL(a, TV_USAGE, "usage.bad-value", N_("{option} cannot be \"{value}\": {takes}"),
                   tv_arg_str("option", dashed(a, row->name)), tv_arg_str("value", text),
                   tv_arg_word("takes", takes));
}

static tv_str number_text(tv_arena *a, double v)
{
    tv_buf b = tv_buf_in(a);
    tv_put_double(&b, v);
    return tv_buf_str(&b);
}

static tv_err *out_of_range(tv_arena *a, const tv_option *row, tv_str text)
{
    return TV_FAIL(
        a, TV_USAGE, "usage.range", N_("{option} cannot be {value}: the range is {low} to {high}"),
        tv_arg_str("option", dashed(a, row->name)), tv_arg_str("value", text),
        tv_arg_str("low", number_text(a, row->low)), tv_arg_str("high", number_text(a, row->high)));
}

static bool in_range(const tv_option *row, double v)
{
    if (row->low == 0 && row->high == 0)
        return v >= 0;
    return v >= row->low && v <= row->high;
}

static const tv_err *set_count(tv_arena *a, const tv_option *row, uint32_t *field, tv_str text)
{
    const tv_u64_read r = tv_str_u64(text);
    if (!r.ok)
        return bad_value(a, row, text, N_("it takes a whole number"));
    if (r.v > UINT32_MAX || !in_range(row, (double)r.v))
        return out_of_range(a, row, text);
    *field = (uint32_t)r.v;
    return NULL;
}

static const tv_err *set_double(tv_arena *a, const tv_option *row, double *field, tv_str text,
                                tv_double_read r, const char *takes)
{
    if (!r.ok || !isfinite(r.v))
        return bad_value(a, row, text, takes);
    if (!in_range(row, r.v))
        return row->high > 0 ? out_of_range(a, row, text)
                             : bad_value(a, row, text, N_("it cannot be negative"));
    *field = r.v;
    return NULL;
}

static tv_double_read read_seconds(const tv_option *row, tv_str text)
{
    const tv_double_read bare = tv_str_double(text);
    if (bare.ok)
        return (tv_double_read){bare.v * (row->scale > 0 ? row->scale : 1), true};
    return tv_read_seconds(text);
}

tv_str tv_option_words(tv_arena *a, const tv_option *row, tv_str separator)
{
    tv_buf b = tv_buf_in(a);
    for (int v = 0; v < row->n_words; v++) {
        const tv_str word = tv_str_of(row->word(v));
        if (word.n && b.n)
            tv_put(&b, separator);
        tv_put(&b, word);
    }
    return tv_buf_str(&b);
}

static const tv_err *set_word(tv_arena *a, const tv_option *row, int *field, tv_str text)
{
    tv_str *words = tv_new(a, tv_str, (size_t)row->n_words);
    for (int v = 0; v < row->n_words; v++) {
        words[v] = tv_str_of(row->word(v));
        if (words[v].n && tv_str_eq_nocase(text, words[v])) {
            *field = v;
            return NULL;
        }
    }
    tv_err *e = TV_FAIL(a, TV_USAGE, "usage.bad-word",
                        N_("{option} cannot be \"{value}\": it is one of {words}"),
                        tv_arg_str("option", dashed(a, row->name)), tv_arg_str("value", text),
                        tv_arg_str("words", tv_option_words(a, row, TV_S(", "))));
    const tv_str near = tv_nearest(a, text, words, (size_t)row->n_words);
    return near.n ? tv_hint(e, TV_TEXT(a, "usage.did-you-mean", N_("Did you mean {near}?"),
                                       tv_arg_str("near", near)))
                  : e;
}

static unsigned days_of(uint64_t year, uint64_t month)
{
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && leap ? 1u : 0u);
}

static bool is_date(tv_str s)
{
    if (s.n != 10 || s.p[4] != '-' || s.p[7] != '-')
        return false;
    const tv_u64_read y = tv_str_u64(tv_str_take(s, 4));
    const tv_u64_read m = tv_str_u64(tv_str_take(tv_str_drop(s, 5), 2));
    const tv_u64_read d = tv_str_u64(tv_str_drop(s, 8));
    return y.ok && m.ok && d.ok && m.v >= 1 && m.v <= 12 && d.v >= 1 && d.v <= days_of(y.v, m.v);
}

static const tv_err *set_date(tv_arena *a, const tv_option *row, tv_str *field, tv_str text)
{
    if (!is_date(text))
        return bad_value(a, row, text, N_("it takes a date such as 2026-11-30"));
    *field = tv_str_copy(a, text);
    return NULL;
}

static const tv_err *set_size(tv_arena *a, const tv_option *row, uint32_t field[2], tv_str text)
{
    const tv_cut cut = tv_str_cut(text, 'x');
    const tv_u64_read h = tv_str_u64(cut.head);
    const tv_u64_read w = cut.found ? tv_str_u64(cut.tail) : h;
    if (!h.ok || !w.ok)
        return bad_value(a, row, text, N_("it takes height and width such as 640x480"));
    if (h.v > UINT32_MAX || w.v > UINT32_MAX || !in_range(row, (double)h.v) ||
        !in_range(row, (double)w.v))
        return out_of_range(a, row, text);
    field[0] = (uint32_t)h.v;
    field[1] = (uint32_t)w.v;
    return NULL;
}

static const tv_err *set_flag(tv_arena *a, const tv_option *row, bool *field, tv_str text)
{
    /* A word is possible only in a query string or a JSON body. */
    const bool yes = text.n == 0 || tv_str_is(text, "1") || tv_str_is(text, "true");
    if (!yes && !tv_str_is(text, "0") && !tv_str_is(text, "false"))
        return bad_value(a, row, text, N_("it takes true or false"));
    *field = yes;
    return NULL;
}

const tv_err *tv_option_set(tv_arena *a, const tv_option *row, void *fields, tv_str text)
{
    void *field = (char *)fields + row->offset;
    switch (row->kind) {
    case TV_OPTION_FLAG:
        return set_flag(a, row, field, text);
    case TV_OPTION_COUNT:
        return set_count(a, row, field, text);
    case TV_OPTION_NUMBER:
        return set_double(a, row, field, text, tv_read_count(text),
                          N_("it takes a number such as 12, 0.5, 7e9 or 7B"));
    case TV_OPTION_BYTES:
        return set_double(a, row, field, text, tv_read_bytes(text),
                          N_("it takes a size such as 3.2GB, 80GiB or 512"));
    case TV_OPTION_SECONDS:
        return set_double(a, row, field, text, read_seconds(row, text),
                          N_("it takes a time such as 90, 3ms, 5min or 2h"));
    case TV_OPTION_TEXT:
        *(tv_str *)field = tv_str_copy(a, text);
        return NULL;
    case TV_OPTION_TEXTS:
        *tv_push(a, (tv_texts *)field) = tv_str_copy(a, text);
        return NULL;
    case TV_OPTION_WORD:
        return set_word(a, row, field, text);
    case TV_OPTION_DATE:
        return set_date(a, row, field, text);
    case TV_OPTION_SIZE:
        return set_size(a, row, field, text);
    }
    return NULL;
}

/* ---- argv ---- */

/* getopt_long's tables and the row behind each entry. */
typedef struct parser {
    tv_arena *a;
    const tv_option **rows;
    void **fields;
    size_t n;
    struct option *longs;
    tv_buf letters;
    const char **argv; /* argv[0] is a stand-in, as getopt_long wants it */
    int argc;
    tv_args *args;
} parser;

enum { first_row = 256 }; /* getopt's return value of row 0: beyond every letter */

static void add_row(parser *p, const tv_option *row, void *fields)
{
    p->rows[p->n] = row;
    p->fields[p->n] = fields;
    p->longs[p->n] = (struct option){
        .name = row->name,
        .has_arg = row->kind == TV_OPTION_FLAG ? no_argument : required_argument,
        .val = first_row + (int)p->n,
    };
    if (row->letter) {
        tv_putc(&p->letters, row->letter);
        if (row->kind != TV_OPTION_FLAG)
            tv_putc(&p->letters, ':');
    }
    p->n++;
}

static parser open_parser(tv_arena *a, const tv_option_target *targets, size_t n_targets,
                          bool until_word)
{
    size_t n = 0;
    for (size_t t = 0; t < n_targets; t++)
        n += targets[t].n;
    parser p = {.a = a, .letters = tv_buf_in(a)};
    p.rows = tv_new(a, const tv_option *, n + 1);
    p.fields = tv_new(a, void *, n + 1);
    p.longs = tv_new(a, struct option, n + 1);
    /* '-': positional words come in order; '+': the first one ends it. Either way argv is not
     * rearranged. ':' tells a missing value from an unknown option. */
    tv_puts(&p.letters, until_word ? "+:" : "-:");
    for (size_t t = 0; t < n_targets; t++)
        for (size_t i = 0; i < targets[t].n; i++)
            add_row(&p, &targets[t].rows[i], targets[t].fields);
    tv_putc(&p.letters, '\0');
    return p;
}

static size_t row_of(const parser *p, int code)
{
    if (code >= first_row)
        return (size_t)(code - first_row);
    for (size_t i = 0; i < p->n; i++)
        if (p->rows[i]->letter == code)
            return i;
    return p->n;
}

/* getopt_long also refuses a prefix that several options share. */
static const tv_err *ambiguous(tv_arena *a, tv_str word, tv_str candidates)
{
    return TV_FAIL(a, TV_USAGE, "usage.ambiguous-option",
                   N_("{option} could be any of {candidates}"), tv_arg_str("option", word),
                   tv_arg_str("candidates", candidates));
}

static const tv_err *unknown_long(const parser *p, tv_str word)
{
    tv_arena *a = p->a;
    const tv_str name = tv_str_cut(tv_str_drop(word, 2), '=').head;
    tv_str *names = tv_new(a, tv_str, p->n + 1);
    tv_buf candidates = tv_buf_in(a);
    for (size_t i = 0; i < p->n; i++) {
        names[i] = tv_str_of(p->rows[i]->name);
        if (name.n && tv_str_starts(names[i], name)) {
            tv_puts(&candidates, candidates.n ? ", --" : "--");
            tv_put(&candidates, names[i]);
        }
    }
    if (candidates.n)
        return ambiguous(a, tv_str_cut(word, '=').head, tv_buf_str(&candidates));
    tv_err *e = TV_FAIL(a, TV_USAGE, "usage.unknown-option", N_("unknown option {option}"),
                        tv_arg_str("option", tv_str_cut(word, '=').head));
    const tv_str near = tv_nearest(a, name, names, p->n);
    if (near.n)
        return tv_hint(e, TV_TEXT(a, "usage.did-you-mean", N_("Did you mean {near}?"),
                                  tv_arg_str("near", tv_str_join(a, TV_S("--"), near))));
    return tv_hint(e, TV_TEXT0("usage.see-help", N_("--help lists the options.")));
}

static const tv_err *unknown_option(const parser *p)
{
    if (optopt >= first_row) /* a known flag with "=value" */
        return TV_FAIL(p->a, TV_USAGE, "usage.flag-value", N_("{option} takes no value"),
                       tv_arg_str("option", dashed(p->a, p->rows[row_of(p, optopt)]->name)));
    if (optopt) {
        const char letter = (char)optopt;
        return tv_hint(
            TV_FAIL(p->a, TV_USAGE, "usage.unknown-option", N_("unknown option {option}"),
                    tv_arg_str("option", tv_str_join(p->a, TV_S("-"),
                                                     tv_str_copy(p->a, (tv_str){&letter, 1})))),
            TV_TEXT0("usage.see-help", N_("--help lists the options.")));
    }
    return unknown_long(p, tv_str_of(p->argv[optind - 1]));
}

static const tv_err *missing_value(const parser *p)
{
    const tv_option *row = p->rows[row_of(p, optopt)];
    return TV_FAIL(p->a, TV_USAGE, "usage.no-value", N_("{option} needs a value: {value}"),
                   tv_arg_str("option", dashed(p->a, row->name)),
                   tv_arg_str("value", row->kind == TV_OPTION_WORD
                                           ? tv_option_words(p->a, row, TV_S(", "))
                                           : tv_str_of(tv_option_value(row))));
}

static const tv_err *take(parser *p, int code)
{
    if (code == 1) {
        *tv_push(p->a, p->args) = tv_str_of(optarg);
        return NULL;
    }
    if (code == '?')
        return unknown_option(p);
    if (code == ':')
        return missing_value(p);
    const size_t i = row_of(p, code);
    *tv_push(p->a, &p->args->stated) = p->rows[i];
    return tv_option_set(p->a, p->rows[i], p->fields[i], tv_str_of(optarg));
}

/* getopt_long wants writable pointers although it writes to neither words nor, in the modes used
 * here, to the array. */
static char *const *getopt_words(const parser *p)
{
    union {
        const char **ours;
        char *const *theirs;
    } words = {p->argv};
    return words.theirs;
}

const tv_err *tv_options_parse(tv_arena *a, const tv_option_target *targets, size_t n_targets,
                               int argc, const char *const *argv, bool until_word, tv_args *args)
{
    parser p = open_parser(a, targets, n_targets, until_word);
    p.args = args;
    p.argc = argc + 1;
    p.argv = tv_new(a, const char *, (size_t)argc + 2);
    p.argv[0] = "trivet";
    for (int i = 0; i < argc; i++)
        p.argv[i + 1] = argv[i];
    *args = (tv_args){0};
    const tv_err *first = NULL;
    optind = 0; /* glibc: start afresh */
    opterr = 0;
    for (int code;
         (code = getopt_long(p.argc, getopt_words(&p), p.letters.p, p.longs, NULL)) != -1;) {
        const tv_err *e = take(&p, code);
        first = first ? first : e;
    }
    args->used = (size_t)optind - 1;
    for (int i = optind; i < p.argc && !until_word; i++) /* behind "--" */
        *tv_push(a, args) = tv_str_of(p.argv[i]);
    return first;
}
