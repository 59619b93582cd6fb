/* The compatibility table beside what was seen: which driver a build needs, which CUDA a driver
 * offers, for which cards a wheel holds code, and which wheel fits. Rules may not look there. */
#include "doctor_compat.h"

#include <math.h>
#include <string.h>

extern const char tv_data_compat_start[], tv_data_compat_end[];

typedef struct joining {
    tv_arena *a;
    tv_scene *scene;
    const tv_json *table;
    tv_str driver; /* the only one that is seen anywhere; empty: none, or several */
} joining;

/* ---- versions ---- */

static uint64_t take_part(tv_str *s)
{
    uint64_t v = 0;
    while (s->n && *s->p >= '0' && *s->p <= '9') {
        v = v * 10 + (uint64_t)(*s->p - '0');
        *s = tv_str_drop(*s, 1);
    }
    return v;
}

/* "10.2" < "10.10"; a part that is not there is 0: "12.1" and "12.1.0" are equal. */
static int compare(tv_str x, tv_str y)
{
    while (x.n || y.n) {
        const uint64_t v = take_part(&x), w = take_part(&y);
        if (v != w)
            return v < w ? -1 : 1;
        if ((x.n && *x.p != '.') || (y.n && *y.p != '.'))
            return 0;
        x = tv_str_drop(x, x.n > 0);
        y = tv_str_drop(y, y.n > 0);
    }
    return 0;
}

/* "12.1.105" -> "12.1" */
static tv_str release_of(tv_str cuda)
{
    size_t dots = 0, i = 0;
    for (; i < cuda.n; i++)
        if (cuda.p[i] == '.' && ++dots == 2)
            break;
    return tv_str_take(cuda, i);
}

static tv_str cell(const tv_json *row, size_t i)
{
    return tv_json_str(tv_json_at(row, i));
}

static const tv_json *rows_of(const joining *j, const char *part)
{
    return tv_json_get(tv_json_get(j->table, part), "rows");
}

/* ---- the table ---- */

/* The driver that a build needs: the least one of its major release where there is one (minor
 * version compatibility, from 11 on), else the one that came with the toolkit. */
static tv_str least_driver(const joining *j, tv_str build)
{
    const tv_json *rows = rows_of(j, "cuda_driver");
    const tv_str release = release_of(build);
    tv_str found = {0};
    for (size_t i = 0; i < rows->n; i++) {
        const tv_json *row = tv_json_at(rows, i);
        if (compare(release_of(cell(row, 0)), release) != 0)
            continue;
        found = cell(row, 2).n ? cell(row, 2) : cell(row, 1);
        if (compare(cell(row, 0), release) == 0)
            break;
    }
    return found;
}

static tv_str most_cuda(const joining *j, tv_str driver)
{
    const tv_json *rows = rows_of(j, "driver_branch");
    tv_str s = driver, found = {0};
    const double branch = (double)take_part(&s);
    for (size_t i = 0; i < rows->n; i++)
        if (tv_json_num(tv_json_at(tv_json_at(rows, i), 0), 1e9) <= branch)
            found = cell(tv_json_at(rows, i), 1);
    return found;
}

/* "2.12-2.14", "2.8 and 2.11", "2.8" */
static bool covers(tv_str versions, tv_str torch)
{
    tv_cut cut = tv_str_cut(versions, '-');
    if (cut.found)
        return compare(torch, cut.head) >= 0 && compare(torch, cut.tail) <= 0;
    while (versions.n) {
        cut = tv_str_cut(versions, ' ');
        if (compare(torch, cut.head) == 0)
            return true;
        versions = cut.tail;
    }
    return false;
}

/* "12.8" -> "cu128" */
static tv_str tag_of(tv_arena *a, tv_str cuda)
{
    tv_buf b = tv_buf_in(a);
    tv_puts(&b, "cu");
    for (size_t i = 0; i < cuda.n; i++)
        if (cuda.p[i] != '.')
            tv_putc(&b, cuda.p[i]);
    return tv_buf_str(&b);
}

