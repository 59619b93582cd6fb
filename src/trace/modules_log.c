/* Kernel modules that are loaded: lsmod, /proc/modules, and a grep over them that found nothing. */
#include "glean.h"
#include "trace.h"

#include <string.h>

static bool is_name(tv_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!((s.p[i] | 32) >= 'a' && (s.p[i] | 32) <= 'z') && !(s.p[i] >= '0' && s.p[i] <= '9') &&
            s.p[i] != '_' && s.p[i] != '-')
            return false;
    return s.n > 1 && s.n < 64;
}

/* "nvidia_uvm  1523712  2 [nvidia_peermem,...]" or /proc's "nvidia_uvm 1523712 0 - Live 0x0" */
static bool read_row(tv_str line, tv_str *name, double *size)
{
    tv_str w[8];
    const size_t n = tv_words(line, w, 8);
    if (n < 3 || n > 7 || !is_name(w[0]))
        return false;
    const tv_u64_read bytes = tv_str_u64(w[1]), used = tv_str_u64(w[2]);
    if (!bytes.ok || !used.ok || bytes.v < 512 || used.v > 100000)
        return false;
    if (n > 4 && !tv_str_is(w[4], "Live") && !tv_str_is(w[4], "Loading") &&
        !tv_str_is(w[4], "Unloading"))
        return false;
    *name = w[0];
    *size = (double)bytes.v;
    return true;
}

static bool is_header(tv_str s)
{
    return tv_str_starts(s, TV_S("Module")) && tv_holds(s, "Size") && tv_holds(s, "Used by");
}

/* What a command asked for: "lsmod | grep peermem" asks for that alone. */
static tv_str asked_of(tv_str s)
{
    tv_str rest;
    if (!tv_past(s, "lsmod", &rest) || !tv_past(rest, "grep", &rest))
        return (tv_str){0};
    while (tv_str_starts(tv_str_trim(rest), TV_S("-"))) {
        rest = tv_str_trim(rest);
        (void)tv_take_word(&rest);
    }
    rest = tv_str_trim(rest);
    if (rest.n && (*rest.p == '\'' || *rest.p == '"'))
        rest = tv_str_drop(rest, 1);
    return tv_take_word(&rest);
}

static const char *const told[] = {"nvidia",     "nvidia_peermem", "nv_peer_mem",    "nouveau",
                                   "nvidia_uvm", "nvidia_drm",     "nvidia_modeset", "ib_core",
                                   "mlx5_core",  "mlx5_ib",        "gdrdrv",         "amdgpu",
                                   "nvidia_fs"};

enum { N_TOLD = sizeof told / sizeof *told };

/* A list tells that a module is not there only where it would stand in it. */
static bool would_show(const char *module, bool whole, tv_str asked)
{
    return whole || (asked.n && tv_str_has(tv_str_of(module), asked));
}

static void put(tv_reading *r, size_t i, size_t end, bool whole, tv_str asked)
{
    tv_note *facts = &tv_see(r, "modules", i)->facts;
    tv_note *loaded = tv_note_map(r->a, facts, "modules");
    for (size_t k = i; k < end; k++) {
        tv_str name;
        double size;
        if (read_row(tv_bare(r->sheet->v[k].s), &name, &size) && loaded->n < 1024)
            (void)tv_at(r, tv_note_num(r->a, loaded, tv_cstr(r->a, name), size), k);
    }
    for (size_t m = 0; m < N_TOLD; m++) {
        const tv_note *at = tv_noted(loaded, told[m]);
        if (at)
            (void)tv_note_place(r->a, tv_note_bool(r->a, facts, told[m], true), at->line, at->text);
        else if (would_show(told[m], whole, asked))
            (void)tv_note_bool(r->a, facts, told[m], false);
    }
}

/* Rows from line i on; yields where they end. */
static size_t rows_end(const tv_sheet *sheet, size_t i)
{
    tv_str name;
    double size;
    while (i < sheet->n && read_row(tv_bare(sheet->v[i].s), &name, &size))
        i++;
    return i;
}

static void read(tv_reading *r)
{
    size_t seen = 0;
    for (size_t i = 0; i < r->sheet->n && seen < 64;) {
        const tv_str s = tv_bare(r->sheet->v[i].s);
        const tv_str asked = asked_of(s);
        const bool header = is_header(s);
        if (!asked.n && !header) {
            const size_t end = rows_end(r->sheet, i);
            tv_str name;
            double size;
            /* rows alone: only where they are the card's own */
            if (end > i && read_row(s, &name, &size) && tv_str_starts(name, TV_S("nv"))) {
                put(r, i, end, end - i > 20, (tv_str){0});
                seen++;
            }
            i = end > i ? end : i + 1;
            continue;
        }
        const size_t end = rows_end(r->sheet, i + 1);
        put(r, i, end, header && end - i > 10, asked);
        seen++;
        i = end;
    }
}

static const char *const needles[] = {
    "Used by", "nvidia_uvm", "nvidia_peermem", "nv_peer_mem", "nvidia_drm", "lsmod", NULL};

extern const tv_log_format tv_log_format_modules_log;
const tv_log_format tv_log_format_modules_log = {"modules", needles, read};
