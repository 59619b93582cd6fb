/* What is written beside a Paddle program for serving it (inference.yml, infer_cfg.yml,
 * deploy.yaml, config.json of PaddleX): the shapes that its inputs are served with, and the names
 * of model and architecture. Preprocessing is read only as far as it fixes an image's size. */
#include "paddle.h"

#include "codec/yaml_doc.h"

/* Settings are small; PP-OCR's hold a dictionary of 20 thousand characters. */
#define SETTINGS_BYTES ((size_t)4 << 20)

typedef struct image_size {
    int64_t h, w;
} image_size;

static int64_t side(const tv_json *j)
{
    const double v = tv_json_num(j, 0);
    return v >= 1 && v <= 65536 ? (int64_t)v : 0;
}

/* [h, w], [c, h, w], [n, c, h, w], or one number for both sides. */
static image_size size_of(const tv_json *j)
{
    const int64_t one = side(j);
    if (one)
        return (image_size){one, one};
    if (j->type != TV_JSON_ARRAY || j->n < 2)
        return (image_size){0};
    return (image_size){side(tv_json_at(j, j->n - 2)), side(tv_json_at(j, j->n - 1))};
}

/* One step of the preprocessing; later ones win: a crop comes after a resize. */
static void read_step(const tv_json *step, image_size *size)
{
    static const char *const keys[] = {"target_size", "image_shape",  "size",
                                       "resize_long", "resize_short", "crop_size"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const image_size found = size_of(tv_json_get(step, keys[i]));
        if (found.h && found.w)
            *size = found;
    }
}

/* A list of steps: {type: Resize, ...} of PaddleDetection, {Resize: {...}} of the others. */
static void read_steps(const tv_json *list, image_size *size)
{
    for (size_t i = 0; i < list->n; i++) {
        const tv_json *step = tv_json_at(list, i);
        read_step(step, size);
        for (size_t k = 0; k < step->n; k++)
            if (step->items[k].type == TV_JSON_OBJECT)
                read_step(&step->items[k], size);
    }
}

static image_size image_of(const tv_json *doc)
{
    static const char *const lists[] = {"Preprocess", "PreProcess.transform_ops",
                                        "Deploy.transforms"};
    image_size size = {0};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const tv_json *list = tv_json_path(doc, lists[i]);
        if (list->type == TV_JSON_ARRAY)
            read_steps(list, &size);
    }
    const image_size stated = size_of(tv_json_path(doc, "Deploy.input_shape"));
    return stated.h && stated.w ? stated : size;
}

/* min, opt, max of one input. */
static const tv_json *served_shape(const tv_json *doc, tv_str input)
{
    static const char *const places[] = {
        "Hpi.backend_configs.paddle_infer.trt_dynamic_shapes",
        "Hpi.backend_configs.tensorrt.dynamic_shapes",
        "Hpi.backend_configs.paddle_tensorrt.dynamic_shapes",
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const tv_json *map = tv_json_path(doc, places[i]);
        for (size_t k = 0; k < map->n; k++)
            if (tv_str_eq(map->items[k].key, input))
                return tv_json_at(&map->items[k], map->items[k].n > 1 ? 1 : 0);
    }
    return tv_json_at(NULL, 0);
}

/* Sizes of the dimensions that the program leaves open; the first is the batch and the job's. */
static void set_usual(tv_gather *g, const tv_json *doc, image_size image, tv_value *v)
{
    const tv_json *shape = served_shape(doc, v->name);
    if (!v->shaped || v->rank < 2)
        return;
    int64_t *usual = tv_new(g->a, int64_t, v->rank);
    for (uint32_t i = 1; i < v->rank; i++) {
        if (v->dims[i].size >= 0)
            continue;
        if (shape->n == v->rank)
            usual[i] = side(tv_json_at(shape, i));
        if (usual[i] == 0 && v->rank == 4 && i >= 2)
            usual[i] = i == 2 ? image.h : image.w;
    }
    v->usual = usual;
}

static void take_settings(tv_gather *g, const tv_json *doc, tv_paddle_program *p)
{
    const image_size image = image_of(doc);
    for (size_t i = 0; i < p->program.main->n_inputs; i++)
        set_usual(g, doc, image, &p->values[p->program.main->inputs[i]]);
    const tv_str name = tv_json_str(tv_json_path(doc, "Global.model_name"));
    if (name.n)
        g->source.name = name;
    p->program.architecture = tv_json_str(tv_json_get(doc, "arch"));
}

