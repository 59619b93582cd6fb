/* Cursors over views. A number is read by hand: what strtod accepts depends on the locale. */
#include "glean.h"

#include <math.h>
#include <string.h>

bool tv_past(tv_str s, const char *needle, tv_str *rest)
{
    const size_t n = strlen(needle);
    const char *hit = s.n ? memmem(s.p, s.n, needle, n) : NULL;
    if (!hit)
        return false;
    *rest = tv_str_drop(s, (size_t)(hit - s.p) + n);
    return true;
}

tv_str tv_enclosed(tv_str s, const char *from, const char *to)
{
    tv_str rest;
    if (!tv_past(s, from, &rest))
        return (tv_str){0};
    if (!to || !*to)
        return tv_str_trim(rest);
    const char *hit = rest.n ? memmem(rest.p, rest.n, to, strlen(to)) : NULL;
    return hit ? tv_str_trim(tv_str_span(rest.p, hit)) : (tv_str){0};
}

bool tv_holds(tv_str s, const char *needle)
{
    return tv_str_has(s, tv_str_of(needle));
}

bool tv_holds_nocase(tv_str s, const char *needle)
{
    const size_t n = strlen(needle);
    const char small = (char)(needle[0] | 32), large = (char)(needle[0] & ~32);
    for (size_t i = 0; i + n <= s.n; i++)
        if ((s.p[i] == small || s.p[i] == large || s.p[i] == needle[0]) &&
            tv_str_eq_nocase((tv_str){s.p + i, n}, (tv_str){needle, n}))
            return true;
    return n == 0;
}

/* ---- numbers ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static tv_str past_blanks(tv_str s)
{
    while (s.n && is_blank(*s.p))
        s = tv_str_drop(s, 1);
    return s;
}

static size_t digits_at(tv_str s, size_t i)
{
    size_t n = 0;
    while (i + n < s.n && is_digit(s.p[i + n]))
        n++;
    return n;
}

/* A comma followed by exactly three digits parts thousands; any other one parts decimals. */
static bool parts_thousands(tv_str s, size_t i, size_t before)
{
    return before <= 3 && digits_at(s, i + 1) == 3;
}

typedef struct gathered {
    char text[64];
    size_t n;
} gathered;

static void gather(gathered *g, tv_str s, size_t from, size_t n)
{
    for (size_t i = 0; i < n && g->n + 1 < sizeof g->text; i++)
        g->text[g->n++] = s.p[from + i];
}

/* The digits before the point; yields where they end. */
static size_t whole_part(tv_str s, size_t i, gathered *g)
{
    size_t n = digits_at(s, i);
    gather(g, s, i, n);
    i += n;
    while (n && i < s.n && s.p[i] == ',' && parts_thousands(s, i, n)) {
        n = 3;
        gather(g, s, i + 1, 3);
        i += 4;
    }
    return i;
}

static size_t exponent(tv_str s, size_t i, gathered *g)
{
    if (i >= s.n || (s.p[i] != 'e' && s.p[i] != 'E'))
        return i;
    size_t k = i + 1;
    if (k < s.n && (s.p[k] == '+' || s.p[k] == '-'))
        k++;
    const size_t n = digits_at(s, k);
    if (!n)
        return i;
    gather(g, s, i, k + n - i);
    return k + n;
}

tv_double_read tv_take_number(tv_str *s)
{
    const tv_str t = past_blanks(*s);
    gathered g = {0};
    size_t i = 0;
    if (t.n && (t.p[0] == '-' || t.p[0] == '+')) {
        if (t.p[0] == '-')
            g.text[g.n++] = '-';
        i = 1;
    }
    const size_t begin = i;
    i = whole_part(t, i, &g);
    const bool whole = i > begin;
    if (i + 1 < t.n && (t.p[i] == '.' || (t.p[i] == ',' && whole)) && is_digit(t.p[i + 1])) {
        const size_t n = digits_at(t, i + 1);
        gather(&g, (tv_str){".", 1}, 0, 1);
        gather(&g, t, i + 1, n);
        i += 1 + n;
    } else if (whole && i < t.n && t.p[i] == '.') {
        i++; /* "5." */
    } else if (!whole) {
        return (tv_double_read){0};
    }
    i = exponent(t, i, &g);
    if (g.n && g.text[g.n - 1] == '-')
        return (tv_double_read){0};
    const tv_double_read r = tv_str_double((tv_str){g.text, g.n});
    if (r.ok)
        *s = tv_str_drop(t, i);
    return r;
}

