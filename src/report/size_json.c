/* `size --json`: the names are the interface's and never change. Unknown is null, never 0. */
#include "report.h"

#include <assert.h>
#include <math.h>

static void put_num(tv_json_out *w, const char *key, double v)
{
    tv_json_key(w, key);
    tv_json_put_num(w, v);
}

/* 0 stands for unknown. */
static void put_known(tv_json_out *w, const char *key, double v)
{
    tv_json_key(w, key);
    if (v > 0)
        tv_json_put_num(w, v);
    else
        tv_json_put_null(w);
}

static void put_if(tv_json_out *w, const char *key, bool known, double v)
{
    tv_json_key(w, key);
    if (known)
        tv_json_put_num(w, v);
    else
        tv_json_put_null(w);
}

static void put_fact(tv_json_out *w, const char *key, tv_fact f)
{
    put_if(w, key, tv_known(f), f.v);
}

static void put_str(tv_json_out *w, const char *key, tv_str s)
{
    tv_json_key(w, key);
    if (s.n)
        tv_json_put_str(w, s);
    else
        tv_json_put_null(w);
}

static void put_word(tv_json_out *w, const char *key, const char *word)
{
    put_str(w, key, tv_str_of(word));
}

static void put_texts(tv_json_out *w, tv_lang lang, const char *key, const tv_text *v, size_t n)
{
    tv_json_key(w, key);
    tv_json_begin(w, '[');
    for (size_t i = 0; i < n; i++)
        tv_json_put_text(w, lang, v[i]);
    tv_json_end(w, ']');
}

static void put_model(tv_json_out *w, tv_lang lang, const tv_model *m)
{
    tv_json_begin(w, '{');
    put_str(w, "name", m->name);
    put_word(w, "family", m->family);
    put_known(w, "params", m->params);
    put_known(w, "active_params", m->active_params);
    put_known(w, "stated_params", m->stated_params);
    put_known(w, "weights_bytes", m->stored_bytes);
    put_str(w, "source", m->source);
    put_str(w, "model_type", m->model_type);
    put_word(w, "stored", m->stored ? tv_dtype_of(m->stored)->name : NULL);
    put_known(w, "layers", m->layers);
    put_known(w, "hidden", m->hidden);
    put_known(w, "vocab", m->vocab);
    put_known(w, "max_seq", m->max_seq);
    put_texts(w, lang, "warnings", m->warnings, m->n_warnings);
    tv_json_end(w, '}');
}

static void put_parallel(tv_json_out *w, const tv_parallel *p)
{
    put_num(w, "tp", p->tp ? p->tp : 1);
    put_num(w, "pp", p->pp ? p->pp : 1);
    put_num(w, "cp", p->cp ? p->cp : 1);
    put_num(w, "ep", p->ep ? p->ep : 1);
}

static void put_training(tv_json_out *w, const tv_job *job)
{
    put_word(w, "optimizer", tv_optimizer_name(job->optimizer));
    put_word(w, "recompute", tv_recompute_name(job->recompute));
    put_word(w, "loss", tv_loss_name(job->loss));
    put_word(w, "strategy", tv_strategy_name(job->strategy));
    put_known(w, "lora_rank", tv_job_adapts(job) ? job->lora_rank : 0);
    put_str(w, "lora_targets", job->lora_targets);
}

static void put_job(tv_json_out *w, tv_lang lang, const tv_estimate *est)
{
    const tv_job *job = est->job;
    const bool trains = tv_job_trains(job);
    const tv_precision precision = est->policy.precision ? est->policy.precision : job->precision;
    tv_json_begin(w, '{');
    put_word(w, "task", tv_task_name(job->task));
    put_word(w, "framework", tv_framework_name(job->framework));
    put_word(w, "engine", tv_engine_name(job->engine));
    put_word(w, "precision", tv_precision_name(precision));
    put_known(w, "batch", job->batch);
    put_known(w, "accum", trains && !job->accum ? 1 : job->accum);
    put_known(w, "seq", job->seq);
    put_known(w, "gen", job->gen);
    put_known(w, "image_h", job->image_h);
    put_known(w, "image_w", job->image_w);
    put_word(w, "attention", tv_attention_name(job->attention));
    put_word(w, "kv", job->kv ? tv_dtype_of(job->kv)->name : NULL);
    if (trains)
        put_training(w, job);
    put_parallel(w, &job->parallel);
    put_known(w, "samples", job->samples);
    put_known(w, "epochs", job->epochs);
    put_known(w, "sample_bytes", job->sample_bytes);
    tv_json_key(w, "defaults");
    tv_json_begin(w, '[');
    for (size_t i = 0; i < job->n_defaults; i++)
        tv_json_put_str(w, tv_str_of(job->defaults[i].id));
    tv_json_end(w, ']');
    put_texts(w, lang, "assumed", job->defaults, job->n_defaults);
    tv_json_end(w, '}');
}

