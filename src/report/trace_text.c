/* A profile as a page: where a step goes, how much of it is matrix work, the longest kernels, the
 * ranks side by side, and what the rules say. */
#include <math.h>
#include <string.h>

#include "base/message.h"
#include "base/unit.h"
#include "desc/estimate.h"
#include "trace_out.h"

enum { bar_cells = 24, name_bytes = 38 };

static tv_str say(const tv_page *page, const char *msgid)
{
    return tv_str_of(tv_message(page->lang, msgid));
}

static tv_str unknown_or(const tv_page *page, double v, void (*put)(tv_buf *b, double v))
{
    if (isnan(v))
        return TV_S("-");
    tv_buf b = tv_buf_in(page->b->a);
    put(&b, v);
    return tv_buf_str(&b);
}

static tv_str counted(const tv_page *page, double v)
{
    return unknown_or(page, v, tv_put_count);
}

static tv_str lasting(const tv_page *page, double v)
{
    return unknown_or(page, v, tv_put_seconds);
}

static tv_str percent(const tv_page *page, double v)
{
    return unknown_or(page, v, tv_put_percent);
}

/* ---- the step ---- */

static void put_head(const tv_page *page, const tv_note *s)
{
    tv_arena *a = page->b->a;
    const double steps = tv_noted_num(s, "steps");
    const double step_s = tv_noted_num(s, "step_s");
    const tv_arg file = tv_arg_str("file", tv_noted_str(s, "file"));
    if (steps >= 1 && !isnan(step_s))
        tv_page_text(page, TV_BOLD, 0,
                     TV_TEXT(a, "trace.steps", N_("{file}: {steps} steps of {step}"), file,
                             tv_arg_num("steps", TV_ARG_COUNT, steps),
                             tv_arg_num("step", TV_ARG_SECONDS, step_s)));
    else
        tv_page_text(page, TV_BOLD, 0,
                     TV_TEXT(a, "trace.no-steps",
                             N_("{file}: no step is marked, shares are of the whole profile"),
                             file));
    if (steps < 10)
        tv_page_text(page, TV_YELLOW, 0,
                     TV_TEXT0("trace.few-steps",
                              N_("Fewer than 10 steps: profile 10 or more after warming up before "
                                 "a card is chosen by these shares.")));
    if (tv_noted_bool(s, "damaged", false))
        tv_page_text(page, TV_YELLOW, 0,
                     TV_TEXT0("trace.damaged", N_("The file is cut or no valid JSON: what could "
                                                  "be read is shown.")));
}

static void put_split(const tv_page *page, const tv_note *s)
{
    static const struct {
        const char *key, *name;
    } rows[] = {
        {"shares.gemm", N_("matrix products")},
        {"shares.conv", N_("convolutions")},
        {"shares.attention", N_("attention")},
        {"shares.elementwise", N_("other kernels")},
        {"shares.communication", N_("communication, exposed")},
        {"shares.memcpy", N_("copies, exposed")},
        {"shares.data", N_("waiting for data")},
        {"shares.idle", N_("idle")},
    };
    static const tv_column columns[] = {
        {N_("where a step goes"), false, false},
        {N_("share"), true, false},
        {N_("time"), true, false},
        {NULL, false, false},
    };
    tv_arena *a = page->b->a;
    const double step_s = tv_noted_num(s, "step_s");
    const double whole = isnan(step_s) ? tv_noted_num(s, "window_s") : step_s;
    tv_table t = {.columns = columns, .n_columns = 4};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double share = tv_noted_num(s, rows[i].key);
        if (!(share > 0))
            continue;
        tv_table_add(a, &t, TV_PLAIN, say(page, rows[i].name));
        tv_table_add(a, &t, TV_PLAIN, percent(page, share));
        tv_table_add(a, &t, TV_DIM, lasting(page, share * whole));
        tv_table_add(a, &t, TV_DIM, tv_bar(a, share, bar_cells));
    }
    if (!t.n) {
        tv_page_text(page, TV_DIM, 0,
                     TV_TEXT0("trace.no-split", N_("It does not tell what the device did.")));
        return;
    }
    tv_putc(page->b, '\n');
    tv_table_put(page, &t, 0);
}

/* ---- what follows from it ---- */

