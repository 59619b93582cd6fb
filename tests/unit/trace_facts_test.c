/* Profiles of every dialect -> facts: the collected ones by their manifest, others written here. */
#include "testing.h"

#include "base/json.h"
#include "trace/trace.h"

#define MODELS "../shared/data/models/"

static const tv_note *facts_of(tv_arena *a, const char *text)
{
    tv_scene *scene = tv_new(a, tv_scene, 1);
    assert_ok(a, tv_trace_document(a, TV_S("rank-3.pt.trace.json"), tv_str_of(text), scene));
    const tv_sighting *s = tv_scene_first(scene, "trace");
    if (!s)
        fail_msg("no trace in %.80s", text);
    return &s->facts;
}

typedef struct wanted {
    const char *path;
    double number;
    const char *word; /* NULL: the number is meant */
} wanted;

typedef struct dialect {
    const char *text;
    wanted want[10];
} dialect;

static const dialect dialects[] = {
    /* Paddle: durations in the names, a correlation under another name */
    {"{ \"schemaVersion\": \"1.0.1\", \"displayTimeUnit\": \"ms\", \"span_indx\": \"0\",\n"
     "\"deviceProperties\": [{\"id\": 0, \"name\": \"Tesla V100-SXM2-32GB\", \"smCount\": 80}],\n"
     "\"traceEvents\": [\n"
     "{\"name\": \"ProfileStep#4[9.000 ms]\", \"pid\": 7, \"tid\": \"7(Python)\", \"ts\": 1000,"
     " \"dur\": 9000.000, \"ph\": \"X\", \"cat\": \"ProfileStep\", \"args\": {\"start_time\": "
     "\"0.000 us\"}},\n"
     "{\"name\": \"Dataloader[2.000 ms]\", \"pid\": 7, \"tid\": \"7(Python)\", \"ts\": 1000, "
     "\"dur\": 2000.000, \"ph\": \"X\", \"cat\": \"Dataloader\", \"args\": {}},\n"
     "{\"name\": \"cudaLaunchKernel[0.010 ms]\", \"pid\": 7, \"tid\": \"7(C++)\", \"ts\": 3000, "
     "\"dur\": 10.000, \"ph\": \"X\", \"cat\": \"CudaRuntime\", \"args\": {\"correlation id\": "
     "5}},\n"
     "{\"name\": \"volta_sgemm_128x64_nn[4.000 ms]\", \"pid\": 0, \"tid\": 7, \"ts\": 3100, "
     "\"dur\": 4000.000, \"ph\": \"X\", \"cat\": \"Kernel\", \"args\": {\"device\": 0, "
     "\"stream\": 7, \"correlation id\": 5}},\n"
     "{\"name\": \"MEMCPY_HtoD[0.100 ms]\", \"pid\": 0, \"tid\": 7, \"ts\": 8000, \"dur\": "
     "100.000, \"ph\": \"X\", \"cat\": \"Memcpy\", \"args\": {\"stream\": 7, \"correlation id\": "
     "6, \"bytes\": 1000000}},\n"
     "],\n\"ExtraInfo\": {\"Process Cpu Utilization\": \"1.0\"} }",
     {{"steps", 1, NULL},
      {"step_s", 9e-3, NULL},
      {"shares.gemm", 4.0 / 9, NULL},
      {"shares.data", 2.0 / 9, NULL},
      {"linked_share", 0.5, NULL},
      {"top.0.name", 0, "volta_sgemm_128x64_nn"},
      {"htod_bytes", 1000000, NULL},
      {"gpus.0.sms", 80, NULL},
      {"longest_runtime.name", 0, "cudaLaunchKernel"}}},
    /* PyTorch without Kineto: a list, no categories, processes by name */
    {"[{\"name\": \"aten::mm\", \"ph\": \"X\", \"ts\": 10.5, \"dur\": 20.0, \"tid\": 1, \"pid\": "
     "\"CPU functions\", \"args\": {}},\n"
     "{\"name\": \"volta_sgemm_64x32_nn\", \"ph\": \"X\", \"ts\": 40, \"dur\": 8.25, \"tid\": 1, "
     "\"pid\": \"CUDA functions\", \"args\": {}},\n"
     "{\"name\": \"aten::mm\", \"ph\": \"s\", \"ts\": 10.5, \"tid\": 1, \"pid\": \"CPU "
     "functions\", \"id\": 1, \"cat\": \"cpu_to_cuda\", \"args\": {}}]",
     {{"kernels", 1, NULL},
      {"kernel_s", 8.25e-6, NULL},
      {"device", 1, NULL},
      {"gemm_share", 1, NULL},
      {"grade", 0, "good"},
      {"cats.0", 0, "cpu_to_cuda"}}},
    /* TensorFlow and JAX: processes and threads tell what a row is */
    {"{\"displayTimeUnit\":\"ns\",\"metadata\":{\"highres-ticks\":true},\n\"traceEvents\":[\n"
     "{\"ph\":\"M\",\"pid\":3,\"name\":\"process_name\",\"args\":{\"name\":\"/device:GPU:1\"}},\n"
     "{\"ph\":\"M\",\"pid\":3,\"tid\":9,\"name\":\"thread_name\",\"args\":{\"name\":\"Stream "
     "#20(Compute)\"}},\n"
     "{\"ph\":\"M\",\"pid\":3,\"tid\":1,\"name\":\"thread_name\",\"args\":{\"name\":\"XLA "
     "Modules\"}},\n"
     "{\"ph\":\"M\",\"pid\":3,\"tid\":2,\"name\":\"thread_name\",\"args\":{\"name\":\"Steps\"}},\n"
     "{\"ph\":\"M\",\"pid\":5,\"name\":\"process_name\",\"args\":{\"name\":\"/host:CPU\"}},\n"
     "{\"ph\":\"X\",\"pid\":3,\"tid\":2,\"ts\":0,\"dur\":100,\"name\":\"0\"},\n"
     "{\"ph\":\"X\",\"pid\":3,\"tid\":1,\"ts\":0,\"dur\":90,\"name\":\"jit_step\"},\n"
     "{\"ph\":\"X\",\"pid\":3,\"tid\":9,\"ts\":10,\"dur\":30,\"name\":\"gemm_fusion_dot_1\"},\n"
     "{\"ph\":\"X\",\"pid\":3,\"tid\":9,\"ts\":50,\"dur\":10,\"name\":\"loop_add_fusion\"},\n"
     "{\"ph\":\"X\",\"pid\":5,\"tid\":4,\"ts\":0,\"dur\":80,\"name\":\"PjitFunction(step)\"},\n"
     "{}\n]}",
     {{"kernels", 2, NULL},
      {"steps", 1, NULL},
      {"device", 1, NULL},
      {"shares.gemm", 0.3, NULL},
      {"shares.elementwise", 0.1, NULL},
      {"gemm_share", 0.75, NULL}}},
    /* ROCm: copies without bytes, calls of HIP */
    {"{\"schemaVersion\": 1, \"traceEvents\": [\n"
     "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"hipMemcpyWithStream\", \"pid\": 1, "
     "\"tid\": 1, \"ts\": 5.5, \"dur\": 9, \"args\": {\"cid\": 46, \"correlation\": 117}},\n"
     "{\"ph\": \"X\", \"cat\": \"gpu_memcpy\", \"name\": \"Memcpy HtoD (Host -> Device)\", "
     "\"pid\": 2, \"tid\": 0, \"ts\": 10.25, \"dur\": 22.5, \"args\": {\"device\": 2, \"stream\": "
     "0, \"correlation\": 117, \"kind\": \"HtoD\"}}]}",
     {{"vendor", 0, "amd"},
      {"memcpy", 1, NULL},
      {"pageable_htod", 0, NULL},
      {"device", 2, NULL},
      {"ts_unit", 0, "us float"},
      {"rank_in_name", 3, NULL},
      {"linked_share", 1, NULL}}},
    /* durations that no profile has; a collective with its size */
    {"{\"schemaVersion\": 1, \"distributedInfo\": {\"rank\": 5, \"world_size\": 8}, "
     "\"traceEvents\": [\n"
     "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"bad\", \"pid\": 0, \"tid\": 7, \"ts\": 1, "
     "\"dur\": 999999999999},\n"
     "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ncclDevKernel_AllGather_RING_LL\", \"pid\": "
     "0, \"tid\": 20, \"ts\": 100, \"dur\": 50, \"args\": {\"device\": 0, \"stream\": 20, "
     "\"correlation\": 9, \"Collective name\": \"_allgather_base\", \"In msg nelems\": 1000, "
     "\"Out msg nelems\": 8000, \"Group size\": 8, \"dtype\": \"BFloat16\"}}]}",
     {{"rank", 5, NULL},
      {"too_long_events", 1, NULL},
      {"kernels", 1, NULL},
      {"collectives", 1, NULL},
      {"algbw_bytes_per_s_total", 16000 / 50e-6, NULL},
      {"busbw_bytes_per_s_total", 14000 / 50e-6, NULL},
      {"small_collectives", 1, NULL},
      {"dtype", 0, "BFloat16"}}},
    /* shapes: 2·16·32·64 operations in 1 us; the operation around it is not counted */
    {"{\"schemaVersion\": 1, \"traceEvents\": [\n"
     "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::linear\", \"pid\": 1, \"tid\": 1, "
     "\"ts\": 1, \"dur\": 9, \"args\": {\"Input Dims\": [[16, 64], [32, 64], []]}},\n"
     "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::addmm\", \"pid\": 1, \"tid\": 1, "
     "\"ts\": 1, \"dur\": 9, \"args\": {\"Input type\": [\"c10::Half\", \"c10::Half\"], \"Input "
     "Dims\": [[32], [16, 64], [64, 32], [], []]}},\n"
     "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"sm80_gemm\", \"pid\": 0, \"tid\": 7, "
     "\"ts\": 4, \"dur\": 1}]}",
     {{"matrix_flop", 65536, NULL},
      {"gemm_flop_per_s", 65536e6, NULL},
      {"flop_dtype", 0, "c10::Half"},
      {"gemm_ops", 1, NULL}}},
};

