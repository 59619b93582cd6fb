/* A program's own checkpoint in the walk: four operators of 100 bytes in a chain, the middle two of
 * which run again in backward. Every number is counted by hand. */
#include "testing.h"

#include "predict/walk.h"

enum { OPS = 4 };

typedef struct chain {
    tv_graph g;
    tv_block block;
    uint32_t order[1];
    uint32_t ids[OPS + 1];
    tv_op ops[OPS];
    tv_storage storages[OPS + 1];
} chain;

/* Storage i is what operator i reads, storage i + 1 what it writes and saves. */
static void build(chain *c, uint32_t region)
{
    *c = (chain){0};
    for (uint32_t i = 0; i <= OPS; i++) {
        c->ids[i] = i;
        c->storages[i] = (tv_storage){.bytes = tv_form_per_batch(100), .grad = i > 0};
    }
    c->storages[0].kind = TV_NONE;
    c->storages[0].resident = true;
    for (uint32_t i = 0; i < OPS; i++) {
        c->ops[i] = (tv_op){.kind = TV_OP_ELEMENTWISE, .name = "op", .backward = 1};
        c->ops[i].reads = (tv_ids){i, 1};
        c->ops[i].writes = c->ops[i].saved = (tv_ids){i + 1, 1};
    }
    c->ops[1].region = c->ops[2].region = region;
    c->block = (tv_block){.name = "chain",
                          .stage = TV_STAGE_HEAD,
                          .n_ops = OPS,
                          .n_storages = OPS + 1,
                          .in = TV_NONE,
                          .out = TV_NONE};
    c->g = (tv_graph){.blocks = &c->block,
                      .n_blocks = 1,
                      .order = c->order,
                      .n_order = 1,
                      .storages = c->storages,
                      .n_storages = OPS + 1,
                      .ops = c->ops,
                      .n_ops = OPS,
                      .ids = c->ids,
                      .n_ids = OPS + 1};
}

static tv_walk walk(tv_arena *a, const chain *c, bool trains)
{
    const tv_walk_plan plan = {.graph = &c->g,
                               .rank = {.tensor = 1, .expert = 1, .shard = 1},
                               .batch = 1,
                               .pool = TV_POOL_EXACT,
                               .trains = trains,
                               .grad_bytes = 4};
    return tv_walk_run(a, &plan);
}

/* The input, and what each of the four saved; then the last gradient beside the one before. */
static void plain_chain_keeps_all(void **state)
{
    tv_arena *a = test_arena();
    chain c;
    (void)state;
    build(&c, 0);
    const tv_walk w = walk(a, &c, true);
    assert_close(w.saved_bytes, 500, 1e-12);
    assert_close(w.backward_peak_bytes, 700, 1e-12);
    tv_arena_close(a);
}

/* Kept: the input, what went into the region, and what the last operator saved. In backward both
 * results of the region are there again beside two gradients. */
static void region_keeps_its_inputs(void **state)
{
    tv_arena *a = test_arena();
    chain c;
    (void)state;
    build(&c, 1);
    const tv_walk w = walk(a, &c, true);
    assert_close(w.saved_bytes, 300, 1e-12);
    assert_close(w.backward_peak_bytes, 600, 1e-12);
    tv_arena_close(a);
}

/* Without training nothing is kept, checkpoint or not. */
static void inference_knows_no_region(void **state)
{
    tv_arena *a = test_arena();
    chain c;
    (void)state;
    build(&c, 0);
    const double plain = walk(a, &c, false).forward_peak_bytes;
    build(&c, 1);
    assert_close(walk(a, &c, false).forward_peak_bytes, plain, 1e-12);
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_chain_keeps_all),
        cmocka_unit_test(region_keeps_its_inputs),
        cmocka_unit_test(inference_knows_no_region),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
