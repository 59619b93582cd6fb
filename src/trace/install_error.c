/* What frameworks, loaders and launchers say when the installation, the container or the start of
 * a job is wrong. One sighting of each kind in a file: ranks repeat themselves. */
#include "env_words.h"

#include <string.h>

typedef struct error_row error_row;
struct error_row {
    const char *needle;
    const char *what;
    const char *also; /* must stand in the line too; NULL: nothing */
    void (*more)(tv_reading *r, tv_note *facts, size_t i, tv_str s);
};

static void put_word(tv_reading *r, tv_note *facts, const char *key, tv_str s, size_t i)
{
    if (s.n)
        (void)tv_at(r, tv_note_str(r->a, facts, key, s), i);
}

/* 11040 -> "11.4" */
static void put_cuda(tv_reading *r, tv_note *facts, const char *key, uint64_t v, size_t i)
{
    if (v < 1000 || v > 99990)
        return;
    tv_buf b = tv_buf_in(r->a);
    tv_put_u64(&b, v / 1000);
    tv_putc(&b, '.');
    tv_put_u64(&b, v % 1000 / 10);
    put_word(r, facts, key, tv_buf_str(&b), i);
}

static void more_too_old(tv_reading *r, tv_note *facts, size_t i, tv_str s)
{
    tv_str rest;
    if (!tv_past(s, "found version ", &rest))
        return;
    const tv_u64_read v = tv_take_u64(&rest);
    if (v.ok)
        put_cuda(r, facts, "driver_max_cuda", v.v, i);
}

/* "unsatisfied condition: cuda>=12.1, please update" */
static void more_condition(tv_reading *r, tv_note *facts, size_t i, tv_str s)
{
    tv_str rest;
    if (tv_past(s, "cuda>=", &rest) || tv_past(s, "cuda >= ", &rest))
        put_word(r, facts, "cuda_build", tv_env_version(rest), i);
    if (tv_past(s, "driver>=", &rest))
        put_word(r, facts, "min_driver_for_build", tv_env_version(rest), i);
}

/* "built for NVIDIA Driver Release 530.30 or later, but version 470.82 was detected" */
static void more_release(tv_reading *r, tv_note *facts, size_t i, tv_str s)
{
    tv_str rest;
    if (tv_past(s, "Driver Release ", &rest))
        put_word(r, facts, "min_driver_for_build", tv_env_version(rest), i);
    if (tv_past(s, "but version ", &rest) ||
        (i + 1 < r->sheet->n && tv_past(r->sheet->v[i + 1].s, "but version ", &rest)))
        put_word(r, facts, "driver", tv_env_version(rest), i);
}

static void put_arches(tv_reading *r, tv_note *facts, size_t i, tv_str s)
{
    tv_note *list = tv_at(r, tv_note_list(r->a, facts, "wheel_arches"), i);
    tv_str rest = s;
    while (tv_past(rest, "sm_", &rest)) {
        tv_str digits = rest;
        tv_str word = tv_take_word(&digits);
        while (word.n && strchr(".,:", word.p[word.n - 1]))
            word = tv_str_take(word, word.n - 1);
        tv_buf b = tv_buf_in(r->a);
        tv_puts(&b, "sm_");
        tv_put(&b, word);
        if (word.n && word.n <= 6)
            (void)tv_note_str(r->a, list, NULL, tv_buf_str(&b));
    }
}

/* "NAME with CUDA capability sm_120 is not compatible with the current PyTorch installation." */
static void more_capability(tv_reading *r, tv_note *facts, size_t i, tv_str s)
{
    tv_str rest;
    const tv_str bare = tv_bare(s);
    if (tv_past(bare, " with CUDA capability ", &rest)) {
        put_word(r, facts, "product", tv_str_trim(tv_str_take(bare, bare.n - rest.n - 22)), i);
        put_word(r, facts, "capability", tv_take_word(&rest), i);
    }
    for (size_t k = i; k < i + 4 && k < r->sheet->n; k++)
        if (tv_holds(r->sheet->v[k].s, "supports CUDA capabilities")) {
            put_arches(r, facts, k,
                       tv_enclosed(r->sheet->v[k].s, "supports CUDA capabilities", ""));
            return;
        }
}

