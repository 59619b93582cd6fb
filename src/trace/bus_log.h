/* PCI Express in a kernel log: advanced error reporting, and links slower than the device. */
#ifndef TV_BUS_LOG_H
#define TV_BUS_LOG_H

#include "trace.h"

/* The error that is being read: its parts stand on lines of their own. */
typedef struct tv_aer_log {
    tv_str port, severity, layer, agent, driver;
    uint32_t status; /* the word whose bits are named below it */
    bool open;       /* an error was announced whose bits may follow */
    bool named;      /* at least one did */
    size_t line;     /* where it was announced */
} tv_aer_log;

bool tv_bus_line_is(tv_str line);
void tv_bus_line(tv_reading *r, tv_aer_log *aer, tv_note *facts, tv_str text, size_t i);
/* A line that only belongs to an error because of what stands above it; false: it does not. */
bool tv_bus_more(tv_reading *r, tv_aer_log *aer, tv_note *facts, tv_str text, size_t i);
/* Nothing follows: what is open is written down. */
void tv_bus_end(tv_reading *r, tv_aer_log *aer, tv_note *facts);

#endif
