/* The link from the doctor to the predictor: an out-of-memory message and the job that it came
 * from. */
#ifndef TV_DOCTOR_MODEL_H
#define TV_DOCTOR_MODEL_H

#include "desc/finding.h"
#include "desc/request.h"
#include "job_options.h"

/* What the user says of the job behind the documents. */
typedef struct tv_doctor_job {
    tv_str model; /* --model; empty: not said */
    tv_model_options options;
    tv_job job;
    tv_machine_options machine;
} tv_doctor_job;

/* Predicts the job on the card that the message speaks of and adds to the first memory finding
 * which term fills the card, what batch or length the message would fit where the job as given
 * does not explain it, and the cheapest change that fits, with its bytes. Without a message that
 * states the card's size there is nothing to add: a remark on r->err says so. Fails: the model or
 * the card is not known. */
const tv_err *tv_doctor_model(tv_request *r, const tv_doctor_job *o, tv_diagnosis *d) TV_CHECKED;

#endif
