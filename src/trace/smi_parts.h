/* What the readers of nvidia-smi's outputs share: one card's facts have the same names whether a
 * table, a list of keys, XML or CSV was pasted. Knows every spelling of a field; knows nothing of
 * what the values mean. */
#ifndef TV_SMI_PARTS_H
#define TV_SMI_PARTS_H

#include "glean.h"
#include "trace.h"

typedef enum tv_smi_kind {
    TV_SMI_WORD,   /* a word; not available is null */
    TV_SMI_TEXT,   /* a word that is kept even where it says N/A */
    TV_SMI_NUMBER, /* with whatever unit follows: C, MHz, W, x, bank(s) */
    TV_SMI_SHARE,  /* percent -> fraction */
    TV_SMI_BYTES,  /* bytes; a bare number is MiB */
    TV_SMI_SWITCH, /* Enabled, Disabled, On, Off -> "On", "Off" */
    TV_SMI_YES,    /* Yes, No, Active, Not Active -> true, false */
    TV_SMI_RATE,   /* KB/s -> bytes per second */
    TV_SMI_MICROS, /* us -> seconds */
    TV_SMI_MASK,   /* 0x00000004 -> the members of "reasons" */
} tv_smi_kind;

typedef struct tv_smi_field {
    const char *sections; /* the heading right above, "|" between spellings; "" any */
    const char *keys;     /* of the text and of the XML, as slugs */
    const char *queries;  /* fields of --query-gpu */
    const char *fact;     /* a dot leads into a map */
    tv_smi_kind kind;
} tv_smi_field;

enum {
    TV_SMI_SLUG = 64,
    TV_SMI_MOST_CARDS =
        256, /* of one listing: the largest hosts have 16, MIG and vGPU some dozens */
};

/* "GPU T.Limit Temp" -> "gpu_t_limit_temp": how headings, keys and tags are compared. */
tv_str tv_smi_slug(tv_str text, char buffer[TV_SMI_SLUG]);
/* True where the word stands in "a|b|c". */
bool tv_smi_among(const char *list, tv_str word);

/* The row of a key below a heading (both as slugs), or NULL. */
const tv_smi_field *tv_smi_field_of(tv_str section, tv_str key);
/* The row of a field of --query-gpu, without its unit, or NULL. */
const tv_smi_field *tv_smi_query_field(tv_str name);

/* True for N/A, [Not Supported], ERR!, Unknown Error, "-" and their like. */
bool tv_smi_is_none(tv_str text);
/* Writes a value under a fact's name, null where it is not available, with the place of line i. */
void tv_smi_put(const tv_reading *r, tv_note *card, const char *fact, tv_smi_kind kind, tv_str text,
                size_t i);
/* Fills in what follows from what was read: the cap in force, sums of memory errors. */
void tv_smi_finish(tv_arena *a, tv_note *card);
/* Copies the members of one map into another that lacks them. */
void tv_smi_copy(tv_arena *a, const tv_note *from, tv_note *to);

/* "00000000:1B:00.0", "0000:01:00.0", "0F:01:00.0": a place on the PCI bus. */
bool tv_smi_is_bus(tv_str word);
/* "535.154.05" */
bool tv_smi_is_version(tv_str word);

#endif
