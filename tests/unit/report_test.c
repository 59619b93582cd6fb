/* Writers: what is unknown stays unknown, parts sum, lines fit the width in both languages. */
#include "testing.h"

#include "base/unit.h"
#include "report/report.h"

typedef struct fixture {
    tv_arena *a;
    tv_model model;
    tv_job job;
    tv_device device;
    tv_machine machine;
    tv_estimate est;
    tv_text defaults[1];
    tv_ledger_line lines[1];
} fixture;

static void fill_memory(tv_memory *m)
{
    for (int t = 0; t < TV_TERM_COUNT; t++)
        m->term_bytes[t] = (t + 1) * 0.3e9;
    m->allocated_peak_bytes = 45 * 0.3e9;
    m->fragmentation_bytes = 0.4e9;
    m->reserved_peak_bytes = m->allocated_peak_bytes + m->fragmentation_bytes;
    m->context_bytes = 0.5e9;
    m->total_bytes = m->reserved_peak_bytes + m->context_bytes;
    m->low_bytes = 0.95 * m->total_bytes;
    m->high_bytes = 1.05 * m->total_bytes;
    m->capacity_bytes = 24e9;
    m->verdict = TV_FITS;
    m->max_batch = 21;
    m->peak_at = TV_TEXT0("peak", N_("backward of the last layer"));
}

static void fill(fixture *f)
{
    f->a = test_arena();
    f->model = (tv_model){
        .name = TV_S("tiny"), .family = "decoder", .source = TV_S("built in"), .params = 7e9};
    f->defaults[0] = TV_TEXT0("seq", N_("seq 512"));
    f->job = (tv_job){.task = TV_TASK_LORA,
                      .precision = TV_PRECISION_BF16,
                      .batch = 4,
                      .seq = 512,
                      .lora_rank = 16,
                      .defaults = f->defaults,
                      .n_defaults = 1};
    f->device = (tv_device){.slug = TV_S("acme-one"),
                            .name = TV_S("Acme One 24 GB"),
                            .mem_bytes = tv_fact_of(24e9, TV_CATALOG, TV_S("acme.example"))};
    f->machine = (tv_machine){.device = &f->device, .gpus = 1};
    f->est = (tv_estimate){.model = &f->model,
                           .job = &f->job,
                           .machine = &f->machine,
                           .policy.precision = TV_PRECISION_BF16};
    fill_memory(&f->est.memory);
    f->lines[0] = (tv_ledger_line){
        TV_TERM_WEIGHTS,
        "weights",
        14e9,
        TV_TEXT(f->a, "w", N_("{n} parameters × 2 B"), tv_arg_num("n", TV_ARG_COUNT, 7e9)),
        "1.2",
        TV_COMPUTED};
    f->est.memory.lines = f->lines;
    f->est.memory.n_lines = 1;
}

static void add_time(fixture *f)
{
    f->est.time.step_s = (tv_fact){.v = 0.5, .lo = 0.4, .hi = 0.6, .origin = TV_COMPUTED};
    f->est.time.compute_s = 0.45;
    f->est.time.optimizer_s = 0.05;
    f->est.balance =
        (tv_balance){.bottleneck = TV_BOUND_COMPUTE, .share_compute = 1, .gain_if_removed = 0.8};
    f->est.grades =
        (tv_grades){.vram = TV_GRADE_GOOD, .density = TV_GRADE_FAIR, .gemm_share = 0.55};
}

static const tv_json *written(fixture *f)
{
    tv_buf b = tv_buf_in(f->a);
    const tv_request req = {.a = f->a};
    const tv_size_view view = {.estimate = &f->est};
    tv_size_json(&req, &b, &view);
    const tv_json *doc = NULL;
    assert_ok(f->a, tv_json_parse(f->a, TV_S("size"), tv_buf_str(&b), &doc));
    return doc;
}

static void interface_keys_are_there(void **state)
{
    (void)state;
    static const char *const keys[] = {
        "model.name",
        "model.family",
        "model.params",
        "model.weights_bytes",
        "model.source",
        "job.task",
        "job.precision",
        "job.defaults",
        "machine.gpu",
        "machine.mem_bytes",
        "machine.mem_usable_bytes",
        "memory.weights_bytes",
        "memory.gradients_bytes",
        "memory.optimizer_bytes",
        "memory.activations_bytes",
        "memory.logits_bytes",
        "memory.kv_bytes",
        "memory.comm_buffers_bytes",
        "memory.workspace_bytes",
        "memory.temporaries_bytes",
        "memory.allocated_peak_bytes",
        "memory.fragmentation_bytes",
        "memory.reserved_peak_bytes",
        "memory.context_bytes",
        "memory.nccl_bytes",
        "memory.total_bytes",
        "memory.low_bytes",
        "memory.high_bytes",
        "memory.peak_at",
        "memory.verdict",
        "memory.max_batch",
        "memory.max_seq",
        "memory.kv_tokens",
        "time.step_s",
        "time.data_s",
        "time.low_s",
        "time.ttft_s",
        "time.mfu",
        "balance.bottleneck",
        "balance.shares.compute",
        "balance.gain_if_removed",
        "balance.advice",
        "grades.vram",
        "grades.density",
        "grades.io",
        "grades.gemm_share",
        "cost.currency",
        "cost.per_run",
        "cost.hidden",
        "cost.total_year",
        "cost.price_date",
        "cost.price_source",
        "facts",
    };
    fixture f;
    fill(&f);
    const tv_json *doc = written(&f);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (tv_json_path(doc, keys[i])->type == TV_JSON_END)
            fail_msg("no key %s", keys[i]);
    tv_arena_close(f.a);
}

