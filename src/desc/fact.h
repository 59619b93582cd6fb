/* A number that knows where it comes from. The zero value is "unknown". */
#ifndef TV_FACT_H
#define TV_FACT_H

#include "base/text.h"

typedef enum tv_origin {
    TV_UNKNOWN,
    TV_ASSUMED,
    TV_CATALOG,
    TV_STATED, /* by the user, or by the file that was read */
    TV_COMPUTED,
    TV_MEASURED,
} tv_origin;

/* How a value from a table of measurements was reached. */
typedef enum tv_tier {
    TV_TIER_NONE,
    TV_TIER_PRIOR, /* physics only */
    TV_TIER_EXTRAPOLATED,
    TV_TIER_INTERPOLATED,
    TV_TIER_EXACT,
} tv_tier;

typedef struct tv_fact {
    double v;
    double lo;
    double hi;
    tv_origin origin;
    tv_tier tier;
    tv_str source;        /* source id, or the section of docs/model.md */
    tv_str as_of;         /* date, where it matters */
    const char *cause_id; /* equal causes add linearly, different ones in quadrature */
} tv_fact;

static inline bool tv_known(tv_fact f)
{
    return f.origin != TV_UNKNOWN;
}

static inline tv_fact tv_fact_of(double v, tv_origin origin, tv_str source)
{
    return (tv_fact){.v = v, .lo = v, .hi = v, .origin = origin, .source = source};
}

/* "stated", "computed", ...: the interface's words. */
const char *tv_origin_name(tv_origin origin);

#endif