static bool names_tag(tv_str wheels, tv_str tag)
{
    while (wheels.n) {
        const tv_cut cut = tv_str_cut(wheels, '/');
        if (tv_str_eq(cut.head, tag))
            return true;
        wheels = cut.tail;
    }
    return false;
}

static const tv_json *wheel_of(const joining *j, tv_str torch, tv_str build)
{
    const tv_json *rows = rows_of(j, "pytorch_wheels");
    const tv_str tag = tag_of(j->a, release_of(build));
    for (size_t i = 0; i < rows->n; i++) {
        const tv_json *row = tv_json_at(rows, i);
        if (covers(cell(row, 0), release_of(torch)) && names_tag(cell(row, 1), tag))
            return row;
    }
    return NULL;
}

static const tv_json *card_row(const joining *j, double capability)
{
    const tv_json *rows = rows_of(j, "capability_cuda");
    for (size_t i = 0; i < rows->n; i++) {
        const tv_double_read cc = tv_str_double(cell(tv_json_at(rows, i), 0));
        if (cc.ok && cc.v > capability - 0.05 && cc.v < capability + 0.05)
            return tv_json_at(rows, i);
    }
    return NULL;
}

static bool suits(const joining *j, tv_str cuda, tv_str driver, tv_str least_cuda, tv_str most)
{
    /* Where no driver is seen, one of the last three years is taken for granted. */
    const tv_str need = least_driver(j, cuda);
    const tv_str have = driver.n ? driver : TV_S("525.60.13");
    return need.n && compare(have, need) >= 0 &&
           (!least_cuda.n || compare(cuda, least_cuda) >= 0) &&
           (!most.n || compare(cuda, most) <= 0);
}

/* The newest release of PyTorch with a wheel that driver and cards take. */
static void put_wheel(const joining *j, tv_note *facts, tv_str driver, tv_str least_cuda,
                      tv_str most)
{
    const tv_json *rows = rows_of(j, "pytorch");
    for (size_t i = 0; i < rows->n; i++)
        for (size_t column = 3; column <= 4; column++) {
            const tv_json *list = tv_json_at(tv_json_at(rows, i), column);
            for (size_t k = list->n; k--;) {
                const tv_str cuda = tv_json_str(tv_json_at(list, k));
                if (!suits(j, cuda, driver, least_cuda, most))
                    continue;
                (void)tv_note_str(j->a, facts, "wheel_tag", tag_of(j->a, cuda));
                (void)tv_note_str(j->a, facts, "wheel_torch", cell(tv_json_at(rows, i), 0));
                (void)tv_note_str(j->a, facts, "wheel_cuda", cuda);
                (void)tv_note_str(j->a, facts, "wheel_driver", least_driver(j, cuda));
                return;
            }
        }
}

/* ---- what was seen ---- */

/* "12.1.105" of nvidia-cuda-runtime-cu12, "11.8" of pytorch-cuda, "+cu118" of torch itself. */
static tv_str build_of_packages(const tv_sighting *s)
{
    static const char *const names[] = {"pytorch-cuda", "cudatoolkit", "nvidia-cuda-runtime-cu11",
                                        "nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime"};
    const tv_note *list = tv_noted(&s->facts, "packages");
    for (const tv_note *p = list ? list->first : NULL; p; p = p->next)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (tv_noted_is(p, "name", names[i]))
                return release_of(tv_noted_str(p, "version"));
    return (tv_str){0};
}

static tv_str torch_of_packages(const tv_sighting *s)
{
    const tv_note *list = tv_noted(&s->facts, "packages");
    for (const tv_note *p = list ? list->first : NULL; p; p = p->next)
        if (tv_noted_is(p, "name", "torch") || tv_noted_is(p, "name", "pytorch"))
            return tv_noted_str(p, "version");
    return (tv_str){0};
}

