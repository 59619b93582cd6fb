/* The readers against files that tests/gen/model_files.py writes: good ones field by field against
 * a reader of its own (plain_reader.py), broken ones with the error's id and byte, every cut of
 * every good file, and folders of all kinds. */
#include "lines.h"

#include "base/json.h"
#include "read/gather.h"

#define FIXTURES TEST_BUILD "/model_files/"

static tv_str fixture(tv_arena *a, const char *name)
{
    return tv_str_join(a, TV_S(FIXTURES), tv_str_of(name));
}

/* Calls check for each line of a list of JSON objects. */
static size_t each_line(const char *list, void (*check)(tv_arena *a, const tv_json *row))
{
    tv_arena *a = test_arena();
    const size_t n = test_lines(tv_cstr(a, fixture(a, list)), check);
    tv_arena_close(a);
    return n;
}

static tv_str row_path(tv_arena *a, const tv_json *row)
{
    return fixture(a, tv_cstr(a, tv_json_str(tv_json_get(row, "path"))));
}

/* ---- good files ---- */

static void same_value(const tv_json *got, const tv_json *want)
{
    const bool number = want->type == TV_JSON_NUMBER;
    if (got->type != want->type)
        fail_msg("%.*s: type %d, want %d", TV_FMT(want->key), (int)got->type, (int)want->type);
    if (number && (float)got->number != (float)want->number)
        fail_msg("%.*s: %.17g, want %.17g", TV_FMT(want->key), got->number, want->number);
    if (number && tv_json_u64(want).ok && !tv_str_eq(got->s, want->s))
        fail_msg("%.*s: %.*s, want %.*s", TV_FMT(want->key), TV_FMT(got->s), TV_FMT(want->s));
    if (want->type == TV_JSON_STRING && !tv_str_eq(got->s, want->s))
        fail_msg("%.*s: \"%.*s\"", TV_FMT(want->key), TV_FMT(got->s));
    assert_int_equal(got->n, want->n);
    for (size_t i = 0; i < want->n; i++) {
        if (!tv_str_eq(got->items[i].key, want->items[i].key))
            fail_msg("key \"%.*s\"", TV_FMT(got->items[i].key));
        same_value(&got->items[i], &want->items[i]);
    }
}

static void same_tensor(const tv_tensor *got, const tv_json *want)
{
    const tv_json *dims = tv_json_get(want, "dims");
    const tv_str type = tv_json_str(tv_json_get(want, "type"));
    uint64_t elements = 1;
    if (!tv_str_eq(got->name, tv_json_str(tv_json_get(want, "name"))))
        fail_msg("tensor \"%.*s\" is out of place", TV_FMT(got->name));
    if (!tv_str_is(type, tv_dtype_of(got->dtype)->name))
        fail_msg("%.*s: type %s, want %.*s", TV_FMT(got->name), tv_dtype_of(got->dtype)->name,
                 TV_FMT(type));
    assert_int_equal(got->rank, dims->n);
    for (uint32_t i = 0; i < got->rank; i++) {
        assert_int_equal(got->dims[i], tv_json_u64(tv_json_at(dims, i)).v);
        elements *= got->dims[i];
    }
    assert_int_equal(got->elements, elements);
    assert_int_equal(got->bytes, tv_json_u64(tv_json_get(want, "bytes")).v);
    assert_int_equal(got->offset, tv_json_u64(tv_json_get(want, "offset")).v);
    assert_true((got->dtype == TV_DTYPE_UNKNOWN) == (got->dtype_text.n > 0));
}

static void check_good(tv_arena *a, const tv_json *row)
{
    const tv_source *s = NULL;
    const tv_json *tensors = tv_json_get(row, "tensors"), *metadata = tv_json_get(row, "metadata");
    const tv_str path = row_path(a, row);
    double bytes = 0;
    print_message("# %.*s\n", TV_FMT(path));
    assert_ok(a, tv_read_model(a, path, &s));
    assert_int_equal(s->n_tensors, tensors->n);
    for (size_t i = 0; i < tensors->n; i++) {
        same_tensor(&s->tensors[i], &tensors->items[i]);
        bytes += (double)s->tensors[i].bytes;
    }
    assert_true(s->tensor_bytes == bytes);
    if (metadata->type == TV_JSON_OBJECT)
        same_value(s->metadata, metadata);
    else
        assert_null(s->metadata);
}