static const tv_err *read_document(tv_gather *g, tv_str path, const tv_json **doc)
{
    tv_str text;
    if (tv_str_ends(path, TV_S(".json")))
        return tv_json_parse_file(g->a, path, doc);
    TV_TRY(tv_file_read(g->a, path, SETTINGS_BYTES, &text));
    return tv_yaml_parse(g->a, path, text, doc);
}

static void warn_unread(tv_gather *g, tv_str name, const tv_err *e)
{
    tv_gather_warn(
        g, TV_TEXT(g->a, "paddle.settings", N_("{file} beside the program is not read: {why}"),
                   tv_arg_str("file", name), tv_arg_str("why", tv_text_in(g->a, TV_EN, e->what))));
}

bool tv_is_paddle_settings(const tv_json *doc)
{
    if (tv_json_has(doc, "model_type") || tv_json_has(doc, "architectures"))
        return false;
    return tv_json_has(doc, "Hpi") || tv_json_has(doc, "Preprocess") ||
           tv_json_has(doc, "PreProcess") || tv_json_has(doc, "Deploy");
}

const tv_err *tv_read_paddle_settings(tv_gather *g, tv_str folder, tv_paddle_program *p)
{
    static const char *const names[] = {"inference.yml", "infer_cfg.yml", "inference.yaml",
                                        "deploy.yaml",   "deploy.yml",    "config.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const tv_str path = tv_path_join(g->a, folder, tv_str_of(names[i]));
        const tv_file_info info = tv_file_stat(g->a, path);
        const tv_json *doc = NULL;
        if (!info.exists || info.is_dir)
            continue;
        const tv_err *e = read_document(g, path, &doc);
        if (e) {
            warn_unread(g, tv_str_of(names[i]), e);
            continue;
        }
        if (!tv_is_paddle_settings(doc))
            continue;
        take_settings(g, doc, p);
        return NULL;
    }
    return NULL;
}

static const tv_err *no_program(tv_gather *g, tv_str path, const tv_json *doc)
{
    const tv_str arch = tv_json_str(tv_json_get(doc, "arch"));
    tv_err *e = tv_fail(g->a, TV_UNAVAILABLE,
                        TV_TEXT(g->a, "paddle.no-program-beside",
                                N_("settings for serving a Paddle model (architecture: {arch}), "
                                   "whose program is not beside them"),
                                tv_arg_str("arch", arch.n ? arch : TV_S("?"))));
    return tv_hint(tv_in_file(e, path),
                   TV_TEXT0("paddle.no-program-beside",
                            N_("Fetch the program (.pdmodel, __model__ or .json) and its "
                               "parameters into the same folder.")));
}

const tv_err *tv_read_paddle_served(tv_gather *g, tv_str path, const tv_json *doc)
{
    const tv_str folder = tv_path_folder(path);
    tv_dir dir;
    bool found = false;
    TV_TRY(tv_dir_list(g->a, folder, &dir));
    TV_TRY(tv_read_paddle_folder(g, folder, &dir, &found));
    return found ? NULL : no_program(g, path, doc);
}

static const tv_err *read(tv_gather *g, tv_str path, tv_bytes_view bytes)
{
    const tv_json *doc = NULL;
    if (bytes.n > SETTINGS_BYTES)
        return tv_broken(g, path, "paddle.settings-size",
                         N_("the file is too large for settings of a model"), SETTINGS_BYTES);
    TV_TRY(tv_yaml_parse(g->a, path, (tv_str){(const char *)bytes.p, bytes.n}, &doc));
    if (tv_is_paddle_settings(doc))
        return tv_read_paddle_served(g, path, doc);
    tv_err *e = tv_fail(g->a, TV_UNSUPPORTED,
                        TV_TEXT0("yaml.no-model", N_("YAML that describes no model")));
    return tv_hint(tv_in_file(e, path),
                   TV_TEXT0("yaml.no-model", N_("Name a model's folder or its files.")));
}

static bool probe(tv_str name, tv_bytes_view bytes)
{
    (void)bytes;
    return tv_str_ends(name, TV_S(".yml")) || tv_str_ends(name, TV_S(".yaml"));
}

extern const tv_format tv_format_paddle_settings;
const tv_format tv_format_paddle_settings = {
    .name = "inference.yml",
    .summary = N_("settings beside a Paddle program"),
    .probe = probe,
    .read = read,
};
