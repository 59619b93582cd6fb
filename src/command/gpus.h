/* What the pages of `trivet gpus` share: the options, and what follows from a card's record
 * (number formats, links like for like, what is missing). Knows cards by their facts, never by
 * their names. */
#ifndef TV_GPUS_H
#define TV_GPUS_H

#include "market.h"
#include "report/report.h"

typedef struct tv_gpus_options {
    double fits_bytes;
    tv_str mode;  /* keys of one or two rates, comma-separated */
    tv_str model; /* for the job of compare; empty: none */
    tv_model_options params;
    tv_job job;
    tv_money_options money;
} tv_gpus_options;

typedef struct tv_gpus_run {
    tv_request *r;
    const tv_gpus_options *o;
    tv_market market;
} tv_gpus_run;

/* ---- what follows from a record (gpus_facts.c) ---- */

/* The 16-bit rate that training runs at: matrix units with FP32 accumulate; the vector units where
 * the card is known to have no matrix units. Unknown (fact.origin) otherwise. */
typedef struct tv_card_rate {
    tv_rate mode;
    tv_fact fact;
    bool vector; /* no matrix units stand behind it */
} tv_card_rate;

tv_card_rate tv_card_training_rate(const tv_device *d);

/* Matrix units for 16-bit numbers: 1 yes, 0 no, -1 unknown. */
int tv_card_has_tensor_cores(const tv_device *d);

/* FLOP that must be done with each byte before the rate and not the memory is the limit. */
tv_fact tv_card_ridge(const tv_device *d, tv_fact rate);

/* Facts without which a card is not ranked. */
tv_str tv_card_missing(tv_arena *a, tv_lang lang, const tv_device *d);

typedef enum tv_support {
    TV_SUPPORT_UNKNOWN,
    TV_SUPPORT_NO,
    TV_SUPPORT_SLOW,
    TV_SUPPORT_YES
} tv_support;

const char *tv_support_name(tv_support s); /* "yes", "no", "slow", "unknown" */

typedef struct tv_card_dtype {
    const char *dtype; /* "fp16", ..., "sparsity" */
    tv_support support;
    tv_fact rate; /* of the way that is used */
    tv_text why;
} tv_card_dtype;

enum { TV_CARD_DTYPES = 8 };

void tv_card_dtypes(tv_arena *a, const tv_device *d, tv_card_dtype *out);

/* One direction of the slot as vendors print it: GT/s times lanes, before line coding. */
tv_fact tv_card_slot_nominal(const tv_device *d);

/* Sentences that follow from the numbers, on the card's own limits: no tensor cores, laptop parts,
 * bridges, policies. */
typedef struct tv_texts_list {
    tv_text *v;
    size_t n;
    size_t cap;
} tv_texts_list;

void tv_card_remarks(tv_arena *a, const tv_device *d, tv_texts_list *out);
/* What the record itself says beside its numbers, in the request's language. */
const tv_err *tv_card_notes(const tv_gpus_run *g, const tv_device *d, tv_texts *out) TV_CHECKED;

/* Whether the frameworks run on it, and through what. */
typedef struct tv_card_stack {
    const char *torch, *paddle;     /* msgids */
    tv_support on_torch, on_paddle; /* yes; slow: a plug-in or a fork; no */
} tv_card_stack;

tv_card_stack tv_card_frameworks(const tv_device *d);

/* ---- numbers as the pages show them ---- */

tv_str tv_card_capability(tv_arena *a, const tv_device *d); /* "8.9"; empty: not CUDA */

tv_str tv_show_memory(tv_arena *a, tv_fact f); /* "24 GiB", "?" */
tv_str tv_show_rate(tv_arena *a, tv_fact f);   /* "1,008 GB/s" */
tv_str tv_show_flops(tv_arena *a, tv_fact f);  /* "165.2": 1e12 a second */
tv_str tv_show_number(tv_arena *a, tv_fact f, int digits);
tv_str tv_show_price(tv_arena *a, const tv_price *p);
tv_price tv_gpus_price(const tv_gpus_run *g, const tv_device *d);

/* ---- the pages ---- */

const tv_err *tv_gpus_list(tv_gpus_run *g) TV_CHECKED;
const tv_err *tv_gpus_show(tv_gpus_run *g, tv_str name) TV_CHECKED;
const tv_err *tv_gpus_compare(tv_gpus_run *g, const tv_str *names, size_t n) TV_CHECKED;

/* What some usual jobs need and whether `have` bytes hold them; d may be NULL. */
typedef struct tv_held_job {
    tv_str model;
    const struct tv_rung *job; /* task, batch and length: see reach.h */
    double need_bytes, low_bytes, high_bytes;
    double have_bytes;
    tv_verdict verdict;
    const char *blocked; /* msgid; NULL: it was reckoned */
} tv_held_job;

/* The record of one card as JSON, inside an open document; jobs: what it holds, if reckoned. */
void tv_json_card(const tv_gpus_run *g, tv_json_out *w, const tv_device *d, const tv_held_job *jobs,
                  size_t n_jobs);
tv_str tv_held_words(tv_arena *a, const tv_held_job *j); /* "qlora, b1 s2048" */
void tv_json_held(const tv_gpus_run *g, tv_json_out *w, const tv_held_job *jobs, size_t n);

/* A price with its age, or null. */
void tv_json_price(const tv_gpus_run *g, tv_json_out *w, const tv_price *p);

/* Keys whose values are not the same on all of n cards, in the record's order. */
size_t tv_card_differences(tv_arena *a, const tv_device *const *v, size_t n, const char ***keys);

const tv_err *tv_gpus_held(tv_gpus_run *g, const tv_device *d, double have_bytes,
                           const tv_held_job **jobs, size_t *n) TV_CHECKED;

#endif