static void good_files_agree_with_the_plain_reader(void **state)
{
    (void)state;
    const size_t n = each_line("good.jsonl", check_good);
    print_message("# %zu of %zu files agree\n", n, n);
    assert_true(n >= 29);
}

/* ---- broken files ---- */

static void check_bad(tv_arena *a, const tv_json *row)
{
    const tv_source *s = NULL;
    const tv_str path = row_path(a, row), id = tv_json_str(tv_json_get(row, "id"));
    const tv_json *offset = tv_json_get(row, "offset");
    const tv_err *e = tv_read_model(a, path, &s);
    if (!e)
        fail_msg("%.*s was read", TV_FMT(path));
    if (!tv_str_is(id, e->what.id))
        fail_msg("%.*s: %s, want %.*s", TV_FMT(path), e->what.id, TV_FMT(id));
    assert_int_equal(e->code, tv_json_num(tv_json_get(row, "status"), -1));
    if (offset->type == TV_JSON_NULL)
        return;
    if (!e->has_offset || e->offset != tv_json_u64(offset).v)
        fail_msg("%.*s: at %d, want %.*s", TV_FMT(path), e->has_offset ? (int)e->offset : -1,
                 TV_FMT(offset->s));
    if (!tv_str_eq(e->file, path))
        fail_msg("names the file \"%.*s\"", TV_FMT(e->file));
}

static void broken_files_name_what_and_where(void **state)
{
    (void)state;
    print_message("# %zu broken files\n", each_line("bad.jsonl", check_bad));
}

typedef const tv_err *reader(tv_gather *g, tv_str path, tv_bytes_view bytes);

/* Bytes that end where a heap block ends, so that the sanitizer sees a read past them. */
static const tv_err *read_cut(tv_arena *a, reader *read, tv_bytes_view whole, size_t n)
{
    tv_gather g = tv_gather_in(a, TV_S("cut"));
    const tv_source *s = NULL;
    unsigned char *copy = malloc(n ? n : 1);
    assert_non_null(copy);
    if (n)
        memcpy(copy, whole.p, n);
    const tv_err *e = read(&g, TV_S("cut"), (tv_bytes_view){copy, n});
    if (!e)
        e = tv_gather_done(&g, &s);
    free(copy);
    return e;
}

/* Every cut near an end of the header, and steps in the rest. */
static void cut_everywhere(tv_str path, reader *read)
{
    tv_arena *outer = test_arena();
    tv_bytes_view whole;
    assert_ok(outer, tv_file_map(outer, path, &whole));
    const size_t step = whole.n / 3000 + 1;
    for (size_t n = 0; n < whole.n; n += n + step < whole.n ? step : 1) {
        tv_arena *a = test_arena();
        const tv_err *e = read_cut(a, read, whole, n);
        if (!e)
            fail_msg("%.*s is read although it ends at %zu", TV_FMT(path), n);
        assert_int_equal(e->code, TV_INPUT);
        if (!e->has_offset || e->offset != n)
            fail_msg("%.*s cut at %zu: %s says %d", TV_FMT(path), n, e->what.id,
                     e->has_offset ? (int)e->offset : -1);
        tv_arena_close(a);
    }
    tv_arena_close(outer);
}

static void every_cut_is_found(void **state)
{
    (void)state;
    static const char *const ggufs[] = {"v1-little", "v2-big", "v3-little",
                                        "v3-big",    "ranks",  "every-type"};
    static const char *const others[] = {"plain", "unpadded", "every-type", "header-order"};
    tv_arena *a = test_arena();
    for (size_t i = 0; i < sizeof ggufs / sizeof *ggufs; i++) {
        const tv_str stem = tv_str_join(a, fixture(a, "good/"), tv_str_of(ggufs[i]));
        cut_everywhere(tv_str_join(a, stem, TV_S(".gguf")), tv_read_gguf_part);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const tv_str stem = tv_str_join(a, fixture(a, "good/"), tv_str_of(others[i]));
        cut_everywhere(tv_str_join(a, stem, TV_S(".safetensors")), tv_read_safetensors);
    }
    tv_arena_close(a);
}

