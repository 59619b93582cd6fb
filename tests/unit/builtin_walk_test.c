/* Every built-in model through the liveness walk: finite, more batch needs more, and what the walk
 * holds at the end of forward is what the graph says is saved. */
#include "base/unit.h"
#include "catalog/catalog.h"
#include "family/family.h"
#include "graph_sums.h"
#include "predict/predict.h"
#include "read/builtin.h"

typedef struct bench {
    tv_arena *a, *scratch;
    tv_catalog *catalog;
    tv_machine machine;
    size_t wrong;
} bench;

static void complain(bench *b, tv_str name, const char *what, double x, double y)
{
    print_error("%.*s: %s: %.6g, %.6g\n", TV_FMT(name), what, x, y);
    b->wrong++;
}

/* What lives at that instant beside the saved: logits, and what the allocator cannot split off (up
 * to 1 MiB of a block). */
static double loose_bytes(const tv_graph *g, const tv_model *m, double batch, double tokens)
{
    double blocks = 0;
    for (size_t i = 0; i < g->n_order; i++)
        blocks += g->blocks[g->order[i]].n_storages;
    double logits = 4 * batch * tokens * m->vocab;
    for (size_t i = 0; i < g->n_storages; i++) /* those of every pixel */
        if (g->storages[i].term == TV_TERM_LOGITS && m->vocab <= 0)
            logits += tv_form_at(g->storages[i].bytes, batch, 0);
    return blocks * TV_MIB + logits;
}

static double peak_of(bench *b, const tv_model *m, tv_task task, uint32_t batch, double *saved)
{
    tv_case c;
    tv_memory memory = {0};
    const tv_job job = {.task = task,
                        .precision = TV_PRECISION_FP32,
                        .batch = batch,
                        .seq = m->default_seq > 128 ? 128 : 0,
                        .gen = 16,
                        .dropout = -1};
    assert_ok(b->a, tv_predict_case(b->a, m, &job, &b->machine, NULL, &c));
    tv_predict_memory(b->a, b->scratch, &c, &memory);
    if (saved) {
        *saved = memory.saved_bytes;
        double counted = test_graph_saved(b->a, c.graph, batch);
        double more = loose_bytes(c.graph, m, batch, job.seq ? job.seq : m->default_seq);
        if (!(memory.saved_bytes >= 0.99 * counted && memory.saved_bytes <= 1.02 * counted + more))
            complain(b, m->name, "saved at the end of forward, walk and count", memory.saved_bytes,
                     counted);
    }
    return memory.allocated_peak_bytes;
}

static void walk_one(bench *b, tv_str name)
{
    const tv_source *s = NULL;
    const tv_model *m = NULL;
    double saved = 0;
    assert_ok(b->a, tv_builtin_find(b->a, name, &s));
    assert_ok(b->a, tv_family_model(b->a, s, &m));
    if (m->params > 3e9) /* the large ones are the small ones again */
        return;
    double train1 = peak_of(b, m, TV_TASK_TRAIN, 1, NULL);
    peak_of(b, m, TV_TASK_TRAIN, 16, &saved);
    double train2 = peak_of(b, m, TV_TASK_TRAIN, 2, NULL);
    double infer1 = peak_of(b, m, TV_TASK_INFER, 1, NULL);
    double infer2 = peak_of(b, m, TV_TASK_INFER, 2, NULL);
    if (!(train1 > 12 * m->params && isfinite(train1)))
        complain(b, name, "training peak and states", train1, 16 * m->params);
    /* the allocator counts what it cannot split: up to 1 MiB a block */
    if (!(train2 >= 0.99 * train1 && infer2 >= 0.99 * infer1))
        complain(b, name, "a larger batch needs less", train1, train2);
    if (!(infer1 >= 2 * m->params && infer1 < train1))
        complain(b, name, "inference peak and training peak", infer1, train1);
}

static void every_model_walks(void **state)
{
    (void)state;
    bench b = {.a = test_arena(), .scratch = test_arena(), .machine = {.gpus = 1, .nodes = 1}};
    tv_builtins all = {0};
    assert_ok(b.a, tv_catalog_open(b.a, (tv_str){0}, &b.catalog));
    assert_ok(b.a,
              tv_catalog_device(b.catalog, TV_S("nvidia-a100-sxm4-80gb"), 0, &b.machine.device));
    assert_ok(b.a, tv_builtin_list(b.a, &all));
    for (size_t i = 0; i < all.n; i++) {
        tv_mark mark = tv_arena_mark(b.a);
        walk_one(&b, all.v[i].name);
        tv_arena_rewind(b.a, mark);
    }
    assert_int_equal(b.wrong, 0);
    tv_arena_close(b.scratch);
    tv_arena_close(b.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_walks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