static void check_wanted(const tv_note *facts, const wanted *w)
{
    if (w->word) {
        const tv_str got = tv_noted_str(facts, w->path);
        if (!tv_str_is(got, w->word))
            fail_msg("%s: got \"%.*s\", want \"%s\"", w->path, TV_FMT(got), w->word);
        return;
    }
    const double got = tv_noted_num(facts, w->path);
    if (!(fabs(got - w->number) <= 1e-9 * fabs(w->number) + 1e-15))
        fail_msg("%s: got %.12g, want %.12g", w->path, got, w->number);
}

static void reads_dialects(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof dialects / sizeof *dialects; i++) {
        tv_arena *a = test_arena();
        const tv_note *facts = facts_of(a, dialects[i].text);
        for (const wanted *w = dialects[i].want; w->path; w++)
            check_wanted(facts, w);
        tv_arena_close(a);
    }
}

/* The same answer, or less of it, whatever is cut off; never a failure. */
static void reads_what_is_cut(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    for (size_t i = 0; i < sizeof dialects / sizeof *dialects; i++) {
        const tv_str whole = tv_str_of(dialects[i].text);
        for (size_t n = whole.n / 2; n < whole.n; n += 7) {
            const tv_mark mark = tv_arena_mark(a);
            tv_scene *scene = tv_new(a, tv_scene, 1);
            assert_ok(a, tv_trace_document(a, TV_S("cut.json"), tv_str_take(whole, n), scene));
            const tv_sighting *s = tv_scene_first(scene, "trace");
            assert_non_null(s);
            assert_true(tv_noted_bool(&s->facts, "cut", false) || n + 3 > whole.n);
            tv_arena_rewind(a, mark);
        }
    }
    tv_arena_close(a);
}

