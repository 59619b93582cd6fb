/* What is in memory besides the walk's moving parts, and the ledger's lines for --explain. */
#ifndef TV_LEDGER_H
#define TV_LEDGER_H

#include "predict.h"
#include "walk.h"

/* Fills a walk plan for a case at a batch size. */
void tv_ledger_plan(tv_arena *a, const tv_case *c, double batch, tv_walk_plan *plan);

/* Cache bytes of one token of one sequence on one rank, all layers (windows not considered). */
double tv_ledger_kv_per_token(const tv_case *c);

/* Cache bytes for `batch` sequences of `tokens`, windows and recurrent state considered. */
double tv_ledger_kv_bytes(const tv_case *c, double batch, double tokens);

/* All gradients of the rank at once. */
double tv_ledger_gradient_bytes(const tv_case *c);

/* Writes out->lines: each term with its formula and section. */
void tv_ledger_lines(tv_arena *a, const tv_case *c, tv_memory *out);

/* The walk alone (predict/memory.c); pool = false counts without a caching allocator. */
tv_walk tv_memory_walk(tv_arena *scratch, const tv_case *c, double batch, bool pool);

/* The same without the allocator, with its usual slack: for the search. */
tv_walk tv_memory_quick_walk(tv_arena *scratch, const tv_case *c);

/* Everything that follows from a walk on the case's machine: interval, verdict, cache room. */
void tv_memory_from_walk(tv_arena *a, const tv_case *c, const tv_walk *w, tv_memory *out);

/* Against capacity_bytes and the interval. */
tv_verdict tv_memory_verdict(const tv_memory *m);

#endif
