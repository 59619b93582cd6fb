/* What Python, shells and frameworks call known and unknown. */
#include "env_words.h"

#include <string.h>

bool tv_env_is_unknown(tv_str value)
{
    static const char *const words[] = {"could not collect", "none",    "n/a",     "na",
                                        "not installed",     "no cuda", "unknown", "null",
                                        "not found",         "-",       "\"\"",    "''"};
    value = tv_str_trim(value);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (tv_str_eq_nocase(value, tv_str_of(words[i])))
            return true;
    return !value.n || tv_str_starts(value, TV_S("not installed"));
}

tv_env_yes tv_env_truth(tv_str value)
{
    static const char *const yes[] = {"yes", "true", "1", "on", "cuda", "gpu"};
    static const char *const no[] = {"no", "false", "0", "off"};
    value = tv_str_trim(value);
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (tv_str_eq_nocase(value, tv_str_of(yes[i])))
            return (tv_env_yes){true, true};
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (tv_str_eq_nocase(value, tv_str_of(no[i])))
            return (tv_env_yes){true, false};
    return (tv_env_yes){0};
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_version_char(char c)
{
    return is_digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'z') || (c && strchr(".+-_!", c));
}

tv_str tv_env_version(tv_str value)
{
    value = tv_str_trim(value);
    if (value.n && (*value.p == 'v' || *value.p == 'V'))
        value = tv_str_drop(value, 1);
    size_t n = 0;
    if (!value.n || !is_digit(*value.p))
        return (tv_str){0};
    while (n < value.n && is_version_char(value.p[n]))
        n++;
    while (n && strchr(".-_+!", value.p[n - 1]))
        n--;
    return tv_str_take(value, n);
}

static size_t digits_at(tv_str s, size_t i)
{
    size_t n = 0;
    while (i + n < s.n && is_digit(s.p[i + n]))
        n++;
    return n;
}

/* "118" -> "11.8", "92" -> "9.2", "130" -> "13.0" */
static tv_str dotted(tv_arena *a, tv_str digits)
{
    tv_buf b = tv_buf_in(a);
    tv_put(&b, tv_str_take(digits, digits.n - 1));
    tv_putc(&b, '.');
    tv_put(&b, tv_str_drop(digits, digits.n - 1));
    return tv_buf_str(&b);
}

static tv_str compact_cuda(tv_arena *a, tv_str s, const char *mark)
{
    tv_str rest;
    while (tv_past(s, mark, &rest)) {
        const size_t n = digits_at(rest, 0);
        if (n == 2 || n == 3)
            return dotted(a, tv_str_take(rest, n));
        s = rest;
    }
    return (tv_str){0};
}

tv_str tv_env_cuda_of(tv_arena *a, tv_str version)
{
    tv_str rest;
    if (tv_past(version, "cuda", &rest)) {
        rest = tv_str_starts(rest, TV_S("_")) ? tv_str_drop(rest, 1) : rest;
        size_t n = digits_at(rest, 0);
        if (n && n + 1 < rest.n && rest.p[n] == '.' && is_digit(rest.p[n + 1]))
            return tv_str_take(rest, n + 1 + digits_at(rest, n + 1));
        if (n == 3)
            return dotted(a, tv_str_take(rest, 3));
    }
    static const char *const marks[] = {"+cu", ".post", "-cu", "_cu", ".cu"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const tv_str found = compact_cuda(a, version, marks[i]);
        if (found.n)
            return found;
    }
    return (tv_str){0};
}

bool tv_env_is_cpu_build(tv_str version)
{
    return tv_str_ends(version, TV_S("+cpu")) || tv_holds(version, "+cpu.") ||
           tv_holds(version, "_cpu") || tv_str_starts(version, TV_S("cpu_"));
}

bool tv_env_entry(tv_str s, const char *phrase, tv_str *value, bool *colon)
{
    const size_t n = strlen(phrase);
    if (!tv_str_eq_nocase(tv_str_take(s, n), (tv_str){phrase, n}))
        return false;
    tv_str rest = tv_str_drop(s, n);
    if (rest.n && !strchr(" \t:=", *rest.p))
        return false;
    rest = tv_str_trim(rest);
    *colon = rest.n && (*rest.p == ':' || *rest.p == '=');
    *value = *colon ? tv_str_trim(tv_str_drop(rest, 1)) : rest;
    return true;
}

tv_str tv_env_bare(tv_str line)
{
    tv_str s = tv_bare(line);
    while (s.n && strchr("-*>`|# \t", *s.p))
        s = tv_str_drop(s, 1);
    while (s.n && strchr("`|, \t", s.p[s.n - 1]))
        s = tv_str_take(s, s.n - 1);
    return s;
}

tv_str tv_unquoted(tv_str s)
{
    s = tv_str_trim(s);
    if (s.n >= 2 && (*s.p == '"' || *s.p == '\'') && s.p[s.n - 1] == *s.p)
        return (tv_str){s.p + 1, s.n - 2};
    return s;
}
