/* What starts a job: torchrun, deepspeed, accelerate, Paddle's launcher, mpirun, servers and
 * plain Python, behind wrappers. Options have many spellings; the facts have one. */
#include <string.h>

#include "commands.h"

static void put_str(const tv_command_line *c, const char *key, tv_str value)
{
    if (value.n)
        (void)tv_at(c->r, tv_note_str(c->r->a, c->facts, key, value), c->line);
}

static void put_number(const tv_command_line *c, const char *key, tv_str value)
{
    const tv_double_read v = tv_take_number(&value);
    if (v.ok)
        (void)tv_at(c->r, tv_note_num(c->r->a, c->facts, key, v.v), c->line);
}

void tv_env_note(const tv_command_line *c, tv_str name, tv_str value)
{
    tv_note *env = tv_note_map(c->r->a, c->facts, "env");
    if (env->n < 200 && name.n < 100)
        (void)tv_at(c->r, tv_note_str(c->r->a, env, tv_cstr(c->r->a, name), value), c->line);
}

/* ---- options in any spelling ---- */

/* '-' and '_' are one; a dotted name is compared by its last part. */
static bool same_option(tv_str given, const char *name)
{
    const size_t n = strlen(name);
    if (given.n != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        const char x = given.p[i] == '_' ? '-' : given.p[i];
        if (x != name[i])
            return false;
    }
    return true;
}

typedef struct named {
    const char *option; /* without the leading dashes, '-' for '_' */
    const char *key;
    bool number;
} named;

static const named launch_options[] = {
    {"nproc-per-node", "nproc_per_node", false},
    {"nnodes", "nnodes", false},
    {"node-rank", "node_rank", false},
    {"machine-rank", "node_rank", false},
    {"master-addr", "master_addr", false},
    {"main-process-ip", "master_addr", false},
    {"master-port", "master_port", true},
    {"main-process-port", "master_port", true},
    {"rdzv-endpoint", "rdzv_endpoint", false},
    {"rdzv-backend", "rdzv_backend", false},
    {"num-gpus", "nproc_per_node", false},
    {"num-processes", "num_processes", true},
    {"num-machines", "nnodes", false},
    {"gpu-ids", "devices", false},
    {"gpus", "devices", false},
    {"devices", "devices", false},
    {"selected-gpus", "devices", false},
    {"include", "include", false},
    {"hostfile", "hostfile", false},
    {"tensor-parallel-size", "tensor_parallel", true},
    {"tp-size", "tensor_parallel", true},
    {"gpu-memory-utilization", "gpu_memory_frac", true},
    {"max-model-len", "max_model_len", true},
    {"np", "processes", true},
};

static const named loading_options[] = {
    {"workers", "workers", true},
    {"num-workers", "workers", true},
    {"n-workers", "workers", true},
    {"nworkers", "workers", true},
    {"worker-num", "workers", true},
    {"dataloader-num-workers", "workers", true},
    {"data-workers", "workers", true},
    {"batch-size", "batch", true},
    {"batch", "batch", true},
    {"bs", "batch", true},
    {"train-batch-size", "batch", true},
    {"micro-batch-size", "batch", true},
    {"per-device-train-batch-size", "batch", true},
    {"per-gpu-train-batch-size", "batch", true},
    {"prefetch-factor", "prefetch", true},
    {"dataloader-prefetch-factor", "prefetch", true},
};

static const named *named_option(tv_str name, const named *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (same_option(name, rows[i].option))
            return &rows[i];
    return NULL;
}

static tv_str without_dashes(tv_str word)
{
    while (word.n && *word.p == '-')
        word = tv_str_drop(word, 1);
    return word;
}

static tv_str last_part(tv_str name)
{
    for (size_t i = name.n; i--;)
        if (name.p[i] == '.')
            return tv_str_drop(name, i + 1);
    return name;
}

static void put_named(const tv_command_line *c, const named *row, tv_str value)
{
    if (row->number)
        put_number(c, row->key, value);
    else
        put_str(c, row->key, value);
}

