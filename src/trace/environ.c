/* Environment variables as printenv, export, set, Docker files, PowerShell and NCCL's own log
 * show them. Only those that GPUs, frameworks and their libraries read are kept. */
#include "shell_words.h"

#include <string.h>

/* What stands before the assignment. */
static const char *const heads[] = {
    "export ", "declare -x ",  "setenv ", "set -x ", "set ",  "ENV ",
    "ARG ",    "Environment=", "- ",      "-e ",     "--env "};

static tv_str past_heads(tv_str s)
{
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (tv_str_starts(s, tv_str_of(heads[i])))
            return tv_str_trim(tv_str_drop(s, strlen(heads[i])));
    if (tv_str_starts(s, TV_S("$env:")))
        return tv_str_drop(s, 5);
    return s;
}

static bool is_name_char(char c)
{
    return c == '_' || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* A value ends with its line: what has more words is a command, or a sentence. */
static bool whole_value(tv_str value, tv_str *out)
{
    value = tv_str_trim(value);
    if (value.n && (*value.p == '"' || *value.p == '\'')) {
        const char quote[2] = {*value.p, 0};
        *out = tv_enclosed(value, quote, quote);
        return true;
    }
    while (value.n && strchr(";,`", value.p[value.n - 1]))
        value = tv_str_take(value, value.n - 1);
    tv_str v[2];
    *out = value;
    return tv_words(value, v, 2) <= 1;
}

/* "NAME=value", "NAME = value" (PowerShell), "NAME value" (setenv, ENV): any of them. */
static bool take_assignment(tv_str s, bool spaced, tv_str *name, tv_str *value)
{
    size_t n = 0;
    while (n < s.n && is_name_char(s.p[n]))
        n++;
    *name = tv_str_take(s, n);
    tv_str rest = tv_str_drop(s, n);
    const tv_str trimmed = tv_str_trim(rest);
    if (n < 4 || !rest.n || !tv_is_known_variable(*name))
        return false;
    if (*rest.p == '=')
        return whole_value(tv_str_drop(rest, 1), value);
    if (spaced && *trimmed.p == '=')
        return whole_value(tv_str_drop(trimmed, 1), value);
    return spaced && *rest.p == ' ' && whole_value(trimmed, value);
}

/* More than any environment sets; each name is looked up among those before it. */
enum { MOST_VARS = 400 };

static void put(tv_reading *r, tv_sighting **s, size_t i, tv_str name, tv_str value)
{
    if (!*s)
        *s = tv_see(r, "environ", i);
    tv_note *vars = tv_note_map(r->a, &(*s)->facts, "vars");
    if (vars->n < MOST_VARS)
        (void)tv_at(r, tv_note_str(r->a, vars, tv_cstr(r->a, name), value), i);
}

/* "host:1:2 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1." */
static void read_nccl(tv_reading *r, tv_sighting **s, size_t i, tv_str line)
{
    tv_str rest;
    if (!tv_past(line, " set by environment to ", &rest))
        return;
    const tv_str before = tv_str_take(line, line.n - rest.n - strlen(" set by environment to "));
    size_t n = before.n;
    while (n && is_name_char(before.p[n - 1]))
        n--;
    const tv_str name = tv_str_drop(before, n);
    while (rest.n && *rest.p == ' ')
        rest = tv_str_drop(rest, 1);
    tv_str value = tv_str_cut(rest, ' ').head;
    if (value.n && value.p[value.n - 1] == '.')
        value = tv_str_take(value, value.n - 1);
    if (name.n >= 4 && tv_is_known_variable(name))
        put(r, s, i, name, value);
}

static void read_line(tv_reading *r, tv_sighting **s, size_t i)
{
    const tv_str line = tv_shell_bare(tv_bare(r->sheet->v[i].s));
    const tv_str bare = past_heads(line);
    tv_str name, value;
    if (take_assignment(bare, bare.p != line.p, &name, &value))
        put(r, s, i, name, value);
    else
        read_nccl(r, s, i, line);
}

static void read(tv_reading *r)
{
    tv_sighting *s = NULL;
    for (size_t i = 0; i < r->sheet->n; i++)
        read_line(r, &s, i);
}

static const char *const needles[] = {"CUDA_VISIBLE_DEVICES",
                                      "CUDA_LAUNCH_BLOCKING",
                                      "CUDA_HOME=",
                                      "CUDA_DEVICE_",
                                      "CUDA_MODULE_LOADING=",
                                      "CUDA_MPS",
                                      "NCCL_",
                                      "PYTORCH_CUDA_",
                                      "PYTORCH_ALLOC",
                                      "PYTORCH_HIP",
                                      "PADDLE_",
                                      "FLAGS_",
                                      "OMP_NUM_THREADS",
                                      "MKL_NUM_THREADS",
                                      "MASTER_ADDR",
                                      "MASTER_PORT",
                                      "WORLD_SIZE",
                                      "LOCAL_RANK",
                                      "LD_LIBRARY_PATH",
                                      "LD_PRELOAD",
                                      "TORCH_",
                                      "NVIDIA_VISIBLE",
                                      "TF_",
                                      "XLA_",
                                      "VLLM_",
                                      "GLOO_SOCKET",
                                      "UCX_",
                                      "HIP_VISIBLE",
                                      " set by environment ",
                                      "CUBLAS_",
                                      "CUDNN_",
                                      NULL};

extern const tv_log_format tv_log_format_environ;
const tv_log_format tv_log_format_environ = {"environ", needles, read};
