/* ipmitool sensor, sdr (list and elist) and sel: what the chassis says of its air, its supplies
 * and its fans. Names differ with every vendor and are only looked at for a few words. */
#include <math.h>
#include <string.h>

#include "smi_parts.h"

enum { MOST_FIELDS = 12 };

typedef struct chassis {
    tv_reading *r;
    tv_sighting *s;
    size_t last_row;
    double n_rows, n_discrete;
} chassis;

static void need(chassis *c, size_t i)
{
    if (c->s && i > c->last_row + 20)
        c->s = NULL;
    if (!c->s) {
        *c = (chassis){.r = c->r};
        c->s = tv_see(c->r, "ipmi", i);
    }
    c->last_row = i;
}

static double number_in(tv_str s)
{
    const tv_double_read v = tv_take_number(&s);
    return v.ok ? v.v : (double)NAN;
}

/* ---- the few sensors that have a name of their own ---- */

/* "CPU1 Temp", "02-CPU 1 PkgTmp", "CPU #1": which one; 0: none */
static unsigned cpu_in(tv_arena *a, tv_str name)
{
    tv_str rest;
    if (!tv_past(tv_str_lower(a, name), "cpu", &rest))
        return 0;
    while (rest.n && strchr(" _#-", *rest.p))
        rest = tv_str_drop(rest, 1);
    return rest.n && *rest.p >= '0' && *rest.p <= '9' ? (unsigned)(*rest.p - '0') : 0;
}

/* Under a fact's name where it has none yet; null where it is not there. */
static void put_once(chassis *c, const char *key, double v, size_t i)
{
    if (!tv_noted(&c->s->facts, key))
        (void)tv_at(c->r, tv_note_num(c->r->a, &c->s->facts, key, v), i);
}

static void put_named(chassis *c, tv_str name, double v, const double *limits, size_t i)
{
    tv_arena *a = c->r->a;
    static const char *const cpus[] = {"cpu0_c", "cpu1_c", "cpu2_c", "cpu3_c", "cpu4_c"};
    const bool inlet = tv_holds_nocase(name, "inlet");
    if (isnan(v))
        return;
    if (inlet || (tv_holds_nocase(name, "ambient") && !tv_noted(&c->s->facts, "inlet_c"))) {
        put_once(c, "inlet_c", v, i);
        if (limits) {
            put_once(c, "inlet_unc", limits[3], i);
            put_once(c, "inlet_ucr", limits[4], i);
            put_once(c, "inlet_unr", limits[5], i);
        }
    } else if (tv_holds_nocase(name, "exhaust") || tv_holds_nocase(name, "outlet")) {
        put_once(c, "exhaust_c", v, i);
    }
    const bool is_cpu = tv_holds_nocase(name, "cpu") && !tv_holds_nocase(name, "dimm") &&
                        !tv_holds_nocase(name, "vr");
    const unsigned cpu = is_cpu ? cpu_in(a, name) : 5;
    if (cpu < 5)
        put_once(c, cpus[cpu], v, i);
}

/* ---- rows ---- */

static tv_note *sensor(chassis *c, tv_str name, size_t i)
{
    tv_arena *a = c->r->a;
    c->n_rows++;
    tv_note *note = tv_at(c->r, tv_note_map(a, tv_note_list(a, &c->s->facts, "sensors"), NULL), i);
    (void)tv_note_str(a, note, "name", name);
    return note;
}

/* name | reading | unit | status | LNR | LCR | LNC | UNC | UCR | UNR */
static bool read_sensor(chassis *c, const tv_str *f, size_t n, size_t i)
{
    static const char *const names[] = {"lnr", "lcr", "lnc", "unc", "ucr", "unr"};
    if (n < 10 || n > 11 || !f[0].n || !f[2].n)
        return false;
    const bool discrete = tv_str_is(f[2], "discrete");
    if (!discrete && !tv_str_is(f[1], "na") && isnan(number_in(f[1])))
        return false;
    need(c, i);
    tv_arena *a = c->r->a;
    tv_note *note = sensor(c, f[0], i);
    (void)tv_note_str(a, note, "unit", f[2]);
    (void)tv_note_str(a, note, "status", f[3]);
    if (discrete) {
        c->n_discrete++;
        return true;
    }
    double limits[6];
    for (size_t k = 0; k < 6; k++) {
        limits[k] = number_in(f[4 + k]);
        (void)tv_note_num(a, note, names[k], limits[k]);
    }
    (void)tv_note_num(a, note, "value", number_in(f[1]));
    if (tv_str_is(f[2], "degrees C"))
        put_named(c, f[0], number_in(f[1]), limits, i);
    return true;
}

