/* Nouns -> text and JSON. Writers reckon nothing: what they show was decided before, and what
 * they do not know they show as unknown. Every sentence goes through the request's language;
 * colour and width come from the request. */
#ifndef TV_REPORT_H
#define TV_REPORT_H

#include "base/json.h"
#include "desc/dataset.h"
#include "desc/estimate.h"
#include "desc/life.h"
#include "desc/model.h"
#include "desc/plan.h"
#include "desc/request.h"

/* ---- what is shown ---- */

/* One fact as `facts` lists it. */
typedef struct tv_named_fact {
    const char *name; /* language-free: "gpu.mem_bytes" */
    const char *unit; /* "B", "B/s", "FLOP/s", "s", ...; "" for a count */
    tv_fact fact;
} tv_named_fact;

/* What the need gains or loses when one input changes by one step. */
typedef struct tv_delta {
    tv_text what;
    double bytes;
} tv_delta;

/* A guide's rule of thumb beside our figure, and why they differ. */
typedef struct tv_thumb {
    const char *rule;   /* "F01": the entry of docs/factcheck.md */
    tv_text guide;      /* what the rule says, with its numbers */
    double guide_bytes; /* low end; 0: the rule names no amount */
    double guide_high_bytes;
    double ours_bytes; /* 0: ours is not one amount */
    tv_text why;
} tv_thumb;

/* What each number format would do to a job that serves, on one card. */
typedef struct tv_formats_view {
    const tv_device *device;
    const tv_format_effect *v;
    size_t n;
    bool per_token; /* a step makes one token of each sequence, not a whole pass */
} tv_formats_view;

/* One configuration as `size` shows it. */
typedef struct tv_size_view {
    const tv_estimate *estimate;
    const tv_dataset *dataset;         /* NULL: nothing said about data */
    const tv_device_group *group;      /* the name given stands for several cards */
    const tv_estimate *const *members; /* their estimates; estimate is the largest need */
    size_t n_members;
    const tv_delta *deltas;
    size_t n_deltas;
    const tv_thumb *thumbs;
    size_t n_thumbs;
    const tv_remedy *remedies;
    size_t n_remedies;
    const tv_plan *cards;   /* no card was named: those that hold the job */
    const tv_text *remarks; /* warnings: missing terms, odd inputs */
    size_t n_remarks;
    double measured_bytes, measured_s; /* what the user saw; 0 not said */
    bool explain;
    const tv_life_plan *phases; /* NULL: not asked */
    tv_formats_view formats;
} tv_size_view;

/* The best choice of one stage of a project; NULL: none or not asked. */
typedef struct tv_stage_pick {
    const char *stage; /* "train", "validate", "infer" */
    const tv_choice *choice;
} tv_stage_pick;

typedef struct tv_plan_view {
    const tv_model *model;
    const tv_plan *plan;
    const tv_dataset *dataset;
    const tv_stage_pick *stages;
    size_t n_stages;
    const tv_thumb *thumbs;
    size_t n_thumbs;
    const tv_text *remarks;
    size_t n_remarks;
    size_t shown; /* choices on the first screen; 0: a sensible number */
    bool explain;
    const tv_life_plan *phases; /* NULL: not asked */
    tv_formats_view formats;
} tv_plan_view;

/* What a card can do: reference jobs, each weighed on it. */
typedef struct tv_reach_view {
    const tv_device *device;
    uint32_t gpus;
    const tv_choice *v;
    size_t n;
} tv_reach_view;

/* ---- the writers ---- */

void tv_reach_text(const tv_request *req, tv_buf *b, const tv_reach_view *view);
void tv_reach_json(const tv_request *req, tv_buf *b, const tv_reach_view *view);

void tv_size_text(const tv_request *req, tv_buf *b, const tv_size_view *view);
void tv_size_json(const tv_request *req, tv_buf *b, const tv_size_view *view);
void tv_plan_text(const tv_request *req, tv_buf *b, const tv_plan_view *view);
void tv_plan_json(const tv_request *req, tv_buf *b, const tv_plan_view *view);

/* ---- parts that other writers share ---- */

