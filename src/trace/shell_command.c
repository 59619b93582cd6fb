/* Command lines in scripts, Docker files, terminals and issues: docker run, launchers and Slurm's
 * #SBATCH lines. Nothing is run or expanded. */
#include "commands.h"

#include <string.h>

/* ---- #SBATCH ---- */

static void sbatch_number(tv_reading *r, tv_note *facts, const char *key, tv_str value, size_t i)
{
    const tv_double_read v = tv_take_number(&value);
    if (v.ok)
        (void)tv_at(r, tv_note_num(r->a, facts, key, v.v), i);
}

/* "gpu:4", "gpu:a100:4", "4" */
static void sbatch_gpus(tv_reading *r, tv_note *facts, tv_str value, size_t i)
{
    tv_str last = value;
    for (tv_cut cut = tv_str_cut(value, ':'); cut.found; cut = tv_str_cut(cut.tail, ':'))
        last = cut.tail;
    if (tv_str_is(value, "gpu"))
        last = TV_S("1");
    sbatch_number(r, facts, "gpus_per_node", last, i);
    (void)tv_at(r, tv_note_str(r->a, facts, "gpus_asked", value), i);
}

static void sbatch_option(tv_reading *r, tv_note *facts, tv_str name, tv_str value, size_t i)
{
    static const struct {
        const char *name;
        const char *key;
    } numbers[] = {{"--nodes", "nodes"},
                   {"-N", "nodes"},
                   {"--ntasks-per-node", "ntasks_per_node"},
                   {"--ntasks", "ntasks"},
                   {"-n", "ntasks"},
                   {"--cpus-per-task", "cpus_per_task"},
                   {"-c", "cpus_per_task"},
                   {"--cpus-per-gpu", "cpus_per_gpu"}};
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        if (tv_str_is(name, numbers[k].name))
            sbatch_number(r, facts, numbers[k].key, value, i);
    if (tv_str_is(name, "--gres") || tv_str_is(name, "--gpus-per-node") ||
        tv_str_is(name, "--gpus") || tv_str_is(name, "-G"))
        sbatch_gpus(r, facts, value, i);
    if (tv_str_is(name, "--mem") || tv_str_is(name, "--mem-per-gpu") ||
        tv_str_is(name, "--mem-per-cpu")) {
        tv_str s = value;
        const bool bare = s.n && s.p[s.n - 1] >= '0' && s.p[s.n - 1] <= '9';
        const tv_double_read v = tv_take_bytes(&s);
        const char *key = tv_str_is(name, "--mem")           ? "memory_bytes"
                          : tv_str_is(name, "--mem-per-gpu") ? "memory_per_gpu_bytes"
                                                             : "memory_per_cpu_bytes";
        if (v.ok) /* Slurm's bare number is in MB */
            (void)tv_at(r, tv_note_num(r->a, facts, key, bare ? v.v * 0x1p20 : v.v), i);
    }
}

static void read_sbatch(tv_reading *r, tv_arena *scratch, tv_words_of *w, tv_sighting **s, size_t i,
                        tv_str line)
{
    tv_str rest;
    tv_shell_words(scratch, tv_str_drop(line, strlen("#SBATCH")), w, &rest);
    if (!w->n)
        return;
    if (!*s) {
        *s = tv_see(r, "command", i);
        (void)tv_note_str(r->a, &(*s)->facts, "tool", TV_S("sbatch"));
    }
    const tv_cut cut = tv_str_cut(w->v[0], '=');
    const tv_str value = cut.found ? cut.tail : w->n > 1 ? w->v[1] : (tv_str){0};
    sbatch_option(r, &(*s)->facts, cut.head, value, i);
}

/* ---- commands ---- */

