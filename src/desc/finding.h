/* The doctor's nouns: what was seen in which file, the rules that judge it, and what they found. */
#ifndef TV_FINDING_H
#define TV_FINDING_H

#include "note.h"

/* ---- what was seen ---- */

/* One thing that a reader recognised: an OOM message, an nvidia-smi table, a kernel log's events.
 * kind is language-free and names the shape of the facts (docs/facts.md). */
typedef struct tv_sighting tv_sighting;
struct tv_sighting {
    const char *kind;
    tv_str file;   /* as the user named it; inside an archive "a.tar.gz:dmesg.txt" */
    uint64_t line; /* where it begins, from 1; 0: the file has no lines */
    tv_str text;   /* that line, or what stands for it */
    tv_note facts; /* a map */
    tv_sighting *next;
};

typedef struct tv_scene {
    tv_sighting *first, *last;
    size_t n;
    tv_note files;            /* a list of {file, bytes, read, kinds: [...]}: what was looked at */
    bool live;                /* the documents are this host's own */
    struct tv_intake *intake; /* the readers' own; NULL: nothing was read yet */
} tv_scene;

tv_sighting *tv_scene_add(tv_arena *a, tv_scene *scene, const char *kind, tv_str file,
                          uint64_t line, tv_str text);
/* The first sighting of a kind, and the next one after s; NULL at the end. kind NULL: any. */
const tv_sighting *tv_scene_first(const tv_scene *scene, const char *kind);
const tv_sighting *tv_scene_next(const tv_sighting *s, const char *kind);

/* ---- what is judged ---- */

typedef enum tv_severity { TV_INFO, TV_WARNING, TV_CRITICAL } tv_severity;
/* low: a candidate; medium: likely, needs one more check; high: the evidence is sufficient. */
typedef enum tv_confidence { TV_LOW, TV_MEDIUM, TV_HIGH } tv_confidence;

/* One thing to do. Commands hold {names} of the finding's values ("nvidia-smi -pl {default_w} -i
 * {gpu}"); a step whose names are not all known is left out of a finding. */
typedef struct tv_step {
    const char *command; /* not translated; NULL: why is the whole step */
    const char *undo;    /* the command that takes it back; NULL: it changes nothing that lasts, or
                            cannot be taken back, which why then says */
    const char *why;     /* msgid: what it does, or when it is the one to take; may hold {names} */
} tv_step;

enum { TV_MOST_STEPS = 6 };

typedef struct tv_inquiry tv_inquiry;
typedef struct tv_rule tv_rule;

struct tv_rule {
    const char *id; /* "O01" */
    tv_severity severity;
    tv_confidence sure;
    const char *title;   /* msgid: one phrase, no full stop */
    const char *cause;   /* msgid: sentences with the {names} of values: what happened, and why */
    const char *decided; /* msgid: what must be seen, with the thresholds (docs page) */
    const char *unless;  /* msgid: what speaks against it, what it is mistaken for; NULL: nothing */
    const char *source;  /* where the rule comes from: a URL, "owner/repo#n", a document */
    tv_step steps[TV_MOST_STEPS];
    const char *outranks; /* ids whose findings follow from this one, "C18 C03"; NULL: none */
    void (*judge)(tv_inquiry *q, const tv_rule *rule);
};

/* ---- what was found ---- */

typedef struct tv_evidence {
    tv_str file;
    uint64_t line; /* 0: none */
    tv_str text;
} tv_evidence;

typedef struct tv_evidences {
    tv_evidence *v;
    size_t n;
    size_t cap;
} tv_evidences;

typedef struct tv_values {
    tv_arg *v;
    size_t n;
    size_t cap;
} tv_values;

typedef struct tv_finding {
    const tv_rule *rule;
    tv_severity severity;
    tv_confidence sure;
    const char *cause; /* msgid; the rule's unless the judge chose another */
    tv_evidences evidence;
    tv_values values; /* names carry the unit: "others_bytes" */
    double weight;    /* of two findings alike the heavier one ranks first: [0, 1], a share of the
                         step or of the memory that it explains */
    const tv_rule *because; /* the finding that explains this one; NULL: none */
    tv_text remedy;         /* one more step, reckoned from the user's model; msgid NULL: none */
} tv_finding;

/* The one command that would settle a doubt. */
typedef struct tv_asked {
    const char *command;
    const char *why; /* msgid */
} tv_asked;

typedef struct tv_findings {
    tv_finding **v; /* ranked, root causes first */
    size_t n;
    size_t cap;
} tv_findings;

typedef struct tv_asks {
    tv_asked *v; /* the most useful first */
    size_t n;
    size_t cap;
} tv_asks;

typedef struct tv_diagnosis {
    const tv_scene *scene;
    tv_findings findings;
    tv_asks asks;
} tv_diagnosis;

/* A step's command with the finding's values in it, quoted for a shell where they hold anything
 * but plain letters. Empty where a name is not known. */
tv_str tv_step_command(tv_arena *a, const char *pattern, const tv_finding *f);
/* True where every name in the pattern is one of the finding's values. */
bool tv_step_holds(const char *pattern, const tv_finding *f);

/* "critical", "warning", "info"; "high", "medium", "low": the interface's words, also msgids. */
const char *tv_severity_name(tv_severity severity);
const char *tv_confidence_name(tv_confidence sure);

#endif