/* The driver of the whole scene: where two hosts' reports lie side by side there is none. */
static tv_str only_driver(const tv_scene *scene)
{
    tv_str found = {0};
    for (const tv_sighting *s = scene->first; s; s = s->next) {
        const tv_str driver = tv_noted_str(&s->facts, "driver");
        if (!driver.n || *driver.p < '0' || *driver.p > '9')
            continue;
        if (found.n && !tv_str_eq(found, driver))
            return (tv_str){0};
        found = driver;
    }
    return found;
}

static void put_driver(const joining *j, tv_note *facts, tv_str driver, tv_str build)
{
    const tv_str least = build.n ? least_driver(j, build) : (tv_str){0};
    const tv_str most = driver.n ? most_cuda(j, driver) : (tv_str){0};
    if (build.n)
        (void)tv_note_str(j->a, facts, "build", build);
    if (least.n)
        (void)tv_note_str(j->a, facts, "min_driver_for_build", least);
    if (driver.n)
        (void)tv_note_str(j->a, facts, "of_driver", driver);
    if (most.n)
        (void)tv_note_str(j->a, facts, "driver_max_cuda", most);
    if (least.n && driver.n)
        (void)tv_note_bool(j->a, facts, "driver_suffices", compare(driver, least) >= 0);
}

/* A wheel runs on a card where it holds code for the card's major release that is not newer, or
 * PTX that is older. */
static bool runs_on(const tv_json *wheel, double capability)
{
    const tv_json *list = tv_json_at(wheel, 2);
    const bool ptx = tv_json_bool(tv_json_at(wheel, 3), false);
    for (size_t i = 0; i < list->n; i++) {
        const tv_double_read cc = tv_str_double(tv_json_str(tv_json_at(list, i)));
        const bool older = cc.ok && cc.v <= capability + 0.01;
        if (older && (ptx || (int)(cc.v + 0.01) == (int)(capability + 0.01)))
            return true;
    }
    return false;
}

static void put_arches(const joining *j, tv_note *facts, const tv_json *wheel)
{
    tv_note *list = tv_note_list(j->a, facts, "wheel_capabilities");
    const tv_json *cc = tv_json_at(wheel, 2);
    for (size_t i = 0; i < cc->n; i++)
        (void)tv_note_str(j->a, list, NULL, tv_json_str(tv_json_at(cc, i)));
    (void)tv_note_bool(j->a, facts, "wheel_ptx", tv_json_bool(tv_json_at(wheel, 3), false));
}

typedef struct cuda_range {
    tv_str least, most;
} cuda_range;

static void put_card(const joining *j, tv_note *cards, tv_str name, double capability,
                     const tv_json *wheel, tv_str build, cuda_range *range)
{
    const tv_json *row = card_row(j, capability);
    if (!row)
        return;
    tv_note *card = tv_note_map(j->a, cards, NULL);
    (void)tv_note_str(j->a, card, "name", name);
    (void)tv_note_str(j->a, card, "capability", cell(row, 0));
    const tv_str least = cell(row, 2), most = cell(row, 3);
    if (least.n)
        (void)tv_note_str(j->a, card, "min_cuda", least);
    if (most.n)
        (void)tv_note_str(j->a, card, "max_cuda", most);
    if (wheel)
        (void)tv_note_bool(j->a, card, "in_wheel", runs_on(wheel, capability));
    else if (build.n && most.n && compare(release_of(build), most) > 0)
        (void)tv_note_bool(j->a, card, "in_wheel", false);
    if (least.n && compare(least, range->least) > 0)
        range->least = least;
    if (most.n && (!range->most.n || compare(most, range->most) < 0))
        range->most = most;
}

static bool is_card_of(const tv_sighting *record, const tv_sighting *s)
{
    const tv_note *gpus = tv_noted(&s->facts, "gpus");
    const tv_str name = tv_noted_str(&record->facts, "name");
    for (const tv_note *gpu = gpus ? gpus->first : NULL; gpu; gpu = gpu->next)
        if (gpu->type == TV_NOTE_STR && tv_str_eq(gpu->s, name))
            return true;
    return tv_str_eq(tv_noted_str(&s->facts, "product"), name);
}

