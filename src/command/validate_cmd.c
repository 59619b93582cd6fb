/* trivet validate: measured rows against what trivet predicts for them. */
#include "command.h"

#include "base/limits.h"
#include "codec/gzip.h"
#include "validate_case.h"
#include "validate_ops.h"
#include "validate_rules.h"
#include "validate_table.h"

typedef struct validate_options {
    tv_str by;
    tv_str rows;
} validate_options;

static const tv_option rows[] = {
    {.name = "by",
     .kind = TV_OPTION_TEXT,
     .offset = offsetof(validate_options, by),
     .value = "COLUMN,...",
     .help = N_("columns that make the groups; family, class, flagged and extra.NAME too"),
     .otherwise = N_("task or engine, class, card, family, fold, flagged")},
    {.name = "rows",
     .kind = TV_OPTION_TEXT,
     .offset = offsetof(validate_options, rows),
     .value = "OUT.csv",
     .help = N_("write every row with its prediction to this file")},
};

static const tv_option_group groups[] = {
    {.title = N_("Options"), .rows = rows, .n = sizeof rows / sizeof *rows, .offset = 0},
};

/* What makes a group where nobody says. */
static const char *const by_default[] = {
    [TV_ROWS_NONE] = "",
    [TV_ROWS_TRAINING] = "task,class,gpu,family,fold,flagged",
    [TV_ROWS_INFERENCE] = "engine,class,gpu,family,fold,flagged",
    [TV_ROWS_OPERATORS] = "dtype,gpu,fold,flagged",
    [TV_ROWS_COLLECTIVES] = "op,gpu,gpus,fold,flagged",
};

typedef struct validation {
    tv_request *r;
    const validate_options *o;
    tv_rules rules;
    tv_validator *v;
    tv_scores scores;
    tv_buf out; /* --rows */
} validation;

/* One file while it is read. */
typedef struct one_file {
    tv_str name;
    tv_csv csv;
    tv_rows_kind kind;
    tv_str by;
} one_file;

static const tv_err *text_of(tv_arena *a, tv_str path, tv_str *text)
{
    TV_TRY(tv_file_read(a, path, TV_LIMIT_CSV_BYTES, text));
    const tv_bytes_view bytes = {(const unsigned char *)text->p, text->n};
    if (!tv_gzip_is(bytes))
        return NULL;
    return tv_gzip_read(a, path, bytes, TV_LIMIT_CSV_BYTES, text);
}

static const tv_err *extra_of(tv_arena *a, one_file *f, const tv_json **extra)
{
    const tv_str text = tv_csv_get(&f->csv, "extra");
    *extra = NULL;
    if (!text.n)
        return NULL;
    const tv_err *e = tv_json_parse(a, f->name, text, extra);
    if (e)
        return tv_while(a, e,
                        TV_TEXT(a, "validate.extra", N_("reading column extra of line {line}"),
                                tv_arg_num("line", TV_ARG_COUNT, (double)f->csv.line)));
    return NULL;
}

/* One word of a group's name. */
static tv_str group_word(validation *x, const tv_row *row, tv_str column, const tv_want *want,
                         const tv_row_verdict *verdict)
{
    if (tv_str_is(column, "family"))
        return tv_str_of(verdict->family);
    if (tv_str_is(column, "class"))
        return tv_str_of(tv_precision_class(want->job.precision));
    if (tv_str_is(column, "flagged"))
        return tv_row_text(x->r->a, row, TV_S("doubt")).n ? TV_S("doubtful") : TV_S("clean");
    return tv_row_text(x->r->a, row, column);
}

static tv_str group_of(validation *x, const one_file *f, const tv_row *row, const tv_want *want,
                       const tv_row_verdict *verdict)
{
    tv_buf b = tv_buf_in(x->r->a);
    for (tv_cut cut = {.tail = f->by, .found = true}; cut.found;) {
        cut = tv_str_cut(cut.tail, ',');
        const tv_str word = group_word(x, row, tv_str_trim(cut.head), want, verdict);
        if (b.n)
            tv_puts(&b, " / ");
        tv_put(&b, word.n ? word : TV_S("-"));
    }
    return tv_buf_str(&b);
}

static tv_str metric_of(const one_file *f)
{
    switch (f->kind) {
    case TV_ROWS_TRAINING:
    case TV_ROWS_INFERENCE:
        return tv_csv_get(&f->csv, "metric");
    case TV_ROWS_OPERATORS:
    case TV_ROWS_COLLECTIVES:
        return tv_csv_get(&f->csv, "op");
    case TV_ROWS_NONE:
        break;
    }
    return (tv_str){0};
}