/* "--name value", "--name=value"; also yields how many words it took. */
static size_t note_named(const tv_command_line *c, const tv_str *v, size_t n, const named *rows,
                         size_t n_rows)
{
    if (v[0].n < 3 || *v[0].p != '-')
        return 0;
    const tv_cut cut = tv_str_cut(without_dashes(v[0]), '=');
    const named *row = named_option(last_part(cut.head), rows, n_rows);
    if (!row)
        return 0;
    if (cut.found) {
        put_named(c, row, cut.tail);
        return 1;
    }
    if (n > 1)
        put_named(c, row, v[1]);
    return n > 1 ? 2 : 1;
}

/* "-j 8", "-j8", "-b 32": as the examples of PyTorch have them. */
static void note_short(const tv_command_line *c, const tv_str *v, size_t n)
{
    if (v[0].n < 2 || *v[0].p != '-' || v[0].p[1] == '-')
        return;
    const char *key = v[0].p[1] == 'j' ? "workers" : v[0].p[1] == 'b' ? "batch" : NULL;
    if (key && (v[0].n > 2 || n > 1))
        put_number(c, key, v[0].n > 2 ? tv_str_drop(v[0], 2) : v[1]);
}

void tv_loading_note(const tv_command_line *c, const tv_str *v, size_t n)
{
    const size_t n_rows = sizeof loading_options / sizeof *loading_options;
    for (size_t i = 0; i < n; i++) {
        if (note_named(c, v + i, n - i, loading_options, n_rows))
            continue;
        note_short(c, v + i, n - i);
        const tv_cut cut = tv_str_cut(v[i], '='); /* data.num_workers=8 */
        const named *row =
            cut.found ? named_option(last_part(cut.head), loading_options, n_rows) : NULL;
        if (row)
            put_named(c, row, cut.tail);
    }
}

/* ---- wrappers ---- */

typedef struct cursor {
    const tv_str *v;
    size_t n;
    size_t i;
} cursor;

static bool at_option(const cursor *k)
{
    return k->i < k->n && k->v[k->i].n > 1 && *k->v[k->i].p == '-';
}

/* Passes options; with_value: letters whose value is the next word. */
static void pass_options(cursor *k, const char *with_value)
{
    while (at_option(k)) {
        const tv_str word = k->v[k->i++];
        const bool longer = word.n > 2 && word.p[1] == '-';
        if (longer ? (!tv_str_cut(word, '=').found && k->i < k->n && *with_value == '*' &&
                      !(k->v[k->i].n && *k->v[k->i].p == '-'))
                   : (word.n == 2 && strchr(with_value, word.p[1])))
            k->i++;
    }
}

static bool pass_assignments(const tv_command_line *c, cursor *k)
{
    const size_t before = k->i;
    while (k->i < k->n) {
        const tv_assignment set = tv_shell_assignment(k->v[k->i]);
        if (!set.name.n)
            break;
        if (tv_is_known_variable(set.name))
            tv_env_note(c, set.name, set.value);
        k->i++;
    }
    return k->i > before;
}

static void pass_container(const tv_command_line *c, cursor *k)
{
    k->i++; /* exec or run */
    for (; at_option(k); k->i++) {
        if (tv_str_is(k->v[k->i], "--nv"))
            put_str(c, "gpus_asked", TV_S("--nv"));
        if (tv_str_is(k->v[k->i], "-B") || tv_str_is(k->v[k->i], "--bind") ||
            tv_str_is(k->v[k->i], "--env"))
            k->i++;
    }
    if (k->i < k->n)
        put_str(c, "image", k->v[k->i++]);
}

