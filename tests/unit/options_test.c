/* Option rows read from argv: good words fill the right field, bad ones are named. */
#include "testing.h"

#include "command/job_options.h"

typedef struct fields {
    tv_model_options model;
    tv_job job;
    tv_machine_options machine;
    tv_money_options money;
    tv_any_options any;
} fields;

static const tv_err *parse(tv_arena *a, fields *f, tv_args *args, const char *line)
{
    const tv_option_target targets[] = {
        {tv_model_rows, TV_MODEL_ROWS, &f->model},
        {tv_job_rows, TV_JOB_ROWS, &f->job},
        {tv_machine_rows, TV_MACHINE_ROWS, &f->machine},
        {tv_money_rows, TV_MONEY_ROWS, &f->money},
        {tv_any_rows, TV_ANY_ROWS, &f->any},
    };
    const char *argv[64];
    int argc = 0;
    for (tv_cut cut = {.tail = tv_str_of(line), .found = true}; cut.found;) {
        cut = tv_str_cut(cut.tail, ' ');
        argv[argc++] = tv_cstr(a, cut.head);
    }
    *f = (fields){0};
    tv_job_unsaid(&f->job);
    return tv_options_parse(a, targets, sizeof targets / sizeof *targets, argc, argv, false, args);
}

static void good_words_fill_fields(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    fields f;
    tv_args args;
    assert_ok(a, parse(a, &f, &args,
                       "llama --task lora --batch 4 --seq=2048 other --precision AMP-BF16 --gpu "
                       "rtx-4090,a100 --ram 64GiB --params 7B --image 640x480 --kv q8_0 --deadline "
                       "2 --measured-step 30ms --set a=1 --set b=2GB --explain --lora-dropout 0.05 "
                       "--tp 2 --currency CNY -- --not-an-option"));
    assert_int_equal(args.n, 3);
    assert_str(args.v[0], "llama");
    assert_str(args.v[1], "other");
    assert_str(args.v[2], "--not-an-option");
    assert_int_equal(f.job.task, TV_TASK_LORA);
    assert_int_equal(f.job.batch, 4);
    assert_int_equal(f.job.seq, 2048);
    assert_int_equal(f.job.precision, TV_PRECISION_AMP_BF16);
    assert_str(f.machine.gpu, "rtx-4090,a100");
    assert_true(f.machine.ram_bytes == 64 * 0x1p30);
    assert_true(f.model.params == 7e9);
    assert_int_equal(f.job.image_h, 640);
    assert_int_equal(f.job.image_w, 480);
    assert_int_equal(f.job.kv, TV_Q8_0);
    assert_true(f.money.deadline_s == 7200);
    assert_close(f.any.measured_step_s, 0.03, 1e-12);
    assert_int_equal(f.any.set.n, 2);
    assert_str(f.any.set.v[1], "b=2GB");
    assert_true(f.any.explain);
    assert_false(f.any.require);
    assert_true(f.job.lora_dropout == 0.05);
    assert_true(f.job.dropout < 0);
    assert_int_equal(f.job.parallel.tp, 2);
    assert_int_equal(f.money.currency, TV_CNY);
    assert_true(tv_stated(&args, "batch"));
    assert_false(tv_stated(&args, "accum"));
    tv_arena_close(a);
}

typedef struct bad_case {
    const char *line;
    const char *id;
    const char *want; /* the whole message with its hint */
} bad_case;

