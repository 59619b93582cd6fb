/* What the readers of one model share: the lists that grow while its files are read, and the
 * checks that every format needs. Only for src/read. */
#ifndef TV_GATHER_H
#define TV_GATHER_H

#include "reader.h"

typedef struct tv_tensor_list {
    tv_tensor *v;
    size_t n;
    size_t cap;
} tv_tensor_list;

typedef struct tv_file_list {
    tv_source_file *v;
    size_t n;
    size_t cap;
} tv_file_list;

typedef struct tv_view_list {
    tv_bytes_view *v;
    size_t n;
    size_t cap;
} tv_view_list;

typedef struct tv_text_list {
    tv_text *v;
    size_t n;
    size_t cap;
} tv_text_list;

struct tv_gather {
    tv_arena *a;
    tv_source source; /* what is known besides the lists */
    tv_tensor_list tensors;
    tv_file_list files;
    tv_view_list views; /* the mapped bytes of each file, for offsets in messages */
    tv_text_list warnings;
    const unsigned char *mapped; /* the file that was mapped last */
    unsigned depth;              /* pipelines around this one: they do not nest */
    bool pointers_allowed;       /* weights that are git-LFS pointers are a warning, not an error */
};

tv_gather tv_gather_in(tv_arena *a, tv_str path);

/* Adds a file; the index that its tensors carry. */
uint32_t tv_gather_file(tv_gather *g, tv_str path, tv_bytes_view bytes);

void tv_gather_warn(tv_gather *g, tv_text text);

/* Makes room for n more tensors at once. */
void tv_gather_room(tv_gather *g, size_t n);

/* Where the data of one file's tensors may lie: [begin, end), with gaps of less than `slack`
 * bytes that nobody needs to hear of. */
typedef struct tv_data_area {
    uint64_t begin;
    uint64_t end;
    uint64_t slack;
    bool fill; /* a tensor of unknown type takes the bytes up to the next one */
} tv_data_area;

/* Checks the tensors from `first` on, all of one file: none overlaps another (error), gaps are
 * reported. */
const tv_err *tv_gather_check(tv_gather *g, size_t first, tv_data_area area) TV_CHECKED;

/* Sorts by name, finds names that stand twice, sums, and hands over the source. */
const tv_err *tv_gather_done(tv_gather *g, const tv_source **out) TV_CHECKED;

/* Maps a file of weights and refuses what is no data: empty, a git-LFS pointer, the text of a
 * symbolic link. *pointer is set instead of failing where pointers are allowed. */
const tv_err *tv_gather_map(tv_gather *g, tv_str path, tv_bytes_view *bytes) TV_CHECKED;
bool tv_is_lfs_pointer(tv_bytes_view bytes);
void tv_warn_pointer(tv_gather *g, tv_str name);

/* A name that stays in its folder: no '/', not "." or "..", not empty. */
bool tv_is_plain_name(tv_str name);

/* The same, or a path below it: no component leaves it. */
bool tv_is_inside(tv_str path);

/* "stem-00002-of-00005ENDING": a part of a model; count is 0 for any other name. */
typedef struct tv_part {
    tv_str stem;
    uint64_t part;
    uint64_t count;
} tv_part;
tv_part tv_part_of(tv_str path, tv_str ending);

/* A short name to show for a path: the folder's or the file's, without extension. */
tv_str tv_model_name(tv_arena *a, tv_str path, bool is_dir, const tv_json *config);

/* One error with a file, an offset and no argument. */
const tv_err *tv_broken(tv_gather *g, tv_str file, const char *id, const char *msgid,
                        uint64_t offset) TV_CHECKED;

/* --- the readers of this folder --- */

/* A folder with everything in it. */
const tv_err *tv_read_folder(tv_gather *g, tv_str folder) TV_CHECKED;
/* The weights of a folder that has a configuration: safetensors, or an index of what is absent. */
const tv_err *tv_read_weights_beside(tv_gather *g, tv_str folder) TV_CHECKED;
/* A parsed configuration; sets kind, config and quantization. */
const tv_err *tv_read_config(tv_gather *g, tv_str path) TV_CHECKED;
/* config.json beside a file of weights, where the file has one of the names under which
 * frameworks save a whole model. */
const tv_err *tv_read_config_beside(tv_gather *g, tv_str path) TV_CHECKED;
/* Says so where adapter_config.json lies in the folder: the tensors are an adapter's. */
const tv_err *tv_warn_adapter(tv_gather *g, tv_str folder) TV_CHECKED;
/* Is it an adapter's configuration? Then it is taken as such. */
bool tv_is_adapter_config(const tv_json *doc);
void tv_take_adapter(tv_gather *g, tv_str path, const tv_json *doc);
/* What the adapter's own tensors hold, when all are gathered. */
void tv_measure_adapter(tv_source *s, tv_adapter *x);
/* A diffusers pipeline: model_index.json and one folder per component. */
const tv_err *tv_read_pipeline(tv_gather *g, tv_str folder, const tv_json *doc) TV_CHECKED;

const tv_err *tv_read_safetensors(tv_gather *g, tv_str path, tv_bytes_view bytes) TV_CHECKED;
/* Looks at the first bytes: one of PyTorch's containers, or a pickle. */
bool tv_is_torch(tv_bytes_view bytes);
const tv_err *tv_read_torch(tv_gather *g, tv_str path, tv_bytes_view bytes) TV_CHECKED;
const tv_err *tv_read_weight_index(tv_gather *g, tv_str path, tv_bytes_view bytes) TV_CHECKED;
const tv_err *tv_read_gguf(tv_gather *g, tv_str path, tv_bytes_view bytes) TV_CHECKED;
/* A forward pass that python/trivet_capture.py wrote down. */
const tv_err *tv_read_capture(tv_gather *g, tv_str path, tv_bytes_view bytes) TV_CHECKED;
const tv_err *tv_read_pt2(tv_gather *g, tv_str path, tv_bytes_view bytes) TV_CHECKED;
/* One file alone, without its sister parts. */
const tv_err *tv_read_gguf_part(tv_gather *g, tv_str path, tv_bytes_view bytes) TV_CHECKED;
const tv_err *tv_read_onnx(tv_gather *g, tv_str path, tv_bytes_view bytes) TV_CHECKED;

/* Paddle's .pdparams; leaves a configuration that was read before. */
const tv_err *tv_read_paddle_state(tv_gather *g, tv_str path, tv_bytes_view bytes) TV_CHECKED;

extern const tv_format tv_format_config;
/* Recognised, not read. */
extern const tv_format tv_formats_later[];
extern const size_t tv_n_formats_later;

#endif
