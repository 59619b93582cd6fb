/* apt's history.log and terminal, dpkg.log, pacman, dnf and yum. Only packages whose version is a
 * driver's are of interest: the container toolkit and CUDA have numbers of their own. */
#include "package_line.h"

#include <string.h>

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

tv_str tv_driver_version_of(tv_str s)
{
    const tv_cut epoch = tv_str_cut(s, ':');
    if (epoch.found && epoch.head.n <= 2)
        s = epoch.tail;
    size_t n = 0, dots = 0;
    while (n < s.n && (digit(s.p[n]) || (s.p[n] == '.' && n + 1 < s.n && digit(s.p[n + 1]))))
        dots += s.p[n++] == '.';
    s = tv_str_take(s, n);
    const tv_u64_read branch = tv_str_u64(tv_str_cut(s, '.').head);
    /* branches in use: 304 to 6xx; the numbers of toolkits and helpers are below */
    return branch.ok && branch.v >= 300 && branch.v < 1000 && dots >= 1 ? s : (tv_str){0};
}

static bool is_driver_package(tv_str name)
{
    return tv_holds(name, "nvidia") || tv_holds(name, "cuda-drivers");
}

typedef struct history {
    tv_package_change *v;
    size_t n, cap;
    tv_str time, by;
} history;

static void add(history *h, tv_str package, tv_str from, tv_str to, tv_str time, size_t i)
{
    if (h->n >= h->cap || !to.n)
        return;
    const tv_cut arch = tv_str_cut(package, ':');
    h->v[h->n++] = (tv_package_change){arch.head, from, to, time, h->by, i};
}

/* "/usr/bin/unattended-upgrade", "apt-get dist-upgrade", "packagekit role='update-packages'" */
static tv_str asked_by(tv_str command)
{
    tv_str rest = tv_str_trim(command);
    if (tv_holds(rest, "unattended-upgrade"))
        return TV_S("unattended-upgrade");
    size_t slash = 0;
    for (size_t i = 0; i < rest.n && rest.p[i] != ' '; i++)
        if (rest.p[i] == '/')
            slash = i + 1;
    return tv_str_take(tv_str_drop(rest, slash), 80);
}

/* "Upgrade: libnvidia-common-460:amd64 (460.56-0ubuntu0.20.04.1, 460.73.01-0ubuntu0.20.04.1), ..."
 */
static void read_apt_list(history *h, tv_str list, size_t i)
{
    while (list.n) {
        const tv_cut package = tv_str_cut(list, '(');
        const tv_cut versions = tv_str_cut(package.tail, ')');
        if (!package.found || !versions.found)
            return;
        tv_str name = tv_str_trim(package.head);
        if (tv_str_starts(name, TV_S(",")))
            name = tv_str_trim(tv_str_drop(name, 1));
        const tv_cut pair = tv_str_cut(versions.head, ',');
        const tv_str from = tv_driver_version_of(tv_str_trim(pair.head));
        const tv_str to = tv_driver_version_of(tv_str_trim(pair.tail));
        if (is_driver_package(name) && from.n && to.n)
            add(h, name, from, to, h->time, i);
        list = versions.tail;
    }
}

/* "2021-04-24 06:50:52 upgrade libnvidia-compute-460:amd64 460.56-0 460.73.01-0" */
static void read_dpkg(history *h, tv_str line, size_t i)
{
    tv_str w[6];
    if (tv_words(line, w, 6) < 6 || !tv_str_is(w[2], "upgrade") || !is_driver_package(w[3]))
        return;
    add(h, w[3], tv_driver_version_of(w[4]), tv_driver_version_of(w[5]),
        tv_str_span(w[0].p, w[1].p + w[1].n), i);
}

/* "Unpacking libnvidia-compute-460:amd64 (460.73.01-0ubuntu0.20.04.1) over (460.56-0...) ..." */
static void read_unpacking(history *h, tv_str line, size_t i)
{
    tv_str rest;
    if (!tv_past(line, "Unpacking ", &rest))
        return;
    const tv_str name = tv_take_word(&rest);
    const tv_str to = tv_driver_version_of(tv_enclosed(rest, "(", ")"));
    const tv_str from = tv_driver_version_of(tv_enclosed(rest, "over (", ")"));
    if (is_driver_package(name) && from.n)
        add(h, name, from, to, h->time, i);
}

/* "[2021-04-24T06:50:54+0200] [ALPM] upgraded nvidia-utils (460.56-1 -> 460.73.01-1)" */
static void read_pacman(history *h, tv_str line, size_t i)
{
    tv_str rest;
    if (!tv_past(line, "[ALPM] upgraded ", &rest))
        return;
    const tv_str name = tv_take_word(&rest);
    const tv_str pair = tv_enclosed(rest, "(", ")");
    const tv_str from = tv_driver_version_of(tv_str_trim(tv_enclosed(pair, "", " ->")));
    const tv_str to = tv_driver_version_of(tv_enclosed(pair, "-> ", NULL));
    if (is_driver_package(name))
        add(h, name, from, to, tv_enclosed(line, "[", "]"), i);
}

/* "2021-04-24T06:50:54Z SUBDEBUG Upgraded: nvidia-driver-3:460.56-1.el8.x86_64",
 * "Apr 24 06:50:54 Updated: 3:nvidia-driver-460.73.01-1.el7.x86_64": one version each */
static void read_rpm(history *h, tv_str line, size_t i)
{
    static const char *const heads[] = {"Upgrade: ", "Updated: "};
    tv_str rest;
    for (size_t k = 0; k < 2; k++) {
        if (!tv_past(line, heads[k], &rest) || !is_driver_package(rest) || tv_holds(rest, "("))
            continue;
        for (size_t n = 0; n + 3 < rest.n; n++) {
            const bool begins = (rest.p[n] == '-' || rest.p[n] == ':') && digit(rest.p[n + 1]);
            const tv_str to = begins ? tv_driver_version_of(tv_str_drop(rest, n + 1)) : (tv_str){0};
            if (!to.n)
                continue;
            tv_str time = tv_enclosed(line, "", k ? " Updated" : " SUBDEBUG");
            add(h, tv_str_take(rest, n), (tv_str){0}, to, time, i);
            return;
        }
    }
}

static void read_line(history *h, tv_str line, size_t i)
{
    tv_str rest;
    if (tv_past(line, "Start-Date: ", &rest)) {
        h->time = tv_str_trim(rest);
        h->by = (tv_str){0};
    } else if (tv_past(line, "Commandline: ", &rest)) {
        h->by = asked_by(rest);
    } else if (tv_past(line, "Upgrade: ", &rest) && tv_holds(rest, "(")) {
        read_apt_list(h, rest, i);
    } else if (tv_holds(line, "nvidia") || tv_holds(line, "cuda-drivers")) {
        read_dpkg(h, line, i);
        read_unpacking(h, line, i);
        read_pacman(h, line, i);
        read_rpm(h, line, i);
    }
}

size_t tv_package_changes(const tv_sheet *sheet, tv_package_change *v, size_t cap)
{
    history h = {.v = v, .cap = cap};
    for (size_t i = 0; i < sheet->n; i++)
        read_line(&h, sheet->v[i].s, i);
    return h.n;
}
