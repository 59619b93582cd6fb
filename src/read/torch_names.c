/* What the classes and functions that a pickle names are: element types, parts of PyTorch that
 * carry data, harmless values, things that would run code. Nothing is ever called; the lists only
 * decide what is said. */
#include "torch.h"

typedef struct type_name {
    const char *name; /* of "torch.NAMEStorage" and "torch.NAMETensor" */
    const char *dtype;
} type_name;

/* torch/storage.py, "_dtype_to_storage_type_map". */
static const type_name types[] = {
    {"Double", "float64"},
    {"Float", "float32"},
    {"Half", "float16"},
    {"BFloat16", "bfloat16"},
    {"Long", "int64"},
    {"Int", "int32"},
    {"Short", "int16"},
    {"Char", "int8"},
    {"Byte", "uint8"},
    {"Bool", "bool"},
    {"ComplexFloat", "complex64"},
    {"ComplexDouble", "complex128"},
    {"QInt8", "int8"},
    {"QUInt8", "uint8"},
    {"QInt32", "int32"},
    {"QUInt4x2", "uint4"},
    {"QUInt2x4", "uint2"},
};

static tv_str last_name(tv_str dotted)
{
    size_t from = dotted.n;
    while (from && dotted.p[from - 1] != '.')
        from--;
    return tv_str_drop(dotted, from);
}

bool tv_torch_type_of_class(tv_str name, tv_dtype *dtype, tv_str *text)
{
    tv_str s = last_name(name);
    *dtype = TV_DTYPE_UNKNOWN;
    *text = (tv_str){0};
    if (!tv_str_starts(name, TV_S("torch.")))
        return false;
    if (tv_str_is(s, "UntypedStorage") || tv_str_is(s, "_UntypedStorage"))
        return true;
    if (!tv_str_ends(s, TV_S("Storage")) && !tv_str_ends(s, TV_S("Tensor")))
        return false;
    s = tv_str_take(s, s.n - (tv_str_ends(s, TV_S("Storage")) ? 7 : 6));
    *text = s;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (tv_str_is(s, types[i].name))
            *dtype = tv_dtype_named(tv_str_of(types[i].dtype));
    return *dtype != TV_DTYPE_UNKNOWN;
}

/* ---- names that are worth a word ---- */

/* Modules that a checkpoint has no use for: calling into them is how a pickle attacks. */
static const char *const dangerous_modules[] = {"os.",
                                                "posix.",
                                                "nt.",
                                                "subprocess.",
                                                "sys.",
                                                "socket.",
                                                "shutil.",
                                                "runpy.",
                                                "importlib.",
                                                "pty.",
                                                "commands.",
                                                "popen2.",
                                                "webbrowser.",
                                                "ctypes.",
                                                "urllib.",
                                                "requests.",
                                                "httpx.",
                                                "http.",
                                                "aiohttp.",
                                                "ftplib.",
                                                "smtplib.",
                                                "code.",
                                                "codeop.",
                                                "types.",
                                                "marshal.",
                                                "pickle.",
                                                "_pickle.",
                                                "cPickle.",
                                                "dill.",
                                                "cloudpickle.",
                                                "multiprocessing.",
                                                "asyncio.",
                                                "timeit.",
                                                "pip.",
                                                "pydoc.",
                                                "pdb.",
                                                "bdb.",
                                                "cProfile.",
                                                "profile.",
                                                "trace.",
                                                "platform.",
                                                "signal.",
                                                "tempfile.",
                                                "zipfile.",
                                                "zipimport.",
                                                "venv.",
                                                "ensurepip.",
                                                "idlelib.",
                                                "doctest.",
                                                "linecache.",
                                                "inspect.",
                                                "gc.",
                                                "operator.",
                                                "functools.",
                                                "numpy.testing.",
                                                "torch.hub.",
                                                "torch.serialization.",
                                                "torch.utils.cpp_extension.",
                                                "torch.distributed.",
                                                "torch._inductor.",
                                                "torch._dynamo.",
                                                NULL};

static const char *const dangerous_builtins[] = {
    "eval",    "exec",   "compile", "open",       "__import__", "getattr", "setattr",  "delattr",
    "globals", "locals", "vars",    "input",      "breakpoint", "apply",   "execfile", "file",
    "reload",  "help",   "dir",     "memoryview", "super",      "map",     "filter",   NULL};

/* Names below those modules that ordinary training states hold. */
static const char *const harmless[] = {"functools.partial",
                                       "operator.itemgetter",
                                       "types.SimpleNamespace",
                                       "torch.serialization._get_layout",
                                       "torch.distributed._shard.sharded_tensor.api.ShardedTensor",
                                       "torch.distributed.tensor.DTensor",
                                       "torch.distributed._tensor.api.DTensor",
                                       NULL};

static const char *const known_modules[] = {
    "torch.",       "torchvision.", "torchao.", "collections.", "numpy.",      "copyreg.",
    "copy_reg.",    "datetime.",    "decimal.", "pathlib.",     "argparse.",   "__torch__.",
    "_codecs.",     "fractions.",   "uuid.",    "enum.",        "re._compile", "builtins.",
    "__builtin__.", "typing.",      NULL};

static bool starts_any(tv_str s, const char *const *list)
{
    for (; *list; list++)
        if (tv_str_starts(s, tv_str_of(*list)))
            return true;
    return false;
}

static bool is_any(tv_str s, const char *const *list)
{
    for (; *list; list++)
        if (tv_str_is(s, *list))
            return true;
    return false;
}

static bool is_dangerous(tv_str name)
{
    const bool builtin =
        tv_str_starts(name, TV_S("builtins.")) || tv_str_starts(name, TV_S("__builtin__."));
    if (is_any(name, harmless))
        return false;
    if (builtin)
        return is_any(tv_str_cut(name, '.').tail, dangerous_builtins);
    return starts_any(name, dangerous_modules);
}

/* At most four of the names that the test accepts; n counts all of them. */
static tv_str names_of(tv_torch *t, bool (*accepts)(tv_str name), size_t *n)
{
    tv_buf b = tv_buf_in(t->g->a);
    const tv_pickle_names *list = &t->pickle.globals;
    *n = 0;
    for (size_t i = 0; i < list->n; i++) {
        if (!accepts(list->v[i]) || (*n)++ >= 4)
            continue;
        tv_puts(&b, b.n ? ", " : "");
        tv_put(&b, list->v[i]);
    }
    if (*n > 4)
        tv_puts(&b, ", ...");
    return tv_buf_str(&b);
}

static bool is_unknown(tv_str name)
{
    return !is_dangerous(name) && !starts_any(name, known_modules) && !is_any(name, harmless);
}

void tv_torch_judge_names(tv_torch *t)
{
    size_t dangerous = 0, unknown = 0;
    tv_arena *a = t->g->a;
    const tv_str calls = names_of(t, is_dangerous, &dangerous);
    const tv_str classes = names_of(t, is_unknown, &unknown);
    if (dangerous)
        tv_gather_warn(t->g, TV_TEXT(a, "torch.runs-code",
                                     N_("{file} names functions that have no place in a checkpoint "
                                        "and would run when it is loaded ({names}): do not load it "
                                        "with PyTorch; nothing was executed here"),
                                     tv_arg_str("file", tv_path_name(t->path)),
                                     tv_arg_str("names", calls)));
    if (unknown)
        tv_gather_warn(t->g, TV_TEXT(a, "torch.classes",
                                     N_("{file} holds objects of classes that are not known here "
                                        "({names}): only the tensors in them were read"),
                                     tv_arg_str("file", tv_path_name(t->path)),
                                     tv_arg_str("names", classes)));
}