static bool is_candidate(tv_str s)
{
    static const char *const marks[] = {"docker ",
                                        "podman ",
                                        "nvidia-docker",
                                        "torchrun",
                                        "torch.distributed.",
                                        "deepspeed ",
                                        "accelerate launch",
                                        "paddle.distributed.",
                                        "fleetrun",
                                        "mpirun",
                                        "srun ",
                                        "vllm serve",
                                        "vllm.entrypoints",
                                        ".py",
                                        "nerdctl ",
                                        "horovodrun",
                                        "trtexec",
                                        "tritonserver",
                                        "singularity exec",
                                        "apptainer exec",
                                        "sglang."};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (tv_holds(s, marks[i]))
            return true;
    return false;
}

static bool is_prose(const tv_words_of *w)
{
    return w->n && w->v[w->n - 1].n > 1 && tv_str_ends(w->v[w->n - 1], TV_S(".")) &&
           !tv_str_is(w->v[w->n - 1], "..");
}

static void read_words(tv_reading *r, tv_arena *scratch, size_t i, const tv_words_of *w)
{
    tv_note facts = {.type = TV_NOTE_MAP};
    const tv_command_line c = {r, i, &facts, scratch};
    if (is_prose(w))
        return;
    size_t k = 0;
    while (k < w->n && tv_shell_assignment(w->v[k]).name.n)
        k++;
    const bool docker = tv_docker_note(&c, w->v + k, w->n - k);
    if (docker ? !tv_noted(&facts, "image") : !tv_launch_note(&c, w->v, w->n))
        return;
    if (!docker)
        (void)tv_note_str(r->a, &facts, "tool", TV_S("launch"));
    tv_see(r, "command", i)->facts = facts;
}

static void read_line(tv_reading *r, tv_arena *scratch, tv_words_of *w, size_t i, size_t *last)
{
    tv_str s = tv_shell_line(scratch, r->sheet, i, last);
    for (unsigned turn = 0; s.n && turn < 16; turn++) {
        tv_shell_words(scratch, s, w, &s);
        if (w->n)
            read_words(r, scratch, i, w);
    }
}

/* A capture with more commands than this is a log of commands: the first ones tell enough. */
enum { MOST_COMMANDS = 200 };

static void read(tv_reading *r)
{
    tv_sighting *sbatch = NULL;
    tv_arena *scratch = tv_arena_child(r->a, TV_LIMIT_ARENA_BYTES);
    const tv_mark blank = tv_arena_mark(scratch);
    tv_words_of *w = tv_new(scratch, tv_words_of, 1);
    const tv_mark mark = tv_arena_mark(scratch);
    size_t n = 0;
    for (size_t i = 0; i < r->sheet->n && n < MOST_COMMANDS; i++) {
        const tv_str s = r->sheet->v[i].s;
        const bool slurm = tv_str_starts(s, TV_S("#SBATCH "));
        if (slurm)
            read_sbatch(r, scratch, w, &sbatch, i, s);
        else if (is_candidate(s))
            read_line(r, scratch, w, i, &i);
        else
            continue;
        n++;
        tv_arena_rewind(scratch, mark);
    }
    tv_arena_rewind(scratch, blank);
}

static const char *const needles[] = {"docker run",
                                      "docker create",
                                      "docker container run",
                                      "podman run",
                                      "nerdctl run",
                                      "torchrun ",
                                      "torch.distributed.launch",
                                      "torch.distributed.run",
                                      "deepspeed ",
                                      "accelerate launch",
                                      "paddle.distributed.launch",
                                      "fleetrun",
                                      "mpirun ",
                                      "horovodrun ",
                                      "srun ",
                                      "#SBATCH ",
                                      "vllm serve",
                                      "vllm.entrypoints",
                                      "sglang.launch_server",
                                      "trtexec ",
                                      "tritonserver ",
                                      "python train",
                                      "python3 train",
                                      "singularity exec",
                                      "apptainer exec",
                                      "CUDA_VISIBLE_DEVICES=",
                                      NULL};

extern const tv_log_format tv_log_format_shell_command;
const tv_log_format tv_log_format_shell_command = {"shell-command", needles, read};