/* ---- the collection ---- */

typedef struct row {
    const tv_json *facts;
    const tv_note *got;
    const char *wrong; /* the first fact that does not hold */
} row;

static void hold(row *r, const char *what, bool holds)
{
    if (!holds && !r->wrong)
        r->wrong = what;
}

static bool near(double got, double want)
{
    return fabs(got - want) <= 1e-9 * (1 + fabs(want));
}

static void hold_counts(row *r, const char *key)
{
    const tv_json *want = tv_json_get(r->facts, key);
    const tv_note *got = tv_noted(r->got, key);
    hold(r, key, want->n == (got ? got->n : 0));
    for (size_t i = 0; i < want->n; i++) {
        double v = (double)NAN;
        for (const tv_note *n = got ? got->first : NULL; n; n = n->next)
            if (tv_str_is(want->items[i].key, n->key))
                v = n->number;
        hold(r, key, near(v, want->items[i].number));
    }
}

static void hold_number(row *r, const char *fact, double factor, const char *path)
{
    const tv_json *want = tv_json_get(r->facts, fact);
    if (tv_json_is_num(want))
        hold(r, fact, near(tv_noted_num(r->got, path), want->number * factor));
}

static void hold_events(row *r)
{
    hold_number(r, "events", 1, "events");
    hold_number(r, "steps", 1, "steps");
    hold_number(r, "schemaVersion", 1, "schema_version");
    hold_number(r, "span_us", 1e-6, "span_s");
    hold_number(r, "gpu_busy_sum_us", 1e-6, "gpu_busy_sum_s");
    hold_number(r, "baseTimeNanoseconds", 1e-9, "base_time_s");
    hold_counts(r, "phases");
    hold_counts(r, "categories");
    const tv_str type = tv_json_str(tv_json_at(tv_json_get(r->facts, "ts_types"), 0));
    hold(r, "ts_types", tv_str_ends(tv_noted_str(r->got, "ts_unit"), type));
    const tv_json *devices = tv_json_get(r->facts, "devices");
    const tv_note *name = tv_noted(r->got, "devices");
    name = name ? name->first : NULL;
    for (size_t i = 0; i < devices->n; i++, name = name ? name->next : NULL)
        hold(r, "devices", name && tv_str_eq(name->s, tv_json_str(tv_json_at(devices, i))));
    const tv_json *info = tv_json_get(r->facts, "distributed");
    hold(r, "distributed",
         !tv_json_has(info, "rank") ||
             near(tv_noted_num(r->got, "rank"), tv_json_num(tv_json_get(info, "rank"), -1)));
    hold(r, "damage", !tv_noted_bool(r->got, "damaged", true));
}

