/* What a training script's parts share: the code, what it is, and where observations go. */
#ifndef TV_TRAIN_SCRIPT_H
#define TV_TRAIN_SCRIPT_H

#include "script_lines.h"

typedef struct tv_script {
    tv_reading *r;
    tv_listing code;
    tv_note *facts;
    bool paddle;
    bool cuda;    /* it uses a GPU */
    bool ddp;     /* one process for each GPU */
    bool managed; /* a framework above takes care: Lightning, accelerate, Trainer */
} tv_script;

/* One observation: {what, line, fix}; the note is yielded for more. */
tv_note *tv_script_note(tv_script *s, const char *what, size_t i, const char *fix);
/* What stands in loops: steps, validation, gradients, synchronisation. */
void tv_script_loops(tv_script *s);

#endif
