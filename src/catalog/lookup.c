/* Names to cards. A name is compared as the sorted set of its words: lower case, split at anything
 * that is no letter or digit, a size joined to its unit, without the makers' brand words. So
 * "NVIDIA A100-SXM4-80GB", "a100 80gb sxm4" and "nvidia-a100-sxm4-80gb" are one name. */
#include "records.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORDS = 24, MAX_NAME = 200, SHOWN = 12 };

typedef struct words {
    tv_str v[MAX_WORDS];
    size_t n;
} words;

static bool is_word_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
}

static bool is_digits(tv_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    return s.n > 0;
}

static bool is_one_of(tv_str s, const char *const *list)
{
    for (; *list; list++)
        if (tv_str_is(s, *list))
            return true;
    return false;
}

/* They say who made a card, not which card it is. */
static const char *const brand_words[] = {"nvidia", "geforce",  "tesla", "amd", "instinct",
                                          "radeon", "intel",    "r",     "tm",  "gpu",
                                          "huawei", "graphics", "gb",    "gib", NULL};
/* People also leave these out. */
static const char *const series_words[] = {"rtx",    "gtx",    "quadro", "arc",
                                           "ascend", "kunlun", "jetson", NULL};

static int by_text(const void *x, const void *y)
{
    return tv_str_cmp(*(const tv_str *)x, *(const tv_str *)y);
}

/* "12" followed by "gb" is "12gb"; so are "12gib" and "12g". */
static tv_str joined_size(tv_arena *a, tv_str word, tv_str next)
{
    if (is_digits(word) && (tv_str_is(next, "gb") || tv_str_is(next, "gib")))
        return tv_str_join(a, word, TV_S("gb"));
    const size_t unit = tv_str_ends(word, TV_S("gib")) ? 3 : tv_str_ends(word, TV_S("g")) ? 1 : 0;
    if (unit && is_digits(tv_str_take(word, word.n - unit)))
        return tv_str_join(a, tv_str_take(word, word.n - unit), TV_S("gb"));
    return word;
}

static tv_str next_word(tv_str *rest)
{
    size_t i = 0;
    while (i < rest->n && !is_word_char(rest->p[i]))
        i++;
    size_t k = i;
    while (k < rest->n && is_word_char(rest->p[k]))
        k++;
    const tv_str word = {rest->p + i, k - i};
    *rest = tv_str_drop(*rest, k);
    return word;
}

static words words_in_order(tv_arena *a, tv_str name)
{
    words w = {0};
    tv_str rest = tv_str_lower(a, tv_str_take(name, name.n < MAX_NAME ? name.n : MAX_NAME));
    while (w.n < MAX_WORDS) {
        const tv_str word = next_word(&rest);
        if (!word.n)
            break;
        tv_str after = rest;
        const tv_str sized = joined_size(a, word, next_word(&after));
        if (!is_one_of(sized, brand_words))
            w.v[w.n++] = sized;
    }
    return w;
}

static words words_of(tv_arena *a, tv_str name)
{
    words w = words_in_order(a, name);
    if (w.n)
        qsort(w.v, w.n, sizeof *w.v, by_text);
    return w;
}

static bool is_size(tv_str word)
{
    return tv_str_ends(word, TV_S("gb")) && is_digits(tv_str_take(word, word.n - 2));
}

static words without_sizes(words w)
{
    words left = {0};
    for (size_t i = 0; i < w.n; i++)
        if (!is_size(w.v[i]))
            left.v[left.n++] = w.v[i];
    return left;
}

static words without(words w, const char *const *list)
{
    words left = {0};
    for (size_t i = 0; i < w.n; i++)
        if (!is_one_of(w.v[i], list))
            left.v[left.n++] = w.v[i];
    return left;
}

