/* trivet completion: shell code made from the tables, so that it knows every command, option and
 * word that this program knows. */
#include "command.h"

/* Options whose value is a file or a folder: the shell knows those. */
static bool names_path(const tv_option *row)
{
    const tv_str value = tv_str_of(tv_option_value(row));
    return tv_str_is(value, "FILE") || tv_str_is(value, "DIR");
}

static void put_command_names(tv_buf *b)
{
    for (size_t i = 0; tv_commands[i]; i++) {
        tv_puts(b, i ? " " : "");
        tv_puts(b, tv_commands[i]->name);
    }
}

/* ---- bash ---- */

/* "command:--option) words ;;": what completes the value of an option. */
static void put_bash_value(tv_buf *b, const tv_command *command, const tv_option *row)
{
    if (row->kind == TV_OPTION_FLAG)
        return;
    tv_puts(b, "        ");
    tv_puts(b, command->name);
    tv_puts(b, ":--");
    tv_puts(b, row->name);
    tv_puts(b, ") ");
    if (row->kind == TV_OPTION_WORD) {
        tv_puts(b, "COMPREPLY=($(compgen -W '");
        tv_put(b, tv_option_words(b->a, row, TV_S(" ")));
        tv_puts(b, "' -- \"$word\")); ");
    } else if (names_path(row)) {
        tv_puts(b, "COMPREPLY=($(compgen -f -- \"$word\")); ");
    }
    tv_puts(b, "return ;;\n");
}

static void put_bash_command(tv_buf *b, const tv_command *command)
{
    tv_puts(b, "        ");
    tv_puts(b, command->name);
    tv_puts(b, ") options='");
    tv_option_walk walk = {.command = command};
    bool some = false;
    for (const tv_option *row; (row = tv_option_next(&walk));) {
        tv_puts(b, some ? " --" : "--");
        tv_puts(b, row->name);
        some = true;
    }
    tv_puts(b, "' ;;\n");
}

static void put_bash(tv_buf *b)
{
    tv_puts(b, "# bash completion for trivet; load it with: source <(trivet completion bash)\n"
               "_trivet() {\n"
               "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
               "    local command=${COMP_WORDS[1]} options=\n"
               "    COMPREPLY=()\n"
               "    if ((COMP_CWORD == 1)); then\n"
               "        COMPREPLY=($(compgen -W '");
    put_command_names(b);
    tv_puts(b, "' -- \"$word\"))\n"
               "        return\n"
               "    fi\n"
               "    case $command:$before in\n");
    for (size_t i = 0; tv_commands[i]; i++) {
        tv_option_walk walk = {.command = tv_commands[i]};
        for (const tv_option *row; (row = tv_option_next(&walk));)
            put_bash_value(b, tv_commands[i], row);
    }
    tv_puts(b, "        help:help | man:man) COMPREPLY=($(compgen -W '");
    put_command_names(b);
    tv_puts(b, "' -- \"$word\")); return ;;\n"
               "    esac\n"
               "    case $command in\n");
    for (size_t i = 0; tv_commands[i]; i++)
        put_bash_command(b, tv_commands[i]);
    tv_puts(b, "    esac\n"
               "    if [[ $word == -* ]]; then\n"
               "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
               "    else\n"
               "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
               "    fi\n"
               "}\n"
               "complete -o filenames -F _trivet trivet\n");
}

/* ---- zsh ---- */

/* Within '...[text]...': brackets, colons and quotes would end the text. */
static void put_zsh_text(tv_buf *b, const char *text)
{
    for (const char *p = text; *p; p++) {
        if (*p == '\'') {
            tv_puts(b, "'\\''");
            continue;
        }
        if (*p == '[' || *p == ']' || *p == ':' || *p == '\\')
            tv_putc(b, '\\');
        tv_putc(b, *p);
    }
}

static void put_zsh_option(tv_buf *b, const tv_option *row)
{
    tv_puts(b, "            '");
    tv_puts(b, row->kind == TV_OPTION_TEXTS ? "*" : "");
    tv_puts(b, "--");
    tv_puts(b, row->name);
    tv_puts(b, row->kind == TV_OPTION_FLAG ? "[" : "=[");
    put_zsh_text(b, row->help);
    tv_putc(b, ']');
    if (row->kind != TV_OPTION_FLAG) {
        tv_putc(b, ':');
        put_zsh_text(b, tv_option_value(row));
        tv_putc(b, ':');
    }
    if (row->kind == TV_OPTION_WORD) {
        tv_putc(b, '(');
        tv_put(b, tv_option_words(b->a, row, TV_S(" ")));
        tv_putc(b, ')');
    } else if (names_path(row)) {
        tv_puts(b, "_files");
    }
    tv_puts(b, "' \\\n");
}

static void put_zsh(tv_buf *b)
{
    tv_puts(b, "#compdef trivet\n"
               "# zsh completion for trivet; put it into a folder of $fpath as _trivet\n"
               "_trivet() {\n"
               "    if ((CURRENT == 2)); then\n"
               "        local -a commands=(\n");
    for (size_t i = 0; tv_commands[i]; i++) {
        tv_puts(b, "            '");
        tv_puts(b, tv_commands[i]->name);
        tv_putc(b, ':');
        put_zsh_text(b, tv_commands[i]->summary);
        tv_puts(b, "'\n");
    }
    tv_puts(b, "        )\n"
               "        _describe command commands\n"
               "        return\n"
               "    fi\n"
               "    case ${words[2]} in\n");
    for (size_t i = 0; tv_commands[i]; i++) {
        tv_puts(b, "        ");
        tv_puts(b, tv_commands[i]->name);
        tv_puts(b, ") _arguments \\\n");
        tv_option_walk walk = {.command = tv_commands[i]};
        for (const tv_option *row; (row = tv_option_next(&walk));)
            put_zsh_option(b, row);
        tv_puts(b, "            '*:file:_files' ;;\n");
    }
    tv_puts(b, "    esac\n"
               "}\n"
               "_trivet \"$@\"\n");
}

static const tv_err *run(tv_request *r, const void *options, const tv_args *args)
{
    (void)options;
    if (tv_str_is(args->v[0], "bash"))
        put_bash(r->out);
    else if (tv_str_is(args->v[0], "zsh"))
        put_zsh(r->out);
    else
        return TV_FAIL(r->a, TV_USAGE, "completion.shell",
                       N_("no completion for \"{shell}\": bash and zsh are known"),
                       tv_arg_str("shell", args->v[0]));
    return NULL;
}

extern const tv_command tv_command_completion;
const tv_command tv_command_completion = {
    .name = "completion",
    .summary = N_("print shell code that completes commands and options"),
    .usage = "bash|zsh",
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
