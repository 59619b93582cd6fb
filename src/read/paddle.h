/* What the Paddle readers share: a program on its way, its weights, and the files that lie beside
 * it. Only for src/read. */
#ifndef TV_PADDLE_H
#define TV_PADDLE_H

#include "gather.h"

/* A program's values while it is read. */
typedef struct tv_value_list {
    tv_value *v;
    size_t n;
    size_t cap;
} tv_value_list;

/* A weight of the program: what a record of the parameters' file must be. */
typedef struct tv_paddle_weight {
    tv_str name;
    uint32_t value;
} tv_paddle_weight;

typedef struct tv_paddle_weights {
    tv_paddle_weight *v; /* in ascending order of names, as the records are written */
    size_t n;
    size_t cap;
} tv_paddle_weights;

/* What a reader of a program hands over. The values may still change: where the records lie and
 * what settings say is written into them. */
typedef struct tv_paddle_program {
    tv_program program;
    tv_value *values;
    tv_paddle_weights weights;
} tv_paddle_program;

/* framework.proto, VarType.Type; unknown: 0. */
tv_dtype tv_paddle_dtype(uint64_t kind);

/* ProgramDesc (.pdmodel, __model__) and the JSON of a PIR program. */
const tv_err *tv_read_paddle_desc(tv_gather *g, tv_str path, tv_bytes_view bytes,
                                  tv_paddle_program *p) TV_CHECKED;
const tv_err *tv_read_paddle_pir(tv_gather *g, tv_str path, tv_bytes_view bytes,
                                 tv_paddle_program *p) TV_CHECKED;
bool tv_is_paddle_pir(tv_bytes_view bytes);

/* Sorts the weights by name and numbers nothing anew; a name that stands twice is one weight. */
const tv_err *tv_paddle_sort(tv_gather *g, tv_str path, tv_paddle_program *p) TV_CHECKED;

/* Records of tensors one after the other (.pdiparams, __params__): one for each weight, and
 * nothing behind them. Adds the tensors and their file. p NULL: the tensors have no names. */
const tv_err *tv_read_paddle_records(tv_gather *g, tv_str path, tv_bytes_view bytes,
                                     tv_paddle_program *p) TV_CHECKED;
/* One file per weight, named as it; *there counts the files. */
const tv_err *tv_read_paddle_files(tv_gather *g, tv_str folder, tv_paddle_program *p,
                                   size_t *there) TV_CHECKED;
bool tv_is_paddle_record(tv_bytes_view bytes);
/* Adds the tensors of a program whose weights are not there; their bytes follow from the shapes. */
const tv_err *tv_paddle_list(tv_gather *g, const tv_paddle_program *p, uint32_t file) TV_CHECKED;

/* inference.yml and its kin in the folder, or the same as JSON: sizes of the inputs, and the
 * model's name. */
const tv_err *tv_read_paddle_settings(tv_gather *g, tv_str folder, tv_paddle_program *p) TV_CHECKED;
/* A configuration of PaddleX's kind: not a model by itself. */
bool tv_is_paddle_settings(const tv_json *doc);
/* The program beside settings that were named. */
const tv_err *tv_read_paddle_served(tv_gather *g, tv_str path, const tv_json *doc) TV_CHECKED;

/* A program with what lies beside it; parameters, with the program that lies beside them. */
const tv_err *tv_read_paddle_model(tv_gather *g, tv_str path, tv_bytes_view bytes) TV_CHECKED;
const tv_err *tv_read_paddle_parameters(tv_gather *g, tv_str path, tv_bytes_view bytes) TV_CHECKED;
/* "__model__", as 1.x names every program. */
bool tv_is_paddle_model_name(tv_str name);

/* A folder with a Paddle program in it. *found: it was read. */
const tv_err *tv_read_paddle_folder(tv_gather *g, tv_str folder, const tv_dir *dir,
                                    bool *found) TV_CHECKED;

#endif