static void bad_words_are_named(void **state)
{
    (void)state;
    static const bad_case cases[] = {
        {"--bach 4", "usage.unknown-option",
         "unknown option --bach\nhint: Did you mean --batch?\n"},
        {"--zzzzzzz", "usage.unknown-option",
         "unknown option --zzzzzzz\nhint: --help lists the options.\n"},
        {"-q", "usage.unknown-option", "unknown option -q\nhint: --help lists the options.\n"},
        {"--lora 3", "usage.ambiguous-option",
         "--lora could be any of --lora-rank, --lora-targets, --lora-dropout\n"},
        {"--batch", "usage.no-value", "--batch needs a value: N\n"},
        {"--aim", "usage.no-value", "--aim needs a value: cheapest, fastest, value\n"},
        {"--batch four", "usage.bad-value",
         "--batch cannot be \"four\": it takes a whole number\n"},
        {"--batch -4", "usage.bad-value", "--batch cannot be \"-4\": it takes a whole number\n"},
        {"--batch 2.5", "usage.bad-value", "--batch cannot be \"2.5\": it takes a whole number\n"},
        {"--batch 0", "usage.range", "--batch cannot be 0: the range is 1 to 1000000\n"},
        {"--batch 99999999999999999999", "usage.bad-value",
         "--batch cannot be \"99999999999999999999\": it takes a whole number\n"},
        {"--dropout 1.5", "usage.range", "--dropout cannot be 1.5: the range is 0 to 1\n"},
        {"--ram lots", "usage.bad-value",
         "--ram cannot be \"lots\": it takes a size such as 3.2GB, 80GiB or 512\n"},
        {"--ram -1", "usage.bad-value", "--ram cannot be \"-1\": it cannot be negative\n"},
        {"--deadline soon", "usage.bad-value",
         "--deadline cannot be \"soon\": it takes a time such as 90, 3ms, 5min or 2h\n"},
        {"--task trian", "usage.bad-word",
         "--task cannot be \"trian\": it is one of train, finetune, lora, qlora, infer, serve\n"
         "hint: Did you mean train?\n"},
        {"--task xyz", "usage.bad-word",
         "--task cannot be \"xyz\": it is one of train, finetune, lora, qlora, infer, serve\n"},
        {"--image 640x", "usage.bad-value",
         "--image cannot be \"640x\": it takes height and width such as 640x480\n"},
        {"--explain=yes", "usage.flag-value", "--explain takes no value\n"},
        {"--params x", "usage.bad-value",
         "--params cannot be \"x\": it takes a number such as 12, 0.5, 7e9 or 7B\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tv_arena *a = test_arena();
        fields f;
        tv_args args;
        const tv_err *e = parse(a, &f, &args, cases[i].line);
        assert_non_null(e);
        assert_int_equal(e->code, TV_USAGE);
        assert_string_equal(e->what.id, cases[i].id);
        tv_buf b = tv_buf_in(a);
        tv_put_err(&b, TV_EN, e);
        assert_str(tv_buf_str(&b), cases[i].want);
        tv_arena_close(a);
    }
}

typedef struct date_case {
    const char *text;
    bool ok;
} date_case;

static void dates_are_days_of_the_calendar(void **state)
{
    (void)state;
    static const date_case cases[] = {
        {"2026-11-30", true},  {"2024-02-29", true},  {"2026-02-29", false},  {"1900-02-29", false},
        {"2000-02-29", true},  {"2026-13-01", false}, {"2026-00-10", false},  {"2026-1-1", false},
        {"2026-11-31", false}, {"2026/11/30", false}, {"2026-11-30 ", false}, {"", false},
    };
    static const tv_option row = {.name = "today", .kind = TV_OPTION_DATE};
    tv_arena *a = test_arena();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tv_str field = {0};
        const tv_err *e = tv_option_set(a, &row, &field, tv_str_of(cases[i].text));
        assert_int_equal(e == NULL, cases[i].ok);
        assert_int_equal(field.n > 0, cases[i].ok);
    }
    tv_arena_close(a);
}

/* A row whose offset or kind is wrong writes somewhere else: each field is set through its row
 * and nothing but the row's own bytes may change. */
static void rows_stay_in_their_struct(void **state)
{
    (void)state;
    static const struct {
        const tv_option *rows;
        size_t n, size;
    } groups[] = {
        {tv_model_rows, TV_MODEL_ROWS, sizeof(tv_model_options)},
        {tv_job_rows, TV_JOB_ROWS, sizeof(tv_job)},
        {tv_machine_rows, TV_MACHINE_ROWS, sizeof(tv_machine_options)},
        {tv_money_rows, TV_MONEY_ROWS, sizeof(tv_money_options)},
        {tv_any_rows, TV_ANY_ROWS, sizeof(tv_any_options)},
    };
    static const size_t sizes[] = {
        [TV_OPTION_FLAG] = sizeof(bool),      [TV_OPTION_COUNT] = sizeof(uint32_t),
        [TV_OPTION_NUMBER] = sizeof(double),  [TV_OPTION_BYTES] = sizeof(double),
        [TV_OPTION_SECONDS] = sizeof(double), [TV_OPTION_TEXT] = sizeof(tv_str),
        [TV_OPTION_TEXTS] = sizeof(tv_texts), [TV_OPTION_WORD] = sizeof(int),
        [TV_OPTION_DATE] = sizeof(tv_str),    [TV_OPTION_SIZE] = 2 * sizeof(uint32_t),
    };
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        unsigned char taken[1024] = {0};
        assert_true(groups[g].size <= sizeof taken);
        for (size_t i = 0; i < groups[g].n; i++) {
            const tv_option *row = &groups[g].rows[i];
            const size_t size = sizes[row->kind];
            assert_non_null(row->help);
            assert_true(row->kind != TV_OPTION_WORD || row->word);
            assert_true(row->offset + size <= groups[g].size);
            for (size_t k = 0; k < size; k++)
                if (taken[row->offset + k]++)
                    fail_msg("--%s shares a byte with another option", row->name);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_words_fill_fields),
        cmocka_unit_test(bad_words_are_named),
        cmocka_unit_test(dates_are_days_of_the_calendar),
        cmocka_unit_test(rows_stay_in_their_struct),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