static void put_machine(tv_json_out *w, const tv_machine *m)
{
    tv_json_begin(w, '{');
    put_str(w, "gpu", m->device->slug);
    put_str(w, "name", m->device->name);
    put_known(w, "gpus", m->gpus);
    put_num(w, "nodes", m->nodes ? m->nodes : 1);
    put_fact(w, "mem_bytes", m->device->mem_bytes);
    put_fact(w, "mem_usable_bytes", m->device->mem_usable_bytes);
    put_str(w, "server", m->server ? m->server->slug : (tv_str){0});
    put_str(w, "link", m->intra.name);
    put_fact(w, "link_bytes_per_s", m->intra.bytes_per_s);
    put_str(w, "disk", m->disk ? m->disk->id : (tv_str){0});
    put_known(w, "cpu_cores", m->cpu_cores);
    put_known(w, "ram_bytes", m->ram_bytes);
    tv_json_end(w, '}');
}

static const char *verdict_word(tv_verdict v)
{
    static const char *const words[] = {NULL, "fits", "tight", "no"};
    return words[v];
}

/* The keys are in the interface's order; these sum to the allocated peak. */
static void put_terms(tv_json_out *w, const tv_memory *m)
{
    static const struct {
        const char *key;
        tv_term term;
    } rows[TV_TERM_COUNT] = {
        {"weights_bytes", TV_TERM_WEIGHTS},
        {"gradients_bytes", TV_TERM_GRADIENTS},
        {"optimizer_bytes", TV_TERM_OPTIMIZER},
        {"activations_bytes", TV_TERM_ACTIVATIONS},
        {"logits_bytes", TV_TERM_LOGITS},
        {"kv_bytes", TV_TERM_KV},
        {"comm_buffers_bytes", TV_TERM_COMM_BUFFERS},
        {"workspace_bytes", TV_TERM_WORKSPACE},
        {"temporaries_bytes", TV_TERM_TEMPORARIES},
    };
    double sum = 0;
    for (size_t i = 0; i < TV_TERM_COUNT; i++) {
        put_num(w, rows[i].key, m->term_bytes[rows[i].term]);
        sum += m->term_bytes[rows[i].term];
    }
    assert(fabs(sum - m->allocated_peak_bytes) <= 1 + 1e-6 * m->allocated_peak_bytes);
}

static void put_memory(tv_json_out *w, tv_lang lang, const tv_memory *m)
{
    tv_json_begin(w, '{');
    put_terms(w, m);
    put_num(w, "allocated_peak_bytes", m->allocated_peak_bytes);
    put_num(w, "fragmentation_bytes", m->fragmentation_bytes);
    put_num(w, "reserved_peak_bytes", m->reserved_peak_bytes);
    put_num(w, "context_bytes", m->context_bytes);
    put_num(w, "nccl_bytes", m->nccl_bytes);
    put_num(w, "total_bytes", m->total_bytes);
    put_num(w, "low_bytes", m->low_bytes);
    put_num(w, "high_bytes", m->high_bytes);
    put_str(w, "peak_at", tv_text_in(w->b->a, lang, m->peak_at));
    put_word(w, "verdict", verdict_word(m->verdict));
    /* A job that does not fit at all has a largest batch: none. */
    put_if(w, "max_batch", m->max_batch > 0 || m->total_bytes > m->capacity_bytes, m->max_batch);
    put_known(w, "max_seq", m->max_seq);
    put_known(w, "kv_tokens", m->kv_tokens);
    put_known(w, "kv_bytes_per_token", m->kv_bytes_per_token);
    put_if(w, "concurrent", m->kv_bytes_per_token > 0, m->concurrent);
    put_known(w, "load_peak_bytes", m->load_peak_bytes);
    put_known(w, "capacity_bytes", m->capacity_bytes);
    put_known(w, "saved_bytes", m->saved_bytes);
    tv_json_key(w, "tensors");
    tv_json_begin(w, '{');
    put_known(w, "saved_bytes", m->tensors.saved_bytes);
    put_known(w, "forward_peak_bytes", m->tensors.forward_peak_bytes);
    put_known(w, "backward_peak_bytes", m->tensors.backward_peak_bytes);
    tv_json_end(w, '}');
    tv_json_end(w, '}');
}

