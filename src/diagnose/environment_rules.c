/* Driver, CUDA build, card and container: whether a framework can use the GPU at all. What fits
 * what is the command's business (kind "compat"); here it is judged. */
#include "environment_judges.h"

#include <math.h>
#include <string.h>

const tv_sighting *tv_compat_of(const tv_scene *scene, const tv_sighting *s)
{
    for (const tv_sighting *c = tv_scene_first(scene, "compat"); c; c = tv_scene_next(c, "compat"))
        if (tv_noted_is(&c->facts, "of", s->kind) && c->line == s->line &&
            tv_str_eq(c->file, s->file))
            return c;
    return NULL;
}

const tv_sighting *tv_error_named(const tv_scene *scene, const tv_sighting *after, const char *what)
{
    for (const tv_sighting *s = after ? tv_scene_next(after, "install-error")
                                      : tv_scene_first(scene, "install-error");
         s; s = tv_scene_next(s, "install-error"))
        if (tv_noted_is(&s->facts, "what", what))
            return s;
    return NULL;
}

bool tv_sees_gpu(const tv_scene *scene)
{
    for (const tv_sighting *s = scene->first; s; s = s->next) {
        const tv_note *gpus = tv_noted(&s->facts, "gpus");
        const bool env = strcmp(s->kind, "collect_env") == 0;
        const bool smi = strcmp(s->kind, "nvidia-smi") == 0 || strcmp(s->kind, "smi-q") == 0;
        if (smi || (env && ((gpus && gpus->n) || tv_noted_str(&s->facts, "driver").n)))
            return true;
    }
    return false;
}

/* What the steps name: a wheel that driver and cards take, when one is known. */
static void put_wheel(tv_inquiry *q, tv_finding *f, const tv_sighting *compat)
{
    static const char *const keys[] = {"wheel_tag", "wheel_torch", "wheel_cuda", "wheel_driver"};
    for (size_t i = 0; compat && i < sizeof keys / sizeof *keys; i++)
        tv_found_str(q, f, keys[i], tv_noted_str(&compat->facts, keys[i]));
}

static void put_env(tv_inquiry *q, tv_finding *f, const tv_sighting *env)
{
    tv_found_str(q, f, "torch", tv_noted_str(&env->facts, "torch"));
    tv_found_str(q, f, "driver", tv_noted_str(&env->facts, "driver"));
}

/* ---- S07: a build without CUDA ---- */

static void judge_cpu_env(tv_inquiry *q, const tv_rule *rule, const tv_sighting *env)
{
    const bool torch = tv_noted_is(&env->facts, "cause", "cpu-only build");
    const tv_note *paddle = tv_noted(&env->facts, "paddle_with_cuda");
    if (!torch && !(paddle && paddle->type == TV_NOTE_BOOL && !paddle->yes))
        return;
    const tv_note *at = torch ? tv_noted(&env->facts, "cuda_build") : paddle;
    tv_finding *f = tv_found(q, rule, env, at);
    tv_found_also(q, f, env, tv_noted(&env->facts, "cuda_available"));
    tv_found_also(q, f, env, tv_noted(&env->facts, "driver"));
    put_env(q, f, env);
    if (torch)
        put_wheel(q, f, tv_compat_of(q->scene, env));
    else
        tv_found_str(q, f, "paddle", tv_noted_str(&env->facts, "paddle"));
    f->weight = 1;
}

static void judge_cpu_packages(tv_inquiry *q, const tv_rule *rule, const tv_sighting *s)
{
    const tv_note *list = tv_noted(&s->facts, "packages");
    for (const tv_note *p = list ? list->first : NULL; p; p = p->next) {
        const tv_str version = tv_noted_str(p, "version"), build = tv_noted_str(p, "build");
        const bool torch = tv_noted_is(p, "name", "torch") || tv_noted_is(p, "name", "pytorch");
        if (!torch || !(tv_str_ends(version, TV_S("+cpu")) || tv_str_has(build, TV_S("_cpu")) ||
                        tv_str_starts(build, TV_S("cpu_"))))
            continue;
        tv_finding *f = tv_found(q, rule, s, p);
        f->sure = TV_MEDIUM;
        tv_found_str(q, f, "torch", version);
        put_wheel(q, f, tv_compat_of(q->scene, s));
        return;
    }
}

