/* Help, written from the rows and in the request's language. */
#include "command.h"

#include "base/message.h"
#include "report/report.h"

/* Labels are at least this wide, so that the groups of one page line up. */
enum { label_columns = 22 };

const char *const tv_program_summary =
    N_("which GPU a model needs, how many, set how, and why it is slow");

static const tv_column entry_columns[] = {{0}, {.flex = true}};

static tv_table entry_table(void)
{
    return (tv_table){
        .columns = entry_columns,
        .n_columns = sizeof entry_columns / sizeof *entry_columns,
    };
}

static void add_entry(tv_arena *a, tv_table *t, tv_str label, tv_str text)
{
    tv_buf b = tv_buf_in(a);
    tv_put(&b, label);
    const int columns = tv_width(label);
    tv_put_repeat(&b, TV_S(" "), columns < label_columns ? (size_t)(label_columns - columns) : 0);
    tv_table_add(a, t, TV_PLAIN, tv_buf_str(&b));
    tv_table_add(a, t, TV_PLAIN, text);
}

/* One of the option's own words stays as it is typed, in every language. */
static bool takes_word(const tv_option *row, const char *text)
{
    bool found = false;
    for (int v = 0; v < row->n_words; v++)
        found = found || tv_str_eq(tv_str_of(row->word(v)), tv_str_of(text));
    return found;
}

void tv_put_option_help(tv_buf *b, tv_lang lang, const tv_option *row)
{
    tv_puts(b, tv_message(lang, row->help));
    if (row->kind == TV_OPTION_WORD) {
        tv_puts(b, tv_message(lang, N_(": ")));
        tv_put(b, tv_option_words(b->a, row, TV_S(", ")));
    }
    if (row->otherwise)
        tv_put_text(b, lang,
                    TV_TEXT(b->a, "help.otherwise", N_(" (otherwise: {value})"),
                            takes_word(row, row->otherwise)
                                ? tv_arg_str("value", tv_str_of(row->otherwise))
                                : tv_arg_word("value", row->otherwise)));
}

static tv_str option_label(tv_arena *a, const tv_option *row)
{
    tv_buf b = tv_buf_in(a);
    if (row->letter) {
        tv_putc(&b, '-');
        tv_putc(&b, row->letter);
        tv_puts(&b, ", ");
    }
    tv_puts(&b, "--");
    tv_puts(&b, row->name);
    const char *value = tv_option_value(row);
    tv_puts(&b, value ? " " : "");
    tv_puts(&b, value ? value : "");
    return tv_buf_str(&b);
}

static void put_options(const tv_page *page, const char *title, const tv_option *rows, size_t n)
{
    if (n == 0)
        return;
    tv_arena *a = page->b->a;
    tv_table t = entry_table();
    for (size_t i = 0; i < n; i++) {
        tv_buf text = tv_buf_in(a);
        tv_put_option_help(&text, page->lang, &rows[i]);
        add_entry(a, &t, option_label(a, &rows[i]), tv_buf_str(&text));
    }
    tv_page_head(page, title);
    tv_table_put(page, &t, 2);
}

static void put_command_list(const tv_page *page)
{
    tv_arena *a = page->b->a;
    tv_table t = entry_table();
    for (size_t i = 0; tv_commands[i]; i++)
        add_entry(a, &t, tv_str_of(tv_commands[i]->name),
                  tv_str_of(tv_message(page->lang, tv_commands[i]->summary)));
    tv_page_head(page, N_("Commands"));
    tv_table_put(page, &t, 2);
}

static void put_paragraph(const tv_page *page, const char *msgid)
{
    tv_putc(page->b, '\n');
    tv_page_wrap(page, TV_PLAIN, 0, tv_str_of(tv_message(page->lang, msgid)));
}

void tv_put_help(const tv_request *r, tv_buf *b, const tv_command *command)
{
    const tv_page page = tv_page_on(r, b);
    const tv_str form = command ? tv_command_form(r->a, command) : TV_S("COMMAND ...");
    tv_page_text(&page, TV_PLAIN, 0,
                 TV_TEXT(r->a, "usage.form", N_("Usage: trivet {form}"), tv_arg_str("form", form)));
    put_paragraph(&page, command ? command->summary : tv_program_summary);
    if (command && command->details)
        put_paragraph(&page, command->details);
    if (!command)
        put_command_list(&page);
    for (size_t i = 0; command && i < command->n_groups; i++) {
        const tv_option_group *g = &command->groups[i];
        put_options(&page, g->title, g->rows, g->n);
    }
    put_options(&page, N_("Every command"), tv_standing_rows, tv_n_standing_rows);
    if (!command)
        put_paragraph(&page, N_("trivet COMMAND --help tells more of a command."));
}