/* ---- folders and other files ---- */

static void names_stay_in_their_folder(void **state)
{
    (void)state;
    static const char *const inside[] = {"a", "a.b", "a/b", "..a", "a/..b/c"};
    static const char *const outside[] = {"",     ".",      "..",   "/a", "a/",
                                          "a//b", "a/../b", "../a", "a/."};
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
        assert_true(tv_is_inside(tv_str_of(inside[i])));
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        assert_false(tv_is_inside(tv_str_of(outside[i])));
    assert_false(tv_is_inside(TV_S("a\0b")));
}

static void parts_are_told_by_their_names(void **state)
{
    (void)state;
    const tv_part p = tv_part_of(TV_S("d/m-00002-of-00005.gguf"), TV_S(".gguf"));
    assert_str(p.stem, "d/m");
    assert_int_equal(p.part, 2);
    assert_int_equal(p.count, 5);
    static const char *const others[] = {"m.gguf",
                                         "m-00006-of-00005.gguf",
                                         "m-00000-of-00005.gguf",
                                         "m-0000x-of-00005.gguf",
                                         "m_00001-of-00005.gguf",
                                         "00001-of-00005.gguf",
                                         "m-00001-of-00005.bin"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(tv_part_of(tv_str_of(others[i]), TV_S(".gguf")).count, 0);
}

typedef struct found_case {
    const char *path;
    tv_source_kind kind;
    const char *name;
    size_t tensors;
    double bytes;
    uint64_t stated;
    bool config;
    size_t components;
    const char *warning; /* id of the first; NULL: none */
} found_case;

static void what_a_path_holds(void **state)
{
    (void)state;
    static const found_case cases[] = {
        {"sharded", TV_SOURCE_HF_CONFIG, "sharded", 3, 36, 36, true, 0, NULL},
        {"sharded/config.json", TV_SOURCE_HF_CONFIG, "sharded", 3, 36, 36, true, 0, NULL},
        {"sharded/model.safetensors.index.json", TV_SOURCE_HF_CONFIG, "sharded", 3, 36, 36, true, 0,
         NULL},
        {"sharded/model-00002-of-00002.safetensors", TV_SOURCE_HF_CONFIG, "sharded", 3, 36, 36,
         true, 0, NULL},
        {"sharded-no-total", TV_SOURCE_HF_CONFIG, "sharded-no-total", 3, 36, 0, true, 0, NULL},
        {"sharded-no-index", TV_SOURCE_HF_CONFIG, "sharded-no-index", 3, 36, 0, true, 0, NULL},
        {"index-only", TV_SOURCE_HF_CONFIG, "index-only", 0, 0, 36, true, 0, "index.no-shards"},
        {"index-differs", TV_SOURCE_HF_CONFIG, "index-differs", 3, 36, 0, true, 0, "index.count"},
        {"pointer-shards/config.json", TV_SOURCE_HF_CONFIG, "pointer-shards", 0, 0, 36, true, 0,
         "read.lfs-pointer-beside"},
        {"below", TV_SOURCE_HF_CONFIG, "below", 2, 24, 0, true, 0, NULL},
        {"adapter", TV_SOURCE_SAFETENSORS, "adapter", 2, 24, 0, false, 0, "read.adapter"},
        {"adapter/adapter_model.safetensors", TV_SOURCE_SAFETENSORS, "adapter_model", 2, 24, 0,
         false, 0, "read.adapter"},
        {"adapter_config.json", TV_SOURCE_SAFETENSORS, "folders", 0, 0, 0, false, 0,
         "read.adapter"},
        {"twice", TV_SOURCE_SAFETENSORS, "twice", 2, 24, 0, false, 0, "read.copies"},
        {"clash", TV_SOURCE_SAFETENSORS, "clash", 2, 24, 0, false, 0, "read.copies"},
        {"mistral", TV_SOURCE_HF_CONFIG, "mistral", 2, 24, 0, true, 0, NULL},
        {"two-copies", TV_SOURCE_SAFETENSORS, "two-copies", 1, 12, 0, false, 0, NULL},
        {"bin", TV_SOURCE_HF_CONFIG, "bin", 0, 0, 0, true, 0, "read.weights-not-read"},
        {"bin-index", TV_SOURCE_HF_CONFIG, "bin-index", 0, 0, 1234, true, 0, "index.no-shards"},
        {"quantized", TV_SOURCE_HF_CONFIG, "quantized", 0, 0, 0, true, 0, NULL},
        {"ernie", TV_SOURCE_HF_CONFIG, "ernie", 0, 0, 0, true, 0, NULL},
        {"ernie/ernie_config.json", TV_SOURCE_HF_CONFIG, "ernie", 0, 0, 0, true, 0, NULL},
        {"models--org--name", TV_SOURCE_HF_CONFIG, "org--name", 0, 0, 0, true, 0, NULL},
        {"pipeline", TV_SOURCE_DIFFUSERS, "pipeline", 0, 0, 0, true, 2, "pipeline.absent"},
        {"pipeline/unet", TV_SOURCE_DIFFUSERS, "unet", 2, 24, 0, true, 0, NULL},
        {"split", TV_SOURCE_GGUF, "split", 3, 80, 0, false, 0, NULL},
        {"split/m-00002-of-00002.gguf", TV_SOURCE_GGUF, "m", 3, 80, 0, false, 0, NULL},
        {"projector", TV_SOURCE_GGUF, "projector", 2, 392, 0, false, 0, NULL},
        {"layers.json", TV_SOURCE_BUILTIN, "my-net", 0, 0, 0, true, 0, NULL},
        {"wrapped.json", TV_SOURCE_HF_CONFIG, "my-llm", 0, 0, 0, true, 0, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const found_case *c = &cases[i];
        tv_arena *a = test_arena();
        const tv_source *s = NULL;
        print_message("# %s\n", c->path);
        assert_ok(a,
                  tv_read_model(a, tv_str_join(a, fixture(a, "folders/"), tv_str_of(c->path)), &s));
        assert_int_equal(s->kind, c->kind);
        assert_str(s->name, c->name);
        assert_int_equal(s->n_tensors, c->tensors);
        assert_true(s->tensor_bytes == c->bytes);
        assert_int_equal(s->stated_total_size, c->stated);
        assert_int_equal(s->config != NULL, c->config);
        assert_int_equal(s->n_components, c->components);
        assert_int_equal(s->n_warnings > 0, c->warning != NULL);
        if (c->warning)
            assert_string_equal(s->warnings[0].id, c->warning);
        tv_arena_close(a);
    }
}

typedef struct refused_case {
    const char *path;
    const char *id;
    tv_code code;
} refused_case;

static void what_a_path_lacks(void **state)
{
    (void)state;
    static const refused_case cases[] = {
        {"none", "read.no-such-file", TV_UNAVAILABLE},
        {"nothing", "read.no-model", TV_INPUT},
        {"missing-shard", "index.missing-shard", TV_UNAVAILABLE},
        {"missing-part", "read.missing-parts", TV_UNAVAILABLE},
        {"pointer-shards", "read.lfs-pointer", TV_INPUT},
        {"index-leaves", "read.bad-name", TV_INPUT},
        {"bin-only", "torch.no-checkpoint", TV_UNSUPPORTED},
        {"pipeline-leaves", "read.bad-name", TV_INPUT},
        {"pipeline-nested", "pipeline.nested", TV_INPUT},
        {"split-missing", "gguf.missing-part", TV_UNAVAILABLE},
        {"split-renamed", "gguf.missing-part", TV_UNAVAILABLE},
        {"split-twice", "read.duplicate-tensor", TV_INPUT},
        {"split-count", "gguf.part-count", TV_INPUT},
        {"split-fewer", "gguf.part-tensors", TV_INPUT},
        {"several", "read.several-models", TV_USAGE},
        {"list.json", "config.no-object", TV_INPUT},
        {"model.onnx", "onnx.no-graph", TV_INPUT},
        {"notes.txt", "read.unknown-format", TV_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tv_arena *a = test_arena();
        const tv_source *s = NULL;
        const tv_str path = tv_str_join(a, fixture(a, "folders/"), tv_str_of(cases[i].path));
        const tv_err *e = tv_read_model(a, path, &s);
        print_message("# %s\n", cases[i].path);
        assert_non_null(e);
        assert_string_equal(e->what.id, cases[i].id);
        assert_int_equal(e->code, cases[i].code);
        assert_true(e->file.n > 0);
        tv_arena_close(a);
    }
}

static void a_pipeline_has_parts(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_source *s = NULL;
    assert_ok(a, tv_read_model(a, fixture(a, "folders/pipeline/model_index.json"), &s));
    assert_int_equal(s->n_components, 2);
    assert_str(s->components[0].name, "unet");
    assert_str(s->components[0].class_name, "UNet2DConditionModel");
    assert_int_equal(s->components[0].source->kind, TV_SOURCE_DIFFUSERS);
    assert_int_equal(s->components[0].source->n_tensors, 2);
    assert_str(s->components[1].class_name, "CLIPTextModel");
    assert_int_equal(s->components[1].source->kind, TV_SOURCE_HF_CONFIG);
    tv_arena_close(a);
}

static void quantization_lies_beside(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_source *s = NULL;
    assert_ok(a, tv_read_model(a, fixture(a, "folders/quantized"), &s));
    assert_str(tv_json_str(tv_json_path(s->quantization, "quantization.quant_algo")), "NVFP4");
    assert_ok(a, tv_read_model(a, fixture(a, "good/v3-little.gguf"), &s));
    assert_true(s->stated_params == 128 + 64);
    tv_arena_close(a);
}

static void numbers_of_parameters(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_source *s = NULL;
    assert_ok(a, tv_read_params(a, 7e9, &s));
    assert_int_equal(s->kind, TV_SOURCE_PARAMS);
    assert_true(s->stated_params == 7e9);
    static const double wrong[] = {0, -1, 0.5, 1e16, (double)NAN, (double)INFINITY};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const tv_err *e = tv_read_params(a, wrong[i], &s);
        assert_non_null(e);
        assert_int_equal(e->code, TV_USAGE);
    }
    tv_arena_close(a);
}

static void descriptions_in_memory(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_source *s = NULL;
    assert_ok(a, tv_read_description(a, TV_S("x.json"), TV_S("{\"model_type\":\"llama\"}"), &s));
    assert_int_equal(s->kind, TV_SOURCE_HF_CONFIG);
    assert_str(s->name, "x");
    const tv_err *e = tv_read_description(a, TV_S("x.json"), TV_S("{\"model_type\":"), &s);
    assert_non_null(e);
    assert_string_equal(e->what.id, "json.short");
    assert_int_equal(e->offset, 14);
    tv_arena_close(a);
}

static size_t open_files(void)
{
    tv_arena *a = test_arena();
    tv_dir dir;
    assert_ok(a, tv_dir_list(a, TV_S("/proc/self/fd"), &dir));
    const size_t n = dir.n;
    tv_arena_close(a);
    return n;
}

/* The k-th allocation fails, for every k: the guard is reached and no file stays open. */
static bool read_with_fault(const char *path, uint64_t k)
{
    jmp_buf landing;
    tv_arena *a = test_arena();
    const tv_source *s = NULL;
    volatile bool spent = false;
    const tv_str full = fixture(a, path);
    if (setjmp(landing) == 0) {
        tv_arena_guard(a, &landing);
        tv_arena_fail_at(a, k);
        const tv_err *e = tv_read_model(a, full, &s);
        assert_null(e);
    } else {
        spent = true;
    }
    tv_arena_close(a);
    return spent;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    static const char *const paths[] = {"folders/sharded", "folders/split", "folders/pipeline",
                                        "good/every-value.gguf"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        uint64_t k = 1;
        const size_t before = open_files();
        while (read_with_fault(paths[i], k))
            k++;
        assert_true(k > 10);
        assert_int_equal(open_files(), before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_files_agree_with_the_plain_reader),
        cmocka_unit_test(broken_files_name_what_and_where),
        cmocka_unit_test(every_cut_is_found),
        cmocka_unit_test(names_stay_in_their_folder),
        cmocka_unit_test(parts_are_told_by_their_names),
        cmocka_unit_test(what_a_path_holds),
        cmocka_unit_test(what_a_path_lacks),
        cmocka_unit_test(a_pipeline_has_parts),
        cmocka_unit_test(quantization_lies_beside),
        cmocka_unit_test(numbers_of_parameters),
        cmocka_unit_test(descriptions_in_memory),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