static void pass_mpi(const tv_command_line *c, cursor *k)
{
    while (at_option(k)) {
        const tv_str word = k->v[k->i++];
        if ((tv_str_is(word, "-np") || tv_str_is(word, "-n")) && k->i < k->n)
            put_number(c, "processes", k->v[k->i]);
        const bool set = tv_str_is(word, "-x") && k->i < k->n;
        const tv_assignment x = set ? tv_shell_assignment(k->v[k->i]) : (tv_assignment){0};
        if (x.name.n)
            tv_env_note(c, x.name, x.value);
        const bool two = tv_str_is(word, "-mca") || tv_str_is(word, "--mca");
        static const char *const flags[] = {"--allow-run-as-root", "--tag-output",
                                            "--oversubscribe", "-l", "--display-map"};
        bool flag = tv_str_cut(word, '=').found;
        for (size_t f = 0; f < sizeof flags / sizeof *flags; f++)
            flag |= tv_str_is(word, flags[f]);
        k->i += two ? 2 : flag ? 0 : 1;
    }
}

/* Each wrapper once; false: the word is none. */
static bool pass_wrapper(const tv_command_line *c, cursor *k)
{
    const tv_str word = k->v[k->i];
    static const char *const plain[] = {"sudo", "nohup",  "time",     "exec",   "stdbuf",
                                        "nice", "ionice", "unbuffer", "command"};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (tv_str_is(word, plain[i])) {
            k->i++;
            pass_options(k, "nucpo");
            return true;
        }
    if (tv_str_is(word, "env")) {
        k->i++;
        return true;
    }
    if (tv_str_is(word, "numactl") || tv_str_is(word, "taskset")) {
        put_str(c, "pinned", word);
        k->i++;
        pass_options(k, tv_str_is(word, "numactl") ? "NmCpi" : "");
        if (tv_str_is(word, "taskset") && k->i < k->n)
            k->i++;
        return true;
    }
    if (tv_str_is(word, "timeout")) {
        k->i += 2;
        return true;
    }
    if (tv_str_is(word, "singularity") || tv_str_is(word, "apptainer")) {
        k->i++;
        pass_container(c, k);
        return true;
    }
    if (tv_str_is(word, "mpirun") || tv_str_is(word, "mpiexec") || tv_str_is(word, "horovodrun")) {
        put_str(c, "launcher", word);
        k->i++;
        pass_mpi(c, k);
        return true;
    }
    if (tv_str_is(word, "srun")) {
        put_str(c, "launcher", word);
        k->i++;
        pass_options(k, "*nNctpwGJDo");
        return true;
    }
    if (tv_str_is(word, "uv") || tv_str_is(word, "poetry")) {
        k->i += 2;
        return true;
    }
    return false;
}

/* ---- launchers ---- */

static bool is_python(tv_str word)
{
    tv_str name = word;
    for (size_t i = word.n; i--;)
        if (word.p[i] == '/') {
            name = tv_str_drop(word, i + 1);
            break;
        }
    return tv_str_is(name, "python") || tv_str_is(name, "python3") || tv_str_is(name, "ipython") ||
           (tv_str_starts(name, TV_S("python3.")) && name.n <= 10);
}

typedef struct launcher_row {
    const char *word;   /* the command, or the module behind -m */
    const char *second; /* "launch"; NULL: none */
    const char *name;
} launcher_row;

static const launcher_row launchers[] = {
    {"torchrun", NULL, "torchrun"},
    {"torch.distributed.launch", NULL, "torch.distributed.launch"},
    {"torch.distributed.run", NULL, "torchrun"},
    {"torch.distributed.elastic", NULL, "torchrun"},
    {"deepspeed", NULL, "deepspeed"},
    {"accelerate", "launch", "accelerate"},
    {"accelerate.commands.launch", NULL, "accelerate"},
    {"paddle.distributed.launch", NULL, "paddle"},
    {"paddle.distributed.fleet.launch", NULL, "paddle"},
    {"fleetrun", NULL, "paddle"},
    {"colossalai", "run", "colossalai"},
    {"vllm", "serve", "vllm"},
    {"vllm.entrypoints.openai.api_server", NULL, "vllm"},
    {"sglang.launch_server", NULL, "sglang"},
    {"trtexec", NULL, "trtexec"},
    {"tritonserver", NULL, "triton"},
};