/* The members of `size --json` (model ... facts) inside an object that is already open. */
void tv_json_estimate(tv_json_out *w, tv_lang lang, const tv_estimate *est,
                      const tv_dataset *dataset);

void tv_json_thumbs(tv_json_out *w, tv_lang lang, const tv_thumb *v, size_t n);
void tv_json_remedies(tv_json_out *w, tv_lang lang, const tv_remedy *v, size_t n);
/* The short form of a plan: which cards hold the job, and why the others do not. */
void tv_json_cards(tv_json_out *w, tv_lang lang, const tv_plan *plan);

/* "phases": {...}, or null where none were asked. */
void tv_json_phases(tv_json_out *w, tv_lang lang, const tv_life_plan *p);
/* The key of a stage and its object, or null. */
void tv_json_life_stage(tv_json_out *w, const tv_life_plan *p, tv_life phase);
void tv_json_formats(tv_json_out *w, tv_lang lang, const tv_formats_view *v);

/* Every fact that the estimate rests on or yields. */
const tv_named_fact *tv_report_facts(tv_arena *a, const tv_estimate *est, size_t *n);

/* How text is laid out: a buffer with a language, a width and perhaps colour. */
typedef struct tv_page {
    tv_buf *b;
    tv_lang lang;
    bool colour;
    int width;
} tv_page;

typedef enum tv_style {
    TV_PLAIN,
    TV_BOLD,
    TV_DIM,
    TV_GREEN,
    TV_YELLOW,
    TV_RED,
} tv_style;

tv_page tv_page_on(const tv_request *req, tv_buf *b);

/* Columns that a text takes on a terminal: two for wide characters, none for combining ones. */
int tv_width(tv_str s);
/* Cuts the next line of at most `width` columns; a word that is longer stays whole. */
tv_str tv_next_line(tv_arena *a, tv_str *rest, int width);
void tv_page_put(const tv_page *page, tv_style style, tv_str s);
/* A msgid in the page's language. */
void tv_page_say(const tv_page *page, tv_style style, const char *msgid);
/* A blank line and a heading. */
void tv_page_head(const tv_page *page, const char *msgid);
/* A paragraph that wraps to the width, its lines indented. */
void tv_page_wrap(const tv_page *page, tv_style style, int indent, tv_str s);
void tv_page_text(const tv_page *page, tv_style style, int indent, tv_text t);
/* A bar of `cells` columns, filled to share in [0, 1]. */
tv_str tv_bar(tv_arena *a, double share, int cells);

typedef struct tv_cell {
    tv_str s;
    tv_style style;
} tv_cell;

typedef struct tv_column {
    const char *head; /* msgid; NULL: none */
    bool right;       /* numbers */
    bool flex;        /* takes what is left and wraps; one column at most */
} tv_column;

typedef struct tv_table {
    const tv_column *columns;
    size_t n_columns;
    tv_cell *v; /* row by row */
    size_t n;
    size_t cap;
} tv_table;

void tv_table_add(tv_arena *a, tv_table *t, tv_style style, tv_str s);
void tv_table_put(const tv_page *page, const tv_table *t, int indent);

/* Lines and blocks that the pages share. */
tv_str tv_job_line(tv_arena *a, const tv_estimate *est);
tv_str tv_machine_line(tv_arena *a, const tv_machine *m);
const char *tv_bound_words(tv_bound bound); /* a msgid */
/* The three grades, the bottleneck and the next step. */
void tv_page_grades(const tv_page *page, const tv_estimate *est, const tv_remedy *remedies,
                    size_t n);
void tv_page_cost(const tv_page *page, const tv_cost *c);
/* card: what the changes are reckoned on; empty: the card that the page is about. */
void tv_page_remedies(const tv_page *page, const tv_remedy *v, size_t n, tv_str card);
void tv_page_thumbs(const tv_page *page, const tv_thumb *v, size_t n);
void tv_page_cards(const tv_page *page, const tv_plan *plan);
/* all: with what each phase is made of. */
void tv_page_phases(const tv_page *page, const tv_life_plan *p, bool all);
void tv_page_formats(const tv_page *page, const tv_formats_view *v);

/* A remark on a model that concerns every job: what was assumed of it, what its files do. */
bool tv_report_always(const char *id);

#endif
