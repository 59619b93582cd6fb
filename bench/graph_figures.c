/* Figures of a model's graph, one line a model, for scripts that compare the ways a model can come:
 * graph_figures [--seq N] [--image N] [--eager] [--amp] [--list] MODEL...
 *   MODEL parameters trainable multiply-adds(one sample) saved-bytes(a sample) kinds blocks guessed
 * fp32 (or --amp: bf16 under autocast), batch 1 and 2, no dropout. --list: every op of every kind
 * instead. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "family/family.h"
#include "predict/walk.h"
#include "read/builtin.h"
#include "read/reader.h"

typedef struct wish {
    tv_setting set;
    bool list;
} wish;

static double multiply_adds(tv_arena *a, const tv_graph *g)
{
    uint32_t *counts = tv_new(a, uint32_t, g->n_blocks + 1);
    double sum = 0;
    tv_graph_counts(g, counts);
    for (size_t i = 0; i < g->n_ops; i++) {
        const tv_op *op = &g->ops[i];
        if (op->kind == TV_OP_GEMM || op->kind == TV_OP_CONV || op->kind == TV_OP_ATTENTION)
            sum += (tv_form_at(op->flop, 2, 0) - tv_form_at(op->flop, 1, 0)) * counts[op->block];
    }
    return sum / 2;
}

static double saved(tv_arena *a, const tv_graph *g, double batch)
{
    const tv_walk_plan plan = {
        .graph = g,
        .batch = batch,
        .rank = {.tensor = 1, .expert = 1, .shard = 1, .grad_shard = 1},
        .trains = true,
        .grad_bytes = 4,
    };
    return tv_walk_run(a, &plan).saved_bytes;
}

static void list_ops(const tv_graph *g, const uint32_t *counts)
{
    for (size_t i = 0; i < g->n_ops; i++) {
        const tv_op *op = &g->ops[i];
        double kept = 0;
        for (uint32_t k = 0; k < op->saved.n; k++)
            kept += tv_form_at(g->storages[g->ids[op->saved.first + k]].bytes, 1, 0);
        (void)printf("  %3u x%-3u %-12s kind %-2d %-50s %10.1f MFLOP out %9.1f KB keeps %9.1f KB",
                     op->block, counts[op->block], g->blocks[op->block].name, (int)op->kind,
                     op->name, tv_form_at(op->flop, 1, 0) / 1e6,
                     tv_form_at(op->write_bytes, 1, 0) / 1e3, kept / 1e3);
        for (uint32_t k = 0; k < op->n_weights; k++)
            (void)printf(" [%s %.0f]", g->weights[op->first_weight + k].name,
                         g->weights[op->first_weight + k].elements);
        (void)printf("\n");
    }
}

static const tv_err *figures(tv_arena *a, const wish *w, tv_str name)
{
    const tv_source *source = NULL;
    const tv_model *m = NULL;
    tv_graph *g = NULL;
    if (tv_file_stat(a, name).exists)
        TV_TRY(tv_read_model(a, name, &source));
    else
        TV_TRY(tv_builtin_find(a, name, &source));
    if (!source)
        return TV_FAIL0(a, TV_UNAVAILABLE, "none", "no such model");
    TV_TRY(tv_family_model(a, source, &m));
    tv_setting set = w->set;
    if (!set.seq)
        set.seq = m->default_seq;
    set.target_seq = m->default_target_seq;
    TV_TRY(m->build(a, m, &set, &g));
    uint32_t *counts = tv_new(a, uint32_t, g->n_blocks + 1);
    tv_graph_counts(g, counts);
    (void)printf("%.*s\t%.0f\t%.0f\t%.0f\t%.0f\t%zu\t%zu\t%.4f\n", TV_FMT(name), m->params,
                 g->trainable_params, multiply_adds(a, g), saved(a, g, 2) - saved(a, g, 1),
                 g->n_blocks, g->n_order, g->guessed_share);
    if (w->list)
        list_ops(g, counts);
    return NULL;
}

static uint32_t number(const char *text)
{
    const tv_u64_read v = tv_str_u64(tv_str_of(text));
    return v.ok ? (uint32_t)v.v : 0;
}

int main(int argc, char **argv)
{
    wish w = {.set = {.phase = TV_PHASE_TRAIN,
                      .policy = {.precision = TV_PRECISION_FP32,
                                 .param = TV_F32,
                                 .base = TV_F32,
                                 .compute = TV_F32,
                                 .stream = TV_F32,
                                 .grad = TV_F32,
                                 .state = TV_F32,
                                 .kv = TV_F32},
                      .kernel = TV_KERNEL_EFFICIENT}};
    int wrong = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--eager") == 0)
            w.set.kernel = TV_KERNEL_EAGER;
        else if (strcmp(argv[i], "--amp") == 0) {
            w.set.policy.autocast = true;
            w.set.policy.compute = TV_BF16;
            w.set.policy.precision = TV_PRECISION_AMP_BF16;
        } else if (strcmp(argv[i], "--list") == 0)
            w.list = true;
        else if (strcmp(argv[i], "--seq") == 0 && i + 1 < argc)
            w.set.seq = number(argv[++i]);
        else if (strcmp(argv[i], "--image") == 0 && i + 1 < argc)
            w.set.image_h = w.set.image_w = number(argv[++i]);
        else {
            tv_arena *a = tv_arena_open(TV_LIMIT_ARENA_BYTES);
            const tv_err *e = figures(a, &w, tv_str_of(argv[i]));
            if (e) {
                tv_buf b = tv_buf_in(a);
                tv_put_err(&b, TV_EN, e);
                (void)fprintf(stderr, "%s: %.*s\n", argv[i], TV_FMT(tv_buf_str(&b)));
                wrong = 1;
            }
            tv_arena_close(a);
        }
    }
    return wrong;
}
