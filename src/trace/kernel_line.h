/* One line of a kernel log as dmesg, journalctl, syslog or /dev/kmsg print it: what stands before
 * the kernel's own words, and the words. */
#ifndef TV_KERNEL_LINE_H
#define TV_KERNEL_LINE_H

#include "glean.h"
#include "trace.h"

typedef struct tv_kernel_line {
    tv_str text;        /* behind the prefix, blanks passed */
    tv_str clock;       /* the time as it is written; empty: none */
    double ts_s;        /* seconds since the machine started; NaN: unknown */
    const char *format; /* "dmesg", "dmesg -T", "syslog", ...; NULL: no prefix that is known */
    bool host_missing;  /* a time and "kernel:" with no host between them */
} tv_kernel_line;

tv_kernel_line tv_kernel_line_of(tv_str line);

/* The sighting of that kind in this file: an earlier part of a long log has it already. */
tv_sighting *tv_see_once(tv_reading *r, const char *kind, size_t i);
/* The item of a list of maps whose `key` is that word, its "n" raised by one; a new one with the
 * place of line i where there is none. NULL: the list is full. */
tv_note *tv_tally(tv_reading *r, tv_note *list, const char *key, tv_str word, size_t i);
/* "n" of a tallied item. */
double tv_tallied(const tv_note *item);
/* Raises a number under the key by one. */
void tv_count_up(tv_arena *a, tv_note *map, const char *key);
/* "0000:41:00.0", "41:00.0", "0000:41:00": the bus address at the front; empty: none. */
tv_str tv_take_pci(tv_str *s);

#endif