static void judge_s07(tv_inquiry *q, const tv_rule *rule)
{
    const bool gpu = tv_sees_gpu(q->scene);
    for (const tv_sighting *s = tv_error_named(q->scene, NULL, "cpu-build"); s;
         s = tv_error_named(q->scene, s, "cpu-build"))
        tv_found(q, rule, s, NULL)->weight = 1;
    for (const tv_sighting *s = tv_scene_first(q->scene, "collect_env"); s && gpu;
         s = tv_scene_next(s, "collect_env"))
        judge_cpu_env(q, rule, s);
    for (const tv_sighting *s = tv_scene_first(q->scene, "pip");
         s && gpu && !tv_has_found(q, "S07"); s = tv_scene_next(s, "pip"))
        judge_cpu_packages(q, rule, s);
}

/* ---- S08: a driver that is older than the build needs ---- */

static void put_drivers(tv_inquiry *q, tv_finding *f, const tv_sighting *compat)
{
    if (!compat)
        return;
    tv_found_str(q, f, "build_cuda", tv_noted_str(&compat->facts, "build"));
    tv_found_str(q, f, "driver", tv_noted_str(&compat->facts, "of_driver"));
    tv_found_str(q, f, "min_driver", tv_noted_str(&compat->facts, "min_driver_for_build"));
    tv_found_str(q, f, "driver_max_cuda", tv_noted_str(&compat->facts, "driver_max_cuda"));
    put_wheel(q, f, compat);
}

static bool works(const tv_sighting *env)
{
    return tv_noted_bool(&env->facts, "cuda_available", false);
}

/* Paddle prints what the driver offers beside what it was built with; from CUDA 11 on the major
 * release decides. */
static bool says_less(const tv_sighting *s)
{
    const tv_double_read most = tv_str_double(tv_noted_str(&s->facts, "driver_max_cuda"));
    const tv_double_read build = tv_str_double(tv_noted_str(&s->facts, "cuda_build"));
    if (!most.ok || !build.ok)
        return false;
    return most.v < 11 ? most.v < build.v : floor(most.v) < floor(build.v);
}

static bool is_too_old(const tv_sighting *compat, const tv_sighting *s)
{
    return (compat && !tv_noted_bool(&compat->facts, "driver_suffices", true)) || says_less(s);
}

static void judge_driver_error(tv_inquiry *q, const tv_rule *rule, const tv_sighting *s)
{
    tv_finding *f = tv_found(q, rule, s, NULL);
    const tv_sighting *compat = tv_compat_of(q->scene, s);
    f->weight = 1;
    f->cause = N_("The framework's own message: the driver offers less CUDA than the program was "
                  "built with. Nothing is wrong with the card, and reinstalling the CUDA toolkit "
                  "does not help: wheels and images bring their own, only the driver is the "
                  "host's.");
    put_drivers(q, f, compat);
    tv_found_str(q, f, "driver_max_cuda", tv_noted_str(&s->facts, "driver_max_cuda"));
    tv_found_str(q, f, "min_driver", tv_noted_str(&s->facts, "min_driver_for_build"));
    tv_found_str(q, f, "driver", tv_noted_str(&s->facts, "driver"));
    for (const tv_sighting *env = tv_scene_first(q->scene, "collect_env"); env;
         env = tv_scene_next(env, "collect_env")) {
        tv_found_also(q, f, env, tv_noted(&env->facts, "driver"));
        tv_found_also(q, f, env, tv_noted(&env->facts, "cuda_build"));
        tv_found_str(q, f, "torch", tv_noted_str(&env->facts, "torch"));
        put_drivers(q, f, tv_compat_of(q->scene, env));
    }
}

static void judge_driver_of(tv_inquiry *q, const tv_rule *rule, const tv_sighting *s)
{
    const tv_sighting *compat = tv_compat_of(q->scene, s);
    if (!is_too_old(compat, s) || works(s))
        return;
    tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "driver"));
    tv_found_also(q, f, s, tv_noted(&s->facts, "cuda_build"));
    tv_found_also(q, f, s, tv_noted(&s->facts, "cuda_available"));
    put_env(q, f, s);
    put_drivers(q, f, compat);
    if (says_less(s))
        f->cause = N_("The framework was built for CUDA {build_cuda}, and the driver offers "
                      "{driver_max_cuda}. Kernels that the driver would have to compile fail, or "
                      "there is no usable GPU at all.");
    tv_found_str(q, f, "build_cuda", tv_noted_str(&s->facts, "cuda_build"));
    tv_found_str(q, f, "driver_max_cuda", tv_noted_str(&s->facts, "driver_max_cuda"));
    f->weight = 1;
}

