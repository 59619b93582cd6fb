/* What the readers of memory errors share: a message that stands on one line or was wrapped over
 * several, figures that may be unknown, and the account of who holds the card's memory. */
#ifndef TV_OOM_PARTS_H
#define TV_OOM_PARTS_H

#include "trace.h"

/* Line i and, where none of the ends (NULL at the end) stands in it yet, the lines that follow:
 * terminals and trackers wrap long messages. Loggers' prefixes are dropped. */
tv_str tv_oom_joined(const tv_reading *r, size_t i, const char *const *ends);

/* Messages of one sheet that were seen already: programs repeat an error at every layer that it
 * passes. Only the latest are remembered. */
enum { TV_OOM_REMEMBERED = 64 };
typedef struct tv_oom_seen {
    uint64_t hash[TV_OOM_REMEMBERED];
    tv_sighting *sighting[TV_OOM_REMEMBERED];
    size_t n;
} tv_oom_seen;

/* The sighting of the same message, whose "times" is raised; NULL: it is new. */
tv_sighting *tv_oom_again(tv_reading *r, tv_oom_seen *seen, tv_str message);
/* Remembers a new one. */
void tv_oom_remember(tv_oom_seen *seen, tv_str message, tv_sighting *s);
/* A sighting for the message on line i, remembered; NULL: it was seen before. */
tv_sighting *tv_oom_new(tv_reading *r, tv_oom_seen *seen, size_t i, tv_str message);

/* Writes a figure where it was read; nothing otherwise. */
void tv_oom_put(tv_reading *r, tv_note *facts, const char *key, tv_double_read v);
void tv_oom_word(tv_reading *r, tv_note *facts, const char *key, const char *word);

/* "vllm", "sglang", "tgi": the server whose log it is; NULL: none that is known. */
const char *tv_oom_server(const tv_sheet *sheet, size_t i);
/* "optimizer step", "backward", "validation", "model load", "graph capture": told by the frames of
 * the traceback above line i; NULL: not told. */
const char *tv_oom_during(const tv_sheet *sheet, size_t i);
/* The rank of "[rank3]:" or "(Worker_TP1 pid=9)"; not ok: none. */
tv_u64_read tv_oom_rank(tv_str raw);

/* Bytes on the card, NaN where the message does not tell. */
typedef struct tv_oom_account {
    double tried;
    double total;
    double free;
    double allocated;     /* live tensors */
    double unused;        /* held by the allocator and not in use */
    double self;          /* the whole process, context and libraries included */
    double private_pools; /* of CUDA graphs */
    double allowed;       /* a limit of the process' own */
} tv_oom_account;

/* A process on a card holds its context and the libraries' kernels beside the allocator's memory:
 * 0.3 to 0.6 GiB as a rule. What an old message calls neither free nor its own includes them. */
#define TV_OOM_CONTEXT_BYTES (0.6 * 1024 * 1024 * 1024)

/* Adds what follows from the account: shares, the contradiction, and the layer that ran out. */
void tv_oom_judge(tv_reading *r, tv_note *facts, const tv_oom_account *c);

#endif