static bool data_stated(const tv_estimate *est, const tv_dataset *dataset)
{
    return dataset || est->job->sample_bytes > 0 || est->time.data_s > 0;
}

static void put_time(tv_json_out *w, const tv_estimate *est, const tv_dataset *dataset)
{
    const tv_time *t = &est->time;
    const bool known = tv_known(t->step_s);
    const bool data = known && data_stated(est, dataset);
    tv_json_begin(w, '{');
    put_fact(w, "step_s", t->step_s);
    put_if(w, "compute_s", known, t->compute_s);
    put_if(w, "launch_s", known, t->launch_s);
    put_if(w, "optimizer_s", known, t->optimizer_s);
    put_if(w, "comm_s", known, t->comm_s);
    put_if(w, "comm_exposed_s", known, t->comm_exposed_s);
    put_if(w, "data_s", data, t->data_s);
    put_if(w, "data_exposed_s", data, t->data_exposed_s);
    put_known(w, "storage_s", t->storage_s);
    put_known(w, "decode_s", t->decode_s);
    put_known(w, "copy_s", t->copy_s);
    put_fact(w, "samples_per_s", t->samples_per_s);
    put_fact(w, "tokens_per_s", t->tokens_per_s);
    put_fact(w, "mfu", t->mfu);
    put_if(w, "low_s", known, t->step_s.lo);
    put_if(w, "high_s", known, t->step_s.hi);
    put_fact(w, "ttft_s", t->ttft_s);
    put_fact(w, "itl_s", t->itl_s);
    put_fact(w, "prefill_tokens_per_s", t->prefill_tokens_per_s);
    put_fact(w, "decode_tokens_per_s", t->decode_tokens_per_s);
    put_fact(w, "requests_per_s", t->requests_per_s);
    put_known(w, "flop", t->flop);
    put_known(w, "epoch_s", t->epoch_s);
    put_known(w, "run_s", t->run_s);
    tv_json_end(w, '}');
}

static void put_balance(tv_json_out *w, tv_lang lang, const tv_estimate *est)
{
    const tv_balance *b = &est->balance;
    const bool known = tv_known(est->time.step_s);
    tv_json_begin(w, '{');
    put_word(w, "bottleneck",
             b->bottleneck == TV_BOUND_UNKNOWN ? NULL : tv_bound_name(b->bottleneck));
    tv_json_key(w, "shares");
    tv_json_begin(w, '{');
    put_if(w, "compute", known, b->share_compute);
    put_if(w, "communication", known, b->share_communication);
    put_if(w, "data", known, b->share_data);
    tv_json_end(w, '}');
    put_if(w, "gain_if_removed", b->bottleneck != TV_BOUND_UNKNOWN, b->gain_if_removed);
    put_texts(w, lang, "advice", b->advice, b->n_advice);
    tv_json_end(w, '}');
}

static void put_grade(tv_json_out *w, tv_lang lang, const char *key, tv_grade grade, tv_text why)
{
    static const char *const words[] = {NULL, "good", "fair", "poor"};
    tv_buf name = tv_buf_in(w->b->a);
    put_word(w, key, words[grade]);
    if (!why.msgid)
        return;
    tv_puts(&name, key);
    tv_puts(&name, "_reason");
    tv_json_key_str(w, tv_buf_str(&name));
    tv_json_put_text(w, lang, why);
}

