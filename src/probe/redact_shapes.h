/* What tells a person, a host or a secret by its form alone. Each shape looks at one place of a
 * text, and yields how many bytes from there belong to it; 0: it is not this. */
#ifndef TV_REDACT_SHAPES_H
#define TV_REDACT_SHAPES_H

#include "base/str.h"

/* A part of a text that is replaced: `keep` bytes in front of it stay. */
typedef struct tv_redact_part {
    size_t keep;
    size_t n;         /* 0: nothing here */
    const char *word; /* "host": the stand-in is "host-1" */
} tv_redact_part;

/* True where a shape may begin at i: no letter or digit stands before it. */
bool tv_redact_begins(tv_str s, size_t i);
/* The first shape that fits at i. */
tv_redact_part tv_redact_at(tv_str s, size_t i);
/* Names that every other system has as well: they tell nothing, and stand in other words. */
bool tv_redact_is_common(tv_str name);

#endif
