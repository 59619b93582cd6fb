/* Training scripts of PyTorch and Paddle: what they set up. Only well known calls are looked at, by
 * their names; what a script computes from its arguments stays unknown. */
#include "train_script.h"

#include "shell_words.h"

#include <string.h>

tv_note *tv_script_note(tv_script *s, const char *what, size_t i, const char *fix)
{
    tv_reading *r = s->r;
    tv_note *list = tv_note_list(r->a, s->facts, "lint");
    tv_note *entry = tv_at(r, tv_note_map(r->a, list, NULL), s->code.v[i].line);
    (void)tv_note_str(r->a, entry, "what", tv_str_of(what));
    (void)tv_note_num(r->a, entry, "line", (double)(r->sheet->first_line + s->code.v[i].line));
    if (fix)
        (void)tv_note_str(r->a, entry, "fix", tv_str_of(fix));
    return entry;
}

/* ---- what it is ---- */

static bool imports(tv_str s, const char *package)
{
    const tv_str t = tv_str_trim(s);
    const tv_str rest = tv_str_starts(t, TV_S("import ")) ? tv_str_drop(t, 7)
                        : tv_str_starts(t, TV_S("from ")) ? tv_str_drop(t, 5)
                                                          : (tv_str){0};
    const size_t n = strlen(package);
    return tv_str_starts(rest, tv_str_of(package)) && (rest.n == n || strchr(" .,;", rest.p[n]));
}

static size_t first_import(const tv_sheet *sheet)
{
    for (size_t i = 0; i < sheet->n; i++) {
        tv_str s = sheet->v[i].s;
        if (tv_str_starts(s, TV_S(">>> ")))
            s = tv_str_drop(s, 4);
        if (imports(s, "torch") || imports(s, "paddle"))
            return i;
    }
    return TV_NO_LINE;
}

static bool holds_any(const tv_listing *code, const char *const *texts)
{
    for (; *texts; texts++)
        if (tv_listing_holds(code, *texts))
            return true;
    return false;
}

static void classify(tv_script *s)
{
    static const char *const managed[] = {"pytorch_lightning",
                                          "import lightning",
                                          "from lightning",
                                          "Accelerator(",
                                          "Trainer(",
                                          "TrainingArguments",
                                          "deepspeed.initialize",
                                          "from composer",
                                          "import composer",
                                          "from ignite",
                                          "fabric.setup",
                                          "mmengine",
                                          NULL};
    static const char *const cuda[] = {".cuda(",      "\"cuda",   "'cuda",      "cuda.is_available",
                                       "set_device(", "\"gpu",    "'gpu",       "CUDAPlace",
                                       "nccl",        "cuda.amp", ".to(device", NULL};
    static const char *const ddp[] = {"init_process_group(",
                                      "DistributedDataParallel(",
                                      " DDP(",
                                      "=DDP(",
                                      "fleet.init(",
                                      "init_parallel_env(",
                                      "fully_shard(",
                                      "FullyShardedDataParallel(",
                                      NULL};
    const tv_listing *code = &s->code;
    for (size_t i = 0; i < code->n && !s->paddle; i++)
        s->paddle = imports(code->v[i].s, "paddle");
    s->managed = holds_any(code, managed);
    s->cuda = holds_any(code, cuda) || s->paddle;
    s->ddp = holds_any(code, ddp);
}

static void put_bool(tv_script *s, const char *key, bool yes)
{
    (void)tv_note_bool(s->r->a, s->facts, key, yes);
}

/* ---- one process for each GPU ---- */

static void wrapper(tv_script *s, size_t i)
{
    const tv_str line = s->code.v[i].s;
    if (s->paddle || imports(line, "torch") || imports(line, "apex"))
        return;
    if (tv_listing_call(line, "DataParallel").n)
        (void)tv_script_note(s, "data-parallel", i,
                             "torch.nn.parallel.DistributedDataParallel(model.to(local_rank), "
                             "device_ids=[local_rank])");
    const tv_str args = tv_listing_call(line, "init_process_group");
    if (tv_holds(args, "gloo") && !tv_holds(args, "nccl") && s->cuda)
        (void)tv_script_note(s, "gloo-on-gpu", i,
                             "torch.distributed.init_process_group(backend=\"nccl\")");
    if (tv_holds(line, "find_unused_parameters=True"))
        (void)tv_script_note(s, "unused-parameters", i, "find_unused_parameters=False");
}

