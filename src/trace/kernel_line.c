/* Prefixes are told by where a clock stands and by what encloses it. Years, time zones and the
 * order of the parts differ; only the seconds since the start are read as a number. */
#include "kernel_line.h"

#include <math.h>

enum { TALLIED_MOST = 256 };

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

static tv_str past_blanks(tv_str s)
{
    while (s.n && (*s.p == ' ' || *s.p == '\t'))
        s = tv_str_drop(s, 1);
    return s;
}

/* "19:02:39" at p. */
static bool clock_at(tv_str s, size_t i)
{
    static const char shape[] = "00:00:00";
    if (s.n - i < sizeof shape - 1)
        return false;
    for (size_t k = 0; k < sizeof shape - 1; k++)
        if (shape[k] == '0' ? !digit(s.p[i + k]) : s.p[i + k] != ':')
            return false;
    /* a bus address has the same look: 0000:01:00 */
    return (i == 0 || !digit(s.p[i - 1])) && (i + 8 >= s.n || !digit(s.p[i + 8])) &&
           (s.p[i] < '2' || (s.p[i] == '2' && s.p[i + 1] < '4'));
}

/* Behind a fraction and a zone: ".123456", ",859532", "+00:00", "Z". */
static size_t clock_end(tv_str s, size_t i)
{
    i += 8;
    while (i < s.n && (digit(s.p[i]) || s.p[i] == '.' || s.p[i] == ',' || s.p[i] == '+' ||
                       s.p[i] == '-' || s.p[i] == ':' || s.p[i] == 'Z'))
        i++;
    return i;
}

static size_t find_clock(tv_str s, size_t within)
{
    for (size_t i = 0; i < s.n && i < within; i++)
        if (clock_at(s, i))
            return i;
    return s.n;
}

/* ---- pieces ---- */

/* "[ 1843.308145] ", "[Sun Feb 23 16:24:18 2025] ", "[May18 19:02] ", "[  +0.000123] " */
static bool take_bracket(tv_kernel_line *line)
{
    const tv_str s = line->text;
    if (!tv_str_starts(s, TV_S("[")))
        return false;
    const tv_cut cut = tv_str_cut(tv_str_drop(s, 1), ']');
    if (!cut.found || cut.head.n > 48)
        return false;
    const tv_str inside = tv_str_trim(cut.head);
    tv_str rest = inside;
    const tv_double_read t = tv_take_number(&rest);
    const char *format = NULL;
    if (t.ok && !rest.n && inside.n && (digit(inside.p[0])))
        format = "dmesg";
    else if (find_clock(inside, inside.n) < inside.n)
        format = "dmesg -T";
    else if (t.ok && !rest.n && inside.p[0] == '+')
        format = "dmesg -H";
    else if (inside.n >= 11 && inside.n <= 14 && inside.p[inside.n - 3] == ':')
        format = "dmesg -H";
    if (!format)
        return false;
    if (t.ok && !rest.n && digit(inside.p[0]))
        line->ts_s = t.v;
    if (!line->format)
        line->format = format;
    if (!line->clock.n)
        line->clock = inside;
    line->text = past_blanks(cut.tail);
    return true;
}

/* "<4>" */
static void pass_level(tv_kernel_line *line)
{
    const tv_str s = line->text;
    if (s.n > 3 && s.p[0] == '<' && digit(s.p[1]))
        for (size_t i = 2; i < s.n && i < 5; i++)
            if (s.p[i] == '>') {
                line->text = past_blanks(tv_str_drop(s, i + 1));
                return;
            }
}

/* "kern  :warn  : " */
static void pass_facility(tv_kernel_line *line)
{
    tv_str rest = line->text;
    if (!tv_str_starts(rest, TV_S("kern ")) && !tv_str_starts(rest, TV_S("user ")) &&
        !tv_str_starts(rest, TV_S("daemon")))
        return;
    const tv_cut facility = tv_str_cut(rest, ':');
    const tv_cut level = tv_str_cut(facility.tail, ':');
    if (facility.found && level.found && facility.head.n < 10 && level.head.n < 10) {
        line->text = past_blanks(level.tail);
        line->format = "dmesg -x";
    }
}