static tv_str key_of(tv_arena *a, words w)
{
    tv_buf b = tv_buf_in(a);
    for (size_t i = 0; i < w.n; i++) {
        if (i)
            tv_putc(&b, ' ');
        tv_put(&b, w.v[i]);
    }
    return tv_buf_str(&b);
}

/* "sxm" stands for "sxm4": a word of letters only may be the start of one. */
static bool is_letters(tv_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < 'a' || s.p[i] > 'z')
            return false;
    return s.n > 2;
}

static bool has_word(tv_str key, tv_str word)
{
    const bool start = is_letters(word);
    for (tv_cut c = tv_str_cut(key, ' ');; c = tv_str_cut(c.tail, ' ')) {
        if (tv_str_eq(c.head, word) || (start && tv_str_starts(c.head, word)))
            return true;
        if (!c.found)
            return false;
    }
}

static void add_key(tv_catalog *c, tv_str text, const tv_device *d, const tv_device_group *g)
{
    const tv_str key = key_of(c->a, words_of(c->a, text));
    if (key.n)
        *tv_push(c->a, &c->keys) = (tv_name_key){.key = key, .device = d, .group = g};
}

static const tv_err *fill_keys(tv_catalog *c)
{
    if (c->keys.n)
        return NULL;
    TV_TRY(tv_catalog_need_all(c));
    TV_TRY(tv_catalog_need_groups(c));
    for (size_t i = 0; i < c->n_groups; i++) {
        add_key(c, c->groups[i].slug, NULL, &c->groups[i]);
        add_key(c, c->groups[i].name, NULL, &c->groups[i]);
    }
    for (size_t i = 0; i < c->n_devices; i++) {
        const tv_device *d = &c->devices[i];
        add_key(c, d->slug, d, NULL);
        add_key(c, d->name, d, NULL);
        for (size_t k = 0; k < d->n_aliases; k++)
            add_key(c, d->aliases[k], d, NULL);
    }
    return NULL;
}

/* Cards that match so far, each once. */
typedef struct matches {
    const tv_device **v;
    size_t n;
    size_t cap;
} matches;

static void add_match(tv_arena *a, matches *m, const tv_device *d)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->v[i] == d)
            return;
    *tv_push(a, m) = d;
}

static bool has_memory(const tv_device *d, double mem_bytes)
{
    /* nvidia-smi shows up to 6 % less than the nominal size (ECC, reserved), names round it. */
    const double off = fabs(mem_bytes - d->mem_bytes.v) / mem_bytes;
    const double off_usable = fabs(mem_bytes - d->mem_usable_bytes.v) / mem_bytes;
    return (tv_known(d->mem_bytes) && off < 0.08) ||
           (tv_known(d->mem_usable_bytes) && off_usable < 0.01);
}

/* A size that fits none of them separates nothing. */
static matches of_memory(tv_arena *a, matches m, double mem_bytes)
{
    matches left = {0};
    if (!(mem_bytes > 0) || m.n < 2)
        return m;
    for (size_t i = 0; i < m.n; i++)
        if (has_memory(m.v[i], mem_bytes))
            add_match(a, &left, m.v[i]);
    return left.n ? left : m;
}

/* A declared group with exactly these members, or one made for this question. */
static const tv_device_group *group_of(tv_catalog *c, tv_str name, matches m)
{
    for (size_t i = 0; i < c->n_groups; i++) {
        const tv_device_group *g = &c->groups[i];
        size_t same = 0;
        for (size_t k = 0; k < g->n_members; k++)
            for (size_t l = 0; l < m.n; l++)
                same += g->members[k] == m.v[l];
        if (same == m.n && g->n_members == m.n)
            return g;
    }
    tv_device_group *g = tv_new(c->a, tv_device_group, 1);
    *g = (tv_device_group){.slug = name, .name = name, .members = m.v, .n_members = m.n};
    return g;
}

