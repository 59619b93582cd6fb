/* Help, written from the rows and in the request's language. */
#include "command.h"

#include "base/message.h"
#include "base/wrap.h"

enum { help_column = 24 };

typedef struct page {
    tv_buf *b;
    tv_lang lang;
    size_t width;
} page;

static tv_str said(const page *p, const char *msgid)
{
    return tv_str_of(tv_message(p->lang, msgid));
}

static void put_heading(const page *p, const char *msgid)
{
    tv_putc(p->b, '\n');
    tv_put(p->b, said(p, msgid));
    tv_putc(p->b, '\n');
}

/* "  left           right, wrapped in its own column" */
static void put_entry(const page *p, tv_str left, tv_str right)
{
    tv_puts(p->b, "  ");
    size_t at = 2 + tv_columns(left);
    tv_put(p->b, left);
    if (at + 2 > help_column) {
        tv_putc(p->b, '\n');
        at = 0;
    }
    tv_put_repeat(p->b, TV_S(" "), help_column - at);
    tv_put_wrapped(p->b, right, help_column, help_column, p->width);
    tv_putc(p->b, '\n');
}

static tv_str option_words(tv_arena *a, const tv_option *row)
{
    tv_buf b = tv_buf_in(a);
    for (int v = 0; v < row->n_words; v++) {
        const char *word = row->word(v);
        if (!word || !*word)
            continue;
        tv_puts(&b, b.n ? ", " : "");
        tv_puts(&b, word);
    }
    return tv_buf_str(&b);
}

static void put_option(const page *p, const tv_option *row)
{
    tv_arena *a = p->b->a;
    tv_buf left = tv_buf_in(a);
    if (row->letter) {
        tv_putc(&left, '-');
        tv_putc(&left, row->letter);
        tv_puts(&left, ", ");
    }
    tv_puts(&left, "--");
    tv_puts(&left, row->name);
    const char *value = tv_option_value(row);
    if (value) {
        tv_putc(&left, ' ');
        tv_puts(&left, value);
    }
    tv_buf right = tv_buf_in(a);
    tv_put(&right, said(p, row->help));
    if (row->kind == TV_OPTION_WORD) {
        tv_puts(&right, ": ");
        tv_put(&right, option_words(a, row));
    }
    if (row->otherwise)
        tv_put_text(&right, p->lang,
                    TV_TEXT(a, "help.otherwise", N_(" (otherwise: {value})"),
                            tv_arg_word("value", row->otherwise)));
    put_entry(p, tv_buf_str(&left), tv_buf_str(&right));
}

static void put_options(const page *p, const char *title, const tv_option *rows, size_t n)
{
    if (n == 0)
        return;
    put_heading(p, title);
    for (size_t i = 0; i < n; i++)
        put_option(p, &rows[i]);
}

static void put_paragraph(const page *p, const char *msgid)
{
    tv_putc(p->b, '\n');
    tv_put_wrapped(p->b, said(p, msgid), 0, 0, p->width);
    tv_putc(p->b, '\n');
}

static void put_usage(const page *p, const tv_command *command)
{
    tv_put(p->b, said(p, N_("Usage: ")));
    tv_puts(p->b, "trivet ");
    tv_puts(p->b, command ? command->name : "COMMAND ...");
    if (command && *command->usage) {
        tv_putc(p->b, ' ');
        tv_puts(p->b, command->usage);
    }
    tv_putc(p->b, '\n');
}

static void put_command_list(const page *p)
{
    put_heading(p, N_("Commands"));
    for (size_t i = 0; i < tv_n_commands; i++)
        put_entry(p, tv_str_of(tv_commands[i]->name), said(p, tv_commands[i]->summary));
}

void tv_put_help(tv_buf *b, tv_lang lang, int width, const tv_command *command)
{
    const page p = {b, lang, width > 0 ? (size_t)width : 80};
    put_usage(&p, command);
    put_paragraph(&p, command ? command->summary
                              : N_("which GPU a model needs, how many, set how, and why it is "
                                   "slow"));
    if (command && command->details)
        put_paragraph(&p, command->details);
    if (!command)
        put_command_list(&p);
    for (size_t i = 0; command && i < command->n_groups; i++)
        put_options(&p, command->groups[i].title, command->groups[i].rows, command->groups[i].n);
    put_options(&p, N_("Every command"), tv_standing_rows, tv_n_standing_rows);
    if (!command)
        put_paragraph(&p, N_("trivet COMMAND --help tells more of a command."));
}
