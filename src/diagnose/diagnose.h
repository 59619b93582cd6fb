/* The rules' face: what was seen -> ranked findings. Knows no file, no clock, no host: it looks at
 * a scene. A rule is a row (desc/finding.h); rows stand in one file per field, each ending with a
 * group. */
#ifndef TV_DIAGNOSE_H
#define TV_DIAGNOSE_H

#include "desc/finding.h"

typedef struct tv_rule_group {
    const char *name;    /* "memory" */
    const char *heading; /* msgid */
    const tv_rule *rules;
    size_t n;
} tv_rule_group;

/* Generated from the list in src/meson.build; NULL at the end. Groups are judged in this order: a
 * later one may ask what an earlier one found. */
extern const tv_rule_group *const tv_rule_groups[];

/* The row of that id (letters without case), or NULL. */
const tv_rule *tv_rule_named(tv_str id);

/* Judges the scene by every rule and ranks what is found. */
void tv_diagnose(tv_arena *a, const tv_scene *scene, tv_diagnosis *out);

/* ---- for judges ---- */

struct tv_inquiry {
    tv_arena *a;
    const tv_scene *scene;
    tv_diagnosis *out;
};

/* A finding of the rule, with the place of `at` (a note of s; NULL: where s begins) as its first
 * evidence. At most TV_LIMIT_FINDINGS_OF_RULE of one rule are kept; never NULL. */
tv_finding *tv_found(tv_inquiry *q, const tv_rule *rule, const tv_sighting *s, const tv_note *at);
/* More evidence, from any sighting. */
void tv_found_also(tv_inquiry *q, tv_finding *f, const tv_sighting *s, const tv_note *at);
/* Evidence that has no line of its own: a figure reckoned from a whole file. */
void tv_found_text(tv_inquiry *q, tv_finding *f, tv_str file, tv_str text);
/* Values: what the cause and the commands name, and what `values` shows. NaN is not added. */
void tv_found_num(tv_inquiry *q, tv_finding *f, const char *name, tv_arg_kind kind, double v);
void tv_found_str(tv_inquiry *q, tv_finding *f, const char *name, tv_str s);
void tv_found_word(tv_inquiry *q, tv_finding *f, const char *name, const char *msgid);
/* True where a rule of that id has been found already (see the order of groups). */
bool tv_has_found(const tv_inquiry *q, const char *id);
/* The one command that would settle a doubt; the same command is asked for once. */
void tv_ask(tv_inquiry *q, const char *command, const char *why);

#endif