static bool is_status(tv_str s)
{
    return tv_smi_among("ok|ns|nc|cr|nr|na|lnc|lcr|lnr|unc|ucr|unr", s);
}

/* name | value | status, and of elist: name | id | status | entity | value */
static bool read_sdr(chassis *c, const tv_str *f, size_t n, size_t i)
{
    const bool list = n == 3 && is_status(f[2]);
    const bool elist = n == 5 && is_status(f[2]) && tv_str_ends(f[1], TV_S("h"));
    if ((!list && !elist) || !f[0].n)
        return false;
    need(c, i);
    tv_arena *a = c->r->a;
    const tv_str value = list ? f[1] : f[4];
    tv_note *note = sensor(c, f[0], i);
    (void)tv_note_str(a, note, "status", f[2]);
    (void)tv_note_str(a, note, "text", value);
    tv_str unit = value;
    const tv_double_read v = tv_take_number(&unit);
    if (v.ok && !tv_str_starts(value, TV_S("0x"))) {
        (void)tv_note_num(a, note, "value", v.v);
        (void)tv_note_str(a, note, "unit", tv_str_trim(unit));
        if (tv_holds(unit, "degrees C"))
            put_named(c, f[0], v.v, NULL, i);
    } else if (!tv_str_is(f[2], "ns")) {
        c->n_discrete++;
    }
    return true;
}

/* id | date | time | sensor | event | Asserted */
static bool read_event(chassis *c, const tv_str *f, size_t n, size_t i)
{
    if (n < 5 || n > 7)
        return false;
    const tv_str last = f[n - 1];
    const bool directed = tv_str_is(last, "Asserted") || tv_str_is(last, "Deasserted");
    tv_str date = f[1];
    if (!directed || !tv_take_u64(&date).ok || !tv_holds(f[2], ":"))
        return false;
    need(c, i);
    tv_arena *a = c->r->a;
    tv_note *note = tv_at(c->r, tv_note_map(a, tv_note_list(a, &c->s->facts, "events"), NULL), i);
    (void)tv_note_str(a, note, "date", f[1]);
    (void)tv_note_str(a, note, "time", f[2]);
    (void)tv_note_str(a, note, "sensor", f[3]);
    (void)tv_note_str(a, note, "event", n > 5 ? f[4] : (tv_str){0});
    (void)tv_note_bool(a, note, "asserted", tv_str_is(last, "Asserted"));
    return true;
}

static void read(tv_reading *r)
{
    chassis c = {.r = r};
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str s = tv_str_trim(r->sheet->v[i].s);
        tv_str f[MOST_FIELDS] = {0};
        const size_t n = tv_fields(s, '|', f, MOST_FIELDS);
        if (n < 3 || n > MOST_FIELDS)
            continue;
        if (!read_event(&c, f, n, i) && !read_sensor(&c, f, n, i) && !read_sdr(&c, f, n, i))
            continue;
        (void)tv_note_num(r->a, &c.s->facts, "rows", c.n_rows);
        (void)tv_note_num(r->a, &c.s->facts, "discrete_rows", c.n_discrete);
    }
}

static const char *const needles[] = {"degrees C", "| discrete", "| Asserted", "| Deasserted",
                                      "| RPM",     "RPM  ",      "| Watts",    "Watts  ",
                                      "| Volts",   "Volts  ",    NULL};

extern const tv_log_format tv_log_format_ipmi;
const tv_log_format tv_log_format_ipmi = {"ipmitool", needles, read};
