/* The door: one request from words to reply. The only place with a guard for a spent arena, and
 * the place where errors are printed and become an exit status. */
#ifndef TV_DOOR_H
#define TV_DOOR_H

#include "trivet.h"

#include "base/arena.h"

/* trivet_run on an arena that the caller opened (tests make its allocations fail). The reply owns
 * the arena from here on; where there is no reply, the arena is closed. */
int tv_door_run(tv_arena *a, const trivet_options *options, int argc, const char *const *argv,
                trivet_reply **reply);

#endif
