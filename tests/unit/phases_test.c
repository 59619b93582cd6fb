/* The phases after training: bounds that hold, a published build inside them, what a workspace
 * limit does, which card a plan takes for the worst phase, what an engine says when it moves. */
#include "testing.h"

#include "family/family.h"
#include "read/builtin.h"
#include "search/phases.h"

enum { n_cards = 4 };

typedef struct world {
    tv_arena *a, *scratch;
    tv_device cards[n_cards];
    const tv_device *list[n_cards];
    const tv_model *model;
    tv_job job;
} world;

static const struct {
    const char *slug;
    int capability;
    double bytes;
} made_up[n_cards] = {
    {"turing-16", 75, 16e9}, {"ada-24", 89, 24e9}, {"ada-48", 89, 48e9}, {"ampere-80", 80, 80e9}};

static void open_world(world *w, const char *model, tv_task task)
{
    const tv_str from = TV_S("made up");
    w->a = test_arena();
    w->scratch = test_arena();
    for (size_t i = 0; i < n_cards; i++) {
        tv_device *d = &w->cards[i];
        *d = (tv_device){.slug = tv_str_of(made_up[i].slug),
                         .name = tv_str_of(made_up[i].slug),
                         .vendor = TV_S("nvidia"),
                         .compute_capability = made_up[i].capability,
                         .mem_bytes = tv_fact_of(made_up[i].bytes, TV_CATALOG, from),
                         .mem_bytes_per_s = tv_fact_of(5e11, TV_CATALOG, from),
                         .sm_count = tv_fact_of(60, TV_CATALOG, from),
                         .board_w = tv_fact_of(200, TV_CATALOG, from)};
        d->rate_flops[TV_RATE_FP32] = tv_fact_of(15e12, TV_CATALOG, from);
        d->rate_flops[TV_RATE_FP16_TENSOR] = tv_fact_of(100e12, TV_CATALOG, from);
        if (made_up[i].capability >= 80)
            d->rate_flops[TV_RATE_BF16_TENSOR] = tv_fact_of(100e12, TV_CATALOG, from);
        w->list[i] = d;
    }
    const tv_source *source = NULL;
    assert_ok(w->a, tv_builtin_find(w->a, tv_str_of(model), &source));
    assert_ok(w->a, tv_family_model(w->a, source, &w->model));
    w->job = (tv_job){.task = task, .batch = 1, .dropout = -1};
}

static void close_world(world *w)
{
    tv_arena_close(w->scratch);
    tv_arena_close(w->a);
}

static tv_case *served(world *w, size_t card, const tv_deploy *d)
{
    tv_machine *m = tv_new(w->a, tv_machine, 1);
    tv_case *c = tv_new(w->a, tv_case, 1);
    *m = (tv_machine){.device = &w->cards[card], .gpus = 1, .nodes = 1};
    const tv_job job = tv_life_serve_job(&w->job, d);
    assert_ok(w->a, tv_predict_case(w->a, w->model, &job, m, NULL, c));
    return c;
}

static tv_life_need build(world *w, size_t card, const tv_deploy *d)
{
    tv_life_need n;
    tv_predict_build(w->a, w->scratch, served(w, card, d), d, tv_life_source_bytes(w->model, NULL),
                     &n);
    return n;
}

static tv_life_need export_of(world *w, const tv_deploy *d)
{
    tv_life_need n;
    tv_predict_export(w->a, w->scratch, served(w, 2, d), d, tv_life_source_bytes(w->model, NULL),
                      &n);
    return n;
}

static bool ordered(tv_fact f)
{
    return !tv_known(f) || (f.lo >= 0 && f.lo <= f.v && f.v <= f.hi);
}

/* ---- bounds ---- */

static void bounds_are_ordered_and_sum(void **state)
{
    static const char *const models[] = {"bert-large", "resnet50", "yolov8m", "gpt2"};
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        world w;
        open_world(&w, models[i], TV_TASK_TRAIN);
        for (tv_target t = TV_TARGET_NONE; t < TV_TARGET_COUNT; t++) {
            const tv_deploy d = {.target = t, .max_batch = 4};
            const tv_life_need needs[] = {build(&w, 2, &d), export_of(&w, &d)};
            for (size_t k = 0; k < 2; k++) {
                const tv_life_need *n = &needs[k];
                double card = 0, host = 0;
                assert_true(ordered(n->device_bytes) && ordered(n->host_bytes));
                for (size_t l = 0; l < n->n_lines; l++) {
                    assert_true(ordered(n->lines[l].bytes));
                    *(n->lines[l].host ? &host : &card) += n->lines[l].bytes.v;
                }
                assert_close(n->device_bytes.v, card, 1e-9);
                assert_close(n->host_bytes.v, host, 1e-9);
            }
        }
        close_world(&w);
    }
}

