/* What the phases after training need: docs/model.md, "Build phases". Knows the op list of the
 * served model and what the builders document; reads no file. */
#ifndef TV_DEPLOY_H
#define TV_DEPLOY_H

#include "desc/life.h"
#include "predict.h"

/* The job that serves what `asked` trains (or is): the engine of the target, the largest shapes
 * that it must run, the served number format. */
tv_job tv_life_serve_job(const tv_job *asked, const tv_deploy *d);

/* What an engine's word means as a target, for jobs that name only the engine. */
tv_target tv_life_target_of(tv_engine engine);

/* Bytes of the weights as they leave training: in the master type, adapters merged. */
double tv_life_source_bytes(const tv_model *m, const tv_case *train);

/* Exporting: mostly on the host. device_bytes is unknown where no card is needed. */
void tv_predict_export(tv_arena *a, tv_arena *scratch, const tv_case *serve, const tv_deploy *d,
                       double source_bytes, tv_life_need *out);

/* Building the engine on the card of `serve`. device_bytes is unknown where the target has no
 * build. */
void tv_predict_build(tv_arena *a, tv_arena *scratch, const tv_case *serve, const tv_deploy *d,
                      double source_bytes, tv_life_need *out);

/* Running: the served case as it is predicted anyway. */
void tv_predict_run(const tv_memory *m, tv_life phase, tv_life_need *out);

/* Does a need stay within a card? Its upper bound counts. */
tv_verdict tv_life_verdict(const tv_life_need *n, double capacity_bytes);

/* What stands in the way when a model trained on one card is served on another (R220): at most
 * TV_LIFE_NOTES texts, most important first. Returns how many. */
enum { TV_LIFE_NOTES = 6 };
size_t tv_life_moves(tv_arena *a, const tv_device *train, tv_dtype trained_in,
                     const tv_device *serve, const tv_policy *served, tv_target target,
                     tv_text *notes);

/* What each number format would do to the case's job (R218). Returns how many of TV_LIFE_FORMATS
 * rows apply. */
enum { TV_LIFE_FORMATS = 5 };
size_t tv_life_formats(tv_arena *a, tv_arena *scratch, const tv_case *c, tv_format_effect *rows);

#endif