static bool settle(tv_catalog *c, tv_str name, matches m, double mem_bytes, tv_naming *found)
{
    m = of_memory(c->a, m, mem_bytes);
    if (m.n == 1)
        found->device = m.v[0];
    else if (m.n > 1)
        found->group = group_of(c, name, m);
    return m.n > 0;
}

static bool settle_group(tv_catalog *c, const tv_device_group *g, double mem_bytes,
                         tv_naming *found)
{
    matches m = {0};
    for (size_t i = 0; i < g->n_members; i++)
        add_match(c->a, &m, g->members[i]);
    return settle(c, g->slug, m, mem_bytes, found);
}

static bool by_group_slug(tv_catalog *c, tv_str name, double mem_bytes, tv_naming *found)
{
    for (size_t i = 0; i < c->n_groups; i++)
        if (tv_str_eq_nocase(c->groups[i].slug, name))
            return settle_group(c, &c->groups[i], mem_bytes, found);
    return false;
}

/* What a driver prints is precise: "NVIDIA H200" is the SXM card, "H200" may be either. */
static bool by_driver_name(tv_catalog *c, tv_str name, double mem_bytes, tv_naming *found)
{
    matches m = {0};
    if (!tv_str_starts(name, TV_S("NVIDIA ")) && !tv_str_starts(name, TV_S("Tesla ")))
        return false;
    for (size_t i = 0; i < c->n_devices; i++)
        for (size_t k = 0; k < c->devices[i].n_aliases; k++)
            if (tv_str_eq(c->devices[i].aliases[k], name))
                add_match(c->a, &m, &c->devices[i]);
    return settle(c, name, m, mem_bytes, found);
}

/* "10de:2684" and the device id of `nvidia-smi -q`, "0x268410DE". */
static tv_str pci_id(tv_arena *a, tv_str name)
{
    tv_str s = tv_str_lower(a, name);
    if (s.n == 10 && tv_str_starts(s, TV_S("0x")))
        s = tv_str_join(a, tv_str_join(a, tv_str_drop(s, 6), TV_S(":")),
                        tv_str_take(tv_str_drop(s, 2), 4));
    return s.n == 9 && s.p[4] == ':' ? s : (tv_str){0};
}

static bool by_pci_id(tv_catalog *c, tv_str name, double mem_bytes, tv_naming *found)
{
    const tv_str id = pci_id(c->a, name);
    matches m = {0};
    for (size_t i = 0; id.n && i < c->n_devices; i++)
        for (size_t k = 0; k < c->devices[i].n_pci_ids; k++)
            if (tv_str_eq(c->devices[i].pci_ids[k], id))
                add_match(c->a, &m, &c->devices[i]);
    return settle(c, name, m, mem_bytes, found);
}

static bool by_key(tv_catalog *c, tv_str name, tv_str key, double mem_bytes, tv_naming *found)
{
    matches m = {0};
    for (size_t i = 0; i < c->keys.n; i++) {
        const tv_name_key *k = &c->keys.v[i];
        if (!tv_str_eq(k->key, key))
            continue;
        if (k->group)
            return settle_group(c, k->group, mem_bytes, found);
        add_match(c->a, &m, k->device);
    }
    return settle(c, name, m, mem_bytes, found);
}

/* "3060 12gb": what is left of the name, and the size tells which. A size that none of them has is
 * a mistake, not a hint. */
static bool by_size(tv_catalog *c, tv_str name, words w, tv_naming *found)
{
    const words left = without_sizes(w);
    double size_bytes = 0;
    for (size_t i = 0; i < w.n; i++)
        if (is_size(w.v[i]))
            size_bytes = tv_str_double(tv_str_take(w.v[i], w.v[i].n - 2)).v * 0x1p30;
    tv_naming some = {0};
    if (left.n == w.n || !left.n || !by_key(c, name, key_of(c->a, left), size_bytes, &some))
        return false;
    for (size_t i = 0; i < tv_naming_count(some); i++)
        if (!has_memory(tv_naming_at(some, i), size_bytes))
            return false;
    *found = some;
    return true;
}

