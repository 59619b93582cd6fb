/* The csv cursor: touches each byte once, copies only fields with doubled quotes. */
#include "csv.h"

#include "base/limits.h"

static tv_err *bad(const tv_csv *c, tv_text what, size_t offset)
{
    return tv_fail_at(c->a, TV_INPUT, what, c->file, offset);
}

static bool at_end(const tv_csv *c)
{
    return c->at >= c->text.n;
}

/* A quoted field; the cursor stands behind the opening quote. */
static const tv_err *quoted(tv_csv *c, tv_str *field)
{
    const size_t open = c->at - 1;
    tv_buf copy = {0};
    size_t from = c->at;
    for (;; c->at++) {
        if (at_end(c))
            return bad(c, TV_TEXT0("csv.open-quote", N_("a quoted field does not end")), open);
        if (c->text.p[c->at] == '\n')
            c->next_line++;
        if (c->text.p[c->at] != '"')
            continue;
        const tv_str piece = {c->text.p + from, c->at - from};
        if (c->at + 1 < c->text.n && c->text.p[c->at + 1] == '"') {
            if (!copy.a)
                copy = tv_buf_in(c->a);
            tv_put(&copy, piece);
            tv_putc(&copy, '"');
            from = ++c->at + 1;
            continue;
        }
        c->at++;
        if (copy.a)
            tv_put(&copy, piece);
        *field = copy.a ? tv_buf_str(&copy) : piece;
        return NULL;
    }
}

static const tv_err *plain(tv_csv *c, tv_str *field)
{
    const size_t from = c->at;
    for (; !at_end(c); c->at++) {
        const char ch = c->text.p[c->at];
        if (ch == ',' || ch == '\n' || ch == '\r')
            break;
        if (ch == '"')
            return bad(c, TV_TEXT0("csv.stray-quote", N_("a quote inside an unquoted field")),
                       c->at);
    }
    *field = (tv_str){c->text.p + from, c->at - from};
    return NULL;
}

typedef enum tv_csv_after { CSV_FIELD, CSV_RECORD, CSV_BAD } tv_csv_after;

/* What stands behind a field. */
static tv_csv_after after(tv_csv *c)
{
    if (at_end(c))
        return CSV_RECORD;
    const char ch = c->text.p[c->at];
    if (ch == ',') {
        c->at++;
        return CSV_FIELD;
    }
    if (ch == '\r' && c->at + 1 < c->text.n && c->text.p[c->at + 1] == '\n')
        c->at++;
    if (c->text.p[c->at] != '\n')
        return CSV_BAD;
    c->at++;
    c->next_line++;
    return CSV_RECORD;
}

/* One record into at most `room` fields; n counts all that stand there. */
static const tv_err *record(tv_csv *c, tv_str *fields, size_t room, size_t *n)
{
    c->line = c->next_line;
    for (*n = 0;;) {
        tv_str field = {0};
        if (!at_end(c) && c->text.p[c->at] == '"') {
            c->at++;
            TV_TRY(quoted(c, &field));
        } else {
            TV_TRY(plain(c, &field));
        }
        if (*n < room)
            fields[*n] = field;
        ++*n;
        const tv_csv_after what = after(c);
        if (what == CSV_BAD)
            return bad(c, TV_TEXT0("csv.after-field", N_("neither a comma nor a line's end here")),
                       c->at);
        if (what == CSV_RECORD)
            return NULL;
    }
}

static const tv_err *check_names(const tv_csv *c)
{
    for (size_t i = 0; i < c->n_names; i++) {
        if (c->names[i].n == 0)
            return bad(c, TV_TEXT0("csv.no-name", N_("a column has no name")), 0);
        for (size_t k = 0; k < i; k++)
            if (tv_str_eq(c->names[k], c->names[i]))
                return bad(c,
                           TV_TEXT(c->a, "csv.same-name", N_("two columns are named {name}"),
                                   tv_arg_str("name", c->names[i])),
                           0);
    }
    return NULL;
}

const tv_err *tv_csv_open(tv_arena *a, tv_str file, tv_str text, tv_csv *csv)
{
    if (tv_str_starts(text, TV_S("\xEF\xBB\xBF")))
        text = tv_str_drop(text, 3);
    *csv = (tv_csv){.a = a, .file = file, .text = text, .next_line = 1};
    if (text.n == 0)
        return bad(csv, TV_TEXT0("csv.empty", N_("the file is empty")), 0);
    csv->names = tv_new(a, tv_str, TV_LIMIT_CSV_COLUMNS);
    TV_TRY(record(csv, csv->names, TV_LIMIT_CSV_COLUMNS, &csv->n_names));
    if (csv->n_names > TV_LIMIT_CSV_COLUMNS)
        return tv_in_file(TV_FAIL(a, TV_LIMIT, "csv.columns", N_("more than {limit} columns"),
                                  tv_arg_num("limit", TV_ARG_COUNT, TV_LIMIT_CSV_COLUMNS)),
                          file);
    csv->fields = tv_new(a, tv_str, csv->n_names);
    return check_names(csv);
}

static bool skip_blank(tv_csv *c)
{
    while (!at_end(c) && (c->text.p[c->at] == '\n' || c->text.p[c->at] == '\r')) {
        if (c->text.p[c->at] == '\n')
            c->next_line++;
        c->at++;
    }
    return !at_end(c);
}

const tv_err *tv_csv_next(tv_csv *csv, bool *more)
{
    *more = skip_blank(csv);
    if (!*more)
        return NULL;
    const size_t from = csv->at;
    size_t n = 0;
    TV_TRY(record(csv, csv->fields, csv->n_names, &n));
    if (n != csv->n_names)
        return bad(csv,
                   TV_TEXT(csv->a, "csv.fields",
                           N_("line {line} has {have} fields, the header names {want}"),
                           tv_arg_num("line", TV_ARG_COUNT, (double)csv->line),
                           tv_arg_num("have", TV_ARG_COUNT, (double)n),
                           tv_arg_num("want", TV_ARG_COUNT, (double)csv->n_names)),
                   from);
    return NULL;
}

size_t tv_csv_column(const tv_csv *csv, const char *name)
{
    size_t i = 0;
    while (i < csv->n_names && !tv_str_is(csv->names[i], name))
        i++;
    return i;
}

tv_str tv_csv_get(const tv_csv *csv, const char *name)
{
    const size_t i = tv_csv_column(csv, name);
    return i < csv->n_names ? csv->fields[i] : (tv_str){0};
}

void tv_csv_put(tv_buf *b, tv_str field)
{
    bool quote = false;
    for (size_t i = 0; i < field.n && !quote; i++)
        quote = field.p[i] == ',' || field.p[i] == '"' || field.p[i] == '\n' || field.p[i] == '\r';
    if (!quote) {
        tv_put(b, field);
        return;
    }
    tv_putc(b, '"');
    for (size_t i = 0; i < field.n; i++) {
        if (field.p[i] == '"')
            tv_putc(b, '"');
        tv_putc(b, field.p[i]);
    }
    tv_putc(b, '"');
}
