/* The command table and the options that every command takes. */
#include "command.h"

#include <stddef.h>

static const char *lang_word(int v)
{
    static const char *const words[] = {"", "en", "zh"};
    return words[v];
}

const tv_option tv_standing_rows[] = {
    {
        .name = "json",
        .kind = TV_OPTION_FLAG,
        .offset = offsetof(tv_standing_options, json),
        .help = N_("print one JSON document"),
    },
    {
        .name = "lang",
        .kind = TV_OPTION_WORD,
        .offset = offsetof(tv_standing_options, lang),
        .help = N_("language of the answer"),
        .otherwise = N_("from the locale"),
        .word = lang_word,
        .n_words = 3,
    },
    {
        .name = "today",
        .kind = TV_OPTION_DATE,
        .offset = offsetof(tv_standing_options, today),
        .help = N_("the date that prices are judged by"),
        .otherwise = N_("from the clock"),
    },
    {
        .name = "help",
        .letter = 'h',
        .kind = TV_OPTION_FLAG,
        .offset = offsetof(tv_standing_options, help),
        .help = N_("print this help"),
    },
    {
        .name = "version",
        .letter = 'V',
        .kind = TV_OPTION_FLAG,
        .offset = offsetof(tv_standing_options, version),
        .help = N_("print the version"),
    },
};

const size_t tv_n_standing_rows = sizeof tv_standing_rows / sizeof *tv_standing_rows;

const tv_command *tv_command_find(tv_str name)
{
    for (size_t i = 0; tv_commands[i]; i++)
        if (tv_str_is(name, tv_commands[i]->name))
            return tv_commands[i];
    return NULL;
}

const tv_err *tv_command_unknown(tv_arena *a, tv_str name)
{
    size_t n = 0;
    while (tv_commands[n])
        n++;
    tv_str *names = tv_new(a, tv_str, n);
    for (size_t i = 0; i < n; i++)
        names[i] = tv_str_of(tv_commands[i]->name);
    tv_err *e = TV_FAIL(a, TV_USAGE, "usage.unknown-command", N_("unknown command \"{command}\""),
                        tv_arg_str("command", name));
    const tv_str near = tv_nearest(a, name, names, n);
    if (near.n)
        return tv_hint(e, TV_TEXT(a, "usage.did-you-mean", N_("Did you mean {near}?"),
                                  tv_arg_str("near", near)));
    return tv_hint(e, TV_TEXT0("usage.see-commands", N_("trivet help lists the commands.")));
}

tv_str tv_command_form(tv_arena *a, const tv_command *command)
{
    tv_buf b = tv_buf_in(a);
    tv_puts(&b, command->name);
    tv_puts(&b, *command->usage ? " " : "");
    tv_puts(&b, command->usage);
    return tv_buf_str(&b);
}

const tv_option *tv_option_next(tv_option_walk *walk)
{
    const size_t n_groups = walk->command ? walk->command->n_groups : 0;
    while (walk->group < n_groups) {
        const tv_option_group *g = &walk->command->groups[walk->group];
        if (walk->row < g->n)
            return &g->rows[walk->row++];
        walk->group++;
        walk->row = 0;
    }
    return walk->row < tv_n_standing_rows ? &tv_standing_rows[walk->row++] : NULL;
}