/* "(7.0) - (12.0)" behind "Minimum and Maximum cuda capability": later cards run on PTX, earlier
 * ones do not run. */
static bool is_below(tv_str s, double capability)
{
    const tv_double_read least = tv_number_past(s, "(");
    return least.ok && least.v >= 3 && least.v < 20 && tv_holds(s, ") - (") && capability > 0 &&
           capability < least.v;
}

/* "Found GPU0 Tesla K40c which is of cuda capability 3.5." -> gpu, "sm_35" */
static void more_old_card(tv_reading *r, tv_note *facts, size_t i, tv_str s)
{
    tv_str rest, name = tv_enclosed(s, "Found GPU", " which is of ");
    (void)tv_take_u64(&name);
    put_word(r, facts, "product", tv_str_trim(name), i);
    if (!tv_past(s, "capability ", &rest))
        return;
    const tv_cut cut = tv_str_cut(tv_env_version(rest), '.');
    tv_buf b = tv_buf_in(r->a);
    tv_puts(&b, "sm_");
    tv_put(&b, cut.head);
    tv_put(&b, tv_str_take(cut.tail, 1));
    put_word(r, facts, "capability", tv_buf_str(&b), i);
    bool dropped = false;
    for (size_t k = i; k < i + 5 && k < r->sheet->n; k++)
        dropped |= tv_holds(r->sheet->v[k].s, "no longer supports this GPU") ||
                   is_below(r->sheet->v[k].s, tv_str_double(tv_env_version(rest)).v);
    (void)tv_note_bool(r->a, facts, "dropped", dropped);
}

/* The first "libNAME.so..." of a line. */
static void more_library(tv_reading *r, tv_note *facts, size_t i, tv_str s)
{
    tv_str rest;
    const char *end = s.p + s.n;
    while (tv_past(s, "lib", &rest)) {
        tv_str word = tv_str_span(rest.p - 3, end);
        word = tv_take_word(&word);
        while (word.n && strchr(".:", word.p[word.n - 1]))
            word = tv_str_take(word, word.n - 1);
        if (tv_holds(word, ".so") && !tv_holds(word, "/")) {
            put_word(r, facts, "library", word, i);
            return;
        }
        s = rest;
    }
}

static void more_symbol(tv_reading *r, tv_note *facts, size_t i, tv_str s)
{
    tv_str rest;
    more_library(r, facts, i, s);
    if (tv_past(s, "undefined symbol: ", &rest))
        put_word(r, facts, "symbol", tv_take_word(&rest), i);
}

/* "version `GLIBCXX_3.4.29' not found" */
static void more_glibcxx(tv_reading *r, tv_note *facts, size_t i, tv_str s)
{
    tv_str rest;
    if (!tv_past(s, "version `", &rest))
        return;
    put_word(r, facts, "symbol_version", tv_take_word(&rest), i);
}

/* "compiled against (8, 9, 2) but found runtime version (8, 4, 0)",
 * "Loaded runtime CuDNN library: 7.1.2 but source was compiled with: 7.4.1" */
static void more_cudnn(tv_reading *r, tv_note *facts, size_t i, tv_str s)
{
    put_word(r, facts, "cudnn_built", tv_enclosed(s, "against (", ")"), i);
    put_word(r, facts, "cudnn_found", tv_enclosed(s, "found runtime version (", ")"), i);
    tv_str rest;
    if (tv_past(s, "Loaded runtime CuDNN library: ", &rest))
        put_word(r, facts, "cudnn_found", tv_env_version(rest), i);
    if (tv_past(s, "compiled with: ", &rest))
        put_word(r, facts, "cudnn_built", tv_env_version(rest), i);
    if (tv_past(s, "is compiled with CUDNN ", &rest) || tv_past(s, "is compiled with CUDA ", &rest))
        put_word(r, facts, "cudnn_built", tv_env_version(tv_str_cut(rest, ',').head), i);
    (void)tv_note_bool(r->a, facts, "tolerated", tv_holds(s, "may cause"));
    if (tv_past(s, "in your machine is ", &rest))
        put_word(r, facts, "cudnn_found", tv_env_version(tv_str_cut(rest, ',').head), i);
}

