/* Memory errors that print no sizes: the runtime's and the libraries' own, outside any allocator
 * that keeps books. One sighting per error of a file. */
#include "glean.h"
#include "oom_parts.h"
#include "trace.h"

typedef struct bare_row {
    const char *text;
    const char *error;
    const char *where; /* what asked */
} bare_row;

static const bare_row rows[] = {
    {"CUBLAS_STATUS_ALLOC_FAILED", "CUBLAS_STATUS_ALLOC_FAILED", "cublas handle"},
    {"CUDNN_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED", "cudnn handle"},
    {"CUSOLVER_STATUS_ALLOC_FAILED", "CUSOLVER_STATUS_ALLOC_FAILED", "cusolver handle"},
    {"CUSPARSE_STATUS_ALLOC_FAILED", "CUSPARSE_STATUS_ALLOC_FAILED", "cusparse handle"},
    {"Cuda failure 'out of memory'", "Cuda failure 'out of memory'", "nccl"},
    {"Cuda failure 2 'out of memory'", "Cuda failure 'out of memory'", "nccl"},
    {"Failed to CUDA calloc", "Failed to CUDA calloc", "nccl"},
    {"CUDA driver error: out of memory", "CUDA driver error: out of memory", "driver"},
    {"CUDA error: out of memory", "CUDA error: out of memory", "runtime"},
    {"HIP error: out of memory", "HIP error: out of memory", "runtime"},
    {"hipErrorOutOfMemory", "hipErrorOutOfMemory", "runtime"},
    {"cudaErrorMemoryAllocation", "cudaErrorMemoryAllocation", "runtime"},
    {"CUDA error(2), out of memory", "CUDA error(2), out of memory", "runtime"},
    {"cuda runtime error (2) : out of memory", "cuda runtime error (2)", "runtime"},
    {"error=2 : out of memory", "THCudaCheck FAIL", "runtime"},
    {"CUDA Error: out of memory", "CUDA Error: out of memory", "runtime"},
    {"CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_OUT_OF_MEMORY", "driver"},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

/* Lines that other readers understand in full. */
static bool is_others(tv_str line)
{
    return tv_holds(line, "Tried to allocate") || tv_holds(line, "cudaMalloc failed") ||
           tv_holds(line, "from device: CUDA_ERROR_OUT_OF_MEMORY") || tv_holds(line, "ggml") ||
           tv_holds(line, "llama") || tv_holds(line, "ONNXRuntime") ||
           tv_holds(line, "CUDA failure 2:") || tv_holds(line, "Cannot allocate ");
}

static const char *framework_near(const tv_sheet *sheet, size_t i)
{
    static const struct {
        const char *text;
        const char *word;
    } words[] = {{"paddle", "paddle"}, {"torch", "pytorch"},
                 {"THC", "pytorch"},   {"tensorflow", "tensorflow"},
                 {"mxnet", "mxnet"},   {"onnxruntime", "onnxruntime"},
                 {"jax", "jax"}};
    for (size_t back = 0; back < 40 && back <= i; back++)
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            if (tv_holds(sheet->v[i - back].s, words[k].text))
                return words[k].word;
    return NULL;
}

static void read_error(tv_reading *r, size_t i, const bare_row *row)
{
    tv_note *facts = &tv_see(r, "oom", i)->facts;
    tv_oom_word(r, facts, "framework", framework_near(r->sheet, i));
    tv_oom_word(r, facts, "format", "bare");
    tv_oom_word(r, facts, "error", row->error);
    tv_oom_word(r, facts, "asked_by", row->where);
    tv_oom_word(r, facts, "during", tv_oom_during(r->sheet, i));
    if (tv_holds(r->sheet->v[i].s, "cublasCreate"))
        tv_oom_word(r, facts, "call", "cublasCreate");
    const tv_u64_read rank = tv_oom_rank(r->sheet->v[i].s);
    if (rank.ok)
        (void)tv_note_num(r->a, facts, "rank", (double)rank.v);
}

/* llama.cpp prints the bare error and, on the next line, where. */
static bool is_llama(const tv_sheet *sheet, size_t i)
{
    for (size_t k = i; k < sheet->n && k < i + 4; k++)
        if (tv_holds(sheet->v[k].s, "ggml") || tv_holds(sheet->v[k].s, "current device:"))
            return true;
    return false;
}

static void read(tv_reading *r)
{
    bool told[N_ROWS] = {false};
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str line = r->sheet->v[i].s;
        for (size_t k = 0; k < N_ROWS; k++) {
            if (!tv_holds(line, rows[k].text))
                continue;
            if (!told[k] && !is_others(line) && !is_llama(r->sheet, i))
                read_error(r, i, &rows[k]);
            told[k] = told[k] || !is_others(line);
            break;
        }
    }
}

static const char *const needles[] = {"_STATUS_ALLOC_FAILED",
                                      "Cuda failure 'out of memory'",
                                      "Cuda failure 2 'out of memory'",
                                      "Failed to CUDA calloc",
                                      "CUDA driver error: out of memory",
                                      "CUDA error: out of memory",
                                      "HIP error: out of memory",
                                      "hipErrorOutOfMemory",
                                      "cudaErrorMemoryAllocation",
                                      "CUDA error(2), out of memory",
                                      "cuda runtime error (2) : out of memory",
                                      "error=2 : out of memory",
                                      "CUDA Error: out of memory",
                                      "CUDA_ERROR_OUT_OF_MEMORY",
                                      NULL};

extern const tv_log_format tv_log_format_oom_bare;
const tv_log_format tv_log_format_oom_bare = {"oom-bare", needles, read};
