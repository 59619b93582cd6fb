/* Values of nvidia-smi: words, units and the many ways of saying that there is none. */
#include "smi_parts.h"

#include <math.h>
#include <string.h>

static tv_str unbracketed(tv_str text)
{
    text = tv_str_trim(text);
    if (text.n >= 2 && text.p[0] == '[' && text.p[text.n - 1] == ']')
        text = tv_str_trim((tv_str){text.p + 1, text.n - 2});
    return text;
}

bool tv_smi_is_none(tv_str text)
{
    static const char *const none[] = {"n/a",
                                       "not supported",
                                       "unknown error",
                                       "err!",
                                       "error",
                                       "insufficient permissions",
                                       "-",
                                       "--",
                                       "unknown",
                                       "none",
                                       "nan",
                                       "gpu is lost",
                                       "gpu requires reset",
                                       "not found",
                                       "requested functionality has been deprecated",
                                       "function not found"};
    text = unbracketed(text);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (tv_str_eq_nocase(text, tv_str_of(none[i])))
            return true;
    return !text.n;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'f');
}

static size_t hex_at(tv_str s, size_t i)
{
    size_t n = 0;
    while (i + n < s.n && is_hex(s.p[i + n]))
        n++;
    return n;
}

bool tv_smi_is_bus(tv_str word)
{
    size_t i = hex_at(word, 0);
    if ((i != 4 && i != 8 && i != 2) || i >= word.n || word.p[i] != ':')
        return false;
    size_t n = hex_at(word, i + 1);
    if (n != 2)
        return false;
    i += 1 + n;
    if (i < word.n && word.p[i] == ':') {
        if (hex_at(word, i + 1) != 2)
            return false;
        i += 3;
    }
    return i + 2 == word.n && word.p[i] == '.' && is_hex(word.p[i + 1]);
}

bool tv_smi_is_version(tv_str word)
{
    size_t dots = 0;
    for (size_t i = 0; i < word.n; i++) {
        dots += word.p[i] == '.';
        if (word.p[i] != '.' && (word.p[i] < '0' || word.p[i] > '9'))
            return false;
    }
    return dots >= 1 && dots <= 3 && word.n >= 3 && word.p[0] != '.' && word.p[word.n - 1] != '.';
}

/* ---- values ---- */

typedef struct reason_row {
    uint64_t bit;
    const char *name;
} reason_row;

/* nvml.h, nvmlClocksEventReasons */
static const reason_row reasons[] = {
    {0x1, "idle"},        {0x2, "app_clocks"},      {0x4, "sw_power_cap"},
    {0x8, "hw_slowdown"}, {0x10, "sync_boost"},     {0x20, "sw_thermal"},
    {0x40, "hw_thermal"}, {0x80, "hw_power_brake"}, {0x100, "display"},
};

static void put_mask(const tv_reading *r, tv_note *in, tv_str text, size_t i)
{
    tv_str rest = text;
    const tv_u64_read mask = tv_take_u64(&rest);
    for (size_t k = 0; mask.ok && k < sizeof reasons / sizeof *reasons; k++)
        (void)tv_at(r, tv_note_bool(r->a, in, reasons[k].name, (mask.v & reasons[k].bit) != 0), i);
}

static double scaled(tv_smi_kind kind, tv_str text)
{
    tv_str rest = text;
    if (kind == TV_SMI_BYTES) {
        tv_str bytes = text;
        const tv_double_read number = tv_take_number(&rest);
        const tv_double_read v = tv_take_bytes(&bytes);
        if (!v.ok)
            return (double)NAN;
        return tv_str_trim(rest).n ? v.v : number.v * 0x1p20;
    }
    const tv_double_read v = tv_take_number(&rest);
    if (!v.ok)
        return (double)NAN;
    if (kind == TV_SMI_SHARE)
        return v.v / 100;
    if (kind == TV_SMI_RATE)
        return v.v * 1e3;
    return kind == TV_SMI_MICROS ? v.v / 1e6 : v.v;
}

static tv_note *put_switch(tv_arena *a, tv_note *in, const char *key, tv_str text)
{
    if (tv_str_eq_nocase(text, TV_S("enabled")) || tv_str_eq_nocase(text, TV_S("on")) ||
        tv_str_eq_nocase(text, TV_S("yes")))
        return tv_note_str(a, in, key, TV_S("On"));
    if (tv_str_eq_nocase(text, TV_S("disabled")) || tv_str_eq_nocase(text, TV_S("off")) ||
        tv_str_eq_nocase(text, TV_S("no")))
        return tv_note_str(a, in, key, TV_S("Off"));
    return tv_note_null(a, in, key);
}