/* "port: 29500", "(errno: 98 ... [::]:29500", "bind to 0.0.0.0:29500", "('10.0.0.1', 29500)" */
static void more_port(tv_reading *r, tv_note *facts, size_t i, tv_str s)
{
    static const char *const marks[] = {
        "port: ", "[::]:", "0.0.0.0:", "127.0.0.1:", "localhost:", "port ", "', ", "port="};
    for (size_t k = 0; k < sizeof marks / sizeof *marks; k++) {
        const tv_double_read port = tv_number_past(s, marks[k]);
        if (port.ok && port.v > 0 && port.v < 65536) {
            (void)tv_at(r, tv_note_num(r->a, facts, "port", port.v), i);
            return;
        }
    }
}

/* "environment variable RANK expected, but not set" */
static void more_variable(tv_reading *r, tv_note *facts, size_t i, tv_str s)
{
    tv_str rest;
    if (tv_past(s, "environment variable ", &rest))
        put_word(r, facts, "variable", tv_take_word(&rest), i);
}

/* pip builds a package in a place of its own, where nothing else is installed. */
static bool during_build(const tv_reading *r, size_t i)
{
    static const char *const signs[] = {"build wheel", "egg_info",   "build dependencies",
                                        "pep517",      "build_meta", "setup.py bdist"};
    const size_t end = i + 30 < r->sheet->n ? i + 30 : r->sheet->n;
    for (size_t k = i > 40 ? i - 40 : 0; k < end; k++)
        for (size_t w = 0; w < sizeof signs / sizeof *signs; w++)
            if (tv_holds(r->sheet->v[k].s, signs[w]))
                return true;
    return false;
}

static void more_module(tv_reading *r, tv_note *facts, size_t i, tv_str s)
{
    tv_str rest;
    (void)tv_note_bool(r->a, facts, "during_build", during_build(r, i));
    if (tv_past(s, "No module named ", &rest))
        put_word(r, facts, "module", tv_unquoted(tv_str_cut(rest, ' ').head), i);
}

/* "The detected CUDA version (12.1) mismatches the version that was used to compile
 * PyTorch (11.8)" */
static void more_toolkit(tv_reading *r, tv_note *facts, size_t i, tv_str s)
{
    put_word(r, facts, "nvcc", tv_enclosed(s, "detected CUDA version (", ")"), i);
    for (size_t k = i; k < i + 3 && k < r->sheet->n; k++)
        put_word(r, facts, "cuda_build", tv_enclosed(r->sheet->v[k].s, "PyTorch (", ")"), k);
}

static void more_option(tv_reading *r, tv_note *facts, size_t i, tv_str s)
{
    tv_str rest;
    if (tv_past(s, "CachingAllocator option: ", &rest) ||
        tv_past(s, "AcceleratorAllocator option: ", &rest))
        put_word(r, facts, "option", tv_take_word(&rest), i);
}

static void more_bf16(tv_reading *r, tv_note *facts, size_t i, tv_str s)
{
    put_word(r, facts, "product", tv_enclosed(s, "Your ", " GPU has compute capability"), i);
    tv_str rest;
    if (tv_past(s, "GPU has compute capability ", &rest))
        put_word(r, facts, "capability", tv_env_version(rest), i);
}

static void more_nvcc_arch(tv_reading *r, tv_note *facts, size_t i, tv_str s)
{
    put_word(r, facts, "arch", tv_enclosed(s, "Unsupported gpu architecture '", "'"), i);
}

