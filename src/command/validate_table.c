/* Grouping, quantiles, and the two forms of output. */
#include "validate_table.h"

#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/message.h"

double tv_judged_error(tv_judged j)
{
    if (j.measured < j.least)
        return (j.least - j.measured) / j.measured;
    if (j.measured > j.most)
        return (j.most - j.measured) / j.measured;
    return 0;
}

bool tv_judged_outside(tv_judged j)
{
    return j.measured < j.lo || j.measured > j.hi;
}

static tv_score_group *group_of(tv_scores *s, tv_str file, tv_str metric, tv_str name)
{
    const uint64_t hash = tv_str_hash(file) ^ (tv_str_hash(metric) * 3) ^ (tv_str_hash(name) * 7);
    for (size_t i = 0; i < s->groups.n; i++) {
        tv_score_group *g = &s->groups.v[i];
        if (g->hash == hash && tv_str_eq(g->name, name) && tv_str_eq(g->metric, metric) &&
            tv_str_eq(g->file, file))
            return g;
    }
    tv_score_group *g = tv_push(s->a, &s->groups);
    *g = (tv_score_group){.file = tv_str_copy(s->a, file),
                          .metric = tv_str_copy(s->a, metric),
                          .name = tv_str_copy(s->a, name),
                          .hash = hash};
    return g;
}

void tv_scores_add(tv_scores *s, tv_str file, tv_str metric, tv_str group, tv_judged j)
{
    tv_score_group *g = group_of(s, file, metric, group);
    tv_score *score = tv_push(s->a, g);
    *score = (tv_score){tv_judged_error(j), tv_judged_outside(j)};
    s->judged++;
}

void tv_scores_skip(tv_scores *s, tv_str reason)
{
    for (size_t i = 0; i < s->skips.n; i++)
        if (tv_str_eq(s->skips.v[i].reason, reason)) {
            s->skips.v[i].n++;
            return;
        }
    tv_skip *skip = tv_push(s->a, &s->skips);
    *skip = (tv_skip){tv_str_copy(s->a, reason), 1};
}

static int by_size(const void *x, const void *y)
{
    const double a = fabs(((const tv_score *)x)->error);
    const double b = fabs(((const tv_score *)y)->error);
    return (a > b) - (a < b);
}

static double quantile(const tv_score *v, size_t n, double q)
{
    const double at = q * (double)(n - 1);
    const size_t i = (size_t)at;
    const double low = fabs(v[i].error);
    return i + 1 < n ? low + (at - (double)i) * (fabs(v[i + 1].error) - low) : low;
}

tv_summary tv_score_summary(tv_score_group *g)
{
    qsort(g->v, g->n, sizeof *g->v, by_size);
    tv_summary s = {.n = g->n,
                    .median = quantile(g->v, g->n, 0.5),
                    .p90 = quantile(g->v, g->n, 0.9),
                    .p95 = quantile(g->v, g->n, 0.95)};
    for (size_t i = 0; i < g->n; i++) {
        s.bias += g->v[i].error / (double)g->n;
        s.outside += g->v[i].outside ? 1 / (double)g->n : 0;
    }
    return s;
}

static int by_name(const void *x, const void *y)
{
    const tv_score_group *a = x;
    const tv_score_group *b = y;
    int order = tv_str_cmp(a->file, b->file);
    if (!order)
        order = tv_str_cmp(a->metric, b->metric);
    return order ? order : tv_str_cmp(a->name, b->name);
}

static int by_count(const void *x, const void *y)
{
    const tv_skip *a = x;
    const tv_skip *b = y;
    if (a->n != b->n)
        return a->n < b->n ? 1 : -1;
    return tv_str_cmp(a->reason, b->reason);
}

static void sort(tv_scores *s)
{
    if (s->groups.n)
        qsort(s->groups.v, s->groups.n, sizeof *s->groups.v, by_name);
    if (s->skips.n)
        qsort(s->skips.v, s->skips.n, sizeof *s->skips.v, by_count);
}

/* Six digits are more than any figure deserves; they keep the bytes equal on every machine. */
static double rounded(double v)
{
    return round(v * 1e6) / 1e6;
}