/* "sm_120" -> 12.0; NaN: the document does not say it. */
static double said_capability(const tv_sighting *s)
{
    const tv_str word = tv_noted_str(&s->facts, "capability");
    tv_str digits = tv_str_drop(word, tv_str_starts(word, TV_S("sm_")) ? 3 : 0);
    while (digits.n && (digits.p[digits.n - 1] < '0' || digits.p[digits.n - 1] > '9'))
        digits = tv_str_take(digits, digits.n - 1); /* "sm_90a" */
    const tv_double_read v = tv_str_double(digits);
    const bool dotted = tv_str_has(digits, TV_S("."));
    return v.ok ? (dotted ? v.v : v.v / 10) : (double)NAN;
}

/* The cards that s itself names; where it names none, all that were seen. */
static cuda_range put_cards(const joining *j, tv_note *facts, const tv_sighting *s,
                            const tv_json *wheel, tv_str build)
{
    cuda_range range = {0};
    const tv_note *own = tv_noted(&s->facts, "gpus");
    const double said = said_capability(s);
    const tv_str product = tv_noted_str(&s->facts, "product");
    const bool names = (own && own->n) || product.n;
    tv_note *cards = tv_note_list(j->a, facts, "cards");
    if (!isnan(said)) {
        put_card(j, cards, product, said, wheel, build, &range);
        return range;
    }
    for (const tv_sighting *d = tv_scene_first(j->scene, "device-record"); d;
         d = tv_scene_next(d, "device-record"))
        if (!names || is_card_of(d, s))
            put_card(j, cards, tv_noted_str(&d->facts, "name"),
                     tv_noted_num(&d->facts, "compute_capability"), wheel, build, &range);
    return range;
}

static void join(const joining *j, const tv_sighting *s)
{
    const bool packages = strcmp(s->kind, "pip") == 0;
    const tv_str own = tv_noted_str(&s->facts, "driver");
    const tv_str driver = own.n ? own : j->driver;
    const tv_str torch = packages ? torch_of_packages(s) : tv_noted_str(&s->facts, "torch");
    const tv_str said = tv_noted_str(&s->facts, "cuda_build");
    const tv_str build = packages ? build_of_packages(s) : said;
    const bool card = tv_noted(&s->facts, "capability") || tv_noted(&s->facts, "product");
    if (!driver.n && !build.n && !card)
        return;
    tv_sighting *to = tv_scene_add(j->a, j->scene, "compat", s->file, s->line, s->text);
    (void)tv_note_str(j->a, &to->facts, "of", tv_str_of(s->kind));
    put_driver(j, &to->facts, driver, build);
    const tv_json *wheel = torch.n && build.n ? wheel_of(j, torch, build) : NULL;
    if (wheel)
        put_arches(j, &to->facts, wheel);
    const cuda_range range = put_cards(j, &to->facts, s, wheel, build);
    put_wheel(j, &to->facts, driver, range.least, range.most);
}

static bool is_joined(const char *kind)
{
    return strcmp(kind, "collect_env") == 0 || strcmp(kind, "pip") == 0 ||
           strcmp(kind, "install-error") == 0;
}

/* A capture of a thousand hosts says the same again. */
enum { MOST_JOINED = 200 };

const tv_err *tv_doctor_compat(tv_request *r, tv_scene *scene)
{
    joining j = {.a = r->a, .scene = scene};
    size_t n = 0;
    const tv_sighting *last = scene->last;
    for (const tv_sighting *s = scene->first; s && n < MOST_JOINED;
         s = s == last ? NULL : s->next) {
        if (!is_joined(s->kind))
            continue;
        if (!n++) {
            TV_TRY(tv_json_parse(r->a, TV_S("compat.json"),
                                 tv_str_span(tv_data_compat_start, tv_data_compat_end), &j.table));
            j.driver = only_driver(scene);
        }
        join(&j, s);
    }
    return NULL;
}