static void judge_s08(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_error_named(q->scene, NULL, "driver-too-old"); s;
         s = tv_error_named(q->scene, s, "driver-too-old"))
        judge_driver_error(q, rule, s);
    if (tv_has_found(q, "S08"))
        return;
    for (const tv_sighting *s = tv_scene_first(q->scene, "collect_env"); s;
         s = tv_scene_next(s, "collect_env"))
        judge_driver_of(q, rule, s);
    for (const tv_sighting *s = tv_scene_first(q->scene, "pip");
         s && !tv_has_found(q, "S08") && !tv_scene_first(q->scene, "collect_env");
         s = tv_scene_next(s, "pip"))
        judge_driver_of(q, rule, s);
}

/* ---- S09: no code for the card in the wheel ---- */

static const tv_note *card_outside(const tv_sighting *compat)
{
    const tv_note *cards = compat ? tv_noted(&compat->facts, "cards") : NULL;
    for (const tv_note *card = cards ? cards->first : NULL; card; card = card->next)
        if (!tv_noted_bool(card, "in_wheel", true))
            return card;
    return NULL;
}

static void put_card(tv_inquiry *q, tv_finding *f, const tv_note *card)
{
    tv_found_str(q, f, "gpu", tv_noted_str(card, "name"));
    tv_found_str(q, f, "capability", tv_noted_str(card, "capability"));
    tv_found_str(q, f, "card_min_cuda", tv_noted_str(card, "min_cuda"));
    tv_found_str(q, f, "card_max_cuda", tv_noted_str(card, "max_cuda"));
}

static void put_arches(tv_inquiry *q, tv_finding *f, const tv_note *list)
{
    tv_buf b = tv_buf_in(q->a);
    for (const tv_note *arch = list ? list->first : NULL; arch; arch = arch->next) {
        if (b.n)
            tv_putc(&b, ' ');
        tv_put(&b, arch->s);
    }
    tv_found_str(q, f, "wheel_arches", tv_buf_str(&b));
}

static void judge_kernel_error(tv_inquiry *q, const tv_rule *rule, const tv_sighting *s)
{
    tv_finding *f = tv_found(q, rule, s, NULL);
    f->weight = 1;
    f->cause = N_("The library holds no code for this card's generation, neither compiled nor as "
                  "PTX that the driver could compile. The card is newer, or older, than what the "
                  "package was built for.");
    tv_found_str(q, f, "gpu", tv_noted_str(&s->facts, "product"));
    tv_found_str(q, f, "capability", tv_noted_str(&s->facts, "capability"));
    put_arches(q, f, tv_noted(&s->facts, "wheel_arches"));
    put_wheel(q, f, tv_compat_of(q->scene, s));
    for (const tv_sighting *c = tv_scene_first(q->scene, "compat"); c;
         c = tv_scene_next(c, "compat")) {
        const tv_note *cards = tv_noted(&c->facts, "cards");
        const tv_note *card = card_outside(c) ? card_outside(c) : cards ? cards->first : NULL;
        if (card)
            put_card(q, f, card);
        if (tv_noted_str(&c->facts, "wheel_tag").n)
            put_wheel(q, f, c);
    }
}

static void judge_wheel(tv_inquiry *q, const tv_rule *rule, const tv_sighting *env)
{
    const tv_sighting *compat = tv_compat_of(q->scene, env);
    const tv_note *card = card_outside(compat);
    if (!card)
        return;
    tv_finding *f = tv_found(q, rule, env, tv_noted(&env->facts, "gpus"));
    f->sure = TV_MEDIUM; /* the card's list is the table's, not the wheel's own */
    tv_found_also(q, f, env, tv_noted(&env->facts, "torch"));
    tv_found_also(q, f, env, tv_noted(&env->facts, "cuda_build"));
    put_env(q, f, env);
    put_card(q, f, card);
    put_wheel(q, f, compat);
    tv_found_str(q, f, "build_cuda", tv_noted_str(&compat->facts, "build"));
}

/* "sm_90a", "compute_90" -> 9.0 */
static double capability_of(tv_str arch)
{
    tv_str digits = tv_str_drop(arch, tv_str_starts(arch, TV_S("compute_")) ? 8 : 3);
    while (digits.n && (digits.p[digits.n - 1] < '0' || digits.p[digits.n - 1] > '9'))
        digits = tv_str_take(digits, digits.n - 1);
    const tv_double_read v = tv_str_double(digits);
    return v.ok ? v.v / 10 : (double)NAN;
}

