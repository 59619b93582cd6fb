/* The grammar of the driver's own lines, old and new. Messages are told by their words, not by
 * their code: wordings moved between codes and drivers. */
#include "xid_message.h"

#include <math.h>
#include <string.h>

#include "kernel_line.h"

static tv_xid_part *put(tv_xid_message *m, const char *key)
{
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->parts[i].key, key) == 0)
            return &m->parts[i];
    if (m->n >= TV_XID_PARTS)
        return &m->parts[TV_XID_PARTS - 1];
    m->parts[m->n] = (tv_xid_part){.key = key};
    return &m->parts[m->n++];
}

static void put_num(tv_xid_message *m, const char *key, double v)
{
    tv_xid_part *part = put(m, key);
    part->is_number = true;
    part->v = v;
}

static void put_str(tv_xid_message *m, const char *key, tv_str s)
{
    put(m, key)->s = s;
}

static void put_number_past(tv_xid_message *m, const char *key, tv_str s, const char *needle)
{
    const tv_double_read v = tv_number_past(s, needle);
    if (v.ok)
        put_num(m, key, v.v);
}

/* ---- the head: "(PCI:0000:cb:00 GPU-I:05 GPU-CI:00): 13, pid=1, name=x, " ---- */

static bool read_where(tv_str *s, tv_xid_message *m)
{
    tv_str rest;
    if (!tv_past(*s, "(", &rest) || s->n - rest.n > 5)
        return false;
    const tv_cut cut = tv_str_cut(rest, ')');
    if (!cut.found || cut.head.n > 64)
        return false;
    tv_str where = cut.head;
    if (tv_str_starts(where, TV_S("PCI:")))
        where = tv_str_drop(where, 4);
    m->pci = tv_take_word(&where);
    put_str(m, "pci", m->pci);
    put_number_past(m, "gpu_instance", where, "GPU-I:");
    put_number_past(m, "compute_instance", where, "GPU-CI:");
    *s = cut.tail;
    return m->pci.n > 0;
}

static bool read_code(tv_str *s, tv_xid_message *m)
{
    if (!tv_str_starts(*s, TV_S(":")))
        return false;
    *s = tv_str_drop(*s, 1);
    const tv_u64_read code = tv_take_u64(s);
    if (!code.ok || code.v > 9999)
        return false;
    m->code = (unsigned)code.v;
    if (tv_str_starts(*s, TV_S(",")))
        *s = tv_str_trim(tv_str_drop(*s, 1));
    return true;
}

/* A name may hold commas: it ends where what follows begins like a message. */
static tv_str take_name(tv_str *s)
{
    static const char *const lower[] = {"channel", "errorString", "intr", "pre-", "engmask"};
    for (size_t i = 0; i + 1 < s->n && i <= 64; i++) {
        if (s->p[i] != ',' || s->p[i + 1] != ' ')
            continue;
        const tv_str rest = tv_str_trim(tv_str_drop(*s, i + 1));
        bool begins = rest.n && ((rest.p[0] >= 'A' && rest.p[0] <= 'Z') ||
                                 (rest.p[0] >= '0' && rest.p[0] <= '9'));
        for (size_t k = 0; k < sizeof lower / sizeof *lower; k++)
            begins = begins || tv_str_starts(rest, tv_str_of(lower[k]));
        if (!begins)
            continue;
        const tv_str name = tv_str_take(*s, i);
        *s = rest;
        return name;
    }
    const tv_cut cut = tv_str_cut(*s, ',');
    *s = tv_str_trim(cut.tail);
    return tv_str_trim(cut.head);
}

static tv_str unquoted(tv_str s)
{
    while (s.n && (s.p[0] == '\'' || s.p[0] == '"' || s.p[0] == '\\'))
        s = tv_str_drop(s, 1);
    while (s.n && (s.p[s.n - 1] == '\'' || s.p[s.n - 1] == '"' || s.p[s.n - 1] == '\\'))
        s.n--;
    return s;
}

static void read_name(tv_str *s, tv_xid_message *m)
{
    m->pid_form = TV_PID_NAMED;
    *s = tv_str_drop(*s, 5);
    const tv_str name = unquoted(take_name(s));
    if (!tv_str_is(name, "<unknown>"))
        put_str(m, "name", name);
}

