/* Units: reading what people write and writing what people read. */
#include "unit.h"

#include <math.h>

typedef struct unit {
    const char *name;
    double factor;
} unit;

static tv_str number_part(tv_str s)
{
    size_t n = 0;
    while (n < s.n) {
        const char c = s.p[n];
        const bool digit = (c >= '0' && c <= '9') || c == '.';
        const bool sign = (c == '-' || c == '+') && (n == 0 || s.p[n - 1] == 'e');
        /* "7e9" is a number, "7EB" is not: an exponent is a small e before a digit or sign. */
        const bool exponent =
            c == 'e' && n > 0 && n + 1 < s.n &&
            ((s.p[n + 1] >= '0' && s.p[n + 1] <= '9') || s.p[n + 1] == '+' || s.p[n + 1] == '-');
        if (!digit && !sign && !exponent)
            break;
        n++;
    }
    return tv_str_take(s, n);
}

static tv_double_read read_with(tv_str s, const unit *units, size_t n)
{
    s = tv_str_trim(s);
    const tv_str head = number_part(s);
    const tv_str tail = tv_str_trim(tv_str_drop(s, head.n));
    const tv_double_read r = tv_str_double(head);
    if (!r.ok || tail.n == 0)
        return r;
    for (size_t i = 0; i < n; i++)
        if (tv_str_eq_nocase(tail, tv_str_of(units[i].name)))
            return (tv_double_read){r.v * units[i].factor, true};
    return (tv_double_read){0, false};
}

tv_double_read tv_read_count(tv_str s)
{
    static const unit units[] = {{"k", 1e3}, {"m", 1e6}, {"b", 1e9}, {"g", 1e9}, {"t", 1e12}};
    return read_with(s, units, sizeof units / sizeof *units);
}

tv_double_read tv_read_bytes(tv_str s)
{
    static const unit units[] = {
        {"b", 1},        {"kb", 1e3},     {"mb", 1e6},     {"gb", 1e9},     {"tb", 1e12},
        {"pb", 1e15},    {"k", 1e3},      {"m", 1e6},      {"g", 1e9},      {"t", 1e12},
        {"kib", 0x1p10}, {"mib", 0x1p20}, {"gib", 0x1p30}, {"tib", 0x1p40}, {"pib", 0x1p50},
    };
    return read_with(s, units, sizeof units / sizeof *units);
}

tv_double_read tv_read_seconds(tv_str s)
{
    static const unit units[] = {
        {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"min", 60}, {"h", 3600}, {"d", 86400},
    };
    return read_with(s, units, sizeof units / sizeof *units);
}

void tv_put_count(tv_buf *b, double v)
{
    tv_buf digits = tv_buf_in(b->a);
    tv_put_fixed(&digits, fabs(v), 0);
    const tv_str s = tv_buf_str(&digits);
    if (v < 0)
        tv_putc(b, '-');
    for (size_t i = 0; i < s.n; i++) {
        if (i && (s.n - i) % 3 == 0)
            tv_putc(b, ',');
        tv_putc(b, s.p[i]);
    }
}

static void put_scaled(tv_buf *b, double v, const unit *units, size_t n, int digits)
{
    size_t i = 0;
    while (i + 1 < n && fabs(v) < units[i].factor * 0.9995)
        i++;
    tv_put_short(b, v / units[i].factor, digits);
    tv_puts(b, units[i].name);
}

void tv_put_params(tv_buf *b, double v)
{
    static const unit units[] = {{" T", 1e12}, {" B", 1e9}, {" M", 1e6}, {" k", 1e3}, {"", 1}};
    put_scaled(b, v, units, sizeof units / sizeof *units, 4);
}

/* Bytes below the first prefix are counted, not measured. */
static bool put_few(tv_buf *b, double v)
{
    if (!(fabs(v) < 1000) || v != floor(v))
        return false;
    tv_put_count(b, v);
    tv_puts(b, " B");
    return true;
}

void tv_put_memory(tv_buf *b, double v)
{
    if (put_few(b, v))
        return;
    static const unit units[] = {
        {" TiB", 0x1p40}, {" GiB", 0x1p30}, {" MiB", 0x1p20}, {" KiB", 0x1p10}, {" B", 1},
    };
    put_scaled(b, v, units, sizeof units / sizeof *units, 4);
}

void tv_put_disk(tv_buf *b, double v)
{
    if (put_few(b, v))
        return;
    static const unit units[] = {
        {" PB", 1e15}, {" TB", 1e12}, {" GB", 1e9}, {" MB", 1e6}, {" kB", 1e3}, {" B", 1},
    };
    put_scaled(b, v, units, sizeof units / sizeof *units, 3);
}

void tv_put_seconds(tv_buf *b, double v)
{
    static const unit units[] = {
        {" d", 172800}, {" h", 7200}, {" min", 120}, {" s", 1}, {" ms", 1e-3}, {" µs", 1e-6},
    };
    static const double divisor[] = {86400, 3600, 60, 1, 1e-3, 1e-6};
    size_t i = 0;
    while (i + 1 < sizeof units / sizeof *units && fabs(v) < units[i].factor * 0.9995)
        i++;
    tv_put_short(b, v / divisor[i], 3);
    tv_puts(b, units[i].name);
}

void tv_put_percent(tv_buf *b, double v)
{
    tv_put_fixed(b, v * 100, fabs(v) < 0.0995 ? 1 : 0);
    tv_puts(b, " %");
}

void tv_put_flops(tv_buf *b, double v)
{
    static const unit units[] = {
        {" PFLOP/s", 1e15},
        {" TFLOP/s", 1e12},
        {" GFLOP/s", 1e9},
        {" MFLOP/s", 1e6},
    };
    put_scaled(b, v, units, sizeof units / sizeof *units, 4);
}

/* Whole numbers from 1000 on, one decimal from 10 on, two below. */
static void put_in_column(tv_buf *b, double v)
{
    if (fabs(v) >= 999.5)
        tv_put_count(b, floor(v + 0.5));
    else if (v == floor(v))
        tv_put_fixed(b, v, 0);
    else
        tv_put_fixed(b, v, fabs(v) >= 9.995 ? 1 : 2);
}

void tv_put_tera(tv_buf *b, double v)
{
    put_in_column(b, v / 1e12);
}

void tv_put_giga(tv_buf *b, double v)
{
    put_in_column(b, v / 1e9);
}