static void put_grades(tv_json_out *w, tv_lang lang, const tv_grades *g, bool timed)
{
    tv_json_begin(w, '{');
    put_grade(w, lang, "vram", g->vram, g->vram_text);
    put_grade(w, lang, "density", g->density, g->density_text);
    put_grade(w, lang, "io", g->io, g->io_text);
    put_if(w, "gemm_share", timed, g->gemm_share);
    tv_json_end(w, '}');
}

static void put_cost(tv_json_out *w, tv_lang lang, const tv_cost *c)
{
    tv_json_begin(w, '{');
    put_str(w, "currency", c->currency);
    put_fact(w, "per_hour", c->per_hour);
    put_fact(w, "spot_per_hour", c->spot_per_hour);
    put_fact(w, "per_run", c->per_run);
    put_fact(w, "buy", c->buy);
    tv_json_key(w, "hidden");
    tv_json_begin(w, '{');
    for (size_t i = 0; i < c->n_hidden; i++)
        put_if(w, c->hidden[i].id, c->hidden[i].known, c->hidden[i].amount);
    tv_json_end(w, '}');
    put_fact(w, "energy_per_year", c->energy_per_year);
    put_fact(w, "total_year", c->total_year);
    put_str(w, "price_date", c->price_date);
    put_str(w, "price_source", c->price_source);
    put_str(w, "offer", c->offer);
    tv_json_key(w, "stale");
    if (c->price_date.n)
        tv_json_put_bool(w, c->stale);
    else
        tv_json_put_null(w);
    put_texts(w, lang, "notes", c->notes, c->n_notes);
    tv_json_end(w, '}');
}

static void put_facts(tv_json_out *w, const tv_estimate *est)
{
    size_t n = 0;
    const tv_named_fact *facts = tv_report_facts(w->b->a, est, &n);
    tv_json_begin(w, '[');
    for (size_t i = 0; i < n; i++) {
        const tv_fact *f = &facts[i].fact;
        tv_json_begin(w, '{');
        put_word(w, "name", facts[i].name);
        put_num(w, "value", f->v);
        put_word(w, "unit", facts[i].unit);
        put_num(w, "low", f->lo);
        put_num(w, "high", f->hi);
        put_word(w, "origin", tv_origin_name(f->origin));
        put_str(w, "source", f->source);
        put_str(w, "as_of", f->as_of);
        tv_json_end(w, '}');
    }
    tv_json_end(w, ']');
}

void tv_json_estimate(tv_json_out *w, tv_lang lang, const tv_estimate *est,
                      const tv_dataset *dataset)
{
    tv_json_key(w, "model");
    put_model(w, lang, est->model);
    tv_json_key(w, "job");
    put_job(w, lang, est);
    tv_json_key(w, "machine");
    put_machine(w, est->machine);
    tv_json_key(w, "memory");
    put_memory(w, lang, &est->memory);
    tv_json_key(w, "time");
    put_time(w, est, dataset);
    tv_json_key(w, "balance");
    put_balance(w, lang, est);
    tv_json_key(w, "grades");
    put_grades(w, lang, &est->grades, tv_known(est->time.step_s));
    tv_json_key(w, "cost");
    put_cost(w, lang, &est->cost);
    tv_json_key(w, "facts");
    put_facts(w, est);
}

/* ---- what only `size` has ---- */

static void put_group(tv_json_out *w, const tv_size_view *view)
{
    put_str(w, "group", view->group ? view->group->slug : (tv_str){0});
    tv_json_key(w, "members");
    tv_json_begin(w, '[');
    for (size_t i = 0; i < view->n_members; i++) {
        const tv_estimate *e = view->members[i];
        tv_json_begin(w, '{');
        put_str(w, "gpu", e->machine->device->slug);
        put_num(w, "total_bytes", e->memory.total_bytes);
        put_num(w, "low_bytes", e->memory.low_bytes);
        put_num(w, "high_bytes", e->memory.high_bytes);
        put_word(w, "verdict", verdict_word(e->memory.verdict));
        put_fact(w, "step_s", e->time.step_s);
        tv_json_end(w, '}');
    }
    tv_json_end(w, ']');
}