static bool is_rank_guard(tv_str s)
{
    return tv_str_starts(s, TV_S("if ")) &&
           (tv_listing_names(s, "rank") || tv_holds(s, "local_rank") || tv_holds(s, "get_rank()") ||
            tv_holds(s, "is_main") || tv_holds(s, "is_master") || tv_holds(s, "_rank") ||
            tv_holds(s, "main_process") || tv_holds(s, "master_process"));
}

static size_t rank_guard_above(const tv_listing *code, size_t i)
{
    for (i = code->v[i].parent; i != TV_NO_LINE; i = code->v[i].parent)
        if (is_rank_guard(code->v[i].s))
            return i;
    return TV_NO_LINE;
}

static bool guards_the_others(tv_str s)
{
    return tv_holds(s, "!= 0") || tv_holds(s, "not in") || tv_holds(s, "> 0") ||
           tv_str_starts(s, TV_S("if not "));
}

static bool is_collective(tv_str s)
{
    static const char *const calls[] = {"barrier",
                                        "all_reduce",
                                        "all_gather",
                                        "reduce_scatter",
                                        "broadcast_object_list",
                                        "all_gather_object",
                                        "all_reduce_coalesced"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (tv_listing_call(s, calls[i]).n)
            return true;
    return false;
}

/* A barrier for rank 0 alone waits for ever, unless the others have theirs in a branch as well
 * (the pattern "let rank 0 download first"). */
static void collectives(tv_script *s)
{
    const tv_listing *code = &s->code;
    bool others = false;
    size_t alone = TV_NO_LINE;
    for (size_t i = 0; i < code->n; i++) {
        if (!is_collective(code->v[i].s))
            continue;
        const size_t guard = rank_guard_above(code, i);
        if (guard == TV_NO_LINE)
            continue;
        others |= guards_the_others(code->v[guard].s);
        if (!guards_the_others(code->v[guard].s) && alone == TV_NO_LINE)
            alone = i;
    }
    if (alone != TV_NO_LINE && !others)
        (void)tv_script_note(s, "collective-in-branch", alone, NULL);
}

/* A function that saves may be called by rank 0 alone. */
static bool is_called_by_one(const tv_listing *code, size_t i)
{
    const size_t def = tv_listing_within(code, i, "def ");
    if (def == TV_NO_LINE)
        return false;
    tv_str name = tv_str_cut(tv_str_drop(code->v[def].s, 4), '(').head;
    if (!name.n || name.n > 60)
        return false;
    char call[64];
    memcpy(call, name.p, name.n);
    memcpy(call + name.n, "(", 2);
    for (size_t k = 0; k < code->n; k++)
        if (k != def && tv_holds(code->v[k].s, call) && rank_guard_above(code, k) != TV_NO_LINE)
            return true;
    return false;
}

/* More observations of one kind than this say nothing new. */
enum { MOST_SAVES = 8 };

static void checkpoints(tv_script *s)
{
    const tv_listing *code = &s->code;
    const bool careful = tv_listing_holds(code, "is_main_process") ||
                         tv_listing_holds(code, "distributed.checkpoint");
    size_t saves = 0;
    for (size_t i = 0; i < code->n; i++) {
        const tv_str line = code->v[i].s;
        const tv_str load = tv_listing_call(line, "torch.load");
        if (load.n && !tv_holds(load, "map_location") && !tv_holds(line, "lambda")) {
            tv_str v[2] = {{0}};
            if (tv_fields(load, ',', v, 2) < 2 || tv_holds(load, "weights_only"))
                (void)tv_script_note(s, "load-without-map", i,
                                     "torch.load(path, map_location=\"cpu\")");
        }
        if (tv_listing_call(line, "torch.save").n && !careful && saves++ < MOST_SAVES &&
            rank_guard_above(code, i) == TV_NO_LINE && !tv_holds(line, "rank") &&
            !is_called_by_one(code, i))
            (void)tv_script_note(s, "save-by-all", i,
                                 "if torch.distributed.get_rank() == 0: torch.save(...)");
    }
}

static void devices(tv_script *s)
{
    static const char *const named[] = {".to(local_rank",
                                        ".to(rank",
                                        ".cuda(local_rank",
                                        ".cuda(rank",
                                        ".cuda(gpu",
                                        "cuda:{local_rank}",
                                        "cuda:{rank}",
                                        "\"cuda\", local_rank",
                                        "'cuda', local_rank",
                                        ".cuda(args.local_rank",
                                        ".cuda(args.gpu",
                                        "cuda:{args.local_rank}",
                                        "torch.device(local_rank",
                                        NULL};
    const tv_listing *code = &s->code;
    size_t init = 0;
    while (init < code->n && !tv_listing_call(code->v[init].s, "init_process_group").n)
        init++;
    init = init < code->n ? init : TV_NO_LINE;
    if (init == TV_NO_LINE || tv_listing_holds(code, "set_device(") ||
        tv_listing_holds(code, "CUDA_VISIBLE_DEVICES") || tv_holds(code->v[init].s, "device_id") ||
        (tv_holds(code->v[init].s, "gloo") && !tv_holds(code->v[init].s, "nccl")))
        return;
    tv_note *note = tv_script_note(s, "no-set-device", init,
                                   "torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"]))");
    (void)tv_note_bool(s->r->a, note, "names_device", holds_any(code, named));
}

