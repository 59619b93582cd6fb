/* Forms of addresses, identifiers, paths and secrets. Bytes above 127 are no letters here, so that
 * an address between Chinese characters is found; in a path they are part of a name. */
#include "redact_shapes.h"

#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_word(char c)
{
    return is_digit(c) || is_letter(c);
}

static char at(tv_str s, size_t i)
{
    return i < s.n ? s.p[i] : '\0';
}

static size_t run(tv_str s, size_t i, bool (*is)(char))
{
    size_t n = 0;
    while (i + n < s.n && is(s.p[i + n]))
        n++;
    return n;
}

bool tv_redact_begins(tv_str s, size_t i)
{
    return i == 0 || (!is_word(s.p[i - 1]) && s.p[i - 1] != '_');
}

static bool ends(tv_str s, size_t i)
{
    return !is_word(at(s, i)) && at(s, i) != '_';
}

bool tv_redact_is_common(tv_str name)
{
    static const char *const names[] = {
        "root",   "admin",  "user",   "ubuntu",  "debian", "centos",    "fedora", "nvidia", "cuda",
        "docker", "daemon", "nobody", "test",    "data",   "localhost", "node",   "host",   "gpu",
        "linux",  "kernel", "system", "systemd", "python", "jovyan",    "train",  "worker", "home",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (tv_str_is(name, names[i]))
            return true;
    return name.n < 3;
}

/* ---- identifiers ---- */

/* Groups of hexadecimal digits with '-' between them: 8-4-4-4-12. */
static size_t uuid(tv_str s, size_t i)
{
    static const size_t groups[] = {8, 4, 4, 4, 12};
    size_t n = 0;
    for (size_t g = 0; g < 5; g++) {
        if (g && at(s, i + n++) != '-')
            return 0;
        if (run(s, i + n, is_hex) != groups[g])
            return 0;
        n += groups[g];
    }
    return ends(s, i + n) ? n : 0;
}

static tv_redact_part uuid_at(tv_str s, size_t i)
{
    static const char *const prefixes[] = {"GPU-", "MIG-GPU-", "MIG-", ""};
    static const char *const words[] = {"GPU-uuid", "MIG-GPU-uuid", "MIG-uuid", "uuid"};
    for (size_t k = 0; k < 4; k++) {
        const tv_str prefix = tv_str_of(prefixes[k]);
        if (!tv_str_starts(tv_str_drop(s, i), prefix))
            continue;
        const size_t n = uuid(s, i + prefix.n);
        if (n)
            return (tv_redact_part){0, prefix.n + n, words[k]};
    }
    return (tv_redact_part){0};
}

/* Pairs of hexadecimal digits: 6 are a MAC address, 8 a GUID, 20 an InfiniBand address. */
static tv_redact_part mac_at(tv_str s, size_t i)
{
    const char part = at(s, i + 2);
    if (part != ':' && part != '-')
        return (tv_redact_part){0};
    size_t pairs = 0, n = 0;
    while (is_hex(at(s, i + n)) && is_hex(at(s, i + n + 1)) && pairs < 32) {
        pairs++;
        n += 2;
        if (at(s, i + n) != part || !is_hex(at(s, i + n + 1)))
            break;
        n++;
    }
    const bool whole = ends(s, i + n) && (pairs == 6 || pairs == 8 || pairs == 20);
    return (tv_redact_part){0, whole ? n : 0, "mac"};
}

/* Interfaces that are named by their address: "enx001122334455". */
static tv_redact_part interface_at(tv_str s, size_t i)
{
    const bool is = tv_str_starts(tv_str_drop(s, i), TV_S("enx")) ||
                    tv_str_starts(tv_str_drop(s, i), TV_S("wlx"));
    const bool whole = is && run(s, i + 3, is_hex) == 12 && ends(s, i + 15);
    return (tv_redact_part){3, whole ? 12 : 0, "mac"};
}

/* ---- addresses ---- */

static size_t octet(tv_str s, size_t i)
{
    const size_t n = run(s, i, is_digit);
    const tv_u64_read v = n && n <= 3 ? tv_str_u64((tv_str){s.p + i, n}) : (tv_u64_read){0};
    return v.ok && v.v <= 255 ? n : 0;
}

static tv_redact_part ipv4_at(tv_str s, size_t i)
{
    size_t n = 0;
    if (i > 1 && s.p[i - 1] == '.' && is_digit(s.p[i - 2])) /* the rest of a version */
        return (tv_redact_part){0};
    for (unsigned k = 0; k < 4; k++) {
        if (k && at(s, i + n++) != '.')
            return (tv_redact_part){0};
        const size_t digits = octet(s, i + n);
        if (!digits)
            return (tv_redact_part){0};
        n += digits;
    }
    const tv_str text = {s.p + i, n};
    const bool is_more = at(s, i + n) == '.' && is_digit(at(s, i + n + 1));
    const bool is_local = tv_str_starts(text, TV_S("127.")) || tv_str_is(text, "0.0.0.0") ||
                          tv_str_starts(text, TV_S("255."));
    return (tv_redact_part){0, !ends(s, i + n) || is_more || is_local ? 0 : n, "ip"};
}

/* Groups of up to four digits; "::" stands for groups of zeros, or there are eight. */
static tv_redact_part ipv6_at(tv_str s, size_t i)
{
    size_t n = 0, groups = 0, gaps = 0;
    while (i + n < s.n && groups <= 8) {
        const size_t digits = run(s, i + n, is_hex);
        if (digits > 4)
            return (tv_redact_part){0};
        groups += digits > 0;
        n += digits;
        if (at(s, i + n) != ':' || (!digits && !(n == 0 && at(s, i + 1) == ':')))
            break;
        n++;
        if (at(s, i + n) == ':') {
            gaps++;
            n++;
        }
    }
    if (n && s.p[i + n - 1] == ':' && gaps == 0)
        n--;
    const bool is_more = at(s, i + n) == '.' || !ends(s, i + n);
    const bool whole = (groups == 8 && !gaps) || (gaps == 1 && groups >= 2 && groups < 8);
    return (tv_redact_part){0, whole && !is_more ? n : 0, "ip"};
}

static bool is_name(char c)
{
    return is_word(c) || c == '.' || c == '-';
}

/* A name with dots whose end is a domain of the Internet or of a company's own network. */
static bool is_domain(tv_str name)
{
    static const char *const ends_with[] = {
        ".com", ".org", ".net", ".io", ".cn", ".edu",   ".local",    ".internal", ".lan",  ".corp",
        ".ai",  ".de",  ".gov", ".uk", ".jp", ".cloud", ".intranet", ".home",     ".fr",   ".ch",
        ".eu",  ".kr",  ".tw",  ".hk", ".sg", ".us",    ".ru",       ".dev",      ".tech",
    };
    static const char *const known[] = {"nvidia.com",      "kernel.org", "ubuntu.com",
                                        "debian.org",      "github.com", "pytorch.org",
                                        "freedesktop.org", "redhat.com", "paddlepaddle.org.cn"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (tv_str_ends(name, tv_str_of(known[i])))
            return false;
    for (size_t i = 0; i < sizeof ends_with / sizeof *ends_with; i++)
        if (name.n > strlen(ends_with[i]) && tv_str_ends(name, tv_str_of(ends_with[i])))
            return true;
    return false;
}

static tv_redact_part domain_at(tv_str s, size_t i)
{
    size_t n = is_word(at(s, i)) ? run(s, i, is_name) : 0;
    while (n && !is_word(s.p[i + n - 1]))
        n--;
    return (tv_redact_part){0, is_domain((tv_str){s.p + i, n}) && ends(s, i + n) ? n : 0, "host"};
}

/* "serial@7e201000": a device's address, no person's. */
static bool is_device_address(tv_str s, size_t i)
{
    const size_t n = run(s, i, is_hex);
    return n >= 4 && ends(s, i + n);
}

/* "someone@": what stands before the sign; and behind it. */
static tv_redact_part mail_at(tv_str s, size_t i)
{
    size_t n = is_word(at(s, i)) ? run(s, i, is_name) : 0;
    if (i && s.p[i - 1] == '@' && !is_device_address(s, i)) {
        while (n && !is_word(s.p[i + n - 1]))
            n--;
        return (tv_redact_part){0, n, "host"};
    }
    const bool is =
        n && at(s, i + n) == '@' && is_word(at(s, i + n + 1)) && !is_device_address(s, i + n + 1);
    return (tv_redact_part){0, is ? n : 0, "user"};
}

/* "May 18 19:02:39 node17 kernel:", "2026-11-30T10:00:01+01:00 node17 kernel:" */
static tv_redact_part syslog_at(tv_str s, size_t i)
{
    if (i && s.p[i - 1] != '\n')
        return (tv_redact_part){0};
    const tv_str line = tv_str_cut(tv_str_drop(s, i), '\n').head;
    if (!line.p)
        return (tv_redact_part){0};
    const char *colon = memmem(line.p, line.n, "kernel:", 7);
    if (!colon)
        colon = memmem(line.p, line.n, "systemd[", 8);
    if (!colon || colon - line.p > 64 || colon == line.p)
        return (tv_redact_part){0};
    size_t end = (size_t)(colon - line.p) - 1, begin = end;
    while (begin && line.p[begin - 1] != ' ')
        begin--;
    const bool stamped = begin >= 9 && memchr(line.p, ':', begin);
    const bool name =
        end > begin && is_letter(line.p[begin]) && run(line, begin, is_name) == end - begin;
    return (tv_redact_part){begin, stamped && name ? end - begin : 0, "host"};
}

/* ---- paths ---- */

static bool is_path(char c)
{
    return (unsigned char)c > 32 && c != 127 && !strchr("\"'`<>|;,:()[]{}*?&=", c);
}

static bool is_segment(char c)
{
    return is_path(c) && c != '/' && c != '\\';
}

/* Folders that every system has. */
static bool is_system(tv_str first)
{
    static const char *const names[] = {"proc", "sys",  "dev", "usr",  "lib",   "lib64", "bin",
                                        "sbin", "etc",  "var", "run",  "boot",  "opt",   "snap",
                                        "nix",  "root", "rom", "init", "cgroup"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (tv_str_is(first, names[i]))
            return true;
    return false;
}

/* "/home/NAME", "C:\Users\NAME": the name */
static tv_redact_part home_at(tv_str s, size_t i)
{
    static const char *const folders[] = {"/home/", "/Users/", "\\Users\\", "/export/home/"};
    for (size_t k = 0; k < sizeof folders / sizeof *folders; k++) {
        const tv_str folder = tv_str_of(folders[k]);
        if (!tv_str_starts(tv_str_drop(s, i), folder))
            continue;
        const size_t n = run(s, i + folder.n, is_segment);
        return (tv_redact_part){folder.n, n, "user"};
    }
    return (tv_redact_part){0};
}

/* The rest of a path below somebody's home, and what lies in folders that are no system's. */
static tv_redact_part path_at(tv_str s, size_t i)
{
    if (at(s, i) != '/' || at(s, i + 1) == '/' || (i && s.p[i - 1] == '/'))
        return (tv_redact_part){0};
    const size_t first = run(s, i + 1, is_segment);
    const size_t n = run(s, i, is_path);
    const tv_str name = {s.p + i + 1, first};
    /* "/1", "I/O", a fraction: no path has so little */
    const bool is_own = i && (is_word(s.p[i - 1]) || strchr(".~<", s.p[i - 1]));
    if (!first || is_system(name) || is_own || n < 4)
        return (tv_redact_part){0};
    return (tv_redact_part){1, n - 1, "path"};
}

/* ---- what follows a telling word ---- */

typedef struct key_row {
    const char *key;
    const char *word;
} key_row;

static const key_row keys[] = {
    {"serial number", "serial"},
    {"serialnumber", "serial"},
    {"serial", "serial"},
    {"board_serial", "serial"},
    {"s/n", "serial"},
    {"password", "secret"},
    {"passwd", "secret"},
    {"token", "secret"},
    {"secret", "secret"},
    {"api_key", "secret"},
    {"apikey", "secret"},
    {"access_key", "secret"},
    {"hostname", "host"},
    {"process_name", "process"},
    {"user", "user"},
    {"username", "user"},
    {"systemd.machine_id", "uuid"},
};

static bool is_value(char c)
{
    return (unsigned char)c > 32 && c != 127 && !strchr("<>\"',;)(", c);
}

static bool says_nothing(tv_str value)
{
    static const char *const words[] = {
        "N/A",   "0",    "None", "none",  "null",  "Unknown",      "unknown", "root", "true",
        "false", "[Not", "Not",  "[N/A]", "ttyS0", "ttyS0,115200", "space",   "mode"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (tv_str_is(value, words[i]))
            return true;
    return !value.n;
}

/* "Serial Number : 123", "<serial>123</serial>", "token=abc" */
static tv_redact_part keyed_at(tv_str s, size_t i)
{
    const tv_str rest = tv_str_drop(s, i);
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        const tv_str key = tv_str_of(keys[k].key);
        if (rest.n <= key.n || !tv_str_eq_nocase(tv_str_take(rest, key.n), key))
            continue;
        size_t n = key.n;
        while (at(rest, n) == ' ' || at(rest, n) == '\t')
            n++;
        const char mark = at(rest, n);
        if (mark != ':' && mark != '=' && mark != '>')
            continue;
        n++;
        while (at(rest, n) == ' ' || at(rest, n) == '"' || at(rest, n) == '\t')
            n++;
        const size_t length = run(rest, n, is_value);
        const tv_str value = {rest.p + n, length};
        if (!says_nothing(value) && !tv_str_starts(value, TV_S("python")))
            return (tv_redact_part){n, length, keys[k].word};
    }
    return (tv_redact_part){0};
}

/* ---- secrets by their form ---- */

static bool is_secret(char c)
{
    return is_word(c) || c == '_' || c == '-' || c == '+';
}

static tv_redact_part secret_at(tv_str s, size_t i)
{
    static const char *const prefixes[] = {"hf_",    "sk-",  "ghp_",     "gho_",  "github_pat_",
                                           "AKIA",   "ASIA", "eyJ",      "xoxb-", "xoxp-",
                                           "glpat-", "AIza", "wandb_v1_"};
    const size_t n = run(s, i, is_secret);
    if (n < 16)
        return (tv_redact_part){0};
    for (size_t k = 0; k < sizeof prefixes / sizeof *prefixes; k++)
        if (tv_str_starts(tv_str_drop(s, i), tv_str_of(prefixes[k])))
            return (tv_redact_part){0, n, "secret"};
    size_t digits = 0, upper = 0, lower = 0;
    for (size_t k = 0; k < n; k++) {
        digits += is_digit(s.p[i + k]);
        upper += s.p[i + k] >= 'A' && s.p[i + k] <= 'Z';
        lower += s.p[i + k] >= 'a' && s.p[i + k] <= 'z';
    }
    const bool is_hash = run(s, i, is_hex) == n && n >= 32 && digits && upper + lower;
    const bool is_mixed = n >= 32 && digits >= 4 && upper >= 4 && lower >= 4 &&
                          !tv_str_starts(tv_str_drop(s, i), TV_S("_Z"));
    return (tv_redact_part){0, is_hash || is_mixed ? n : 0, is_hash ? "id" : "secret"};
}

tv_redact_part tv_redact_at(tv_str s, size_t i)
{
    static tv_redact_part (*const shapes[])(tv_str, size_t) = {
        syslog_at, keyed_at, uuid_at,   mac_at,    interface_at, ipv4_at,
        ipv6_at,   mail_at,  domain_at, secret_at, home_at,      path_at,
    };
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        const tv_redact_part part = shapes[k](s, i);
        if (part.n)
            return part;
    }
    return (tv_redact_part){0};
}
