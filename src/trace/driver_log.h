/* The driver's lines that are no Xid: a GPU lost or refused at start, versions, what it lacks. */
#ifndef TV_DRIVER_LOG_H
#define TV_DRIVER_LOG_H

#include "trace.h"

/* text: behind "NVRM: ", on line i; messages that run over several lines are gathered from the
 * lines that follow. */
bool tv_driver_line_is(tv_str text);
void tv_driver_line(tv_reading *r, tv_note *facts, tv_str text, size_t i);
/* Lines of other modules that compete for the device or belong to the driver. */
bool tv_module_line_is(tv_str line);
void tv_module_line(tv_reading *r, tv_note *facts, tv_str text, size_t i);
/* What follows from several lines. */
void tv_driver_sum_up(tv_arena *a, tv_note *facts);

/* "NVIDIA UNIX Open Kernel Module for x86_64  570.158.01  Release Build ...": the version, and
 * whether it is the open module. Empty: it is no such text. */
tv_str tv_module_version(tv_str text, bool *open);

#endif
