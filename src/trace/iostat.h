/* What the reports of iostat add up to, whichever way they were printed (text or JSON). */
#ifndef TV_IOSTAT_H
#define TV_IOSTAT_H

#include "desc/finding.h"

/* One report: a moment's devices. */
typedef struct tv_iostat_report {
    tv_note *devices; /* a map by name */
    tv_note *cpu;     /* a map, or NULL */
    bool since_boot;
    uint64_t line;
    tv_str text;
} tv_iostat_report;

typedef struct tv_iostat_reports {
    tv_iostat_report *v;
    size_t n;
    size_t cap;
} tv_iostat_reports;

/* A column's value under its key, in SI units, as "rkB/s" or "aqu-sz" names it; false: unknown. */
bool tv_iostat_value(tv_arena *a, tv_note *device, tv_str column, double v, bool scaled);
/* A share of avg-cpu: "%iowait", "iowait". */
void tv_iostat_cpu(tv_arena *a, tv_note *cpu, tv_str column, double percent);
/* Writes the facts. */
void tv_iostat_facts(tv_arena *a, tv_note *facts, const tv_iostat_reports *all);

#endif
