/* One configuration predicted once: from a model rule, a job and a card to every number that a
 * measured row can be compared with. Remembers what it has predicted. */
#ifndef TV_VALIDATE_CASE_H
#define TV_VALIDATE_CASE_H

#include "desc/request.h"
#include "validate_row.h"
#include "validate_table.h"

typedef struct tv_validator tv_validator;

/* Everything that lives as long as one run of the command. */
const tv_err *tv_validator_open(tv_request *r, tv_validator **v) TV_CHECKED;

/* What a row comes to. */
typedef struct tv_row_verdict {
    tv_judged judged;
    const char *family;
    tv_str gpu; /* slug of the card or of the group */
} tv_row_verdict;

/* False: *reason says why the row is not predicted. */
bool tv_validator_judge(tv_validator *v, const tv_json *model_rule, const tv_row *row,
                        tv_want *want, tv_row_verdict *out, tv_str *reason);

/* The catalogue, for operators and collectives. */
struct tv_catalog *tv_validator_catalog(tv_validator *v);
tv_arena *tv_validator_arena(tv_validator *v);

#endif