/* "6,1234,1843308145,-;text" */
static bool take_kmsg(tv_kernel_line *line)
{
    tv_str s = line->text;
    const tv_u64_read level = tv_take_u64(&s);
    if (!level.ok || level.v > 191 || !tv_str_starts(s, TV_S(",")))
        return false;
    s = tv_str_drop(s, 1);
    if (!tv_take_u64(&s).ok || !tv_str_starts(s, TV_S(",")))
        return false;
    s = tv_str_drop(s, 1);
    const tv_u64_read us = tv_take_u64(&s);
    const tv_cut cut = tv_str_cut(s, ';');
    if (!us.ok || !cut.found || cut.head.n > 40)
        return false;
    line->ts_s = (double)us.v / 1e6;
    line->format = "kmsg";
    line->text = cut.tail;
    return true;
}

/* {"MESSAGE":"...", ...}, also one member a line: the words as they are quoted. */
static bool take_journal(tv_kernel_line *line)
{
    tv_str rest;
    if (!tv_past(line->text, "\"MESSAGE\"", &rest)) {
        if (!tv_str_starts(line->text, TV_S("MESSAGE=")))
            return false;
        line->text = tv_str_drop(line->text, 8);
        line->format = "journal export";
        return true;
    }
    rest = past_blanks(rest);
    if (!tv_str_starts(rest, TV_S(":")))
        return false;
    rest = past_blanks(tv_str_drop(rest, 1));
    if (!tv_str_starts(rest, TV_S("\"")))
        return false;
    rest = tv_str_drop(rest, 1);
    size_t n = 0;
    while (n < rest.n && rest.p[n] != '"')
        n += rest.p[n] == '\\' && n + 1 < rest.n ? 2 : 1;
    const tv_str at = tv_enclosed(line->text, "\"__REALTIME_TIMESTAMP\"", ",");
    const tv_u64_read since =
        tv_str_u64(tv_enclosed(line->text, "\"__MONOTONIC_TIMESTAMP\":\"", "\""));
    line->clock = tv_enclosed(at, "\"", "\"");
    line->format = "journal json";
    if (since.ok)
        line->ts_s = (double)since.v / 1e6;
    line->text = tv_str_take(rest, n);
    return true;
}

/* The host and "kernel:" behind the clock. */
static void pass_host(tv_kernel_line *line)
{
    tv_str rest = line->text;
    const tv_str word = tv_take_word(&rest);
    if (tv_str_is(word, "kernel:")) {
        line->host_missing = true;
        line->text = past_blanks(rest);
        return;
    }
    tv_str next = rest;
    const tv_str second = tv_take_word(&next);
    const bool kernel = tv_str_starts(second, TV_S("kernel")) && tv_str_ends(second, TV_S(":"));
    /* "host rasdaemon[123]:" and the like keep their own name, which says who speaks */
    if (word.n && kernel)
        line->text = past_blanks(next);
    else if (word.n && second.n && tv_str_starts(next, TV_S("[")))
        line->text = past_blanks(rest);
}

/* "May 18 19:02:39 host kernel: ", "2024-08-30T11:43:09.12+0800 host kernel: ",
 * "1684436559.123456 host kernel: " */
