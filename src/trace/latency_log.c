/* Latencies of requests: one number a line, as services log them, or the percentiles that
 * benchmarks print. Lines that begin alike are one series; stamps tell how long it was idle. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "glean.h"
#include "trace.h"

enum { MOST_SERIES = 8, MOST_CALLS = 20000, LEAST_CALLS = 8, KEY_BYTES = 60 };

typedef struct call {
    double latency_s;
    double at_s; /* of its stamp within the day; NaN: none */
    size_t line;
} call;

typedef struct calls {
    char key[KEY_BYTES]; /* what stands before the number, without digits */
    size_t key_n;
    call *v;
    size_t n, cap;
} calls;

/* ---- one line ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "... 14:03:59.123 ...": seconds of the day. */
static double stamp_of(tv_str s)
{
    for (size_t i = 0; i + 8 <= s.n && i < 40; i++) {
        if (!is_digit(s.p[i]) || s.p[i + 2] != ':' || s.p[i + 5] != ':' || !is_digit(s.p[i + 6]))
            continue;
        const tv_u64_read h = tv_str_u64((tv_str){s.p + i, 2});
        const tv_u64_read m = tv_str_u64((tv_str){s.p + i + 3, 2});
        const tv_u64_read whole = tv_str_u64((tv_str){s.p + i + 6, 2});
        if (!h.ok || !m.ok || !whole.ok || h.v > 23 || m.v > 59 || whole.v > 60)
            continue;
        double fraction = 0, place = 0.1;
        size_t k = i + 8;
        if (k < s.n && (s.p[k] == '.' || s.p[k] == ','))
            for (k++; k < s.n && is_digit(s.p[k]); k++, place /= 10)
                fraction += place * (s.p[k] - '0');
        return (double)h.v * 3600 + (double)m.v * 60 + (double)whole.v + fraction;
    }
    return (double)NAN;
}

static const char *const words[] = {
    "latency",       "inference time", "infer time",   "inference took",
    "response time", "predict time",   "request took", "ttft"};

/* The place behind the first of the words. */
static bool past_word(tv_str s, tv_str *rest)
{
    for (size_t i = 0; i < s.n; i++)
        for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
            const size_t n = strlen(words[w]);
            if (n <= s.n - i && tv_str_eq_nocase((tv_str){s.p + i, n}, (tv_str){words[w], n})) {
                *rest = tv_str_drop(s, i + n);
                return true;
            }
        }
    return false;
}

