/* A command: one file, one row. Help, man page, completion and the doors walk the table. */
#ifndef TV_COMMAND_H
#define TV_COMMAND_H

#include "desc/request.h"
#include "options.h"

typedef struct tv_command {
    const char *name;
    const char *summary; /* msgid: one phrase, no full stop */
    const char *usage;   /* positional words and group names, untranslated: "MODEL [JOB]" */
    const char *details; /* msgid: paragraphs for help and man page; NULL: none */
    const tv_option_group *groups;
    size_t n_groups;
    size_t options_size;             /* of the struct that the groups fill; 0: no options */
    void (*defaults)(void *options); /* what is not zero before parsing; NULL: all zero */
    size_t min_args, max_args;       /* positional words */
    /* Writes the answer to r->out and remarks to r->err. An error with code TV_NO or
     * TV_INFEASIBLE may follow a complete answer: both are shown. */
    const tv_err *(*run)(tv_request *r, const void *options, const tv_args *args);
} tv_command;

/* Every command, in the order of the list in src/meson.build (generated); NULL at the end. */
extern const tv_command *const tv_commands[];

const tv_command *tv_command_find(tv_str name);

/* "unknown command", with the nearest one. */
const tv_err *tv_command_unknown(tv_arena *a, tv_str name);

/* Options that every command takes. */
typedef struct tv_standing_options {
    bool json;
    bool help;
    bool version;
    int lang; /* 0 not said, else tv_lang + 1 */
    tv_str today;
} tv_standing_options;

extern const tv_option tv_standing_rows[];
extern const size_t tv_n_standing_rows;

/* What the program is for: a msgid. */
extern const char *const tv_program_summary;

/* An option's help with its words and with what is taken otherwise. */
void tv_put_option_help(tv_buf *b, tv_lang lang, const tv_option *row);

/* Help for one command, or for the program when command is NULL. */
void tv_put_help(const tv_request *r, tv_buf *b, const tv_command *command);

/* "size MODEL [JOB]": the command with the words that follow it. */
tv_str tv_command_form(tv_arena *a, const tv_command *command);

/* Every option row of a command: its own groups, then the standing ones. */
typedef struct tv_option_walk {
    const tv_command *command; /* NULL: standing options only */
    size_t group;
    size_t row;
} tv_option_walk;

/* The next row, or NULL at the end. */
const tv_option *tv_option_next(tv_option_walk *walk);

#endif