/* What the build says of itself against the card that it is asked about. */
static void judge_arch_list(tv_inquiry *q, const tv_rule *rule, const tv_sighting *env)
{
    const tv_note *list = tv_noted(&env->facts, "wheel_arches");
    const tv_sighting *compat = tv_compat_of(q->scene, env);
    const tv_note *card = compat ? tv_noted(&compat->facts, "cards.0") : NULL;
    const tv_double_read own = tv_str_double(tv_noted_str(card, "capability"));
    if (!list || list->type != TV_NOTE_LIST || !list->n || !own.ok)
        return;
    for (const tv_note *arch = list->first; arch; arch = arch->next) {
        const double cc = capability_of(arch->s);
        const bool ptx = tv_str_starts(arch->s, TV_S("compute_"));
        if (cc <= own.v + 0.01 && (ptx || floor(cc + 0.01) >= floor(own.v)))
            return;
    }
    tv_finding *f = tv_found(q, rule, env, list);
    f->cause = N_("The card has compute capability {capability}; the build holds code for "
                  "{wheel_arches} only. The first kernel fails.");
    put_card(q, f, card);
    put_arches(q, f, list);
    put_wheel(q, f, compat);
    f->weight = 1;
}

static void judge_s09(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *s = tv_error_named(q->scene, NULL, "arch-missing");
    for (; s; s = tv_error_named(q->scene, s, "arch-missing"))
        if (tv_noted_bool(&s->facts, "dropped", true))
            judge_kernel_error(q, rule, s);
    s = tv_error_named(q->scene, NULL, "no-kernel-image");
    for (; s && !tv_has_found(q, "S09"); s = tv_error_named(q->scene, s, "no-kernel-image"))
        judge_kernel_error(q, rule, s);
    for (s = tv_scene_first(q->scene, "collect_env"); s && !tv_has_found(q, "S09");
         s = tv_scene_next(s, "collect_env")) {
        judge_arch_list(q, rule, s);
        if (!tv_has_found(q, "S09"))
            judge_wheel(q, rule, s);
    }
}

/* ---- S10: another interpreter than the one that was meant ---- */

static const tv_sighting *working_env(const tv_scene *scene)
{
    for (const tv_sighting *s = tv_scene_first(scene, "collect_env"); s;
         s = tv_scene_next(s, "collect_env"))
        if (works(s))
            return s;
    return NULL;
}

static bool lists_torch(const tv_sighting *s)
{
    const tv_note *list = tv_noted(&s->facts, "packages");
    for (const tv_note *p = list ? list->first : NULL; p; p = p->next)
        if (tv_noted_is(p, "name", "torch") || tv_noted_is(p, "name", "pytorch"))
            return true;
    return false;
}

static const tv_sighting *list_with_torch(const tv_scene *scene)
{
    for (const tv_sighting *s = tv_scene_first(scene, "pip"); s; s = tv_scene_next(s, "pip"))
        if (lists_torch(s))
            return s;
    return NULL;
}

static void judge_s10(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *env = working_env(q->scene);
    const tv_sighting *list = list_with_torch(q->scene);
    const tv_sighting *missing = tv_error_named(q->scene, NULL, "module-missing");
    const tv_sighting *cpu = tv_error_named(q->scene, NULL, "cpu-build");
    const tv_sighting *none = tv_error_named(q->scene, NULL, "no-gpu");
    const tv_sighting *other = missing && (env || list) ? missing : env ? (cpu ? cpu : none) : NULL;
    if (other && !tv_noted_bool(&other->facts, "during_build", false)) {
        tv_finding *f = tv_found(q, rule, other, NULL);
        const tv_sighting *one = env ? env : list;
        tv_found_also(q, f, one, env ? tv_noted(&env->facts, "cuda_available") : NULL);
        f->weight = 0.5;
    } else if (missing && !tv_noted_bool(&missing->facts, "during_build", false)) {
        tv_finding *f = tv_found(q, rule, missing, NULL);
        f->sure = TV_LOW;
        f->cause = N_("Python does not find the framework. Either it is not installed, or another "
                      "Python than the one it was installed for is running.");
        tv_ask(q, "which -a python python3; python -m pip list | grep -i torch",
               N_("Shows which Python runs and what it has."));
    }
}