static tv_note *put_yes(tv_arena *a, tv_note *in, const char *key, tv_str text)
{
    static const char *const yes[] = {"yes", "active", "enabled", "1", "true"};
    static const char *const no[] = {"no", "not active", "disabled", "0", "false"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        if (tv_str_eq_nocase(text, tv_str_of(yes[i])))
            return tv_note_bool(a, in, key, true);
        if (tv_str_eq_nocase(text, tv_str_of(no[i])))
            return tv_note_bool(a, in, key, false);
    }
    return tv_note_null(a, in, key);
}

void tv_smi_put(const tv_reading *r, tv_note *card, const char *fact, tv_smi_kind kind, tv_str text,
                size_t i)
{
    const char *dot = strchr(fact, '.');
    tv_note *in = card;
    if (dot || kind == TV_SMI_MASK)
        in = tv_note_map(r->a, card, dot ? tv_cstr(r->a, tv_str_span(fact, dot)) : fact);
    const char *key = dot ? dot + 1 : fact;
    text = unbracketed(text);
    tv_note *note;
    if (kind == TV_SMI_MASK) {
        put_mask(r, in, text, i);
        return;
    }
    if (kind == TV_SMI_TEXT)
        note = tv_note_str(r->a, in, key, text);
    else if (tv_smi_is_none(text))
        note = tv_note_null(r->a, in, key);
    else if (kind == TV_SMI_WORD)
        note = tv_note_str(r->a, in, key, text);
    else if (kind == TV_SMI_SWITCH)
        note = put_switch(r->a, in, key, text);
    else if (kind == TV_SMI_YES)
        note = put_yes(r->a, in, key, text);
    else
        note = tv_note_num(r->a, in, key, scaled(kind, text));
    (void)tv_at(r, note, i);
}

/* ---- what follows ---- */

static void copy_place(tv_arena *a, tv_note *to, const tv_note *from)
{
    (void)tv_note_place(a, to, from->line, from->text);
}

/* The first known number of several facts, under a name of its own where that is not known. */
static void take_first(tv_arena *a, tv_note *card, const char *key, const char *const *from)
{
    if (!isnan(tv_noted_num(card, key)))
        return;
    for (size_t i = 0; from[i]; i++) {
        const tv_note *source = tv_noted(card, from[i]);
        if (source && source->type == TV_NOTE_NUMBER) {
            copy_place(a, tv_note_num(a, card, key, source->number), source);
            return;
        }
    }
}

static void add_up(tv_arena *a, tv_note *card, const char *key, const char *x, const char *y)
{
    const tv_note *parity = tv_noted(card, x);
    const tv_note *secded = tv_noted(card, y);
    if (!parity || !secded || tv_noted(card, key))
        return;
    const double sum = tv_noted_num(card, x) + tv_noted_num(card, y);
    copy_place(a, tv_note_num(a, card, key, sum), parity->number > 0 ? parity : secded);
}

void tv_smi_finish(tv_arena *a, tv_note *card)
{
    static const char *const caps[] = {"enforced_w", "limit_w", "requested_w", NULL};
    static const char *const draws[] = {"average_power_w", "instant_power_w", NULL};
    if (tv_noted(card, "limit_w") || tv_noted(card, "enforced_w"))
        take_first(a, card, "cap_w", caps);
    take_first(a, card, "power_w", draws);
    add_up(a, card, "sram_uncorr_volatile", "sram_uncorr_parity_volatile",
           "sram_uncorr_secded_volatile");
    add_up(a, card, "sram_uncorr_aggregate", "sram_uncorr_parity_aggregate",
           "sram_uncorr_secded_aggregate");
}

static tv_note *copy_note(tv_arena *a, const tv_note *from, tv_note *to)
{
    switch (from->type) {
    case TV_NOTE_NULL:
        return tv_note_null(a, to, from->key);
    case TV_NOTE_NUMBER:
        return tv_note_num(a, to, from->key, from->number);
    case TV_NOTE_BOOL:
        return tv_note_bool(a, to, from->key, from->yes);
    case TV_NOTE_STR:
        return tv_note_str(a, to, from->key, from->s);
    case TV_NOTE_MAP: {
        tv_note *map = tv_note_map(a, to, from->key);
        for (const tv_note *n = from->first; n; n = n->next)
            copy_place(a, copy_note(a, n, map), n);
        return map;
    }
    case TV_NOTE_LIST:
        break;
    }
    return tv_note_null(a, to, from->key);
}

void tv_smi_copy(tv_arena *a, const tv_note *from, tv_note *to)
{
    for (const tv_note *n = from->first; n; n = n->next)
        if (n->type != TV_NOTE_LIST && !tv_noted(to, n->key))
            copy_place(a, copy_note(a, n, to), n);
}