static bool has_digit(tv_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] >= '0' && s.p[i] <= '9')
            return true;
    return false;
}

static bool by_short_key(tv_catalog *c, tv_str name, words w, double mem_bytes, tv_naming *found)
{
    const tv_str key = key_of(c->a, without(w, series_words));
    matches m = {0};
    const tv_device_group *group = NULL;
    for (size_t i = 0; has_digit(key) && i < c->keys.n; i++) {
        const tv_name_key *k = &c->keys.v[i];
        if (!tv_str_eq(key_of(c->a, without(words_of(c->a, k->key), series_words)), key))
            continue;
        if (k->group)
            group = k->group;
        else
            add_match(c->a, &m, k->device);
    }
    if (group && !m.n)
        return settle_group(c, group, mem_bytes, found);
    return settle(c, name, m, mem_bytes, found);
}

/* Every word of the question stands in one of the card's names. */
static bool by_part(tv_catalog *c, tv_str name, words w, double mem_bytes, tv_naming *found)
{
    matches m = {0};
    for (size_t i = 0; w.n && i < c->keys.n; i++) {
        bool all = c->keys.v[i].device != NULL;
        for (size_t k = 0; k < w.n && all; k++)
            all = has_word(c->keys.v[i].key, w.v[k]);
        if (all)
            add_match(c->a, &m, c->keys.v[i].device);
    }
    return settle(c, name, m, mem_bytes, found);
}

enum { WANTED = 3 };

typedef struct near_names {
    tv_str slug[WANTED];
    size_t far[WANTED];
    size_t n;
} near_names;

static void keep_near(near_names *best, tv_str slug, size_t distance)
{
    size_t at = best->n;
    for (size_t i = 0; i < best->n; i++)
        if (tv_str_eq(best->slug[i], slug))
            return;
    while (at > 0 && best->far[at - 1] > distance)
        at--;
    if (at == WANTED)
        return;
    best->n += best->n < WANTED;
    for (size_t i = best->n - 1; i > at; i--) {
        best->slug[i] = best->slug[i - 1];
        best->far[i] = best->far[i - 1];
    }
    best->slug[at] = slug;
    best->far[at] = distance;
}

/* The nearest slugs: at most a third of the letters differ. */
static tv_str nearest(tv_catalog *c, tv_str name)
{
    near_names best = {0};
    const tv_str key = key_of(c->a, words_in_order(c->a, name));
    const size_t limit = 1 + key.n / 3;
    for (size_t i = 0; i < c->n_devices + c->n_groups; i++) {
        const tv_str slug =
            i < c->n_devices ? c->devices[i].slug : c->groups[i - c->n_devices].slug;
        const tv_str other = key_of(c->a, words_in_order(c->a, slug));
        const size_t distance = tv_str_distance(c->a, key, other, limit);
        if (distance <= limit)
            keep_near(&best, slug, distance);
    }
    tv_buf b = tv_buf_in(c->a);
    for (size_t i = 0; i < best.n; i++) {
        tv_puts(&b, i ? ", " : "");
        tv_put(&b, best.slug[i]);
    }
    return tv_buf_str(&b);
}

static tv_str member_names(tv_arena *a, tv_naming f)
{
    tv_buf b = tv_buf_in(a);
    for (size_t i = 0; i < tv_naming_count(f) && i < SHOWN; i++) {
        tv_puts(&b, i ? ", " : "");
        tv_put(&b, tv_naming_at(f, i)->slug);
    }
    if (tv_naming_count(f) > SHOWN)
        tv_puts(&b, ", ...");
    return tv_buf_str(&b);
}

/* The name without its size, if that is known; else what is spelt alike. */
static tv_str suggestions(tv_catalog *c, tv_str name)
{
    const words w = words_of(c->a, name);
    const words left = without_sizes(w);
    tv_naming f = {0};
    if (left.n && left.n < w.n &&
        (by_key(c, name, key_of(c->a, left), 0, &f) || by_short_key(c, name, left, 0, &f)))
        return member_names(c->a, f);
    return nearest(c, name);
}