static void read_process(tv_str *s, tv_xid_message *m)
{
    put_num(m, "pid", (double)NAN);
    put_str(m, "name", (tv_str){0});
    if (tv_str_starts(*s, TV_S("name="))) {
        read_name(s, m);
        return;
    }
    if (!tv_str_starts(*s, TV_S("pid=")))
        return;
    const tv_cut cut = tv_str_cut(tv_str_drop(*s, 4), ',');
    const tv_u64_read pid = tv_str_u64(unquoted(tv_str_trim(cut.head)));
    m->pid_form = TV_PID_BARE;
    if (pid.ok)
        put_num(m, "pid", (double)pid.v);
    *s = tv_str_trim(cut.tail);
    if (tv_str_starts(*s, TV_S("name=")))
        read_name(s, m);
}

/* ---- the message ---- */

/* Up to the first of these characters. */
static tv_str up_to(tv_str s, const char *ends)
{
    size_t n = 0;
    while (n < s.n && !(s.p[n] && strchr(ends, s.p[n])))
        n++;
    return tv_str_trim(tv_str_take(s, n));
}

static void read_channel(tv_str text, tv_xid_message *m)
{
    static const char *const words[] = {"Channel ID ", "channel ", "Channel ", "ChID ", "Ch "};
    tv_str rest;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!tv_past(text, words[i], &rest))
            continue;
        tv_str word = tv_take_word(&rest);
        if (tv_str_starts(word, TV_S("0x")))
            word = tv_str_drop(word, 2);
        if (word.n >= 2 && ((word.p[0] >= '0' && word.p[0] <= '9') || (word.n == 8))) {
            put_str(m, "channel", word);
            return;
        }
    }
}

/* "Graphics SM Warp Exception on (GPC 7, TPC 7, SM 0): reason" */
static bool read_exception(tv_str text, tv_xid_message *m)
{
    tv_str rest;
    if (!tv_past(text, "Exception on ", &rest))
        return false;
    const bool closed = tv_str_starts(rest, TV_S("("));
    const tv_cut cut = tv_str_cut(rest, closed ? ')' : ':');
    m->place = cut.head;
    put_number_past(m, "gpc", cut.head, "GPC ");
    put_number_past(m, "tpc", cut.head, "TPC ");
    put_number_past(m, "sm", cut.head, "SM ");
    tv_str reason = cut.tail;
    if (closed && tv_str_starts(reason, TV_S(":")))
        reason = tv_str_drop(reason, 1);
    put_str(m, "what", up_to(reason, "\"\\"));
    return true;
}

/* "Graphics Exception: ESR 0x57c730=0xc04000b ...": the address tells the multiprocessor. */
static bool read_esr(tv_str text, tv_xid_message *m)
{
    tv_str rest;
    if (!tv_past(text, "Graphics Exception: ", &rest))
        return false;
    tv_str esr;
    if (tv_str_starts(rest, TV_S("ESR")) && tv_past(rest, "ESR ", &esr)) {
        put_str(m, "what", TV_S("ESR"));
        m->place = up_to(esr, "= ");
    } else if (tv_str_starts(rest, TV_S("Ch"))) {
        put_str(m, "what", TV_S("Graphics Exception"));
    } else {
        put_str(m, "what", up_to(rest, ",."));
    }
    return true;
}

/* "MMU Fault: ENGINE GRAPHICS GPC0 GPCCLIENT_T1_0 faulted @ 0x7f_1000. Fault is of type FAULT_PDE
 * ACCESS_TYPE_VIRT_READ" */
static bool read_mmu(tv_str text, tv_xid_message *m)
{
    tv_str rest;
    if (!tv_past(text, "MMU Fault", &rest))
        return false;
    put_str(m, "what", TV_S("MMU Fault"));
    if (tv_past(text, "ENGINE ", &rest)) {
        put_str(m, "engine", tv_take_word(&rest));
        tv_str client = tv_enclosed(rest, "", " faulted");
        tv_str words[4];
        const size_t n = tv_words(client, words, 4);
        if (n && n <= 4)
            put_str(m, "client", words[n - 1]);
        put_number_past(m, "gpc", client, "GPC");
    }
    const tv_str address = tv_enclosed(text, "faulted @ ", ". ");
    if (address.n)
        put_str(m, "fault_address", address);
    if (tv_past(text, "of type ", &rest)) {
        put_str(m, "fault_type", tv_take_word(&rest));
        put_str(m, "access_type", tv_take_word(&rest));
    }
    return true;
}