static const error_row rows[] = {
    {"driver on your system is too old", "driver-too-old", NULL, more_too_old},
    {"CUDA driver version is insufficient for CUDA runtime", "driver-too-old", NULL, more_too_old},
    {"cudaErrorInsufficientDriver", "driver-too-old", NULL, NULL},
    {"unsatisfied condition: cuda", "driver-too-old", NULL, more_condition},
    {"unsatisfied condition: driver", "driver-too-old", NULL, more_condition},
    {"container was built for NVIDIA Driver Release", "driver-too-old", NULL, more_release},
    {"PTX was compiled with an unsupported toolchain", "driver-too-old", NULL, NULL},
    {"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "driver-too-old", NULL, NULL},
    {"unsupported display driver / cuda driver combination", "compat-library", NULL, NULL},
    {"forward compatibility was attempted on non supported", "compat-library", NULL, NULL},
    {"no kernel image is available", "no-kernel-image", NULL, NULL},
    {"cudaErrorNoKernelImageForDevice", "no-kernel-image", NULL, NULL},
    {"CUDA_ERROR_NO_BINARY_FOR_GPU", "no-kernel-image", NULL, NULL},
    {"is not compatible with the current PyTorch installation", "arch-missing", NULL,
     more_capability},
    {"which is of cuda capability", "arch-missing", "Found GPU", more_old_card},
    {"Mismatched GPU Architecture: The installed PaddlePaddle", "arch-missing", NULL, NULL},
    {"Unsupported gpu architecture '", "nvcc-arch", NULL, more_nvcc_arch},
    {"Torch not compiled with CUDA enabled", "cpu-build", NULL, NULL},
    {"installed CPU version PaddlePaddle", "cpu-build", NULL, NULL},
    {"a CUDA-enabled jaxlib is not installed", "cpu-build", NULL, NULL},
    {"bitsandbytes was compiled without GPU support", "cpu-build", NULL, NULL},
    {"Please recompile or reinstall Paddle with GPU support", "cpu-build", NULL, NULL},
    {"please re-compile with WITH_GPU", "cpu-build", NULL, NULL},
    {"Specified provider 'CUDAExecutionProvider' is not in", "cpu-build", NULL, NULL},
    {"Found no NVIDIA driver on your system", "no-driver", NULL, NULL},
    {"No CUDA GPUs are available", "no-gpu", NULL, NULL},
    {"no CUDA-capable device is detected", "no-gpu", NULL, NULL},
    {"CUDA_ERROR_NO_DEVICE", "no-gpu", NULL, NULL},
    {"CUDA-capable device(s) is/are busy or unavailable", "devices-busy", NULL, NULL},
    {"all CUDA-capable devices are busy or unavailable", "devices-busy", NULL, NULL},
    {"system not yet initialized", "fabric-not-ready", NULL, NULL},
    {"CUDA_ERROR_SYSTEM_NOT_READY", "fabric-not-ready", NULL, NULL},
    {"CUDA unknown error - this may be due to", "cuda-unknown", NULL, NULL},
    {"CUDA_ERROR_UNKNOWN", "cuda-unknown", NULL, NULL},
    {"cudaErrorUnknown", "cuda-unknown", NULL, NULL},
    {"could not select device driver", "container-no-gpu", NULL, NULL},
    {"unknown or invalid runtime name: nvidia", "container-no-gpu", NULL, NULL},
    {"Unknown runtime specified nvidia", "container-no-gpu", NULL, NULL},
    {"nvidia-container-cli: initialization error", "container-no-driver", NULL, NULL},
    {"libnvidia-ml.so.1: cannot open shared object file", "container-no-driver", NULL, NULL},
    {"The NVIDIA Driver was not detected", "container-no-gpu", NULL, NULL},
    {"cuDNN version incompatibility", "cudnn-mismatch", NULL, more_cudnn},
    {"Paddle is compiled with CUDNN ", "cudnn-mismatch", NULL, more_cudnn},
    {"Paddle is compiled with CUDA", "cudnn-mismatch", "in your machine", more_cudnn},
    {"Loaded runtime CuDNN library", "cudnn-mismatch", "compiled with", more_cudnn},
    {"CUDNN_STATUS_VERSION_MISMATCH", "cudnn-mismatch", NULL, NULL},
    {"CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH", "cudnn-mismatch", NULL, NULL},
    {"undefined symbol: __nvJitLink", "library-shadowed", NULL, more_symbol},
    {"undefined symbol: cublas", "library-shadowed", NULL, more_symbol},
    {"undefined symbol: ncclComm", "library-shadowed", NULL, more_symbol},
    {"undefined symbol: cudnn", "library-shadowed", NULL, more_symbol},
    {"undefined symbol: cusparse", "library-shadowed", NULL, more_symbol},
    {"undefined symbol: iJIT_NotifyEvent", "mkl-mismatch", NULL, more_symbol},
    {"undefined symbol: _ZN3c10", "extension-abi", NULL, more_symbol},
    {"undefined symbol: _ZN2at", "extension-abi", NULL, more_symbol},
    {"undefined symbol: _ZN5torch", "extension-abi", NULL, more_symbol},
    {"undefined symbol: _ZNK3c10", "extension-abi", NULL, more_symbol},
    {"undefined symbol: _ZN6paddle", "extension-abi", NULL, more_symbol},
    {"cannot open shared object file", "library-missing", "lib", more_library},
    {"Could not load dynamic library", "library-missing", "lib", more_library},
    {"Could not load library lib", "library-missing", NULL, more_library},
    {"Unable to load any of {lib", "library-missing", NULL, more_library},
    {"Cannot dlopen some GPU libraries", "library-missing", NULL, more_library},
    {"version `GLIBCXX_", "glibcxx", "not found", more_glibcxx},
    {"version `GLIBC_", "glibc", "not found", more_glibcxx},
    {"version `CXXABI_", "glibcxx", "not found", more_glibcxx},
    {"CUDNN_STATUS_NOT_INITIALIZED", "cudnn-not-initialized", NULL, NULL},
    {"CUBLAS_STATUS_NOT_INITIALIZED", "cublas-not-initialized", NULL, NULL},
    {"Address already in use", "port-in-use", NULL, more_port},
    {"EADDRINUSE", "port-in-use", NULL, more_port},
    {"expected, but not set", "variable-missing", "environment variable ", more_variable},
    {"Default process group has not been initialized", "group-missing", NULL, NULL},
    {"invalid device ordinal", "invalid-device", NULL, NULL},
    {"Invalid CUDA 'device=", "invalid-device", NULL, NULL},
    {"Distributed package doesn't have NCCL", "nccl-missing", NULL, NULL},
    {"The client socket has timed out after", "rendezvous-timeout", NULL, more_port},
    {"The client socket has failed to connect", "rendezvous-timeout", NULL, more_port},
    {"in store based barrier", "rendezvous-timeout", "Timed out", NULL},
    {"No module named 'torch'", "module-missing", NULL, more_module},
    {"No module named torch", "module-missing", NULL, more_module},
    {"No module named 'paddle'", "module-missing", NULL, more_module},
    {"No module named 'tensorflow'", "module-missing", NULL, more_module},
    {"Cannot re-initialize CUDA in forked subprocess", "forked-cuda", NULL, NULL},
    {"received 0 items of ancdata", "open-files", NULL, NULL},
    {"Too many open files", "open-files", NULL, NULL},
    {"mismatches the version that was used to compile", "toolkit-mismatch", "CUDA version",
     more_toolkit},
    {"operator torchvision::nms does not exist", "torchvision-mismatch", NULL, NULL},
    {"torchvision were compiled with different CUDA", "torchvision-mismatch", NULL, NULL},
    {"torchvision has CUDA Version", "torchvision-mismatch", NULL, NULL},
    {"compiled using NumPy 1.x cannot be run in", "numpy-abi", NULL, NULL},
    {"numpy.dtype size changed, may indicate binary", "numpy-abi", NULL, NULL},
    {"FlashAttention only supports Ampere GPUs or newer", "old-card", NULL, NULL},
    {"only supported on GPUs with compute capability of at", "old-card", NULL, more_bf16},
    {"CachingAllocator option", "alloc-conf", "nrecognized", more_option},
    {"AcceleratorAllocator option", "alloc-conf", "nrecognized", more_option},
    {"Error parsing CachingAllocator", "alloc-conf", NULL, NULL},
};

enum { N_ROWS = sizeof rows / sizeof *rows };

/* What a file has said already: the sighting of each row's `what`. */
typedef struct said_before {
    tv_sighting *of[N_ROWS];
} said_before;

static tv_sighting *seen_before(const said_before *said, const char *what)
{
    for (size_t k = 0; k < N_ROWS; k++)
        if (said->of[k] && strcmp(rows[k].what, what) == 0)
            return said->of[k];
    return NULL;
}

/* "compatible with the current PyTorch" is a warning that a later line explains further. */
static void see(tv_reading *r, said_before *said, size_t row, size_t i, tv_str s)
{
    tv_sighting *old = seen_before(said, rows[row].what);
    tv_sighting *now = old ? old : tv_see(r, "install-error", i);
    const double times = old ? tv_noted_num(&old->facts, "times") + 1 : 1;
    if (!old) {
        (void)tv_at(r, tv_note_str(r->a, &now->facts, "what", tv_str_of(rows[row].what)), i);
        said->of[row] = now;
    }
    (void)tv_note_num(r->a, &now->facts, "times", times);
    if (rows[row].more && times < 17)
        rows[row].more(r, &now->facts, i, s);
}

/* The frameworks' own sources hold their messages, and tracebacks show such lines before the
 * message itself: a text in quotes, or with places for values, is not said by anybody. */
static bool is_source(tv_str s)
{
    static const char *const begins[] = {"\"",      "'",   "f\"",           "f'",
                                         "r\"",     "u\"", "raise ",        "return ",
                                         "assert ", "//",  "warnings.warn("};
    static const char *const places[] = {"%s", "%d", "{0}", "{}", "\\n\""};
    s = tv_bare(s);
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (tv_str_starts(s, tv_str_of(begins[i])) && !tv_holds(s, "\": "))
            return true;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (tv_holds(s, places[i]))
            return true;
    return false;
}

/* Files of programs; what they would say is not what happened. */
static bool is_program(tv_str file)
{
    static const char *const ends[] = {".py", ".pyc", ".so", ".cpp", ".cc", ".cu",
                                       ".h",  ".cuh", ".c",  ".a",   ".o",  ".pyi"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (tv_str_ends(file, tv_str_of(ends[i])))
            return true;
    return false;
}

static bool row_holds(const error_row *row, tv_str s)
{
    return tv_holds(s, row->needle) && (!row->also || tv_holds(s, row->also));
}

/* The rows whose texts stand anywhere in the sheet: its lines lie one behind the other. */
static size_t rows_in(const tv_sheet *sheet, size_t *active)
{
    const tv_str last = sheet->v[sheet->n - 1].raw;
    const tv_str text = tv_str_span(sheet->v[0].raw.p, last.p + last.n);
    size_t n = 0;
    for (size_t k = 0; k < N_ROWS; k++)
        if (tv_holds(text, rows[k].needle))
            active[n++] = k;
    return n;
}

static void read(tv_reading *r)
{
    if (is_program(r->sheet->file))
        return;
    said_before *said = tv_new(r->a, said_before, 1);
    size_t active[N_ROWS];
    const size_t n = r->sheet->n ? rows_in(r->sheet, active) : 0;
    for (size_t i = 0; i < r->sheet->n; i++)
        for (size_t k = 0; k < n; k++)
            if (row_holds(&rows[active[k]], r->sheet->v[i].s) && !is_source(r->sheet->v[i].s)) {
                see(r, said, active[k], i, r->sheet->v[i].s);
                break;
            }
}

/* The same texts as in the rows: a table cannot be made of another one in C. */
static const char *const needles[] = {
    "driver on your system is too old",
    "CUDA driver version is insufficient for CUDA runtime",
    "cudaErrorInsufficientDriver",
    "unsatisfied condition: cuda",
    "unsatisfied condition: driver",
    "container was built for NVIDIA Driver Release",
    "PTX was compiled with an unsupported toolchain",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    "unsupported display driver / cuda driver combination",
    "forward compatibility was attempted on non supported",
    "no kernel image is available",
    "cudaErrorNoKernelImageForDevice",
    "CUDA_ERROR_NO_BINARY_FOR_GPU",
    "is not compatible with the current PyTorch installation",
    "which is of cuda capability",
    "Mismatched GPU Architecture: The installed PaddlePaddle",
    "Unsupported gpu architecture '",
    "Torch not compiled with CUDA enabled",
    "installed CPU version PaddlePaddle",
    "a CUDA-enabled jaxlib is not installed",
    "bitsandbytes was compiled without GPU support",
    "Please recompile or reinstall Paddle with GPU support",
    "please re-compile with WITH_GPU",
    "Specified provider 'CUDAExecutionProvider' is not in",
    "Found no NVIDIA driver on your system",
    "No CUDA GPUs are available",
    "no CUDA-capable device is detected",
    "CUDA_ERROR_NO_DEVICE",
    "CUDA-capable device(s) is/are busy or unavailable",
    "all CUDA-capable devices are busy or unavailable",
    "system not yet initialized",
    "CUDA_ERROR_SYSTEM_NOT_READY",
    "CUDA unknown error - this may be due to",
    "CUDA_ERROR_UNKNOWN",
    "cudaErrorUnknown",
    "could not select device driver",
    "unknown or invalid runtime name: nvidia",
    "Unknown runtime specified nvidia",
    "nvidia-container-cli: initialization error",
    "libnvidia-ml.so.1: cannot open shared object file",
    "The NVIDIA Driver was not detected",
    "cuDNN version incompatibility",
    "Paddle is compiled with CUDNN ",
    "Paddle is compiled with CUDA",
    "Loaded runtime CuDNN library",
    "CUDNN_STATUS_VERSION_MISMATCH",
    "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH",
    "undefined symbol: __nvJitLink",
    "undefined symbol: cublas",
    "undefined symbol: ncclComm",
    "undefined symbol: cudnn",
    "undefined symbol: cusparse",
    "undefined symbol: iJIT_NotifyEvent",
    "undefined symbol: _ZN3c10",
    "undefined symbol: _ZN2at",
    "undefined symbol: _ZN5torch",
    "undefined symbol: _ZNK3c10",
    "undefined symbol: _ZN6paddle",
    "cannot open shared object file",
    "Could not load dynamic library",
    "Could not load library lib",
    "Unable to load any of {lib",
    "Cannot dlopen some GPU libraries",
    "version `GLIBCXX_",
    "version `GLIBC_",
    "version `CXXABI_",
    "CUDNN_STATUS_NOT_INITIALIZED",
    "CUBLAS_STATUS_NOT_INITIALIZED",
    "Address already in use",
    "EADDRINUSE",
    "expected, but not set",
    "Default process group has not been initialized",
    "invalid device ordinal",
    "Invalid CUDA 'device=",
    "Distributed package doesn't have NCCL",
    "The client socket has timed out after",
    "The client socket has failed to connect",
    "in store based barrier",
    "No module named 'torch'",
    "No module named torch",
    "No module named 'paddle'",
    "No module named 'tensorflow'",
    "Cannot re-initialize CUDA in forked subprocess",
    "received 0 items of ancdata",
    "Too many open files",
    "mismatches the version that was used to compile",
    "operator torchvision::nms does not exist",
    "torchvision were compiled with different CUDA",
    "torchvision has CUDA Version",
    "compiled using NumPy 1.x cannot be run in",
    "numpy.dtype size changed, may indicate binary",
    "FlashAttention only supports Ampere GPUs or newer",
    "only supported on GPUs with compute capability of at",
    "CachingAllocator option",
    "AcceleratorAllocator option",
    "Error parsing CachingAllocator",
    NULL,
};

extern const tv_log_format tv_log_format_install_error;
const tv_log_format tv_log_format_install_error = {"install-error", needles, read};