/* ---- loaders ---- */

static void put_number(tv_script *s, tv_note *to, const char *key, tv_str value)
{
    const tv_double_read v = tv_take_number(&value);
    if (v.ok && !tv_str_trim(value).n)
        (void)tv_note_num(s->r->a, to, key, v.v);
    else if (tv_str_trim(value).n || v.ok)
        (void)tv_note_null(s->r->a, to, key); /* given, by a name */
}

static bool is_for_validation(tv_str line)
{
    const tv_str target = tv_str_cut(line, '=').head;
    return tv_holds_nocase(target, "val") || tv_holds_nocase(target, "test") ||
           tv_holds_nocase(target, "eval") || tv_holds_nocase(target, "dev_") ||
           tv_holds_nocase(target, "infer");
}

static void loader(tv_script *s, tv_note *loaders, size_t i, tv_str args)
{
    tv_arena *a = s->r->a;
    tv_note *entry = tv_at(s->r, tv_note_map(a, loaders, NULL), s->code.v[i].line);
    const tv_str workers = tv_listing_keyword(args, "num_workers");
    const bool open = tv_holds(args, "**"); /* keywords come from elsewhere */
    (void)tv_note_bool(a, entry, "validation", is_for_validation(s->code.v[i].s));
    (void)tv_note_bool(a, entry, "open", open);
    (void)tv_note_bool(a, entry, "sampler",
                       tv_listing_keyword(args, "sampler").n ||
                           tv_listing_keyword(args, "batch_sampler").n || open);
    (void)tv_note_bool(a, entry, "shuffle", tv_str_is(tv_listing_keyword(args, "shuffle"), "True"));
    if (workers.n)
        put_number(s, entry, "workers", workers);
    else if (!open)
        (void)tv_note_num(a, entry, "workers", 0);
    const tv_str pin = tv_listing_keyword(args, "pin_memory");
    (void)tv_note_bool(a, entry, "pin_memory", open || (pin.n && !tv_str_is(pin, "False")));
    if (tv_listing_keyword(args, "batch_size").n)
        put_number(s, entry, "batch", tv_listing_keyword(args, "batch_size"));
    if (tv_listing_keyword(args, "prefetch_factor").n)
        put_number(s, entry, "prefetch", tv_listing_keyword(args, "prefetch_factor"));
}

