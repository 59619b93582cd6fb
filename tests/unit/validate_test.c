/* Rows of measurements to jobs, the tables of sources, and the figures of a group. */
#include "testing.h"

#include "command/validate_row.h"
#include "command/validate_table.h"

static const char models[] =
    "{\"map\": ["
    "{\"models\": [\"small-*\"], \"use\": \"resnet50\", \"image\": [224, 224]},"
    "{\"repo\": \"a/*\", \"models\": [\"*\"], \"use\": \"bert-base\"}],"
    "\"skip\": [{\"models\": [\"odd\"], \"reason\": \"odd one\"}]}";

static const char defaults[] =
    "{\"set\": ["
    "{\"repo\": \"a/b\", \"field\": \"optimizer\", \"value\": \"momentum\", \"when\": "
    "{\"optimizer\": \"SGD\"}, \"replaces\": true, \"assumed\": true},"
    "{\"repo\": \"a/b|c/d\", \"field\": \"seq_len\", \"value\": \"@extra.cap\", \"assumed\": true},"
    "{\"field\": \"precision\", \"value\": \"bf16\", \"assumed\": true},"
    "{\"field\": \"optimizer\", \"value\": \"adamw\", \"assumed\": true}],"
    "\"skip\": [{\"when\": {\"doubt\": \"bad*\"}, \"reason\": \"known to be bad\"}]}";

#define HEADER                                                                                     \
    "repo,model,gpu,gpus,task,framework,precision,batch_per_gpu,grad_accum,seq_len,image_size,"    \
    "optimizer,metric,value,doubt\n"

typedef struct fixture {
    tv_arena *a;
    tv_rules rules;
    tv_csv csv;
    tv_row row;
} fixture;

/* Opens a table of one row with its extra settings. */
static fixture one_row(const char *text, const char *extra)
{
    fixture f = {.a = test_arena()};
    assert_ok(f.a, tv_rules_read(f.a, tv_str_of(models), tv_str_of(defaults), &f.rules));
    assert_ok(f.a, tv_csv_open(f.a, TV_S("rows"), tv_str_of(text), &f.csv));
    bool more = false;
    assert_ok(f.a, tv_csv_next(&f.csv, &more));
    assert_true(more);
    if (extra)
        assert_ok(f.a, tv_json_parse(f.a, TV_S("extra"), tv_str_of(extra), &f.row.extra));
    return f;
}

static bool read_want(fixture *f, tv_want *want, tv_str *reason)
{
    f->row.csv = &f->csv;
    return tv_want_read(f->a, &f->rules, &f->row, tv_rows_kind_of(&f->csv), want, reason);
}

static void a_row_becomes_a_job(void **state)
{
    (void)state;
    fixture f = one_row(HEADER "a/b,x,nvidia-t4,16,finetune,paddlepaddle,amp-fp16,4,2,,512x1024,"
                               "SGD,step_ms,250,\n",
                        "{\"cap\": 768}");
    tv_want w;
    tv_str reason;
    assert_true(read_want(&f, &w, &reason));
    assert_int_equal(w.job.task, TV_TASK_FINETUNE);
    assert_int_equal(w.job.framework, TV_PADDLE);
    assert_int_equal(w.job.precision, TV_PRECISION_AMP_FP16);
    assert_int_equal(w.job.optimizer, TV_OPT_MOMENTUM);
    assert_int_equal(w.job.batch, 4);
    assert_int_equal(w.job.accum, 2);
    assert_int_equal(w.job.seq, 768);
    assert_int_equal(w.job.image_h, 512);
    assert_int_equal(w.job.image_w, 1024);
    assert_int_equal(w.gpus, 8);
    assert_int_equal(w.nodes, 2);
    assert_int_equal(w.measure, TV_MEASURE_STEP);
    assert_close(w.value, 0.25, 1e-12);
    assert_true(w.assumed);
    tv_arena_close(f.a);
}

typedef struct refused {
    const char *row;
    const char *reason;
} refused;