static void larger_shapes_never_need_less(void **state)
{
    (void)state;
    world w;
    open_world(&w, "bert-base", TV_TASK_TRAIN);
    double before = 0, high = 0;
    for (uint32_t batch = 1; batch <= 256; batch *= 4) {
        const tv_deploy d = {.target = TV_TARGET_TENSORRT, .max_batch = batch};
        const tv_life_need n = build(&w, 3, &d);
        assert_true(n.device_bytes.v >= before && n.device_bytes.hi >= high);
        before = n.device_bytes.v;
        high = n.device_bytes.hi;
    }
    close_world(&w);
}

/* 49,917 MiB of TensorRT's own allocations while Flux was built for L40S (TensorRT issue 4214); the
 * weights that it held in main memory, 22,681 MiB, are one copy in 16 bit. */
static void a_published_build_lies_inside(void **state)
{
    (void)state;
    world w;
    open_world(&w, "flux-dev", TV_TASK_INFER);
    w.job.image_h = w.job.image_w = 1024;
    const tv_deploy d = {.target = TV_TARGET_TENSORRT, .precision = TV_PRECISION_BF16};
    const tv_life_need n = build(&w, 2, &d);
    const double measured = 49917 * 1048576.0;
    assert_true(n.device_bytes.lo <= measured && measured <= n.device_bytes.hi);
    assert_close(n.device_bytes.v, measured, 0.10);
    assert_close(n.disk_bytes.v, 22681 * 1048576.0, 0.01);
    assert_true(n.host_bytes.lo <= n.host_bytes.v && n.host_bytes.v >= 2 * n.disk_bytes.v);
    close_world(&w);
}

/* ---- the workspace limit ---- */

static bool says(const tv_text *notes, size_t n, const char *id)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(notes[i].id, id))
            return true;
    return false;
}

static void a_limit_caps_the_scratch(void **state)
{
    (void)state;
    world w;
    open_world(&w, "bert-large", TV_TASK_TRAIN);
    const tv_deploy free = {.target = TV_TARGET_TENSORRT, .max_batch = 64};
    tv_deploy tight = free, wide = free;
    tight.workspace_bytes = 256e6;
    wide.workspace_bytes = 16e9;
    const tv_life_need a = build(&w, 0, &free), b = build(&w, 0, &tight), c = build(&w, 0, &wide);
    assert_true(b.device_bytes.v < a.device_bytes.v && b.device_bytes.hi < a.device_bytes.hi);
    assert_close(a.ceiling_bytes, 16e9, 1e-9); /* no limit: the whole card */
    assert_true(says(a.notes, a.n_notes, "build.workspace-default"));
    assert_true(says(b.notes, b.n_notes, "build.workspace-small"));
    assert_close(c.device_bytes.v, a.device_bytes.v, 1e-9);
    assert_true(c.ceiling_bytes > 16e9 && c.ceiling_bytes < c.device_bytes.v + 16e9);
    close_world(&w);
}

/* Paddle keeps the program's weights while its subgraphs are built, and has a limit of its own. */
static void paddle_builds_beside_the_program(void **state)
{
    (void)state;
    world w;
    open_world(&w, "bert-base", TV_TASK_TRAIN);
    w.job.framework = TV_PADDLE;
    const tv_deploy d = {.target = TV_TARGET_PADDLE_TENSORRT, .max_batch = 2};
    const tv_life_need n = build(&w, 1, &d);
    double program = 0;
    for (size_t i = 0; i < n.n_lines; i++)
        if (!n.lines[i].host && !strcmp(n.lines[i].name, "weights of the program, dropped "
                                                         "afterwards"))
            program = n.lines[i].bytes.v;
    assert_close(program, 4 * w.model->params, 0.01);
    assert_true(n.ceiling_bytes < n.device_bytes.v + 1.1 * 1073741824.0);
    close_world(&w);
}

/* ---- exporting ---- */