static int hex_of(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static tv_u64_read take_hex(tv_str *s, tv_str t)
{
    tv_u64_read r = {0};
    size_t i = 2;
    for (; i < t.n && i < 18 && hex_of(t.p[i]) >= 0; i++)
        r.v = r.v << 4 | (uint64_t)hex_of(t.p[i]);
    r.ok = i > 2;
    if (r.ok)
        *s = tv_str_drop(t, i);
    return r;
}

tv_u64_read tv_take_u64(tv_str *s)
{
    const tv_str t = past_blanks(*s);
    if (t.n > 2 && t.p[0] == '0' && (t.p[1] == 'x' || t.p[1] == 'X'))
        return take_hex(s, t);
    const tv_u64_read r = tv_str_u64(tv_str_take(t, digits_at(t, 0)));
    if (r.ok)
        *s = tv_str_drop(t, digits_at(t, 0));
    return r;
}

/* ---- units ---- */

typedef struct unit_row {
    const char *word;
    double factor;
} unit_row;

static size_t letters_at(tv_str s)
{
    size_t n = 0;
    while (n < s.n && ((s.p[n] | 32) >= 'a' && (s.p[n] | 32) <= 'z'))
        n++;
    return n;
}

static double factor_of(const unit_row *rows, size_t n_rows, tv_str word)
{
    for (size_t i = 0; i < n_rows; i++)
        if (tv_str_eq_nocase(word, tv_str_of(rows[i].word)))
            return rows[i].factor;
    return 0;
}

tv_double_read tv_take_bytes(tv_str *s)
{
    static const unit_row units[] = {
        {"b", 1},
        {"byte", 1},
        {"bytes", 1},
        {"k", 0x1p10},
        {"kb", 0x1p10},
        {"kib", 0x1p10},
        {"m", 0x1p20},
        {"mb", 0x1p20},
        {"mib", 0x1p20},
        {"g", 0x1p30},
        {"gb", 0x1p30},
        {"gib", 0x1p30},
        {"t", 0x1p40},
        {"tb", 0x1p40},
        {"tib", 0x1p40},
        {"gigabytes", 0x1p30},
        {"megabytes", 0x1p20},
        {"kilobytes", 0x1p10},
        {"mbytes", 0x1p20},
        {"kbytes", 0x1p10},
    };
    tv_str rest = *s;
    tv_double_read r = tv_take_number(&rest);
    if (!r.ok)
        return r;
    *s = rest;
    rest = past_blanks(rest);
    const tv_str word = tv_str_take(rest, letters_at(rest));
    const double factor = factor_of(units, sizeof units / sizeof *units, word);
    if (factor > 0) {
        r.v *= factor;
        *s = tv_str_drop(rest, word.n);
    }
    return r;
}

tv_double_read tv_take_seconds(tv_str *s)
{
    static const unit_row units[] = {
        {"ns", 1e-9},    {"us", 1e-6}, {"\xc2\xb5s", 1e-6}, {"\xce\xbcs", 1e-6},
        {"usec", 1e-6},  {"ms", 1e-3}, {"msec", 1e-3},      {"s", 1},
        {"sec", 1},      {"secs", 1},  {"second", 1},       {"seconds", 1},
        {"m", 60},       {"min", 60},  {"mins", 60},        {"minute", 60},
        {"minutes", 60}, {"h", 3600},  {"hour", 3600},      {"hours", 3600},
    };
    tv_str rest = *s;
    tv_double_read r = tv_take_number(&rest);
    rest = past_blanks(rest);
    size_t n = letters_at(rest);
    if (r.ok && rest.n >= 3 && !n &&
        ((unsigned char)rest.p[0] == 0xc2 || (unsigned char)rest.p[0] == 0xce))
        n = 3;
    const double factor = factor_of(units, sizeof units / sizeof *units, tv_str_take(rest, n));
    if (!r.ok || factor <= 0)
        return (tv_double_read){0};
    *s = tv_str_drop(rest, n);
    r.v *= factor;
    return r;
}

tv_double_read tv_number_past(tv_str s, const char *needle)
{
    tv_str rest;
    return tv_past(s, needle, &rest) ? tv_take_number(&rest) : (tv_double_read){0};
}

tv_double_read tv_bytes_past(tv_str s, const char *needle)
{
    tv_str rest;
    return tv_past(s, needle, &rest) ? tv_take_bytes(&rest) : (tv_double_read){0};
}

/* ---- words ---- */

static bool is_word(char c)
{
    return is_digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'z') || (c && strchr("_-./:+@", c));
}