static bool take_syslog(tv_kernel_line *line)
{
    const tv_str s = line->text;
    const size_t at = find_clock(s, 36);
    if (at < s.n && at >= 1) {
        const size_t end = clock_end(s, at);
        line->clock = tv_str_trim(tv_str_take(s, end));
        if (!line->format)
            line->format = at >= 8 && s.p[4] == '-' ? "iso"
                           : end > at + 8           ? "short-precise"
                                                    : "syslog";
        line->text = past_blanks(tv_str_drop(s, end));
        tv_str rest = line->text; /* "UTC", "CST" of short-full */
        const tv_str zone = tv_take_word(&rest);
        if (zone.n == 3 && (tv_str_is(zone, "UTC") || tv_str_ends(zone, TV_S("ST")) ||
                            tv_str_ends(zone, TV_S("DT")) || tv_str_is(zone, "CET")))
            line->text = past_blanks(rest);
        pass_host(line);
        return true;
    }
    tv_str rest = s;
    const tv_double_read t = tv_take_number(&rest);
    if (!t.ok || t.v < 1e9 || t.v > 1e10 || !tv_str_starts(rest, TV_S(" ")))
        return false;
    line->clock = tv_str_take(s, s.n - rest.n);
    line->format = "short-unix";
    line->text = past_blanks(rest);
    pass_host(line);
    return true;
}

tv_kernel_line tv_kernel_line_of(tv_str s)
{
    s = past_blanks(s);
    while (tv_str_starts(s, TV_S(">"))) /* quoted in an answer */
        s = past_blanks(tv_str_drop(s, 1));
    tv_kernel_line line = {.text = s, .ts_s = (double)NAN};
    if (take_journal(&line)) {
        (void)take_bracket(&line);
        return line;
    }
    pass_level(&line);
    pass_facility(&line);
    if (take_kmsg(&line))
        return line;
    if (!take_bracket(&line)) {
        if (take_syslog(&line))
            (void)take_bracket(&line);
    } else if (!tv_str_starts(line.text, TV_S("NVRM"))) {
        pass_host(&line);
    }
    return line;
}

/* ---- what stands in a log once ---- */

tv_sighting *tv_see_once(tv_reading *r, const char *kind, size_t i)
{
    for (tv_sighting *s = r->scene->first; s; s = s->next)
        if (tv_str_is(tv_str_of(s->kind), kind) && tv_str_eq(s->file, r->sheet->file))
            return s;
    return tv_see(r, kind, i);
}

double tv_tallied(const tv_note *item)
{
    const double n = tv_noted_num(item, "n");
    return isnan(n) ? 0 : n;
}

void tv_count_up(tv_arena *a, tv_note *map, const char *key)
{
    const double n = tv_noted_num(map, key);
    (void)tv_note_num(a, map, key, isnan(n) ? 1 : n + 1);
}

tv_note *tv_tally(tv_reading *r, tv_note *list, const char *key, tv_str word, size_t i)
{
    for (tv_note *item = list->first; item; item = item->next)
        if (tv_str_eq(tv_noted_str(item, key), word)) {
            tv_count_up(r->a, item, "n");
            return item;
        }
    if (list->n >= TALLIED_MOST)
        return NULL;
    tv_note *item = tv_at(r, tv_note_map(r->a, list, NULL), i);
    (void)tv_note_str(r->a, item, key, word);
    (void)tv_note_num(r->a, item, "n", 1);
    return item;
}

/* ---- bus addresses ---- */

static size_t hex_at(tv_str s, size_t i)
{
    size_t n = 0;
    while (i + n < s.n &&
           (digit(s.p[i + n]) || ((s.p[i + n] | 32) >= 'a' && (s.p[i + n] | 32) <= 'f')))
        n++;
    return n;
}

tv_str tv_take_pci(tv_str *s)
{
    const tv_str t = past_blanks(*s);
    size_t n = hex_at(t, 0);
    if ((n != 4 && n != 8 && n != 2) || n >= t.n || t.p[n] != ':')
        return (tv_str){0};
    const size_t bus = hex_at(t, n + 1);
    if (bus != 2)
        return (tv_str){0};
    size_t end = n + 1 + bus;
    if (n != 2) { /* a domain stood first */
        if (end >= t.n || t.p[end] != ':' || hex_at(t, end + 1) != 2)
            return (tv_str){0};
        end += 3;
    }
    if (end + 1 < t.n && t.p[end] == '.' && digit(t.p[end + 1]))
        end += 2;
    *s = tv_str_drop(t, end);
    return tv_str_take(t, end);
}
