/* Command lines and what they ask of the machine, as facts of kind "command" (docs/facts). */
#ifndef TV_COMMANDS_H
#define TV_COMMANDS_H

#include "shell_words.h"

typedef struct tv_command_line {
    tv_reading *r;
    size_t line; /* where it begins */
    tv_note *facts;
    tv_arena *scratch;
} tv_command_line;

/* docker/podman run and create: true where it is one, and its options are noted. The program
 * inside is handed to tv_launch_note. */
bool tv_docker_note(const tv_command_line *c, const tv_str *v, size_t n);
/* What runs: a launcher, a server or a Python script behind wrappers and assignments. False: it
 * is none of these. */
bool tv_launch_note(const tv_command_line *c, const tv_str *v, size_t n);
/* NAME=value of a command's own environment. */
void tv_env_note(const tv_command_line *c, tv_str name, tv_str value);
/* An option that says how the program loads its data: --num-workers 8, -j8, batch_size=32. */
void tv_loading_note(const tv_command_line *c, const tv_str *v, size_t n);

#endif
