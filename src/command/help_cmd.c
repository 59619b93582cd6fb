/* trivet help: the list of commands, or one command in full. */
#include "command.h"

static const tv_err *run(tv_request *r, const void *options, const tv_args *args)
{
    (void)options;
    const tv_command *command = NULL;
    if (args->n) {
        command = tv_command_find(args->v[0]);
        if (!command)
            return tv_command_unknown(r->a, args->v[0]);
    }
    tv_put_help(r, r->out, command);
    return NULL;
}

extern const tv_command tv_command_help;
const tv_command tv_command_help = {
    .name = "help",
    .summary = N_("what the commands are and how one is used"),
    .usage = "[COMMAND]",
    .max_args = 1,
    .run = run,
};