static void large_models_leave_the_protobuf(void **state)
{
    (void)state;
    const tv_deploy d = {.target = TV_TARGET_ONNX};
    world small, large;
    open_world(&small, "bert-base", TV_TASK_TRAIN);
    open_world(&large, "gpt2-xl", TV_TASK_TRAIN);
    const tv_life_need s = export_of(&small, &d), l = export_of(&large, &d);
    assert_true(says(s.notes, s.n_notes, "export.onnx"));
    assert_true(says(l.notes, l.n_notes, "export.external"));
    assert_close(s.disk_bytes.v, 4 * small.model->params, 0.01);
    const double copies_s = s.host_bytes.v / s.disk_bytes.v,
                 copies_l = l.host_bytes.v / l.disk_bytes.v;
    assert_true(copies_s > 4 && copies_l < 3);
    close_world(&large);
    close_world(&small);
}

/* ---- plans ---- */

static const tv_err *machine_of(void *ctx, tv_arena *a, const tv_device *d, uint32_t gpus,
                                uint32_t nodes, tv_machine *machine)
{
    (void)ctx;
    (void)a;
    *machine = (tv_machine){.device = d, .gpus = gpus, .nodes = nodes ? nodes : 1};
    return NULL;
}

/* Cheap in the order of the list. */
static void price_of(void *ctx, tv_arena *a, tv_estimate *e)
{
    (void)a;
    const world *w = ctx;
    const double i = (double)(e->machine->device - w->cards);
    e->cost.currency = TV_S("USD");
    e->cost.per_hour = tv_fact_of(0.5 + i, TV_CATALOG, TV_S("made up"));
}

static const uint32_t one_card = 1;

static tv_search search_of(world *w, const tv_job *job)
{
    return (tv_search){.model = w->model,
                       .job = job,
                       .devices = w->list,
                       .n_devices = n_cards,
                       .counts = &one_card,
                       .n_counts = 1,
                       .nodes = 1,
                       .goal = TV_GOAL_CHEAPEST,
                       .machine = machine_of,
                       .price = price_of,
                       .ctx = w};
}

static void the_worst_phase_decides(void **state)
{
    (void)state;
    world w;
    open_world(&w, "bert-base", TV_TASK_TRAIN);
    const tv_deploy d = {0};
    const tv_job serve = tv_life_serve_job(&w.job, &d);
    const tv_search first = search_of(&w, &w.job), second = search_of(&w, &serve);
    tv_plan plan;
    assert_ok(w.a, tv_search_plan(w.a, w.scratch, &first, &plan));
    assert_ptr_equal(plan.choices[0].machine.device, &w.cards[0]);
    tv_life_query q = {.first = &first, .ranked = &plan, .serve = &second, .deploy = &d};
    q.stated_bytes[TV_LIFE_TRAIN] = 12e9;
    q.stated_bytes[TV_LIFE_BUILD] = 20e9;
    q.stated_bytes[TV_LIFE_SERVE] = 6e9;
    tv_life_plan life;
    tv_search_life(w.a, w.scratch, &q, &life);
    assert_int_equal(life.n_stages, 3);
    assert_int_equal(life.stages[life.worst].need.phase, TV_LIFE_BUILD);
    assert_close(life.requirement_bytes.v, 20e9, 1e-12);
    assert_ptr_equal(life.one, &w.cards[1]); /* the cheapest of at least 20 GB */
    assert_ptr_equal(life.stages[0].chosen, &w.cards[0]);
    /* Turing serves it, and nothing of its capability is larger: who serves builds too. */
    assert_ptr_equal(life.stages[1].chosen, life.stages[2].chosen);
    assert_true(says(life.notes, life.n_notes, "life.short"));
    close_world(&w);
}

static void builds_go_to_a_card_of_the_capability(void **state)
{
    (void)state;
    world w;
    open_world(&w, "bert-base", TV_TASK_TRAIN);
    const tv_deploy d = {.target = TV_TARGET_TENSORRT};
    const tv_job serve = tv_life_serve_job(&w.job, &d);
    const tv_search first = search_of(&w, &w.job);
    tv_search second = search_of(&w, &serve);
    second.devices = &w.list[1]; /* not on Turing */
    second.n_devices = n_cards - 1;
    tv_plan plan;
    assert_ok(w.a, tv_search_plan(w.a, w.scratch, &first, &plan));
    tv_life_query q = {.first = &first, .ranked = &plan, .serve = &second, .deploy = &d};
    q.stated_bytes[TV_LIFE_BUILD] = 40e9;
    tv_life_plan life;
    tv_search_life(w.a, w.scratch, &q, &life);
    const tv_life_stage *build_stage = NULL, *serve_stage = NULL;
    for (size_t i = 0; i < life.n_stages; i++) {
        build_stage = life.stages[i].need.phase == TV_LIFE_BUILD ? &life.stages[i] : build_stage;
        serve_stage = life.stages[i].need.phase == TV_LIFE_SERVE ? &life.stages[i] : serve_stage;
    }
    assert_non_null(build_stage);
    assert_non_null(serve_stage);
    assert_ptr_equal(serve_stage->chosen, &w.cards[1]);
    assert_ptr_equal(build_stage->chosen, &w.cards[2]);
    assert_true(says(life.notes, life.n_notes, "life.build-elsewhere"));
    close_world(&w);
}

