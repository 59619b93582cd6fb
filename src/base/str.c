/* Views of text: comparing, cutting, numbers. */
#include "str.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

tv_str tv_str_of(const char *text)
{
    return (tv_str){text ? text : "", text ? strlen(text) : 0};
}

tv_str tv_str_span(const char *p, const char *end)
{
    return (tv_str){p, (size_t)(end - p)};
}

const char *tv_cstr(tv_arena *a, tv_str s)
{
    char *copy = tv_new(a, char, s.n + 1);
    if (s.n)
        memcpy(copy, s.p, s.n);
    return copy;
}

tv_str tv_str_copy(tv_arena *a, tv_str s)
{
    return (tv_str){tv_cstr(a, s), s.n};
}

tv_str tv_str_join(tv_arena *a, tv_str x, tv_str y)
{
    char *copy = tv_new(a, char, x.n + y.n + 1);
    if (x.n)
        memcpy(copy, x.p, x.n);
    if (y.n)
        memcpy(copy + x.n, y.p, y.n);
    return (tv_str){copy, x.n + y.n};
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

tv_str tv_str_lower(tv_arena *a, tv_str s)
{
    char *copy = tv_new(a, char, s.n + 1);
    for (size_t i = 0; i < s.n; i++)
        copy[i] = lower(s.p[i]);
    return (tv_str){copy, s.n};
}

bool tv_str_eq(tv_str x, tv_str y)
{
    return x.n == y.n && (x.n == 0 || memcmp(x.p, y.p, x.n) == 0);
}

bool tv_str_is(tv_str x, const char *literal)
{
    return tv_str_eq(x, tv_str_of(literal));
}

bool tv_str_eq_nocase(tv_str x, tv_str y)
{
    if (x.n != y.n)
        return false;
    for (size_t i = 0; i < x.n; i++)
        if (lower(x.p[i]) != lower(y.p[i]))
            return false;
    return true;
}

int tv_str_cmp(tv_str x, tv_str y)
{
    const size_t n = x.n < y.n ? x.n : y.n;
    const int order = n ? memcmp(x.p, y.p, n) : 0;
    if (order)
        return order;
    return (x.n > y.n) - (x.n < y.n);
}

bool tv_str_starts(tv_str s, tv_str prefix)
{
    return s.n >= prefix.n && tv_str_eq(tv_str_take(s, prefix.n), prefix);
}

bool tv_str_ends(tv_str s, tv_str suffix)
{
    return s.n >= suffix.n && tv_str_eq(tv_str_drop(s, s.n - suffix.n), suffix);
}

bool tv_str_has(tv_str s, tv_str part)
{
    if (!part.n)
        return true;
    return s.n >= part.n && memmem(s.p, s.n, part.p, part.n);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

tv_str tv_str_trim(tv_str s)
{
    while (s.n && is_space(s.p[0]))
        s = tv_str_drop(s, 1);
    while (s.n && is_space(s.p[s.n - 1]))
        s.n--;
    return s;
}

tv_str tv_str_drop(tv_str s, size_t n)
{
    if (n > s.n)
        n = s.n;
    return (tv_str){n ? s.p + n : s.p, s.n - n}; /* p may be NULL */
}

tv_str tv_str_take(tv_str s, size_t n)
{
    return (tv_str){s.p, n < s.n ? n : s.n};
}

tv_cut tv_str_cut(tv_str s, char separator)
{
    const char *at = s.n ? memchr(s.p, separator, s.n) : NULL;
    if (!at)
        return (tv_cut){s, tv_str_drop(s, s.n), false};
    const size_t n = (size_t)(at - s.p);
    return (tv_cut){tv_str_take(s, n), tv_str_drop(s, n + 1), true};
}

tv_u64_read tv_str_u64(tv_str s)
{
    tv_u64_read r = {0, s.n > 0};
    for (size_t i = 0; r.ok && i < s.n; i++) {
        const unsigned digit = (unsigned)(unsigned char)s.p[i] - '0';
        r.ok = digit <= 9 && r.v <= (UINT64_MAX - digit) / 10;
        if (r.ok)
            r.v = r.v * 10 + digit;
    }
    return r.ok ? r : (tv_u64_read){0, false};
}

/* strtod obeys the process's locale; the text is checked to be plain decimal first and a
 * foreign decimal point is put in, so that an embedding program's setlocale does no harm. */
tv_double_read tv_str_double(tv_str s)
{
    char text[64];
    const tv_double_read bad = {0, false};
    if (s.n == 0 || s.n >= sizeof text || is_space(s.p[0]))
        return bad;
    for (size_t i = 0; i < s.n; i++) {
        const char c = s.p[i];
        if (!((c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E'))
            return bad;
        text[i] = c == '.' ? *localeconv()->decimal_point : c;
    }
    text[s.n] = '\0';
    char *end = NULL;
    errno = 0;
    const double v = strtod(text, &end);
    if (end != text + s.n || !isfinite(v))
        return bad;
    return (tv_double_read){v, true};
}

bool tv_str_glob(tv_str s, tv_str pattern)
{
    size_t i = 0, j = 0, star = SIZE_MAX, resume = 0;
    while (i < s.n) {
        if (j < pattern.n && pattern.p[j] == '*') {
            star = j++;
            resume = i;
        } else if (j < pattern.n && (pattern.p[j] == '?' || pattern.p[j] == s.p[i])) {
            i++;
            j++;
        } else if (star != SIZE_MAX) {
            j = star + 1;
            i = ++resume;
        } else {
            return false;
        }
    }
    while (j < pattern.n && pattern.p[j] == '*')
        j++;
    return j == pattern.n;
}

size_t tv_str_distance(tv_arena *a, tv_str x, tv_str y, size_t limit)
{
    if (x.n > 256 || y.n > 256)
        return limit + 1;
    size_t *row = tv_new(a, size_t, y.n + 1);
    for (size_t j = 0; j <= y.n; j++)
        row[j] = j;
    for (size_t i = 1; i <= x.n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= y.n; j++) {
            const size_t change = diagonal + (lower(x.p[i - 1]) != lower(y.p[j - 1]));
            const size_t insert = row[j - 1] + 1, erase = row[j] + 1;
            diagonal = row[j];
            row[j] = change < insert ? change : insert;
            row[j] = row[j] < erase ? row[j] : erase;
        }
    }
    return row[y.n] > limit ? limit + 1 : row[y.n];
}

uint64_t tv_str_hash(tv_str s)
{
    uint64_t h = 1469598103934665603u; /* FNV-1a, 64 bit */
    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)s.p[i]) * 1099511628211u;
    return h;
}