/* ---- S11: a container without the GPU ---- */

static void judge_s11(tv_inquiry *q, const tv_rule *rule)
{
    static const char *const whats[] = {"container-no-gpu", "container-no-driver"};
    for (size_t i = 0; i < sizeof whats / sizeof *whats; i++)
        for (const tv_sighting *s = tv_error_named(q->scene, NULL, whats[i]); s;
             s = tv_error_named(q->scene, s, whats[i])) {
            tv_finding *f = tv_found(q, rule, s, NULL);
            f->weight = 1;
            if (i == 1)
                f->cause = N_("The container runtime looks for the driver's libraries on the host "
                              "and does not find them: the host's own driver is missing, not "
                              "loaded, or was updated without a restart.");
        }
    if (tv_has_found(q, "S11"))
        return;
    const tv_sighting *none = tv_error_named(q->scene, NULL, "no-driver");
    none = none ? none : tv_error_named(q->scene, NULL, "no-gpu");
    for (const tv_sighting *c = tv_scene_first(q->scene, "command"); c && none;
         c = tv_scene_next(c, "command")) {
        if (!tv_noted_is(&c->facts, "tool", "docker") || tv_noted(&c->facts, "gpus_asked") ||
            tv_noted_is(&c->facts, "runtime", "nvidia"))
            continue;
        tv_finding *f = tv_found(q, rule, none, NULL);
        tv_found_also(q, f, c, NULL);
        f->weight = 1;
        f->cause = N_("The program finds no GPU, and the command that started its container asks "
                      "for none: without --gpus a container sees no device of the host.");
        return;
    }
}

/* ---- S21: libraries found before the wheel's own ---- */

static void judge_path(tv_inquiry *q, const tv_rule *rule, const tv_sighting *s, const char *map)
{
    tv_buf path = tv_buf_in(q->a);
    tv_puts(&path, map);
    tv_puts(&path, ".LD_LIBRARY_PATH");
    tv_putc(&path, 0);
    const tv_note *note = tv_noted(&s->facts, path.p);
    if (!note || note->type != TV_NOTE_STR ||
        !(tv_str_has(note->s, TV_S("cuda")) || tv_str_has(note->s, TV_S("cudnn"))))
        return;
    tv_finding *f = tv_found(q, rule, s, note);
    f->severity = TV_INFO;
    f->sure = TV_LOW;
    f->cause = N_("LD_LIBRARY_PATH names a CUDA installation of the host's. Wheels bring their own "
                  "libraries; those on the path are found first where names are equal. It does no "
                  "harm while nothing fails.");
    tv_found_str(q, f, "path", note->s);
}

static void judge_s21(tv_inquiry *q, const tv_rule *rule)
{
    static const char *const whats[] = {"cudnn-mismatch", "library-shadowed"};
    for (size_t i = 0; i < sizeof whats / sizeof *whats; i++)
        for (const tv_sighting *s = tv_error_named(q->scene, NULL, whats[i]); s;
             s = tv_error_named(q->scene, s, whats[i])) {
            tv_finding *f = tv_found(q, rule, s, NULL);
            f->weight = 1;
            tv_found_str(q, f, "library", tv_noted_str(&s->facts, "library"));
            tv_found_str(q, f, "built_with", tv_noted_str(&s->facts, "cudnn_built"));
            tv_found_str(q, f, "found", tv_noted_str(&s->facts, "cudnn_found"));
            if (tv_noted_bool(&s->facts, "tolerated", false)) {
                f->severity = TV_INFO;
                f->cause = N_("Paddle was built with {built_with} and finds {found}. It warns and "
                              "goes on; within one major release this works as a rule.");
            }
        }
    if (tv_has_found(q, "S21"))
        return;
    for (const tv_sighting *s = tv_scene_first(q->scene, "environ"); s;
         s = tv_scene_next(s, "environ"))
        judge_path(q, rule, s, "vars");
}

#define PYTORCH_INDEX "https://download.pytorch.org/whl/"

