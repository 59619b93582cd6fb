/* Regular expressions over module names, as configurations of adapters and of quantisation hold
 * them: literals, . \d \w \. [...] groups, | and * + ? {n,m}; ^ and $. What else Python knows is
 * not understood, and says so. Bounded in steps. */
#ifndef TV_PATTERN_H
#define TV_PATTERN_H

#include "str.h"

typedef struct tv_match {
    bool found;
    bool understood; /* false: the pattern uses something else, or takes too many steps */
} tv_match;

/* The whole text, as Python's re.fullmatch. */
tv_match tv_pattern_match(tv_str pattern, tv_str text);
/* From the start of the text, as re.match. */
tv_match tv_pattern_match_start(tv_str pattern, tv_str text);

#endif
