/* What is installed: pip list and freeze, conda list, uv and poetry, and the lists that
 * environment reports carry. Only packages that GPUs, data and communication depend on are kept. */
#include "env_words.h"

#include <string.h>

/* A '*' at the end stands for any rest. */
static const char *const kept[] = {
    "torch",
    "pytorch",
    "torchvision",
    "torchaudio",
    "triton",
    "pytorch-cuda",
    "pytorch-mutex",
    "cudatoolkit",
    "cuda-*",
    "cudnn",
    "nccl",
    "nvidia-*",
    "tensorflow",
    "tensorflow-*",
    "tf-nightly*",
    "jax",
    "jaxlib",
    "jax-cuda*",
    "paddlepaddle",
    "paddlepaddle-*",
    "paddlenlp",
    "onnxruntime",
    "onnxruntime-*",
    "cupy",
    "cupy-*",
    "vllm",
    "xformers",
    "flash-attn",
    "flash_attn",
    "deepspeed",
    "transformers",
    "accelerate",
    "lightning",
    "pytorch-lightning",
    "bitsandbytes",
    "apex",
    "mmcv",
    "mmcv-full",
    "horovod",
    "numpy",
    "pillow",
    "pillow-simd",
    "opencv-python*",
    "tensorrt",
    "sglang",
    "nvidia_*",
    "libtorch",
    "pytorch-gpu",
    "mkl",
    "dgl*",
    "torch-*",
    "torch_*",
    "intel-openmp",
    "llvm-openmp",
    "libcudnn*",
};

static bool is_kept(tv_str name)
{
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        const size_t n = strlen(kept[i]);
        const bool open = kept[i][n - 1] == '*';
        const tv_str head = open ? tv_str_take(name, n - 1) : name;
        if (tv_str_eq_nocase(head, (tv_str){kept[i], open ? n - 1 : n}))
            return true;
    }
    return false;
}

typedef struct package {
    tv_str name, version, build;
} package;

static bool is_package_name(tv_str s)
{
    if (!s.n || s.n > 80)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        const char c = s.p[i];
        if (!((c | 32) >= 'a' && (c | 32) <= 'z') && !(c >= '0' && c <= '9') &&
            !(c && strchr("-_.", c)))
            return false;
    }
    return (*s.p | 32) >= 'a' && (*s.p | 32) <= 'z';
}

/* "[pip3] torch==2.1.0", "[conda] pytorch 1.7.1 py3.8_cuda11.0 pytorch", "[pip] numpy (1.15)" */
static tv_str past_tag(tv_str s, bool *tagged)
{
    static const char *const tags[] = {"[pip3]", "[pip]", "[conda]"};
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (tv_str_starts(s, tv_str_of(tags[i]))) {
            *tagged = true;
            return tv_str_trim(tv_str_drop(s, strlen(tags[i])));
        }
    return s;
}

static tv_str cut_at(tv_str s, const char *mark)
{
    tv_str rest;
    return tv_past(s, mark, &rest) ? tv_str_take(s, s.n - rest.n - strlen(mark)) : s;
}

static bool frozen(tv_str s, package *p)
{
    tv_str rest;
    if (!tv_past(s, "==", &rest) && !tv_past(s, " @ file", &rest))
        return false;
    *p = (package){.name = tv_str_trim(cut_at(cut_at(s, "=="), " @ ")),
                   .version = tv_env_version(rest)};
    return is_package_name(p->name) && p->version.n;
}

/* "conda install" writes "pytorch=1.13.1=py3.10_cuda11.7": one sign */
static bool pinned(tv_str s, package *p)
{
    tv_str v[4];
    if (tv_fields(s, '=', v, 4) != 3 || !is_package_name(v[0]))
        return false;
    *p = (package){v[0], tv_env_version(v[1]), v[2]};
    return p->version.n > 0;
}

/* Columns: "torch   2.1.0+cu118", "pytorch  1.13.1  py3.10_cuda11.7_cudnn8.5.0_0  pytorch",
 * "torch v2.1.0" */
static bool columns(tv_str s, package *p)
{
    tv_str v[6] = {{0}};
    const size_t n = tv_words(s, v, 6);
    if (n < 2 || n > 5 || !is_package_name(v[0]))
        return false;
    tv_str version = v[1];
    if (*version.p == '(')
        version = tv_str_drop(version, 1);
    *p = (package){.name = v[0], .version = tv_env_version(version)};
    if (n >= 3 && !tv_holds(v[2], "/"))
        p->build = v[2];
    return p->version.n > 0;
}

typedef enum list_mode { LIST_NONE, LIST_COLUMNS } list_mode;

typedef struct list_state {
    tv_sighting *s;
    tv_note *packages;
    list_mode mode;
    size_t last; /* the line of the last package */
} list_state;

static void put_package(tv_reading *r, list_state *st, size_t i, const package *p)
{
    if (!is_kept(p->name))
        return;
    if (!st->s || i - st->last > 400) {
        st->s = tv_see(r, "pip", i);
        st->packages = tv_note_list(r->a, &st->s->facts, "packages");
    }
    tv_note *entry = tv_at(r, tv_note_map(r->a, st->packages, NULL), i);
    (void)tv_note_str(r->a, entry, "name", tv_str_lower(r->a, p->name));
    (void)tv_note_str(r->a, entry, "version", p->version);
    if (p->build.n)
        (void)tv_note_str(r->a, entry, "build", p->build);
    st->last = i;
}

static bool begins_columns(tv_str s)
{
    tv_str v[4];
    const size_t n = tv_words(s, v, 4);
    return (n == 2 || n == 3) && tv_str_is(v[0], "Package") && tv_str_is(v[1], "Version");
}

static void read_line(tv_reading *r, list_state *st, size_t i)
{
    bool tagged = false;
    package p = {0};
    const tv_str line = tv_str_trim(r->sheet->v[i].s);
    const tv_str s = past_tag(line, &tagged);
    if (begins_columns(s) || tv_str_starts(s, TV_S("# packages in environment")) ||
        (tv_str_starts(s, TV_S("# Name")) && tv_holds(s, "Version"))) {
        st->mode = LIST_COLUMNS;
        return;
    }
    if (!s.n || tv_str_starts(s, TV_S("---")) || *s.p == '#')
        return;
    if (frozen(s, &p) || (tagged && (columns(s, &p) || pinned(s, &p))))
        put_package(r, st, i, &p);
    else if (st->mode == LIST_COLUMNS && columns(s, &p))
        put_package(r, st, i, &p);
    else if (pinned(s, &p))
        put_package(r, st, i, &p);
    else
        st->mode = LIST_NONE;
}

static void read(tv_reading *r)
{
    list_state *st = tv_new(r->a, list_state, 1);
    for (size_t i = 0; i < r->sheet->n; i++)
        read_line(r, st, i);
}

static const char *const needles[] = {"[pip3] ",
                                      "[pip] ",
                                      "[conda] ",
                                      "torch==",
                                      "torchvision==",
                                      "paddlepaddle",
                                      "tensorflow==",
                                      "jaxlib==",
                                      "vllm==",
                                      "onnxruntime",
                                      "nvidia-cudnn",
                                      "nvidia-nccl",
                                      "# packages in environment",
                                      "Package    ",
                                      "pytorch=",
                                      NULL};

extern const tv_log_format tv_log_format_package_list;
const tv_log_format tv_log_format_package_list = {"package-list", needles, read};