static void unknown_is_null(void **state)
{
    (void)state;
    fixture f;
    fill(&f);
    const tv_json *doc = written(&f);
    static const char *const unknown[] = {
        "time.step_s",       "time.compute_s",        "time.data_s", "machine.mem_usable_bytes",
        "cost.per_hour",     "balance.bottleneck",    "grades.io",   "memory.max_seq",
        "grades.gemm_share", "balance.shares.compute"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_int_equal(tv_json_path(doc, unknown[i])->type, TV_JSON_NULL);
    add_time(&f);
    doc = written(&f);
    assert_close(tv_json_num(tv_json_path(doc, "time.step_s"), -1), 0.5, 1e-12);
    /* One card has no communication: that is known. No data was named: that is not. */
    assert_true(tv_json_num(tv_json_path(doc, "time.comm_s"), -1) == 0);
    assert_int_equal(tv_json_path(doc, "time.data_s")->type, TV_JSON_NULL);
    assert_str(tv_json_str(tv_json_at(tv_json_path(doc, "job.defaults"), 0)), "seq");
    tv_arena_close(f.a);
}

static void parts_sum_to_the_total(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "weights_bytes",      "gradients_bytes", "optimizer_bytes",
        "activations_bytes",  "logits_bytes",    "kv_bytes",
        "comm_buffers_bytes", "workspace_bytes", "temporaries_bytes"};
    fixture f;
    fill(&f);
    const tv_json *m = tv_json_get(written(&f), "memory");
    double sum = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        sum += tv_json_num(tv_json_get(m, parts[i]), (double)NAN);
    assert_close(sum, tv_json_num(tv_json_get(m, "allocated_peak_bytes"), (double)NAN), 1e-9);
    const double reserved = sum + tv_json_num(tv_json_get(m, "fragmentation_bytes"), (double)NAN);
    assert_close(reserved, tv_json_num(tv_json_get(m, "reserved_peak_bytes"), (double)NAN), 1e-9);
    assert_close(reserved + tv_json_num(tv_json_get(m, "context_bytes"), (double)NAN) +
                     tv_json_num(tv_json_get(m, "nccl_bytes"), (double)NAN),
                 tv_json_num(tv_json_get(m, "total_bytes"), (double)NAN), 1e-9);
    tv_arena_close(f.a);
}

static void check_width(tv_str page, int width)
{
    while (page.n) {
        const tv_cut line = tv_str_cut(page, '\n');
        if (tv_width(line.head) > width)
            fail_msg("wider than %d: %.*s", width, TV_FMT(line.head));
        if (line.head.n && line.head.p[line.head.n - 1] == ' ')
            fail_msg("ends in a space: \"%.*s\"", TV_FMT(line.head));
        page = line.tail;
    }
}

static void pages_fit_the_width(void **state)
{
    (void)state;
    static const int widths[] = {60, 80, 100};
    fixture f;
    fill(&f);
    add_time(&f);
    for (size_t i = 0; i < 3; i++)
        for (tv_lang lang = TV_EN; lang <= TV_ZH; lang++) {
            const tv_request req = {.a = f.a, .lang = lang, .width = widths[i]};
            const tv_size_view view = {.estimate = &f.est, .explain = true};
            tv_buf b = tv_buf_in(f.a);
            tv_size_text(&req, &b, &view);
            check_width(tv_buf_str(&b), widths[i]);
            assert_false(tv_str_has(tv_buf_str(&b), TV_S("\x1b")));
        }
    tv_arena_close(f.a);
}

static void columns_line_up_in_chinese(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    static const tv_column columns[] = {{NULL, false, false}, {NULL, true, false}};
    tv_table t = {.columns = columns, .n_columns = 2};
    tv_table_add(a, &t, TV_PLAIN, TV_S("权重"));
    tv_table_add(a, &t, TV_PLAIN, TV_S("1"));
    tv_table_add(a, &t, TV_PLAIN, TV_S("weights"));
    tv_table_add(a, &t, TV_PLAIN, TV_S("20"));
    tv_buf b = tv_buf_in(a);
    const tv_page page = {.b = &b, .width = 40};
    tv_table_put(&page, &t, 1);
    assert_str(tv_buf_str(&b), " 权重      1\n weights  20\n");
    assert_int_equal(tv_width(TV_S("权重a")), 5);
    tv_arena_close(a);
}

static void long_cells_wrap(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    static const tv_column columns[] = {{NULL, false, false}, {NULL, false, true}};
    tv_table t = {.columns = columns, .n_columns = 2};
    tv_table_add(a, &t, TV_PLAIN, TV_S("why"));
    tv_table_add(a, &t, TV_PLAIN, TV_S("one two three four five six seven eight nine ten"));
    tv_buf b = tv_buf_in(a);
    const tv_page page = {.b = &b, .width = 40};
    tv_table_put(&page, &t, 0);
    assert_str(tv_buf_str(&b), "why  one two three four five six seven\n     eight nine ten\n");
    assert_str(tv_bar(a, 0.5, 4), "██");
    assert_str(tv_bar(a, 0, 4), "");
    assert_str(tv_bar(a, 1e-9, 4), "▏");
    assert_str(tv_bar(a, 9, 2), "██");
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interface_keys_are_there),   cmocka_unit_test(unknown_is_null),
        cmocka_unit_test(parts_sum_to_the_total),     cmocka_unit_test(pages_fit_the_width),
        cmocka_unit_test(columns_line_up_in_chinese), cmocka_unit_test(long_cells_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