static void put_group(tv_json_out *w, tv_score_group *g)
{
    const tv_summary s = tv_score_summary(g);
    const struct {
        const char *key;
        double v;
    } numbers[] = {
        {"n", (double)s.n}, {"median", s.median}, {"p90", s.p90},
        {"p95", s.p95},     {"bias", s.bias},     {"outside_interval", s.outside},
    };
    tv_json_begin(w, '{');
    tv_json_key(w, "file");
    tv_json_put_str(w, g->file);
    tv_json_key(w, "metric");
    tv_json_put_str(w, g->metric);
    tv_json_key(w, "group");
    tv_json_put_str(w, g->name);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        tv_json_key(w, numbers[i].key);
        tv_json_put_num(w, rounded(numbers[i].v));
    }
    tv_json_end(w, '}');
}

void tv_scores_put_json(tv_scores *s, tv_request *r)
{
    sort(s);
    tv_json_out w = tv_json_write(r->out);
    tv_json_begin(&w, '{');
    tv_json_key(&w, "groups");
    tv_json_begin(&w, '[');
    for (size_t i = 0; i < s->groups.n; i++)
        put_group(&w, &s->groups.v[i]);
    tv_json_end(&w, ']');
    tv_json_key(&w, "skipped");
    tv_json_begin(&w, '[');
    for (size_t i = 0; i < s->skips.n; i++) {
        tv_json_begin(&w, '{');
        tv_json_key(&w, "reason");
        tv_json_put_str(&w, s->skips.v[i].reason);
        tv_json_key(&w, "n");
        tv_json_put_num(&w, (double)s->skips.v[i].n);
        tv_json_end(&w, '}');
    }
    tv_json_end(&w, ']');
    tv_json_key(&w, "rows");
    tv_json_put_num(&w, (double)s->rows);
    tv_json_end(&w, '}');
}

static void put_right(tv_buf *out, tv_str s, size_t width)
{
    tv_put_repeat(out, TV_S(" "), s.n < width ? width - s.n : 0);
    tv_put(out, s);
}

static tv_str percent(tv_arena *a, double v, bool sign)
{
    tv_buf b = tv_buf_in(a);
    if (sign && v > 0)
        tv_putc(&b, '+');
    tv_put_fixed(&b, 100 * v, 1);
    tv_puts(&b, " %");
    return tv_buf_str(&b);
}

static void put_line(tv_request *r, tv_score_group *g)
{
    const tv_summary s = tv_score_summary(g);
    tv_buf n = tv_buf_in(r->a);
    tv_put_u64(&n, s.n);
    put_right(r->out, tv_buf_str(&n), 7);
    put_right(r->out, percent(r->a, s.median, false), 10);
    put_right(r->out, percent(r->a, s.p90, false), 10);
    put_right(r->out, percent(r->a, s.p95, false), 10);
    put_right(r->out, percent(r->a, s.bias, true), 10);
    put_right(r->out, percent(r->a, s.outside, false), 10);
    tv_puts(r->out, "  ");
    tv_put(r->out, g->name);
    tv_putc(r->out, '\n');
}

static void put_heading(tv_request *r, const tv_score_group *g)
{
    tv_put(r->out, g->file);
    tv_puts(r->out, "  ");
    tv_put(r->out, g->metric);
    tv_putc(r->out, '\n');
    tv_put_text(r->out, r->lang,
                TV_TEXT0("validate.columns",
                         N_("      n    median       p90       p95      bias   outside  group")));
    tv_putc(r->out, '\n');
}

void tv_scores_put_text(tv_scores *s, tv_request *r)
{
    sort(s);
    for (size_t i = 0; i < s->groups.n; i++) {
        tv_score_group *g = &s->groups.v[i];
        if (i == 0 || !tv_str_eq(g[-1].file, g->file) || !tv_str_eq(g[-1].metric, g->metric)) {
            if (i)
                tv_putc(r->out, '\n');
            put_heading(r, g);
        }
        put_line(r, g);
    }
    tv_put_text(r->out, r->lang,
                TV_TEXT(r->a, "validate.count",
                        N_("\n{judged} of {rows} rows predicted; the others say too little:\n"),
                        tv_arg_num("judged", TV_ARG_COUNT, (double)s->judged),
                        tv_arg_num("rows", TV_ARG_COUNT, (double)s->rows)));
    for (size_t i = 0; i < s->skips.n; i++) {
        tv_buf n = tv_buf_in(r->a);
        tv_put_u64(&n, s->skips.v[i].n);
        put_right(r->out, tv_buf_str(&n), 7);
        tv_puts(r->out, "  ");
        const tv_arg reason = tv_arg_word("reason", tv_cstr(r->a, s->skips.v[i].reason));
        tv_put_arg(r->out, r->lang, &reason);
        tv_putc(r->out, '\n');
    }
}