static void put_density(const tv_page *page, const tv_note *s)
{
    const double gemm = tv_noted_num(s, "gemm_share");
    tv_arena *a = page->b->a;
    if (isnan(gemm))
        return;
    const tv_arg share = tv_arg_num("share", TV_ARG_RATIO, gemm);
    switch (tv_grade_of_gemm_share(gemm)) {
    case TV_GRADE_UNKNOWN:
        return;
    case TV_GRADE_GOOD:
        tv_page_text(page, TV_PLAIN, 0,
                     TV_TEXT(a, "density.high",
                             N_("{share} of kernel time is matrix work: the newest tensor cores "
                                "pay"),
                             share));
        return;
    case TV_GRADE_FAIR:
        tv_page_text(page, TV_PLAIN, 0,
                     TV_TEXT(a, "density.mixed",
                             N_("{share} of kernel time is matrix work: mixed; memory bandwidth "
                                "counts as much"),
                             share));
        return;
    case TV_GRADE_POOR:
        tv_page_text(page, TV_PLAIN, 0,
                     TV_TEXT(a, "density.low",
                             N_("{share} of kernel time is matrix work: a consumer card gives "
                                "more for the money"),
                             share));
        return;
    }
}

static void put_figures(const tv_page *page, const tv_trace_view *v)
{
    tv_arena *a = page->b->a;
    const tv_note *s = v->slowest;
    const double overlap = tv_noted_num(s, "overlap"),
                 busbw = tv_noted_num(s, "busbw_bytes_per_s_total");
    const double delay = tv_noted_num(s, "launch_delay_median_s");
    const double rate = tv_noted_num(s, "gemm_flop_per_s");
    const double slope = tv_noted_num(s, "mem_slope_bytes_per_step");
    tv_putc(page->b, '\n');
    put_density(page, s);
    if (!isnan(overlap))
        tv_page_text(page, TV_PLAIN, 0,
                     TV_TEXT(a, "trace.overlap",
                             N_("{share} of the communication is hidden behind computation"),
                             tv_arg_num("share", TV_ARG_RATIO, overlap)));
    if (!isnan(busbw))
        tv_page_text(page, TV_PLAIN, 0,
                     TV_TEXT(a, "trace.busbw", N_("bus bandwidth of the collectives: {rate}"),
                             tv_arg_num("rate", TV_ARG_RATE, busbw)));
    if (!isnan(delay))
        tv_page_text(
            page, TV_PLAIN, 0,
            TV_TEXT(a, "trace.delay",
                    N_("half of the kernels last {kernel} or less and start {delay} after "
                       "their launch"),
                    tv_arg_num("kernel", TV_ARG_SECONDS, tv_noted_num(s, "kernel_median_s")),
                    tv_arg_num("delay", TV_ARG_SECONDS, delay)));
    if (!isnan(rate) && !isnan(v->peak_flop_per_s))
        tv_page_text(page, TV_PLAIN, 0,
                     TV_TEXT(a, "trace.rate-of-peak",
                             N_("matrix products run at {rate}, {share} of what the card does at "
                                "best"),
                             tv_arg_num("rate", TV_ARG_FLOPS, rate),
                             tv_arg_num("share", TV_ARG_RATIO, rate / v->peak_flop_per_s)));
    else if (!isnan(rate))
        tv_page_text(page, TV_PLAIN, 0,
                     TV_TEXT(a, "trace.rate", N_("matrix products run at {rate}"),
                             tv_arg_num("rate", TV_ARG_FLOPS, rate)));
    if (slope > 1048576)
        tv_page_text(page, TV_PLAIN, 0,
                     TV_TEXT(a, "trace.memory", N_("allocated memory grows by {bytes} a step"),
                             tv_arg_num("bytes", TV_ARG_MEMORY, slope)));
}

/* What tells a kernel from others: templates' names without their result and namespaces. */
static tv_str short_name(tv_str name)
{
    static const char *const fronts[] = {"void ", "at::native::", "(anonymous namespace)::",
                                         "std::enable_if<!(false), void>::type "};
    for (size_t i = 0; i < sizeof fronts / sizeof *fronts; i++)
        if (tv_str_starts(name, tv_str_of(fronts[i])))
            name = tv_str_drop(name, strlen(fronts[i]));
    size_t n = name.n < name_bytes ? name.n : (size_t)name_bytes;
    while (n < name.n && n > 0 && ((unsigned char)name.p[n] & 0xc0) == 0x80)
        n--; /* no character is cut */
    return tv_str_take(name, n);
}