static const tv_rule rules[] = {
    {
        .id = "S07",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("The installed framework was built without CUDA"),
        .cause =
            N_("The package that is installed is the one for the CPU: it names no CUDA that it "
               "was built with, and sees no GPU although the host has one. The driver is not "
               "at fault, and reinstalling it changes nothing."),
        .decided = N_("The environment report names no CUDA (and no ROCm) that the framework was "
                      "built with while a card or a driver is there, or the version ends in +cpu, "
                      "or the framework says so itself (\"Torch not compiled with CUDA "
                      "enabled\")."),
        .unless = N_("A build for ROCm names no CUDA either. A driver that is too old (S08) gives "
                     "the same \"not available\" with a build that does name its CUDA."),
        .source = "https://github.com/pytorch/pytorch/issues/44303",
        .steps = {{.command = "pip install --force-reinstall torch --index-url " PYTORCH_INDEX
                              "{wheel_tag}",
                   .undo = "pip install --force-reinstall torch=={torch} --index-url " PYTORCH_INDEX
                           "cpu",
                   .why = N_("PyTorch {wheel_torch} for CUDA {wheel_cuda} is the newest build that "
                             "this driver and these cards take.")},
                  {.command = "python -m pip install --force-reinstall paddlepaddle-gpu",
                   .undo = "python -m pip install --force-reinstall paddlepaddle=={paddle}",
                   .why = N_("Paddle: remove the CPU package {paddle} first, the two hide each "
                             "other.")},
                  {.command = "python -c \"import torch; print(torch.__version__, "
                              "torch.version.cuda, torch.cuda.is_available())\"",
                   .why = N_("Names the CUDA of the build; None is a build for the CPU.")}},
        .outranks = "S10",
        .judge = judge_s07,
    },
    {
        .id = "S08",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("The driver is too old for the CUDA build"),
        .cause = N_("The framework was built for CUDA {build_cuda}, which needs a driver of "
                    "{min_driver} or later; {driver} is installed. The framework then says that "
                    "there is no usable GPU, although nvidia-smi works."),
        .decided = N_("The driver's version is below the least one for the CUDA release that the "
                      "framework was built with (from CUDA 11 on the least of the major release: "
                      "450.80.02, 525.60.13, 580), and CUDA is not available; or the framework "
                      "says \"too old\", \"insufficient\" or \"unsupported toolchain\"."),
        .unless =
            N_("The CUDA version of nvcc does not count: wheels bring their own. With the "
               "cuda-compat package of NVIDIA an older data-centre driver works; then CUDA is "
               "available and nothing is found here."),
        .source = "https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/",
        .steps = {{.command = "pip install --force-reinstall torch --index-url " PYTORCH_INDEX
                              "{wheel_tag}",
                   .undo = "pip install --force-reinstall torch=={torch}",
                   .why = N_("Keep the driver: PyTorch {wheel_torch} for CUDA {wheel_cuda} is the "
                             "newest build that it runs.")},
                  {.why = N_("Or keep the framework: install driver {min_driver} or later from the "
                             "distribution and restart. The old one can be installed again from "
                             "the same place.")},
                  {.why = N_("Or install the build of this framework release for CUDA "
                             "{driver_max_cuda} or older: that is what driver {driver} offers.")},
                  {.command = "nvidia-smi --query-gpu=driver_version,name --format=csv",
                   .why = N_("See which driver is loaded.")}},
        .outranks = "S10 S11 E19",
        .judge = judge_s08,
    },
    {
        .id = "S09",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("The build holds no code for this card"),
        .cause = N_("{gpu} has compute capability {capability}; the build for CUDA {build_cuda} "
                    "holds no code for it. The first kernel fails."),
        .decided =
            N_("The framework says \"no kernel image is available\" or \"not compatible with "
               "the current PyTorch installation\", or the table of wheels does not list the "
               "card's compute capability (a wheel runs on the same major release from its "
               "capability on, with PTX also on later ones)."),
        .unless =
            N_("An extension that was compiled by hand fails with the same words although the "
               "framework itself is right: then set TORCH_CUDA_ARCH_LIST and build it again."),
        .source = "https://github.com/pytorch/pytorch/issues/167244",
        .steps = {{.command = "pip install --force-reinstall torch --index-url " PYTORCH_INDEX
                              "{wheel_tag}",
                   .undo = "pip install --force-reinstall torch=={torch}",
                   .why = N_("PyTorch {wheel_torch} for CUDA {wheel_cuda} has code for the card; "
                             "it needs driver {wheel_driver} or later.")},
                  {.why = N_("The card is supported by CUDA {card_min_cuda} and later builds.")},
                  {.why = N_("The card is supported by CUDA {card_max_cuda} at the latest: take an "
                             "older release.")},
                  {.command = "python -c \"import torch; print(torch.cuda.get_arch_list(), "
                              "torch.cuda.get_device_capability())\"",
                   .why = N_("Compare what the build holds with what the card is.")}},
        .judge = judge_s09,
    },
    {
        .id = "S10",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("Another Python runs than the one that was set up"),
        .cause =
            N_("One place shows a framework that works, another one says that it is missing or "
               "sees no GPU: two interpreters, or two environments, are in use."),
        .decided = N_("A report or a list of packages shows the framework (with CUDA available) "
                      "while an error says that it is missing, was built without CUDA, or finds no "
                      "GPU."),
        .unless = N_("CUDA_VISIBLE_DEVICES set to nothing hides the cards in one shell only."),
        .source = "https://docs.python.org/3/library/sys.html#sys.executable",
        .steps = {{.command = "which -a python python3", .why = N_("The first one is what runs.")},
                  {.command =
                       "python -c \"import sys, torch; print(sys.executable, torch.__file__, "
                       "torch.__version__)\"",
                   .why = N_("Run it exactly as the job is started: in the same shell, service or "
                             "notebook kernel.")},
                  {.command = "python -m pip install torch",
                   .undo = "python -m pip uninstall torch",
                   .why = N_("Installing with \"python -m pip\" always means that Python.")}},
        .judge = judge_s10,
    },
    {
        .id = "S11",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("The container gets no GPU"),
        .cause =
            N_("Docker has no driver for GPUs: the NVIDIA container toolkit is not installed or "
               "not configured on the host, or the container was started without --gpus."),
        .decided = N_("Docker says \"could not select device driver\" or does not know the runtime "
                      "nvidia, the container tool fails to load the driver's libraries, the image "
                      "says that no driver was detected, or a program finds no GPU in a container "
                      "whose command does not ask for one."),
        .unless = N_("If nvidia-smi fails on the host as well, the host's driver comes first (S01 "
                     "to S06)."),
        .source = "https://github.com/NVIDIA/nvidia-docker/issues/1034",
        .steps = {{.command = "sudo apt-get install -y nvidia-container-toolkit",
                   .undo = "sudo apt-get remove -y nvidia-container-toolkit",
                   .why = N_("On the host, from NVIDIA's package repository.")},
                  {.command =
                       "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl "
                       "restart docker",
                   .undo = "sudo cp /etc/docker/daemon.json.bak /etc/docker/daemon.json && sudo "
                           "systemctl restart docker",
                   .why = N_("Copy /etc/docker/daemon.json to daemon.json.bak first. The restart "
                             "stops running containers unless live-restore is set.")},
                  {.command = "docker run --rm --gpus all ubuntu nvidia-smi",
                   .why = N_("Must print the table of the host's cards.")}},
        .outranks = "E19 S10",
        .judge = judge_s11,
    },
    {
        .id = "S21",
        .severity = TV_CRITICAL,
        .sure = TV_MEDIUM,
        .title = N_("A library of another CUDA or cuDNN is found first"),
        .cause = N_("The framework was built against one release of a CUDA library and finds "
                    "another one at run time, most often because LD_LIBRARY_PATH leads to a CUDA "
                    "installation of the host's before the libraries that came with the wheel."),
        .decided =
            N_("The framework reports a cuDNN that does not fit, or a symbol is missing in a "
               "library of CUDA, cuBLAS, nvJitLink or NCCL."),
        .unless = N_("Packages of two CUDA releases side by side (nvidia-*-cu11 and nvidia-*-cu12) "
                     "give the same errors without LD_LIBRARY_PATH."),
        .source = "https://github.com/pytorch/pytorch/issues/111469",
        .steps = {{.command = "env -u LD_LIBRARY_PATH python -c \"import torch; "
                              "print(torch.backends.cudnn.version())\"",
                   .why = N_("If this works, the path is the cause: take it out of the shell's "
                             "start-up files.")},
                  {.command = "unset LD_LIBRARY_PATH",
                   .undo = "export LD_LIBRARY_PATH={path}",
                   .why = N_("For this shell only.")},
                  {.command = "pip list | grep -i nvidia",
                   .why = N_("All must be of one CUDA release.")}},
        .judge = judge_s21,
    },
};

extern const tv_rule_group tv_rule_group_environment_rules;
const tv_rule_group tv_rule_group_environment_rules = {
    "environment", N_("Driver, toolkit, framework and container"), rules,
    sizeof rules / sizeof *rules};