static void what_is_not_stated_is_not_guessed(void **state)
{
    (void)state;
    static const refused cases[] = {
        {"a/b,x,,1,train,torch,fp32,4,,8,,sgd,step_ms,2,", "the card is not stated"},
        {"a/b,x,nvidia-t4,,train,torch,fp32,4,,8,,sgd,step_ms,2,",
         "the number of cards is not stated"},
        {"a/b,x,nvidia-t4,12,train,torch,fp32,4,,8,,sgd,step_ms,2,",
         "the cards do not divide evenly over machines"},
        {"a/b,x,nvidia-t4,1,train,torch,fp32,,,8,,sgd,step_ms,2,", "the batch is not stated"},
        {"a/b,x,nvidia-t4,1,train,torch,fp9,4,,8,,sgd,step_ms,2,",
         "a precision that is not modelled"},
        {"a/b,x,nvidia-t4,1,train,torch,fp32,4,,8,,zen,step_ms,2,",
         "an optimizer that is not modelled"},
        {"a/b,x,nvidia-t4,1,lora,torch,bf16,4,,8,,sgd,step_ms,2,",
         "the adapters' rank is not stated"},
        {"a/b,x,nvidia-t4,1,train,torch,fp32,4,,8,,sgd,heat,2,", "a figure that is not predicted"},
        {"a/b,x,nvidia-t4,1,train,torch,fp32,4,,8,,sgd,step_ms,,", "the row has no figure"},
        {"a/b,x,nvidia-t4,1,train,torch,fp32,4,,8,,sgd,step_ms,2,bad clock", "known to be bad"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        (void)snprintf(text, sizeof text, HEADER "%s\n", cases[i].row);
        fixture f = one_row(text, NULL);
        tv_want w;
        tv_str reason = {0};
        assert_false(read_want(&f, &w, &reason));
        assert_str(reason, cases[i].reason);
        tv_arena_close(f.a);
    }
}

static void models_are_found_by_the_first_rule(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        const char *use; /* NULL: the reason */
        const char *reason;
    } cases[] = {
        {"a/b,small-1,,,,,,,,,,,,,", "resnet50", NULL},
        {"a/b,odd,,,,,,,,,,,,,", "bert-base", NULL},
        {"c/d,odd,,,,,,,,,,,,,", NULL, "odd one"},
        {"c/d,else,,,,,,,,,,,,,", NULL, "no built-in model is known for this name"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        (void)snprintf(text, sizeof text, HEADER "%s\n", cases[i].row);
        fixture f = one_row(text, NULL);
        f.row.csv = &f.csv;
        tv_str reason = {0};
        const tv_json *rule = tv_rules_model(&f.rules, f.a, &f.row, &reason);
        if (cases[i].use)
            assert_str(tv_json_str(tv_json_get(rule, "use")), cases[i].use);
        else
            assert_str(reason, cases[i].reason);
        tv_arena_close(f.a);
    }
}

static void inference_counts_and_units(void **state)
{
    (void)state;
    fixture f =
        one_row("repo,model,gpu,gpus,engine,precision,kv_precision,batch,prompt_len,gen_len,"
                "tp,pp,metric,value\n"
                "e/f,x,nvidia-t4,4,llama.cpp,fp16,fp16,2,128,64,1,4,ttft_ms,30\n",
                NULL);
    tv_want w;
    tv_str reason;
    assert_true(read_want(&f, &w, &reason));
    assert_int_equal(w.job.task, TV_TASK_INFER);
    assert_int_equal(w.job.engine, TV_ENGINE_LLAMA_CPP);
    assert_int_equal(w.job.kv, TV_F16);
    assert_int_equal(w.gpus, 1); /* layers in turn: one card stands for four */
    assert_int_equal(w.job.parallel.pp, 1);
    assert_close(w.value, 0.03, 1e-12);
    tv_arena_close(f.a);
}

static void errors_are_signed_and_ranges_forgive(void **state)
{
    (void)state;
    assert_close(tv_judged_error((tv_judged){.measured = 10, .least = 12, .most = 12}), 0.2, 1e-12);
    assert_close(tv_judged_error((tv_judged){.measured = 10, .least = 8, .most = 9}), -0.1, 1e-12);
    assert_true(tv_judged_error((tv_judged){.measured = 10, .least = 8, .most = 12}) == 0);
    assert_true(tv_judged_outside((tv_judged){.measured = 10, .lo = 10.1, .hi = 11}));
    assert_false(tv_judged_outside((tv_judged){.measured = 10, .lo = 9, .hi = 10}));
}

static void a_group_has_median_tails_and_sign(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_scores s = {.a = a};
    for (int i = 1; i <= 11; i++) { /* errors +1 %, -2 %, +3 % ... */
        const double v = 100 + (i % 2 ? i : -i);
        tv_scores_add(&s, TV_S("f"), TV_S("m"), TV_S("g"),
                      (tv_judged){.measured = 100, .least = v, .most = v, .lo = 94, .hi = 106});
    }
    tv_scores_skip(&s, TV_S("why"));
    tv_scores_skip(&s, TV_S("why"));
    assert_int_equal(s.groups.n, 1);
    assert_int_equal(s.skips.n, 1);
    assert_int_equal(s.skips.v[0].n, 2);
    const tv_summary x = tv_score_summary(&s.groups.v[0]);
    assert_int_equal(x.n, 11);
    assert_close(x.median, 0.06, 1e-9);
    assert_close(x.p90, 0.10, 1e-9);
    assert_close(x.p95, 0.105, 1e-9);
    assert_close(x.bias, 0.06 / 11, 1e-9);
    assert_true(x.outside == 0);
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_becomes_a_job),
        cmocka_unit_test(what_is_not_stated_is_not_guessed),
        cmocka_unit_test(models_are_found_by_the_first_rule),
        cmocka_unit_test(inference_counts_and_units),
        cmocka_unit_test(errors_are_signed_and_ranges_forgive),
        cmocka_unit_test(a_group_has_median_tails_and_sign),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
