/* What a source's words mean: which model a string stands for (data/validation/models.json), what
 * a source leaves unsaid (data/validation/defaults.json). Knows tables and rows, not predictions.
 */
#ifndef TV_VALIDATE_RULES_H
#define TV_VALIDATE_RULES_H

#include "base/json.h"
#include "codec/csv.h"

typedef struct tv_rules {
    const tv_json *models;   /* rules, first match wins */
    const tv_json *no_model; /* the same, with reasons */
    const tv_json *set;      /* values for fields, first match wins */
    const tv_json *leave;    /* rows that do not state enough, with reasons */
} tv_rules;

/* A row of a table: its columns, and its column `extra` as a document (NULL: none). */
typedef struct tv_row {
    const tv_csv *csv;
    const tv_json *extra;
} tv_row;

/* What a row says about a field, or what is known of its source. */
typedef struct tv_said {
    tv_str text; /* empty: nobody says */
    bool assumed;
} tv_said;

/* Reads the two tables. */
const tv_err *tv_rules_read(tv_arena *a, tv_str models, tv_str defaults,
                            tv_rules *rules) TV_CHECKED;

/* The two tables that are built in. */
const tv_err *tv_rules_built_in(tv_arena *a, tv_rules *rules) TV_CHECKED;

/* A column, or "extra.NAME"; empty where it is absent, null or "unknown". A list's elements are
 * joined by commas. */
tv_str tv_row_text(tv_arena *a, const tv_row *row, tv_str field);

/* The rule for the row's model; NULL: none, and *reason says why. */
const tv_json *tv_rules_model(const tv_rules *rules, tv_arena *a, const tv_row *row,
                              tv_str *reason);

/* The reason why the row does not state enough; empty: nothing is known against it. */
tv_str tv_rules_leave(const tv_rules *rules, tv_arena *a, const tv_row *row);

/* A field of the job: the source's word translated, the row's own, or the source's default. */
tv_said tv_rules_said(const tv_rules *rules, tv_arena *a, const tv_row *row, const char *field);

#endif
