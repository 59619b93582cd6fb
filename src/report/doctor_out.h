/* Diagnoses and rules -> text and JSON. */
#ifndef TV_DOCTOR_OUT_H
#define TV_DOCTOR_OUT_H

#include "desc/finding.h"
#include "report.h"

void tv_doctor_text(const tv_request *req, tv_buf *b, const tv_diagnosis *d);
/* {findings, asks, facts, sightings, files}: see docs/commands/doctor.md. */
void tv_doctor_json(const tv_request *req, tv_buf *b, const tv_diagnosis *d);

/* One rule in full, as a page and as JSON (`--explain`). */
void tv_rule_text(const tv_request *req, tv_buf *b, const tv_rule *rule, const char *group);
void tv_rule_json(const tv_request *req, tv_json_out *w, const tv_rule *rule, const char *group);

/* A pattern of a rule with the finding's values. */
tv_text tv_finding_text(const tv_finding *f, const char *msgid);
/* True where the step can be shown: every name that it holds is known. */
bool tv_step_fits(const tv_step *step, const tv_finding *f);

#endif
