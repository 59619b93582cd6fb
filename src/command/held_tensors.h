/* What the files of a model hold, whatever it means: tensors, elements and bytes by type. */
#ifndef TV_HELD_TENSORS_H
#define TV_HELD_TENSORS_H

#include "desc/request.h"
#include "desc/source.h"
#include "report/report.h"

/* Rows for a table of label and value; none where no tensor was read. */
void tv_held_rows(tv_arena *a, tv_table *t, const tv_page *page, const tv_source *s);

/* The member "tensors": {files, count, elements, bytes, dtypes: {NAME: {count, elements, bytes}}};
 * null where no tensor was read. */
void tv_held_json(tv_json_out *w, const tv_source *s);

#endif