static void put_ledger(tv_json_out *w, tv_lang lang, const tv_memory *m)
{
    tv_json_key(w, "ledger");
    tv_json_begin(w, '[');
    for (size_t i = 0; i < m->n_lines; i++) {
        const tv_ledger_line *line = &m->lines[i];
        tv_json_begin(w, '{');
        put_word(w, "name", line->name);
        put_num(w, "bytes", line->bytes);
        tv_json_key(w, "formula");
        tv_json_put_text(w, lang, line->formula);
        put_word(w, "section", line->section);
        put_word(w, "origin", tv_origin_name(line->origin));
        tv_json_end(w, '}');
    }
    tv_json_end(w, ']');
}

static void put_deltas(tv_json_out *w, tv_lang lang, const tv_size_view *view)
{
    tv_json_key(w, "sensitivity");
    tv_json_begin(w, '[');
    for (size_t i = 0; i < view->n_deltas; i++) {
        tv_json_begin(w, '{');
        tv_json_key(w, "what");
        tv_json_put_text(w, lang, view->deltas[i].what);
        put_num(w, "bytes", view->deltas[i].bytes);
        tv_json_end(w, '}');
    }
    tv_json_end(w, ']');
}

void tv_json_thumbs(tv_json_out *w, tv_lang lang, const tv_thumb *v, size_t n)
{
    tv_json_key(w, "rule_of_thumb");
    tv_json_begin(w, '[');
    for (size_t i = 0; i < n; i++) {
        tv_json_begin(w, '{');
        put_word(w, "rule", v[i].rule);
        tv_json_key(w, "guide");
        tv_json_put_text(w, lang, v[i].guide);
        put_known(w, "guide_bytes", v[i].guide_bytes);
        put_known(w, "guide_high_bytes", v[i].guide_high_bytes);
        put_known(w, "ours_bytes", v[i].ours_bytes);
        tv_json_key(w, "why");
        tv_json_put_text(w, lang, v[i].why);
        tv_json_end(w, '}');
    }
    tv_json_end(w, ']');
}

void tv_json_remedies(tv_json_out *w, tv_lang lang, const tv_remedy *v, size_t n)
{
    tv_json_key(w, "remedies");
    tv_json_begin(w, '[');
    for (size_t i = 0; i < n; i++) {
        tv_json_begin(w, '{');
        tv_json_key(w, "what");
        tv_json_put_text(w, lang, v[i].what);
        put_known(w, "total_bytes", v[i].total_bytes);
        put_known(w, "slowdown", v[i].slowdown);
        tv_json_key(w, "fits");
        tv_json_put_bool(w, v[i].fits);
        tv_json_end(w, '}');
    }
    tv_json_end(w, ']');
}

static void put_measured(tv_json_out *w, const tv_size_view *view)
{
    const tv_estimate *e = view->estimate;
    tv_json_key(w, "measured");
    tv_json_begin(w, '{');
    put_known(w, "allocated_peak_bytes", view->measured_bytes);
    put_if(w, "memory_error", view->measured_bytes > 0,
           e->memory.allocated_peak_bytes / view->measured_bytes - 1);
    put_known(w, "step_s", view->measured_s);
    put_if(w, "time_error", view->measured_s > 0 && tv_known(e->time.step_s),
           e->time.step_s.v / view->measured_s - 1);
    tv_json_end(w, '}');
}

void tv_size_json(const tv_request *req, tv_buf *b, const tv_size_view *view)
{
    tv_json_out w = tv_json_write(b);
    tv_json_begin(&w, '{');
    tv_json_estimate(&w, req->lang, view->estimate, view->dataset);
    if (view->n_members)
        put_group(&w, view);
    put_deltas(&w, req->lang, view);
    if (view->phases)
        tv_json_phases(&w, req->lang, view->phases);
    if (view->formats.n)
        tv_json_formats(&w, req->lang, &view->formats);
    tv_json_remedies(&w, req->lang, view->remedies, view->n_remedies);
    if (view->n_thumbs)
        tv_json_thumbs(&w, req->lang, view->thumbs, view->n_thumbs);
    if (view->measured_bytes > 0 || view->measured_s > 0)
        put_measured(&w, view);
    if (view->cards)
        tv_json_cards(&w, req->lang, view->cards);
    if (view->explain)
        put_ledger(&w, req->lang, &view->estimate->memory);
    put_texts(&w, req->lang, "remarks", view->remarks, view->n_remarks);
    tv_json_end(&w, '}');
}