static const tv_err *unknown(tv_catalog *c, tv_str name)
{
    tv_err *e = TV_FAIL(c->a, TV_USAGE, "gpu.unknown", N_("no accelerator is called \"{name}\""),
                        tv_arg_str("name", name));
    const tv_str near = suggestions(c, name);
    if (near.n)
        return tv_hint(e, TV_TEXT(c->a, "gpu.did-you-mean", N_("did you mean {names}?"),
                                  tv_arg_str("names", near)));
    return tv_hint(e, TV_TEXT0("gpu.see-list", N_("`trivet gpus` lists all that are known")));
}

/* "RTX 4090" is tried as "nvidia-rtx-4090" before all names are looked at: most questions end
 * here, and only one record is read. */
static size_t by_vendor(tv_catalog *c, tv_str name)
{
    static const char *const vendors[] = {"", "nvidia-", "amd-", "intel-", "apple-"};
    tv_buf b = tv_buf_in(c->a);
    const tv_str lower = tv_str_lower(c->a, name);
    for (size_t i = 0; i < lower.n; i++)
        tv_putc(&b, lower.p[i] == ' ' || lower.p[i] == '_' ? '-' : lower.p[i]);
    for (size_t v = 0; v < sizeof vendors / sizeof *vendors; v++) {
        const tv_str slug = tv_str_join(c->a, tv_str_of(vendors[v]), tv_buf_str(&b));
        const size_t i = tv_catalog_index(c, slug);
        if (i < c->n_devices)
            return i;
    }
    return c->n_devices;
}

const tv_err *tv_catalog_find(tv_catalog *c, tv_str name, double mem_bytes, tv_naming *found)
{
    *found = (tv_naming){0};
    name = tv_str_trim(name);
    if (!name.n)
        return TV_FAIL0(c->a, TV_USAGE, "gpu.empty", N_("the name of the accelerator is empty"));
    const size_t i = by_vendor(c, name);
    if (i < c->n_devices) {
        TV_TRY(tv_catalog_need(c, i));
        found->device = &c->devices[i];
        return NULL;
    }
    TV_TRY(fill_keys(c));
    const words w = words_of(c->a, name);
    const tv_str key = key_of(c->a, w);
    if (by_group_slug(c, name, mem_bytes, found) || by_driver_name(c, name, mem_bytes, found) ||
        by_pci_id(c, name, mem_bytes, found))
        return NULL;
    if (key.n &&
        (by_key(c, name, key, mem_bytes, found) || by_size(c, name, w, found) ||
         by_short_key(c, name, w, mem_bytes, found) || by_part(c, name, w, mem_bytes, found)))
        return NULL;
    return unknown(c, name);
}

const tv_err *tv_catalog_device(tv_catalog *c, tv_str name, double mem_bytes,
                                const tv_device **device)
{
    tv_naming found;
    TV_TRY(tv_catalog_find(c, name, mem_bytes, &found));
    *device = found.device;
    if (found.device)
        return NULL;
    return tv_hint(TV_FAIL(c->a, TV_USAGE, "gpu.ambiguous",
                           N_("\"{name}\" stands for {count} cards: {members}"),
                           tv_arg_str("name", name),
                           tv_arg_num("count", TV_ARG_COUNT, (double)found.group->n_members),
                           tv_arg_str("members", member_names(c->a, found))),
                   TV_TEXT0("gpu.name-one", N_("name one of them")));
}

size_t tv_naming_count(tv_naming f)
{
    return f.device ? 1 : f.group ? f.group->n_members : 0;
}

const tv_device *tv_naming_at(tv_naming f, size_t i)
{
    return f.device ? f.device : f.group->members[i];
}
