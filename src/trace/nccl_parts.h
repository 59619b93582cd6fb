/* What the parts of the NCCL reader share: nccl_log.c finds the lines, nccl_info.c reads what they
 * tell, nccl_warn.c what they complain of. */
#ifndef TV_NCCL_PARTS_H
#define TV_NCCL_PARTS_H

#include "glean.h"
#include "trace.h"

typedef struct tv_nccl_line {
    size_t at;     /* in the sheet */
    tv_str host;   /* empty: not named */
    double device; /* NaN: not named */
    tv_str level;  /* INFO, WARN, TRACE */
    tv_str file;   /* before WARN */
    double line;
    bool stamped; /* a time stands in front */
    double rank;  /* told by the launcher's prefix; NaN: by none */
    tv_str text;  /* behind the level */
} tv_nccl_line;

typedef struct tv_nccl {
    tv_reading *r;
    tv_note *facts; /* of the sighting */
    bool worked;    /* a step of training was logged already */
    tv_note *root;  /* the complaint that explains the others; NULL: none yet */
    size_t n_warn;
    size_t channel_lines;
    uint64_t channels[4]; /* which ids were seen, up to 256 */
} tv_nccl;

/* One line each; they only add to n->facts. */
void tv_nccl_told(tv_nccl *n, const tv_nccl_line *line);
void tv_nccl_warned(tv_nccl *n, const tv_nccl_line *line);
/* What is reckoned from all lines. */
void tv_nccl_sum(tv_nccl *n);

/* The system's words for an error wherever they stand in a text; NULL: none of them. */
typedef struct tv_errno_word {
    int number;
    const char *text;
} tv_errno_word;
const tv_errno_word *tv_errno_in(tv_str text);

#endif
