/* trivet man: the manual page in roff, made from the tables: of one command, or of the program
 * with every command in it. */
#include "command.h"

#include "base/message.h"

typedef struct manual {
    tv_buf *b;
    tv_lang lang;
} manual;

/* A backslash, a leading dot or quote and a hyphen mean something to roff. */
static void put_roff(tv_buf *b, tv_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        const char c = s.p[i];
        if (c == '\\') {
            tv_puts(b, "\\e");
        } else if (c == '-') {
            tv_puts(b, "\\-");
        } else {
            if ((c == '.' || c == '\'') && (i == 0 || s.p[i - 1] == '\n'))
                tv_puts(b, "\\&");
            tv_putc(b, c);
        }
    }
}

static void put_said(const manual *m, const char *msgid)
{
    put_roff(m->b, tv_str_of(tv_message(m->lang, msgid)));
}

static void put_section(const manual *m, const char *macro, const char *msgid)
{
    tv_puts(m->b, macro);
    tv_putc(m->b, ' ');
    put_said(m, msgid);
    tv_putc(m->b, '\n');
}

static void put_option_name(const manual *m, const tv_option *row)
{
    tv_puts(m->b, ".TP\n");
    if (row->letter) {
        tv_puts(m->b, "\\fB\\-");
        tv_putc(m->b, row->letter);
        tv_puts(m->b, "\\fR, ");
    }
    tv_puts(m->b, "\\fB\\-\\-");
    put_roff(m->b, tv_str_of(row->name));
    tv_puts(m->b, "\\fR");
    const char *value = tv_option_value(row);
    if (value) {
        tv_puts(m->b, " \\fI");
        put_roff(m->b, tv_str_of(value));
        tv_puts(m->b, "\\fR");
    }
    tv_putc(m->b, '\n');
}

static void put_option(const manual *m, const tv_option *row)
{
    put_option_name(m, row);
    tv_buf text = tv_buf_in(m->b->a);
    tv_put_option_help(&text, m->lang, row);
    put_roff(m->b, tv_buf_str(&text));
    tv_putc(m->b, '\n');
}

static void put_options(const manual *m, const char *title, const tv_option *rows, size_t n)
{
    if (n == 0)
        return;
    put_section(m, ".SS", title);
    for (size_t i = 0; i < n; i++)
        put_option(m, &rows[i]);
}

static void put_form(const manual *m, const tv_command *command)
{
    tv_puts(m->b, ".B trivet ");
    put_roff(m->b, tv_command_form(m->b->a, command));
    tv_putc(m->b, '\n');
}

static void put_command(const manual *m, const tv_command *command)
{
    put_form(m, command);
    tv_puts(m->b, ".PP\n");
    put_said(m, command->summary);
    tv_puts(m->b, ".\n");
    if (command->details) {
        tv_puts(m->b, ".PP\n");
        put_said(m, command->details);
        tv_putc(m->b, '\n');
    }
    for (size_t i = 0; i < command->n_groups; i++)
        put_options(m, command->groups[i].title, command->groups[i].rows, command->groups[i].n);
}

/* The title line; the date is left to the one who installs the page. */
static void put_title(const manual *m, const tv_command *command)
{
    tv_puts(m->b, ".TH TRIVET");
    if (command) {
        tv_putc(m->b, '-');
        tv_put(m->b, tv_str_of(command->name));
    }
    tv_puts(m->b, " 1 \"\" \"trivet " TV_VERSION "\"\n");
    put_section(m, ".SH", N_("NAME"));
    tv_puts(m->b, "trivet");
    if (command) {
        tv_puts(m->b, "\\-");
        put_roff(m->b, tv_str_of(command->name));
    }
    tv_puts(m->b, " \\- ");
    put_said(m, command ? command->summary : tv_program_summary);
    tv_putc(m->b, '\n');
}

/* What every page tells: interface.md's exit status. */
static void put_exit_status(const manual *m)
{
    static const struct {
        const char *status;
        const char *meaning;
    } rows[] = {
        {"0", N_("answered")},
        {"1", N_("answered \"no\" where --require asked for a yes")},
        {"2", N_("the command line is wrong, or a name stands for several things")},
        {"3", N_("the input is broken, or larger than a limit")},
        {"4", N_("understood, but not supported")},
        {"5", N_("not there: a file, a device, a service")},
        {"6", N_("no choice satisfies the request")},
        {"70", N_("a mistake in trivet")},
        {"71", N_("the operating system failed")},
    };
    put_section(m, ".SH", N_("EXIT STATUS"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tv_puts(m->b, ".TP\n.B ");
        tv_puts(m->b, rows[i].status);
        tv_putc(m->b, '\n');
        put_said(m, rows[i].meaning);
        tv_putc(m->b, '\n');
    }
}

static void put_program(const manual *m)
{
    put_title(m, NULL);
    put_section(m, ".SH", N_("SYNOPSIS"));
    tv_puts(m->b, "\\fBtrivet\\fR \\fICOMMAND\\fR ...\n");
    put_section(m, ".SH", N_("COMMANDS"));
    for (size_t i = 0; tv_commands[i]; i++) {
        tv_puts(m->b, ".SS ");
        put_roff(m->b, tv_str_of(tv_commands[i]->name));
        tv_putc(m->b, '\n');
        put_form(m, tv_commands[i]);
        tv_puts(m->b, ".br\n");
        put_said(m, tv_commands[i]->summary);
        tv_puts(m->b, ".\n");
    }
}

static const tv_err *run(tv_request *r, const void *options, const tv_args *args)
{
    (void)options;
    const tv_command *command = args->n ? tv_command_find(args->v[0]) : NULL;
    if (args->n && !command)
        return tv_command_unknown(r->a, args->v[0]);
    const manual m = {r->out, r->lang};
    if (command) {
        put_title(&m, command);
        put_section(&m, ".SH", N_("SYNOPSIS"));
        put_command(&m, command);
    } else {
        put_program(&m);
    }
    put_options(&m, N_("Every command"), tv_standing_rows, tv_n_standing_rows);
    put_exit_status(&m);
    return NULL;
}

extern const tv_command tv_command_man;
const tv_command tv_command_man = {
    .name = "man",
    .summary = N_("print the manual page of a command or of the program"),
    .usage = "[COMMAND]",
    .details = N_("The page is written for man: trivet man plan > trivet-plan.1"),
    .max_args = 1,
    .run = run,
};