/* "Timeout after 6s of waiting for RPC response from GPU4 GSP! Expected function 103
 * (GSP_RM_ALLOC) (0x2081 0x4)." and the older one without seconds and index. */
static bool read_gsp(tv_str text, tv_xid_message *m)
{
    if (!tv_holds(text, "GSP") || !tv_holds(text, "Expected function "))
        return false;
    put_str(m, "what", TV_S("GSP RPC timeout"));
    put_number_past(m, "gpu_index", text, "from GPU");
    put_number_past(m, "timeout_s", text, "Timeout after ");
    tv_str rest;
    (void)tv_past(text, "Expected function ", &rest);
    const tv_double_read function = tv_take_number(&rest);
    if (function.ok)
        put_num(m, "function", function.v);
    const tv_str name = tv_enclosed(rest, "(", ")");
    if (name.n && !tv_str_starts(name, TV_S("0x")))
        put_str(m, "function_name", name);
    put_number_past(m, "sequence", rest, "sequence ");
    return true;
}

/* "Contained: SM (0x1,0x2). RST: No, D-RST: No" */
static bool read_containment(tv_str text, tv_xid_message *m)
{
    const bool contained = tv_str_starts(text, TV_S("Contained:"));
    if (!contained && !tv_str_starts(text, TV_S("Uncontained:")))
        return false;
    put_str(m, "what", contained ? TV_S("Contained") : TV_S("Uncontained"));
    put_str(m, "unit", up_to(tv_str_drop(text, contained ? 10 : 12), "(."));
    const tv_str reset = up_to(tv_enclosed(text, " RST:", NULL), ",.");
    const tv_str drain = up_to(tv_enclosed(text, "D-RST:", NULL), ",.");
    if (reset.n)
        put_str(m, "reset_needed", reset);
    if (drain.n)
        put_str(m, "drain_needed", drain);
    return true;
}

/* "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)" */
static bool read_recovery(tv_str text, tv_xid_message *m)
{
    tv_str rest;
    if (!tv_past(text, "recovery action changed from ", &rest))
        return false;
    put_str(m, "what", TV_S("GPU recovery action changed"));
    const tv_str from = tv_enclosed(rest, "(", ")");
    put_str(m, "from_action", from);
    if (tv_past(rest, " to ", &rest))
        put_str(m, "to_action", tv_enclosed(rest, "(", ")"));
    return true;
}

static bool take_hex_word(tv_str *s, tv_str *word)
{
    *word = tv_take_word(s);
    return word->n > 2 && word->p[0] == '0' && word->p[1] == 'x';
}

/* "NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x025001c6 0x00000000 ...)": NVLink 5. The sub-code is
 * bits 20-25 of the first word. */
static bool read_link_unit(tv_str text, tv_xid_message *m)
{
    tv_str rest = text;
    const tv_str unit = tv_take_word(&rest);
    const tv_str severity = tv_take_word(&rest);
    if (!tv_str_is(severity, "Fatal") && !tv_str_is(severity, "Nonfatal") &&
        !tv_str_is(severity, "Non-fatal"))
        return false;
    put_str(m, "what", unit);
    put_str(m, "unit", unit);
    put_str(m, "severity", severity);
    put_number_past(m, "link", rest, "Link ");
    tv_str first, second, words;
    if (!tv_past(rest, "(", &words) || !take_hex_word(&words, &first))
        return true;
    put_str(m, "intrinfo", first);
    tv_str number = first;
    put_num(m, "subcode", (double)(tv_take_u64(&number).v >> 20 & 0x3f));
    if (take_hex_word(&words, &second))
        put_str(m, "errorstatus", second);
    return true;
}

/* "Ch 00000008, errorString CTX SWITCH TIMEOUT, Info 0x58005" */
static bool read_error_string(tv_str text, tv_xid_message *m)
{
    tv_str rest;
    if (!tv_past(text, "errorString ", &rest))
        return false;
    put_str(m, "what", up_to(rest, ","));
    return true;
}

/* "Row Remapper: New row marked for remapping, reset gpu to activate.", "Dynamic Page Retirement:
 * New page retired, reboot to activate (0x...)." */
static bool read_repair(tv_str text, tv_xid_message *m)
{
    if (tv_str_starts(text, TV_S("Row Remapper")) && tv_holds(text, "marked for remapping"))
        put_str(m, "what", TV_S("Row Remapper: new row marked"));
    else if (tv_holds(text, "New page retired"))
        put_str(m, "what", TV_S("Dynamic Page Retirement: new page retired"));
    else
        return false;
    return true;
}

