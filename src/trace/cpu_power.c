/* How the CPU is clocked, as cpupower and the governors' files say it, and whether a GPU's clocks
 * were locked. */
#include <string.h>

#include "glean.h"
#include "trace.h"

static bool is_governor(tv_str s)
{
    static const char *const names[] = {"performance", "powersave",    "ondemand",
                                        "schedutil",   "conservative", "userspace"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (tv_str_is(s, names[i]))
            return true;
    return false;
}

static tv_note *facts_of(tv_reading *r, tv_sighting **s, size_t i)
{
    if (!*s)
        *s = tv_see(r, "cpu-power", i);
    return &(*s)->facts;
}

/* The first one is shown; how many CPUs have each is counted. */
static void see_governor(tv_reading *r, tv_sighting **s, size_t i, tv_str name)
{
    tv_note *facts = facts_of(r, s, i);
    tv_note *counts = tv_note_map(r->a, facts, "governors");
    const char *key = tv_cstr(r->a, name);
    const double before = tv_noted_num(counts, key);
    (void)tv_note_num(r->a, counts, key, before > 0 ? before + 1 : 1);
    if (!tv_noted(facts, "governor"))
        (void)tv_at(r, tv_note_str(r->a, facts, "governor", name), i);
}

static bool read_governor(tv_reading *r, tv_sighting **s, size_t i, bool *listing)
{
    const tv_str line = tv_str_trim(r->sheet->v[i].s);
    tv_str rest, name = tv_enclosed(line, "The governor \"", "\"");
    if (!name.n && tv_past(line, "scaling_governor:", &rest))
        name = tv_str_trim(rest);
    if (tv_holds(line, "scaling_governor"))
        *listing = true;
    else if (!is_governor(line) && line.n)
        *listing = false;
    if (!name.n && *listing && is_governor(line))
        name = line;
    if (!is_governor(name))
        return false;
    see_governor(r, s, i, name);
    return true;
}

static void read_driver(tv_reading *r, tv_sighting **s, size_t i)
{
    const tv_str line = tv_str_trim(r->sheet->v[i].s);
    if (tv_str_starts(line, TV_S("driver: ")) && *s)
        (void)tv_note_str(r->a, facts_of(r, s, i), "driver", tv_str_drop(line, 8));
    if (tv_str_starts(line, TV_S("CPU idle driver: ")))
        (void)tv_note_str(r->a, facts_of(r, s, i), "idle_driver", tv_str_drop(line, 17));
}

/* GPU clocks set to "(gpuClkMin 1410, gpuClkMax 1410)" for GPU 00000000:01:00.0 */
static void read_lock(tv_reading *r, size_t i)
{
    const tv_str line = r->sheet->v[i].s;
    if (!tv_holds(line, "GPU clocks set to"))
        return;
    tv_note *facts = &tv_see(r, "clock-lock", i)->facts;
    const tv_double_read least = tv_number_past(line, "gpuClkMin "),
                         most = tv_number_past(line, "gpuClkMax ");
    if (least.ok)
        (void)tv_note_num(r->a, facts, "min_mhz", least.v);
    if (most.ok)
        (void)tv_note_num(r->a, facts, "max_mhz", most.v);
}

static void read(tv_reading *r)
{
    tv_sighting *s = NULL;
    bool listing = false;
    size_t n = 0;
    for (size_t i = 0; i < r->sheet->n && n < 4096; i++) {
        n += read_governor(r, &s, i, &listing);
        read_driver(r, &s, i);
        read_lock(r, i);
    }
}

static const char *const needles[] = {"The governor \"", "scaling_governor", "CPU idle driver",
                                      "GPU clocks set to", NULL};

extern const tv_log_format tv_log_format_cpu_power;
const tv_log_format tv_log_format_cpu_power = {"cpu-power", needles, read};