static const launcher_row *launcher_at(const cursor *k)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const launcher_row *row = &launchers[i];
        if (tv_str_is(k->v[k->i], row->word) &&
            (!row->second || (k->i + 1 < k->n && tv_str_is(k->v[k->i + 1], row->second))))
            return row;
    }
    return NULL;
}

static void note_script(const tv_command_line *c, const cursor *k, size_t from)
{
    for (size_t i = from; i < k->n; i++)
        if (tv_str_ends(k->v[i], TV_S(".py"))) {
            put_str(c, "script", k->v[i]);
            return;
        }
}

static bool note_launcher(const tv_command_line *c, cursor *k, const launcher_row *row)
{
    const size_t n_rows = sizeof launch_options / sizeof *launch_options;
    put_str(c, "launcher", tv_str_of(row->name));
    for (size_t i = k->i + 1; i < k->n; i++) {
        (void)note_named(c, k->v + i, k->n - i, launch_options, n_rows);
        if (tv_str_is(k->v[i], "--standalone"))
            (void)tv_note_bool(c->r->a, c->facts, "standalone", true);
        if (tv_str_ends(k->v[i], TV_S(".py")))
            break; /* the rest belongs to the script */
    }
    note_script(c, k, k->i + 1);
    tv_loading_note(c, k->v + k->i, k->n - k->i);
    return true;
}

static bool note_python(const tv_command_line *c, cursor *k)
{
    k->i++;
    while (at_option(k) && !tv_str_is(k->v[k->i], "-m") && !tv_str_is(k->v[k->i], "-c"))
        k->i++;
    if (k->i + 1 < k->n && tv_str_is(k->v[k->i], "-m")) {
        k->i++;
        const launcher_row *row = launcher_at(k);
        if (row)
            return note_launcher(c, k, row);
        put_str(c, "module", k->v[k->i]);
    } else if (k->i >= k->n || !tv_str_ends(k->v[k->i], TV_S(".py"))) {
        return false;
    } else {
        put_str(c, "script", k->v[k->i]);
    }
    if (!tv_noted(c->facts, "launcher"))
        put_str(c, "launcher", TV_S("python"));
    tv_loading_note(c, k->v + k->i, k->n - k->i);
    return true;
}

/* "bash -c 'cd /w && torchrun ...'": the commands inside. */
static bool note_inner(const tv_command_line *c, tv_str text)
{
    bool some = false;
    tv_words_of *words = tv_new(c->scratch, tv_words_of, 1);
    for (unsigned turn = 0; text.n && turn < 32; turn++) {
        tv_shell_words(c->scratch, text, words, &text);
        cursor k = {words->v, words->n, 0};
        (void)pass_assignments(c, &k);
        if (k.i >= k.n)
            continue;
        const launcher_row *row = launcher_at(&k);
        some |= row ? note_launcher(c, &k, row) : is_python(k.v[k.i]) && note_python(c, &k);
    }
    return some;
}

bool tv_launch_note(const tv_command_line *c, const tv_str *v, size_t n)
{
    cursor k = {v, n, 0};
    for (unsigned turn = 0; turn < 16 && k.i < k.n; turn++)
        if (!pass_assignments(c, &k) && !pass_wrapper(c, &k))
            break;
    if (k.i >= k.n)
        return false;
    const launcher_row *row = launcher_at(&k);
    if (row)
        return note_launcher(c, &k, row);
    if (is_python(k.v[k.i]))
        return note_python(c, &k);
    const bool shell = tv_str_is(k.v[k.i], "bash") || tv_str_is(k.v[k.i], "sh") ||
                       tv_str_is(k.v[k.i], "/bin/bash") || tv_str_is(k.v[k.i], "/bin/sh");
    if (shell && k.i + 2 < k.n && k.v[k.i + 1].n >= 2 && *k.v[k.i + 1].p == '-' &&
        k.v[k.i + 1].p[k.v[k.i + 1].n - 1] == 'c')
        return note_inner(c, k.v[k.i + 2]);
    return false;
}