tv_str tv_take_word(tv_str *s)
{
    const tv_str t = past_blanks(*s);
    size_t n = 0;
    while (n < t.n && is_word(t.p[n]))
        n++;
    if (n)
        *s = tv_str_drop(t, n);
    return tv_str_take(t, n);
}

size_t tv_words(tv_str s, tv_str *v, size_t cap)
{
    size_t n = 0;
    for (s = past_blanks(s); s.n; s = past_blanks(s)) {
        size_t k = 0;
        while (k < s.n && !is_blank(s.p[k]))
            k++;
        if (n < cap)
            v[n] = tv_str_take(s, k);
        n++;
        s = tv_str_drop(s, k);
    }
    return n;
}

size_t tv_fields(tv_str s, char separator, tv_str *v, size_t cap)
{
    size_t n = 0;
    for (bool more = true; more; n++) {
        const tv_cut cut = tv_str_cut(s, separator);
        if (n < cap)
            v[n] = tv_str_trim(cut.head);
        s = cut.tail;
        more = cut.found;
    }
    return n;
}

/* ---- what loggers put before a line ---- */

/* Each yields what is left, or the line itself. */

/* "[rank3]:", "[rank3]: [rank3]:" */
static tv_str past_rank(tv_str s)
{
    tv_str rest;
    if (!tv_str_starts(s, TV_S("[rank")) || !tv_past(s, "]", &rest) || s.n - rest.n > 12)
        return s;
    return tv_str_starts(rest, TV_S(":")) ? tv_str_drop(rest, 1) : rest;
}

/* "[80746] " */
static tv_str past_number(tv_str s)
{
    const size_t n = s.n > 1 && s.p[0] == '[' ? digits_at(s, 1) : 0;
    return n && s.n > n + 2 && s.p[n + 1] == ']' && s.p[n + 2] == ' ' ? tv_str_drop(s, n + 3) : s;
}

/* "1: " of mpirun, "12: " */
static tv_str past_mpirun(tv_str s)
{
    const size_t n = digits_at(s, 0);
    return n && n < 5 && s.n > n + 1 && s.p[n] == ':' && s.p[n + 1] == ' ' ? tv_str_drop(s, n + 2)
                                                                           : s;
}

/* "(VllmWorkerProcess pid=90) ", "(EngineCore_0 pid=1) " */
static tv_str past_worker(tv_str s)
{
    tv_str rest;
    if (!s.n || s.p[0] != '(' || !tv_past(s, ")", &rest) || s.n - rest.n > 80)
        return s;
    return tv_holds(tv_str_take(s, s.n - rest.n), "pid=") ? rest : s;
}

/* "ollama  | ", "worker-0 | ": a container's name and a bar */
static tv_str past_compose(tv_str s)
{
    size_t n = 0;
    while (n < s.n && n < 40 && is_word(s.p[n]))
        n++;
    size_t k = n;
    while (k < s.n && s.p[k] == ' ')
        k++;
    return n && k > n && k + 1 < s.n && s.p[k] == '|' && s.p[k + 1] == ' ' ? tv_str_drop(s, k + 2)
                                                                           : s;
}

/* "ERROR 10-11 12:27:29 engine.py:157] ", "WARNING 2024-.. [file.py:12] ", "E0823 12:.. x.cc:5] "
 */
static tv_str past_level(tv_str s)
{
    static const char *const levels[] = {"ERROR ", "WARNING ", "INFO ", "DEBUG ", "CRITICAL "};
    tv_str rest;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (tv_str_starts(s, tv_str_of(levels[i])) && s.n > 20 &&
            tv_past(tv_str_take(s, 100), "] ", &rest) &&
            is_digit(tv_str_drop(s, strlen(levels[i])).p[0]))
            return tv_str_span(rest.p, s.p + s.n);
    return s;
}

/* "2024-05-18T19:02:39.123456789Z ": container logs. */
static tv_str past_stamp(tv_str s)
{
    if (s.n < 21 || digits_at(s, 0) != 4 || s.p[4] != '-' || s.p[10] != 'T')
        return s;
    size_t n = 11;
    while (n < s.n && !is_blank(s.p[n]))
        n++;
    return n < s.n ? tv_str_drop(s, n + 1) : s;
}

tv_str tv_bare(tv_str line)
{
    static tv_str (*const steps[])(tv_str) = {past_stamp,  past_compose, past_rank, past_number,
                                              past_worker, past_mpirun,  past_level};
    tv_str s = past_blanks(line);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const tv_str rest = past_blanks(steps[i](s));
        if (rest.n < s.n) {
            s = rest;
            i = (size_t)-1; /* prefixes stand in any order; each pass is shorter */
        }
    }
    return s;
}