/* "_ms: 12.3", " (ms) = 12.3", "[us]: 80": the unit stands before the number. */
static double unit_before(tv_str between)
{
    static const struct {
        const char *word;
        double factor;
    } units[] = {{"_ms", 1e-3},  {"(ms)", 1e-3}, {"[ms]", 1e-3}, {"_us", 1e-6}, {"(us)", 1e-6},
                 {"[us]", 1e-6}, {"_s", 1},      {"(s)", 1},     {"[s]", 1}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (tv_holds(between, units[i].word))
            return units[i].factor;
    return 0;
}

/* The latency that a line states, and where its number begins. */
static bool take_latency(tv_str s, double *latency_s, size_t *begin)
{
    tv_str rest;
    if (!past_word(s, &rest))
        return false;
    size_t n = 0;
    while (n < rest.n && n < 24 && !is_digit(rest.p[n]))
        n++;
    if (n >= rest.n || !is_digit(rest.p[n]))
        return false;
    *begin = (size_t)(rest.p - s.p) + n;
    tv_str number = tv_str_drop(rest, n), again = number;
    const tv_double_read seconds = tv_take_seconds(&number);
    if (seconds.ok) {
        *latency_s = seconds.v;
        return true;
    }
    const tv_double_read bare = tv_take_number(&again);
    const double factor = unit_before(tv_str_take(rest, n));
    *latency_s = bare.v * factor;
    return bare.ok && factor > 0;
}

static void key_of(tv_str s, size_t begin, calls *to)
{
    to->key_n = 0;
    const size_t from = begin > KEY_BYTES ? begin - KEY_BYTES : 0;
    for (size_t i = from; i < begin && to->key_n < KEY_BYTES; i++)
        if (!is_digit(s.p[i]) && !strchr(".,-+:Tx", s.p[i]))
            to->key[to->key_n++] = s.p[i];
}

/* ---- series ---- */

static calls *series_of(calls *all, size_t *n, const calls *key)
{
    for (size_t i = 0; i < *n; i++)
        if (all[i].key_n == key->key_n && memcmp(all[i].key, key->key, key->key_n) == 0)
            return &all[i];
    if (*n >= MOST_SERIES)
        return NULL;
    all[*n] = *key;
    return &all[(*n)++];
}

static int by_value(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

static double quantile(const double *sorted, size_t n, double q)
{
    return n ? sorted[(size_t)(q * (double)(n - 1) + 0.5)] : (double)NAN;
}

/* Idle before a call: from the end of the last one to its begin; the stamp is the end. */
static double idle_before(const calls *c, size_t i)
{
    if (!i)
        return (double)NAN;
    double gap = c->v[i].at_s - c->v[i - 1].at_s;
    if (gap < -43200)
        gap += 86400; /* midnight */
    return gap - c->v[i].latency_s;
}

/* Calls after five seconds of nothing against those that follow closely. */
static void put_idle(tv_reading *r, tv_note *facts, const calls *c, tv_arena *scratch)
{
    double *late = tv_new(scratch, double, c->n), *close = tv_new(scratch, double, c->n);
    size_t n_late = 0, n_close = 0, first = 0;
    double shortest = HUGE_VAL;
    for (size_t i = 1; i < c->n; i++) {
        const double idle = idle_before(c, i);
        if (idle >= 5) {
            first = n_late ? first : i;
            shortest = fmin(shortest, idle);
            late[n_late++] = c->v[i].latency_s;
        } else if (idle < 2) {
            close[n_close++] = c->v[i].latency_s;
        }
    }
    if (!n_late || !n_close)
        return;
    qsort(late, n_late, sizeof *late, by_value);
    qsort(close, n_close, sizeof *close, by_value);
    tv_note *idle = tv_at(r, tv_note_map(r->a, facts, "after_idle"), c->v[first].line);
    (void)tv_note_num(r->a, idle, "calls", (double)n_late);
    (void)tv_note_num(r->a, idle, "median_s", quantile(late, n_late, 0.5));
    (void)tv_note_num(r->a, idle, "close_calls", (double)n_close);
    (void)tv_note_num(r->a, idle, "close_median_s", quantile(close, n_close, 0.5));
    (void)tv_note_num(r->a, idle, "idle_s", shortest);
}

static void put_series(tv_reading *r, const calls *c, tv_arena *scratch)
{
    double *v = tv_new(scratch, double, c->n);
    for (size_t i = 0; i < c->n; i++)
        v[i] = c->v[i].latency_s;
    qsort(v, c->n, sizeof *v, by_value);
    tv_note *facts = &tv_see(r, "latency", c->v[0].line)->facts;
    (void)tv_note_num(r->a, facts, "calls", (double)c->n);
    (void)tv_at(r, tv_note_num(r->a, facts, "first_s", c->v[0].latency_s), c->v[0].line);
    (void)tv_note_num(r->a, facts, "second_s", c->v[1].latency_s);
    (void)tv_note_num(r->a, facts, "median_s", quantile(v, c->n, 0.5));
    (void)tv_note_num(r->a, facts, "p99_s", quantile(v, c->n, 0.99));
    (void)tv_note_num(r->a, facts, "max_s", v[c->n - 1]);
    put_idle(r, facts, c, scratch);
}

static void read_call(const tv_reading *r, tv_arena *scratch, calls *all, size_t *n, size_t i)
{
    const tv_str s = r->sheet->v[i].s;
    double latency_s = 0;
    size_t begin = 0;
    calls key = {0};
    if (!take_latency(s, &latency_s, &begin) || !(latency_s > 0))
        return;
    key_of(s, begin, &key);
    calls *c = series_of(all, n, &key);
    if (c && c->n < MOST_CALLS)
        *tv_push(scratch, c) = (call){latency_s, stamp_of(s), i};
}

/* ---- percentiles ---- */

typedef struct percentile_row {
    const char *mark;
    const char *key;
} percentile_row;

/* "p50: 5.1 ms", "median = 1.1 ms", "percentile(99%) = 3 ms", "P99 TTFT (ms): 200", "99% in 0.3" */
static const percentile_row percentiles[] = {
    {"percentile(99%)", "p99_s"},
    {"percentile(50%)", "median_s"},
    {"median", "median_s"},
    {"p50", "median_s"},
    {"p99", "p99_s"},
    {"50% in", "median_s"},
    {"99% in", "p99_s"},
    {"99th percentile", "p99_s"},
    {"50th percentile", "median_s"},
};

static bool past_nocase(tv_str s, const char *mark, tv_str *rest)
{
    const size_t n = strlen(mark);
    for (size_t i = 0; i + n <= s.n; i++)
        if (tv_str_eq_nocase((tv_str){s.p + i, n}, (tv_str){mark, n}) &&
            (!i || !is_digit(s.p[i - 1]))) {
            *rest = tv_str_drop(s, i + n);
            return true;
        }
    return false;
}

static double percentile_in(tv_str s, const char *mark)
{
    tv_str rest;
    if (!past_nocase(s, mark, &rest) || (rest.n && is_digit(*rest.p)) ||
        tv_str_starts(rest, TV_S(".")))
        return (double)NAN;
    size_t n = 0;
    while (n < rest.n && n < 32 && !is_digit(rest.p[n]))
        n++;
    const tv_str between = tv_str_take(rest, n);
    tv_str number = tv_str_drop(rest, n), again = number;
    const tv_double_read seconds = tv_take_seconds(&number);
    if (seconds.ok)
        return seconds.v;
    const tv_double_read bare = tv_take_number(&again);
    const double factor = unit_before(between);
    return bare.ok && factor > 0 ? bare.v * factor : (double)NAN;
}

static void read_percentiles(tv_reading *r, tv_sighting **s, size_t i)
{
    for (size_t k = 0; k < sizeof percentiles / sizeof *percentiles; k++) {
        const double v = percentile_in(r->sheet->v[i].s, percentiles[k].mark);
        if (isnan(v))
            continue;
        if (!*s)
            *s = tv_see(r, "latency", i);
        if (!tv_noted(&(*s)->facts, percentiles[k].key))
            (void)tv_at(r, tv_note_num(r->a, &(*s)->facts, percentiles[k].key, v), i);
    }
}

/* ---- */

static void read(tv_reading *r)
{
    tv_arena *scratch = tv_arena_child(r->a, TV_LIMIT_ARENA_BYTES);
    const tv_mark mark = tv_arena_mark(scratch);
    calls *all = tv_new(scratch, calls, MOST_SERIES);
    tv_sighting *summary = NULL;
    size_t n = 0;
    for (size_t i = 0; i < r->sheet->n; i++) {
        read_call(r, scratch, all, &n, i);
        read_percentiles(r, &summary, i);
    }
    for (size_t i = 0; i < n; i++)
        if (all[i].n >= LEAST_CALLS)
            put_series(r, &all[i], scratch);
    tv_arena_rewind(scratch, mark);
}

static const char *const needles[] = {
    "latency",      "Latency",      "nference time", "infer time", "nference took", "esponse time",
    "predict time", "request took", "TTFT",          "ttft",       "percentile(",   NULL};

extern const tv_log_format tv_log_format_latency_log;
const tv_log_format tv_log_format_latency_log = {"latency-log", needles, read};