static bool defines(tv_str s)
{
    return tv_str_starts(s, TV_S("class ")) || tv_str_starts(s, TV_S("def ")) ||
           tv_str_starts(s, TV_S("from ")) || tv_str_starts(s, TV_S("import "));
}

static void loaders(tv_script *s)
{
    tv_note *list = NULL;
    for (size_t i = 0; i < s->code.n; i++) {
        const tv_str args = tv_listing_call(s->code.v[i].s, "DataLoader");
        if (!args.n || defines(s->code.v[i].s))
            continue;
        if (!list)
            list = tv_note_list(s->r->a, s->facts, "loaders");
        loader(s, list, i, args);
    }
    put_bool(s, "in_memory_data", tv_listing_holds(&s->code, "TensorDataset("));
    put_bool(s, "iterable_data",
             tv_listing_holds(&s->code, "IterableDataset") ||
                 tv_listing_holds(&s->code, "WebDataset"));
    put_bool(s, "non_blocking", tv_listing_holds(&s->code, "non_blocking=True"));
}

/* ---- switches that were turned for debugging, and the environment it sets itself ---- */

/* Under a condition on an argument: "if args.deterministic:". */
static bool is_asked_for(const tv_listing *code, size_t i)
{
    for (i = code->v[i].parent; i != TV_NO_LINE; i = code->v[i].parent)
        if (tv_str_starts(code->v[i].s, TV_S("if ")) || tv_str_starts(code->v[i].s, TV_S("elif ")))
            return true;
    return false;
}

