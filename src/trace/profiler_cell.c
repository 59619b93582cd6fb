/* Cells of profilers' tables: times, shares and sizes in their units. Knows no table. */
#include "profiler_cell.h"

#include <math.h>
#include <string.h>

/* "--", "-", "N/A", "nan", "inf": a cell without a number. */
static bool is_blank_cell(tv_str s, tv_cell *cell)
{
    static const char *const words[] = {"--", "-", "N/A", "[N/A]", "nan", "NaN", "nan%", "NaN%"};
    static const char *const infinite[] = {"inf", "Inf", "-inf", "inf%", "Infinity"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (tv_str_is(s, words[i])) {
            *cell = (tv_cell){.v = (double)NAN, .ok = true};
            return true;
        }
    for (size_t i = 0; i < sizeof infinite / sizeof *infinite; i++)
        if (tv_str_is(s, infinite[i])) {
            *cell = (tv_cell){.v = (double)NAN, .ok = true, .is_inf = true};
            return true;
        }
    return false;
}

tv_cell tv_cell_time(tv_str s, double unit_s)
{
    tv_cell cell = {0};
    s = tv_str_trim(s);
    if (is_blank_cell(s, &cell))
        return cell;
    tv_str rest = s;
    tv_double_read r = tv_take_seconds(&rest);
    if (r.ok && !tv_str_trim(rest).n)
        return (tv_cell){.v = r.v, .ok = true};
    rest = s;
    r = tv_take_number(&rest);
    if (r.ok && !tv_str_trim(rest).n && (unit_s > 0 || fabs(r.v) <= 0))
        return (tv_cell){.v = r.v * unit_s, .ok = true};
    return cell;
}

tv_cell tv_cell_frac(tv_str s)
{
    tv_cell cell = {0};
    s = tv_str_trim(s);
    if (is_blank_cell(s, &cell))
        return cell;
    const tv_double_read r = tv_take_number(&s);
    s = tv_str_trim(s);
    if (r.ok && (!s.n || tv_str_is(s, "%")))
        return (tv_cell){.v = r.v / 100, .ok = true};
    return cell;
}

tv_cell tv_cell_bytes(tv_str s)
{
    tv_cell cell = {0};
    s = tv_str_trim(s);
    if (is_blank_cell(s, &cell))
        return cell;
    const tv_double_read r = tv_take_bytes(&s);
    if (r.ok && !tv_str_trim(s).n)
        return (tv_cell){.v = r.v, .ok = true};
    return cell;
}

tv_cell tv_cell_number(tv_str s)
{
    tv_cell cell = {0};
    s = tv_str_trim(s);
    if (is_blank_cell(s, &cell))
        return cell;
    const tv_double_read r = tv_take_number(&s);
    if (r.ok && !s.n)
        return (tv_cell){.v = r.v, .ok = true};
    return cell;
}

bool tv_is_rule(tv_str s)
{
    size_t marks = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (!strchr("-=+| \t_", s.p[i]) || !s.p[i])
            return false;
        marks += s.p[i] == '-' || s.p[i] == '=' || s.p[i] == '_';
    }
    return marks >= 3;
}