static bool judge(validation *x, const one_file *f, const tv_row *row, tv_want *want,
                  tv_row_verdict *verdict, tv_str *reason)
{
    switch (f->kind) {
    case TV_ROWS_TRAINING:
    case TV_ROWS_INFERENCE: {
        tv_arena *a = x->r->a;
        const tv_json *rule = tv_rules_model(&x->rules, a, row, reason);
        return rule && tv_want_read(a, &x->rules, row, f->kind, want, reason) &&
               tv_validator_judge(x->v, rule, row, want, verdict, reason);
    }
    case TV_ROWS_OPERATORS:
        *reason = tv_rules_leave(&x->rules, x->r->a, row);
        return !reason->n && tv_operator_judge(x->v, row, verdict, reason);
    case TV_ROWS_COLLECTIVES:
        *reason = tv_rules_leave(&x->rules, x->r->a, row);
        return !reason->n && tv_collective_judge(x->v, row, verdict, reason);
    case TV_ROWS_NONE:
        break;
    }
    return false;
}

static void put_cell(tv_buf *b, double v)
{
    tv_putc(b, ',');
    tv_put_short(b, v, 7);
}

static void put_row(validation *x, const one_file *f, tv_str group, const tv_judged *j,
                    tv_str reason)
{
    if (!x->o->rows.n)
        return;
    tv_buf *b = &x->out;
    tv_csv_put(b, f->name);
    tv_putc(b, ',');
    tv_put_u64(b, f->csv.line);
    tv_putc(b, ',');
    tv_csv_put(b, metric_of(f));
    tv_putc(b, ',');
    tv_csv_put(b, group);
    if (j) {
        put_cell(b, j->measured);
        put_cell(b, j->least);
        put_cell(b, j->most);
        put_cell(b, j->lo);
        put_cell(b, j->hi);
        put_cell(b, tv_judged_error(*j));
    } else {
        tv_puts(b, ",,,,,,");
    }
    tv_putc(b, ',');
    tv_csv_put(b, reason);
    tv_putc(b, '\n');
}

static void take_row(validation *x, const one_file *f, const tv_row *row)
{
    tv_want want = {0};
    tv_row_verdict verdict = {.family = ""};
    tv_str reason = {0};
    x->scores.rows++;
    if (!judge(x, f, row, &want, &verdict, &reason)) {
        tv_scores_skip(&x->scores, reason);
        put_row(x, f, (tv_str){0}, NULL, reason);
        return;
    }
    const tv_str group = group_of(x, f, row, &want, &verdict);
    tv_scores_add(&x->scores, f->name, metric_of(f), group, verdict.judged);
    put_row(x, f, group, &verdict.judged, (tv_str){0});
}

static const tv_err *no_kind(tv_arena *a, tv_str path)
{
    return tv_hint(tv_in_file(TV_FAIL0(a, TV_INPUT, "validate.columns",
                                       N_("the columns are of no table that can be predicted")),
                              path),
                   TV_TEXT0("validate.try", N_("docs/commands/validate.md lists the columns.")));
}

static const tv_err *take_file(validation *x, tv_str path)
{
    tv_arena *a = x->r->a;
    one_file f = {.name = tv_path_name(path)};
    tv_str text = {0};
    TV_TRY(text_of(a, path, &text));
    TV_TRY(tv_csv_open(a, path, text, &f.csv));
    f.kind = tv_rows_kind_of(&f.csv);
    if (f.kind == TV_ROWS_NONE)
        return no_kind(a, path);
    f.by = x->o->by.n ? x->o->by : tv_str_of(by_default[f.kind]);
    for (;;) {
        bool more = false;
        TV_TRY(tv_csv_next(&f.csv, &more));
        if (!more)
            return NULL;
        tv_row row = {.csv = &f.csv};
        TV_TRY(extra_of(a, &f, &row.extra));
        take_row(x, &f, &row);
    }
}

static const tv_err *run(tv_request *r, const void *options, const tv_args *args)
{
    validation x = {.r = r, .o = options, .scores = {.a = r->a}, .out = tv_buf_in(r->a)};
    TV_TRY(tv_rules_built_in(r->a, &x.rules));
    TV_TRY(tv_validator_open(r, &x.v));
    tv_puts(&x.out,
            "file,line,metric,group,measured,predicted,predicted_most,low,high,error,skipped\n");
    for (size_t i = 0; i < args->n; i++)
        TV_TRY(take_file(&x, args->v[i]));
    if (x.o->rows.n)
        TV_TRY(tv_file_write(r->a, x.o->rows, tv_buf_str(&x.out)));
    if (r->json)
        tv_scores_put_json(&x.scores, r);
    else
        tv_scores_put_text(&x.scores, r);
    return NULL;
}

extern const tv_command tv_command_validate;
const tv_command tv_command_validate = {
    .name = "validate",
    .summary = N_("measured rows against predictions: how far off, by group"),
    .usage = "FILE.csv[.gz]...",
    .details = N_("Predicts every row of tables of measurements (training, inference, operators, "
                  "collectives: the columns say which) and prints the error by group. A row that "
                  "does not state enough is skipped with its reason, never guessed. What a source "
                  "leaves unsaid stands in data/validation/defaults.json with where it is known "
                  "from."),
    .groups = groups,
    .n_groups = sizeof groups / sizeof *groups,
    .options_size = sizeof(validate_options),
    .min_args = 1,
    .max_args = 64,
    .run = run,
};