/* ---- from card to card ---- */

static void engines_and_types_move_or_do_not(void **state)
{
    static const struct {
        size_t train, serve;
        tv_target target;
        const char *first; /* NULL: nothing to say */
        bool bf16;
    } rows[] = {
        {3, 1, TV_TARGET_TENSORRT, "move.rebuild", false},
        {2, 1, TV_TARGET_TENSORRT, "move.same-capability", false},
        {3, 0, TV_TARGET_TENSORRT, "move.rebuild-only", true},
        {3, 0, TV_TARGET_ONNX, "move.bf16", true},
        {3, 1, TV_TARGET_ONNX, "move.free", false},
        {1, 1, TV_TARGET_TENSORRT, NULL, false},
    };
    (void)state;
    world w;
    open_world(&w, "bert-base", TV_TASK_TRAIN);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tv_text notes[TV_LIFE_NOTES];
        const tv_policy served_in = {.compute = TV_F16};
        const size_t n = tv_life_moves(w.a, &w.cards[rows[i].train], TV_BF16,
                                       &w.cards[rows[i].serve], &served_in, rows[i].target, notes);
        assert_int_equal(n > 0, rows[i].first != NULL);
        if (n)
            assert_string_equal(notes[0].id, rows[i].first);
        assert_int_equal(says(notes, n, "move.bf16"), rows[i].bf16);
    }
    w.cards[0].compute_capability = 70;
    tv_text notes[TV_LIFE_NOTES];
    const tv_policy half = {.compute = TV_F16};
    const size_t n =
        tv_life_moves(w.a, &w.cards[0], TV_F16, &w.cards[0], &half, TV_TARGET_TENSORRT, notes);
    assert_true(says(notes, n, "move.old"));
    close_world(&w);
}

/* ---- number formats ---- */

static void narrower_weights_are_read_sooner(void **state)
{
    (void)state;
    world w;
    open_world(&w, "gpt2-xl", TV_TASK_INFER);
    const tv_deploy d = {0};
    tv_format_effect rows[TV_LIFE_FORMATS];
    const size_t n = tv_life_formats(w.a, w.scratch, served(&w, 1, &d), rows);
    assert_int_equal(n, TV_LIFE_FORMATS);
    double before = HUGE_VAL;
    for (size_t i = 0; i < n; i++) {
        if (!rows[i].runs)
            continue;
        assert_true(rows[i].weights_bytes <= before);
        before = rows[i].weights_bytes;
        if (tv_known(rows[i].step_s)) /* the bound is one */
            assert_true(rows[i].bound_s <= rows[i].step_s.v);
    }
    assert_close(rows[0].bound_s, 2 * rows[1].bound_s, 0.02);
    assert_true(rows[3].bound_s < 0.6 * rows[1].bound_s);
    const tv_case *turing = served(&w, 0, &d);
    (void)tv_life_formats(w.a, w.scratch, turing, rows);
    assert_int_equal(rows[1].precision, TV_PRECISION_FP16);
    assert_false(rows[2].runs); /* FP8 needs 8.9 */
    assert_non_null(rows[2].why.msgid);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_are_ordered_and_sum),
        cmocka_unit_test(larger_shapes_never_need_less),
        cmocka_unit_test(a_published_build_lies_inside),
        cmocka_unit_test(a_limit_caps_the_scratch),
        cmocka_unit_test(paddle_builds_beside_the_program),
        cmocka_unit_test(large_models_leave_the_protobuf),
        cmocka_unit_test(the_worst_phase_decides),
        cmocka_unit_test(builds_go_to_a_card_of_the_capability),
        cmocka_unit_test(engines_and_types_move_or_do_not),
        cmocka_unit_test(narrower_weights_are_read_sooner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