static void put_top(const tv_page *page, const tv_note *s)
{
    static const tv_column columns[] = {
        {N_("longest kernels"), false, false},
        {N_("kind"), false, false},
        {N_("calls"), true, false},
        {N_("total"), true, false},
        {N_("share"), true, false},
    };
    tv_arena *a = page->b->a;
    const tv_note *top = tv_noted(s, "top");
    if (!top || !top->n)
        return;
    tv_table t = {.columns = columns, .n_columns = 5};
    for (const tv_note *k = top->first; k; k = k->next) {
        tv_table_add(a, &t, TV_PLAIN, short_name(tv_noted_str(k, "name")));
        tv_table_add(a, &t, TV_DIM, tv_noted_str(k, "class"));
        tv_table_add(a, &t, TV_PLAIN, counted(page, tv_noted_num(k, "count")));
        tv_table_add(a, &t, TV_PLAIN, lasting(page, tv_noted_num(k, "total_s")));
        tv_table_add(a, &t, TV_PLAIN, percent(page, tv_noted_num(k, "share")));
    }
    tv_putc(page->b, '\n');
    tv_table_put(page, &t, 0);
}

/* ---- several ranks ---- */

static void put_ranks(const tv_page *page, const tv_trace_view *v)
{
    static const tv_column columns[] = {
        {N_("rank"), true, false},
        {N_("steps"), true, false},
        {N_("step"), true, false},
        {N_("computing"), true, false},
        {N_("communication, exposed"), true, false},
        {N_("data"), true, false},
        {N_("idle"), true, false},
    };
    if (v->ranks->n < 2)
        return;
    tv_arena *a = page->b->a;
    tv_table t = {.columns = columns, .n_columns = 7};
    for (const tv_note *r = v->ranks->first; r; r = r->next) {
        const double whole = tv_noted_num(r, "window_s");
        const double compute = tv_noted_num(r, "compute_union_s");
        const tv_style style = r == v->slowest ? TV_BOLD : TV_PLAIN;
        tv_table_add(a, &t, style, counted(page, tv_noted_num(r, "rank")));
        tv_table_add(a, &t, style, counted(page, tv_noted_num(r, "steps")));
        tv_table_add(a, &t, style, lasting(page, tv_noted_num(r, "step_s")));
        tv_table_add(a, &t, style, percent(page, compute / whole));
        tv_table_add(a, &t, style, percent(page, tv_noted_num(r, "shares.communication")));
        tv_table_add(a, &t, style, percent(page, tv_noted_num(r, "shares.data")));
        tv_table_add(a, &t, style, percent(page, tv_noted_num(r, "shares.idle")));
    }
    tv_putc(page->b, '\n');
    tv_table_put(page, &t, 0);
    if (v->skew)
        tv_page_text(page, TV_PLAIN, 0,
                     TV_TEXT(a, "trace.skew",
                             N_("of the time in {n} collectives {share} is waiting for the last "
                                "rank; rank {rank} comes last in {late} of them"),
                             tv_arg_num("n", TV_ARG_COUNT, (double)v->collectives),
                             tv_arg_num("share", TV_ARG_RATIO, v->wait_share),
                             tv_arg_num("rank", TV_ARG_NUMBER, v->late_rank),
                             tv_arg_num("late", TV_ARG_RATIO, v->late_share)));
}

static void put_findings(const tv_page *page, const tv_diagnosis *d)
{
    tv_arena *a = page->b->a;
    if (!d->findings.n)
        return;
    tv_page_head(page, N_("Findings (trivet doctor tells why and what to do)"));
    for (size_t i = 0; i < d->findings.n; i++) {
        const tv_finding *f = d->findings.v[i];
        static const tv_style styles[] = {
            [TV_INFO] = TV_DIM, [TV_WARNING] = TV_YELLOW, [TV_CRITICAL] = TV_RED};
        tv_page_text(page, styles[f->severity], 2,
                     TV_TEXT(a, "trace.finding", N_("{id} ({severity}): {title}"),
                             tv_arg_str("id", tv_str_of(f->rule->id)),
                             tv_arg_word("severity", tv_severity_name(f->severity)),
                             tv_arg_word("title", f->rule->title)));
    }
}

void tv_trace_text(const tv_request *req, tv_buf *b, const tv_trace_view *v)
{
    const tv_page page = tv_page_on(req, b);
    put_head(&page, v->slowest);
    put_split(&page, v->slowest);
    put_figures(&page, v);
    put_top(&page, v->slowest);
    put_ranks(&page, v);
    put_findings(&page, v->diagnosis);
}