static bool check_row(const tv_json *doc)
{
    tv_arena *a = test_arena();
    row r = {.facts = tv_json_get(doc, "facts")};
    const tv_str path = tv_path_join(a, TV_S(MODELS), tv_json_str(tv_json_get(doc, "path")));
    tv_scene *scene = tv_new(a, tv_scene, 1);
    assert_ok(a, tv_trace_read(a, path, scene));
    const tv_sighting *s = tv_scene_first(scene, "trace");
    if (s) {
        r.got = &s->facts;
        if (tv_json_has(r.facts, "events"))
            hold_events(&r);
        hold_number(&r, "nodes", 1, "nodes");
        if (!tv_json_has(r.facts, "events"))
            hold_number(&r, "entries", 1, "entries");
    } else {
        r.wrong = "no trace";
    }
    if (r.wrong)
        print_message("# %.*s: %s\n", TV_FMT(path), r.wrong);
    tv_arena_close(a);
    return !r.wrong;
}

static void collection_holds(void **state)
{
    (void)state;
    if (!test_shared("models/MANIFEST.jsonl"))
        return;
    tv_arena *a = test_arena();
    tv_str text;
    size_t n = 0, held = 0;
    assert_ok(a, tv_file_read(a, TV_S(MODELS "MANIFEST.jsonl"), (size_t)16 << 20, &text));
    while (text.n) {
        const tv_cut line = tv_str_cut(text, '\n');
        const tv_json *doc = NULL;
        assert_ok(a, tv_json_parse(a, TV_S("manifest"), line.head, &doc));
        if (tv_str_is(tv_json_str(tv_json_get(doc, "kind")), "trace")) {
            n++;
            held += check_row(doc);
        }
        text = line.tail;
    }
    print_message("# traces: %zu of %zu\n", held, n);
    assert_int_equal(n, 27);
    assert_int_equal(held, n);
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_dialects),
        cmocka_unit_test(reads_what_is_cut),
        cmocka_unit_test(collection_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
