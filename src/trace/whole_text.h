/* A file of JSON that is looked at whole, up to a bound: profiles that are no stream of events. */
#ifndef TV_WHOLE_TEXT_H
#define TV_WHOLE_TEXT_H

#include "trace.h"

typedef struct tv_whole_text {
    tv_arena *own; /* the text's, and room for what is read of it */
    tv_str text;
    bool cut; /* the file is longer, or damaged behind it */
} tv_whole_text;

/* Fails where the stream does. */
const tv_err *tv_whole_text_take(tv_arena *a, tv_input *in, tv_whole_text *w) TV_CHECKED;
/* The first bytes behind blanks: what tells the format. */
tv_str tv_whole_text_head(const tv_input *in);

#endif
