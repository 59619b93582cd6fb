/* A graph on the whole way to an op list: run, matched, laid out, cut into blocks, written for
 * training, adapters and inference, and walked. Whatever the graph says, indices stay inside their
 * lists and sizes are numbers. */
#include <math.h>

#define tv_part                                                                                    \
    tv_gathered_part /* the readers' own noun, where a model has another of the name               \
                      */
#include "programs.h"
#undef tv_part

#include "family/family.h"
#include "predict/walk.h"

static void check_graph(tv_arena *a, const tv_graph *g, bool trains)
{
    for (size_t i = 0; i < g->n_order; i++)
        must(g->order[i] < g->n_blocks);
    for (size_t i = 0; i < g->n_ids; i++)
        must(g->ids[i] < g->n_storages);
    for (size_t i = 0; i < g->n_ops; i++)
        must(g->ops[i].block < g->n_blocks &&
             g->ops[i].first_weight + g->ops[i].n_weights <= g->n_weights);
    /* a storage of one kind is read by that kind alone */
    for (size_t i = 0; i < g->n_ops; i++)
        for (uint32_t k = 0; k < g->ops[i].reads.n; k++) {
            const tv_storage *s = &g->storages[g->ids[g->ops[i].reads.first + k]];
            must(s->kind == TV_NONE || s->kind == g->ops[i].block);
        }
    const tv_walk_plan plan = {
        .graph = g,
        .batch = 2,
        .rank = {.tensor = 1, .expert = 1, .shard = 1, .grad_shard = 1},
        .trains = trains,
        .grad_bytes = 4,
        .recompute = trains ? TV_RECOMPUTE_FULL : TV_RECOMPUTE_NONE,
    };
    must(!isnan(tv_walk_run(a, &plan).allocated_peak_bytes));
}

static void build_all(tv_arena *a, const tv_model *m)
{
    static const tv_trainable trainable[] = {TV_TRAIN_ALL, TV_TRAIN_LORA, TV_TRAIN_NONE};
    for (size_t i = 0; i < 3; i++) {
        const bool trains = trainable[i] != TV_TRAIN_NONE;
        const tv_setting set = {
            .phase = trains ? TV_PHASE_TRAIN : TV_PHASE_PREFILL,
            .policy = {.precision = TV_PRECISION_AMP_FP16,
                       .param = TV_F32,
                       .base = TV_F32,
                       .compute = TV_F16,
                       .stream = TV_F32,
                       .grad = TV_F32,
                       .state = TV_F32,
                       .kv = TV_F16,
                       .autocast = trains},
            .kernel = i ? TV_KERNEL_EAGER : TV_KERNEL_FLASH,
            .trainable = trainable[i],
            .lora_rank = 4,
            .lora_dtype = TV_F32,
            .dropout = -1,
        };
        tv_graph *g = NULL;
        const tv_err *e = m->build(a, m, &set, &g);
        fuzz_check(a, e);
        if (!e)
            check_graph(a, g, trains);
    }
}

static const tv_err *read_and_build(tv_gather *g, tv_str path, tv_bytes_view bytes)
{
    const tv_model *m = NULL;
    TV_TRY(tv_read_onnx(g, path, bytes));
    fuzz_check(g->a, tv_family_model(g->a, &g->source, &m));
    if (m)
        build_all(g->a, m);
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tv_arena *a = fuzz_arena();
    jmp_buf landing;
    if (setjmp(landing) == 0) {
        tv_arena_guard(a, &landing);
        fuzz_read_program(a, read_and_build, data, size);
    }
    tv_arena_close(a);
    return 0;
}