static void read_link_number(tv_str text, tv_xid_message *m)
{
    static const char *const words[] = {"on link ", "Link ", "link "};
    tv_str rest;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (tv_past(text, words[i], &rest)) {
            const tv_double_read v = tv_take_number(&rest);
            if (v.ok) {
                put_num(m, "link", v.v);
                return;
            }
        }
}

static void read_plain(tv_str text, tv_xid_message *m)
{
    if (tv_holds(text, "double bit") || tv_holds(text, "DBE")) {
        put_str(m, "what", TV_S("double bit error"));
        return;
    }
    tv_str rest = text;
    if (tv_str_starts(text, TV_S("Ch ")) || tv_str_starts(text, TV_S("Channel ")) ||
        tv_str_starts(text, TV_S("channel "))) {
        const tv_cut cut = tv_str_cut(text, ',');
        rest = tv_str_trim(cut.tail);
    }
    const tv_str what = up_to(rest, ",.(");
    put_str(m, "what", what);
}

static void read_cause(tv_str *text, tv_xid_message *m)
{
    tv_str rest;
    if (!tv_past(*text, "caused by previous Xid ", &rest))
        return;
    tv_str number = rest;
    const tv_double_read by = tv_take_number(&number);
    if (by.ok)
        put_num(m, "caused_by_xid", by.v);
    *text = tv_str_trim(tv_str_take(*text, text->n - rest.n - strlen("caused by previous Xid ")));
}

static void read_message(tv_str text, tv_xid_message *m)
{
    read_cause(&text, m);
    read_channel(text, m);
    if (read_exception(text, m) || read_esr(text, m) || read_mmu(text, m) || read_gsp(text, m) ||
        read_containment(text, m) || read_recovery(text, m) || read_link_unit(text, m) ||
        read_error_string(text, m) || read_repair(text, m))
        return;
    if (tv_holds(text, "NVLink") || m->code == 74)
        read_link_number(text, m);
    read_plain(text, m);
}

bool tv_xid_message_read(tv_str line, tv_xid_message *m)
{
    *m = (tv_xid_message){0};
    tv_str rest;
    if (!tv_past(line, "Xid", &rest))
        return false;
    tv_str s = rest;
    put_num(m, "xid", 0);
    if (!read_where(&s, m) || !read_code(&s, m))
        return false;
    put_num(m, "xid", m->code);
    read_process(&s, m);
    read_message(s, m);
    return true;
}

bool tv_xid_message_plugin(tv_str text, tv_xid_message *m)
{
    *m = (tv_xid_message){0};
    const tv_u64_read code = tv_take_u64(&text);
    tv_str rest;
    if (!code.ok || code.v > 9999 || !tv_past(text, "Device=", &rest))
        return false;
    m->code = (unsigned)code.v;
    m->pci = tv_str_cut(tv_take_word(&rest), ',').head;
    put_num(m, "xid", m->code);
    put_str(m, "pci", m->pci);
    put_num(m, "pid", (double)NAN);
    put_str(m, "name", (tv_str){0});
    return m->pci.n > 0;
}

static bool same_part(const tv_xid_part *x, const tv_xid_part *y)
{
    if (strcmp(x->key, y->key) != 0 || x->is_number != y->is_number)
        return false;
    if (!x->is_number)
        return tv_str_eq(x->s, y->s);
    return (isnan(x->v) && isnan(y->v)) || !(x->v < y->v || x->v > y->v);
}

bool tv_xid_message_same(const tv_xid_message *x, const tv_xid_message *y)
{
    if (x->code != y->code || x->n != y->n)
        return false;
    for (size_t i = 0; i < x->n; i++)
        if (!same_part(&x->parts[i], &y->parts[i]))
            return false;
    return true;
}

void tv_xid_message_note(tv_arena *a, const tv_xid_message *m, tv_note *event)
{
    for (size_t i = 0; i < m->n; i++) {
        const tv_xid_part *part = &m->parts[i];
        if (part->is_number)
            (void)tv_note_num(a, event, part->key, part->v);
        else if (part->s.n)
            (void)tv_note_str(a, event, part->key, part->s);
        else
            (void)tv_note_null(a, event, part->key);
    }
}