static void switches(tv_script *s, size_t i)
{
    static const struct {
        const char *text;
        const char *what;
        const char *fix;
    } rows[] = {
        {"set_detect_anomaly(True", "anomaly-detection",
         "torch.autograd.set_detect_anomaly(False)"},
        {"autograd.detect_anomaly(", "anomaly-detection", "# remove torch.autograd.detect_anomaly"},
        {"use_deterministic_algorithms(True", "deterministic",
         "torch.use_deterministic_algorithms(False)"},
        {"cudnn.deterministic = True", "deterministic",
         "torch.backends.cudnn.deterministic = False"},
        {"cudnn.deterministic=True", "deterministic", "torch.backends.cudnn.deterministic = False"},
        {"cudnn.enabled = False", "cudnn-off", "torch.backends.cudnn.enabled = True"},
        {"cudnn.enabled=False", "cudnn-off", "torch.backends.cudnn.enabled = True"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (tv_holds(s->code.v[i].s, rows[k].text) && !is_asked_for(&s->code, i)) {
            (void)tv_script_note(s, rows[k].what, i, rows[k].fix);
            return;
        }
}

/* os.environ["NAME"] = "value", os.environ.setdefault("NAME", "value") */
static void own_environment(tv_script *s, size_t i)
{
    const tv_str line = s->code.v[i].s;
    tv_str name = tv_enclosed(line, "os.environ[", "]");
    tv_str rest, value = {0};
    if (name.n && tv_past(line, "]", &rest)) {
        rest = tv_str_trim(rest);
        if (!tv_str_starts(rest, TV_S("=")) || tv_str_starts(rest, TV_S("==")))
            return;
        value = tv_str_trim(tv_str_drop(rest, 1));
    } else if (tv_past(line, "os.environ.setdefault(", &rest)) {
        const tv_cut cut = tv_str_cut(rest, ',');
        name = cut.head;
        value = tv_str_trim(tv_str_cut(cut.tail, ')').head);
    }
    name = tv_unquoted(name);
    const tv_str plain = tv_unquoted(value);
    if (!tv_is_known_variable(name) || plain.n + 2 != value.n)
        return;
    tv_note *env = tv_note_map(s->r->a, s->facts, "env");
    if (env->n < 100)
        (void)tv_at(s->r, tv_note_str(s->r->a, env, tv_cstr(s->r->a, name), plain),
                    s->code.v[i].line);
}

static void put_facts(tv_script *s)
{
    tv_arena *a = s->r->a;
    (void)tv_note_str(a, s->facts, "framework", s->paddle ? TV_S("paddle") : TV_S("pytorch"));
    put_bool(s, "distributed", s->ddp);
    put_bool(s, "managed", s->managed);
    put_bool(s, "uses_gpu", s->cuda);
    put_bool(s, "distributed_sampler",
             tv_listing_holds(&s->code, "DistributedSampler(") ||
                 tv_listing_holds(&s->code, "DistributedBatchSampler("));
    put_bool(s, "set_epoch", tv_listing_holds(&s->code, ".set_epoch("));
}

static void sampler_epochs(tv_script *s)
{
    const size_t at = tv_listing_find(&s->code, 0, s->code.n, "DistributedSampler(");
    const bool epochs =
        tv_listing_holds(&s->code, "for epoch in") || tv_listing_holds(&s->code, "for ep in");
    if (at != TV_NO_LINE && epochs && !s->managed && !tv_listing_holds(&s->code, ".set_epoch(") &&
        !tv_holds(s->code.v[at].s, "shuffle=False"))
        (void)tv_script_note(s, "no-set-epoch", at, "sampler.set_epoch(epoch)");
}

static void paddle_start(tv_script *s)
{
    const size_t at = tv_listing_find(&s->code, 0, s->code.n, "paddle.DataParallel(");
    if (at != TV_NO_LINE && !tv_listing_holds(&s->code, "init_parallel_env(") &&
        !tv_listing_holds(&s->code, "fleet.init("))
        (void)tv_script_note(s, "paddle-no-init", at, "paddle.distributed.init_parallel_env()");
}

/* A script trains, loads or distributes; two imports in a log are none. */
static bool is_script(const tv_listing *code)
{
    static const char *const signs[] = {
        ".backward(",         "DataLoader(", "DataParallel(", "init_process_group(",
        ".parameters()",      "no_grad",     "nn.Module",     "nn.Layer",
        "set_detect_anomaly", "torch.load(", "os.environ[",   NULL};
    return code->n >= 3 && holds_any(code, signs);
}

/* The longest training scripts have ten thousand lines; what is longer is a log. */
enum { MOST_LINES = 40000 };

static void read_script(tv_script *s, size_t from)
{
    s->facts = &tv_see(s->r, "script", from)->facts;
    classify(s);
    put_facts(s);
    loaders(s);
    for (size_t i = 0; i < s->code.n; i++) {
        wrapper(s, i);
        switches(s, i);
        own_environment(s, i);
    }
    if (s->ddp && !s->managed) {
        devices(s);
        checkpoints(s);
    }
    if (s->ddp)
        collectives(s);
    sampler_epochs(s);
    paddle_start(s);
    tv_script_loops(s);
}

/* The file is Python from its first line on: a doc string may stand before the imports. */
static bool is_python(const tv_sheet *sheet)
{
    static const char *const begins[] = {"\"\"\"",  "'''",   "#!/usr/bin/env python",
                                         "import ", "from ", "# -*- coding"};
    size_t i = 0;
    while (i < sheet->n && !sheet->v[i].s.n)
        i++;
    for (size_t k = 0; i < sheet->n && k < sizeof begins / sizeof *begins; k++)
        if (tv_str_starts(sheet->v[i].s, tv_str_of(begins[k])))
            return true;
    return tv_str_ends(sheet->file, TV_S(".py"));
}

static void read(tv_reading *r)
{
    const size_t import = first_import(r->sheet);
    const size_t from = import != TV_NO_LINE && is_python(r->sheet) ? 0 : import;
    if (from == TV_NO_LINE || r->sheet->n - from > MOST_LINES)
        return;
    tv_arena *scratch = tv_arena_child(r->a, TV_LIMIT_ARENA_BYTES);
    const tv_mark mark = tv_arena_mark(scratch);
    tv_script s = {.r = r, .code = tv_listing_of(scratch, r->sheet, from)};
    if (is_script(&s.code))
        read_script(&s, from);
    tv_arena_rewind(scratch, mark);
}

static const char *const needles[] = {"import torch", "from torch", "import paddle", "from paddle",
                                      NULL};

extern const tv_log_format tv_log_format_train_script;
const tv_log_format tv_log_format_train_script = {"train-script", needles, read};
