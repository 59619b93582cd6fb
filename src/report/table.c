/* Columns that line up whatever the script, and bars. The flex column takes the width that the
 * others leave and wraps. */
#include "report.h"

#include "base/message.h"

#define GAP 2
/* A flex column narrower than this is put out unwrapped instead. */
#define FLEX_LEAST 8
#define COLUMNS_MOST 12

tv_str tv_bar(tv_arena *a, double share, int cells)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    tv_buf b = tv_buf_in(a);
    if (!(share > 0))
        return tv_buf_str(&b);
    int parts = (int)(share * cells * 8 + 0.5);
    if (parts > cells * 8)
        parts = cells * 8;
    if (parts == 0)
        parts = 1; /* something is there */
    tv_put_repeat(&b, TV_S("█"), (size_t)(parts / 8));
    tv_puts(&b, eighths[parts % 8]);
    return tv_buf_str(&b);
}

void tv_table_add(tv_arena *a, tv_table *t, tv_style style, tv_str s)
{
    *tv_push(a, t) = (tv_cell){s, style};
}

static bool has_heads(const tv_table *t)
{
    for (size_t i = 0; i < t->n_columns; i++)
        if (t->columns[i].head)
            return true;
    return false;
}

static tv_str head_of(const tv_page *page, const tv_column *column)
{
    return tv_str_of(column->head ? tv_message(page->lang, column->head) : "");
}

/* Widths that the content asks for, then the flex column cut to what is left. */
static void measure(const tv_page *page, const tv_table *t, int indent, int *widths)
{
    int rest = page->width - indent - GAP * ((int)t->n_columns - 1);
    size_t flex = t->n_columns;
    for (size_t c = 0; c < t->n_columns; c++) {
        widths[c] = tv_width(head_of(page, &t->columns[c]));
        for (size_t i = c; i < t->n; i += t->n_columns) {
            const int w = tv_width(t->v[i].s);
            widths[c] = w > widths[c] ? w : widths[c];
        }
        if (t->columns[c].flex)
            flex = c;
        else
            rest -= widths[c];
    }
    if (flex < t->n_columns && widths[flex] > rest && rest >= FLEX_LEAST)
        widths[flex] = rest;
}

static void put_padded(const tv_page *page, tv_cell cell, int width, bool right, bool last)
{
    const int missing = width - tv_width(cell.s);
    const size_t pad = missing > 0 ? (size_t)missing : 0;
    if (right)
        tv_put_repeat(page->b, TV_S(" "), pad);
    tv_page_put(page, cell.style, cell.s);
    if (!right && !last)
        tv_put_repeat(page->b, TV_S(" "), pad);
}

/* No line ends in spaces: the last column is not padded, and rows end with their last text. */
static void put_row(const tv_page *page, const tv_table *t, const tv_cell *row, const int *widths,
                    int indent)
{
    tv_cell now[COLUMNS_MOST] = {{{0}, TV_PLAIN}};
    tv_cell left[COLUMNS_MOST];
    for (size_t c = 0; c < t->n_columns; c++)
        left[c] = row[c];
    bool more = true;
    while (more) {
        more = false;
        size_t last = 0;
        for (size_t c = 0; c < t->n_columns; c++) {
            now[c] = left[c];
            if (t->columns[c].flex)
                now[c].s = tv_next_line(page->b->a, &left[c].s, widths[c]);
            else
                left[c].s = (tv_str){0};
            last = now[c].s.n ? c : last;
            more = more || left[c].s.n > 0;
        }
        tv_put_repeat(page->b, TV_S(" "), (size_t)indent);
        for (size_t c = 0; c <= last; c++) {
            put_padded(page, now[c], widths[c], t->columns[c].right, c == last);
            tv_put_repeat(page->b, TV_S(" "), c < last ? GAP : 0);
        }
        tv_putc(page->b, '\n');
    }
}

void tv_table_put(const tv_page *page, const tv_table *t, int indent)
{
    int widths[COLUMNS_MOST] = {0};
    if (t->n_columns == 0 || t->n_columns > COLUMNS_MOST)
        return;
    measure(page, t, indent, widths);
    if (has_heads(t)) {
        tv_cell heads[COLUMNS_MOST] = {{{0}, TV_PLAIN}};
        for (size_t c = 0; c < t->n_columns; c++)
            heads[c] = (tv_cell){head_of(page, &t->columns[c]), TV_DIM};
        put_row(page, t, heads, widths, indent);
    }
    for (size_t i = 0; i + t->n_columns <= t->n; i += t->n_columns)
        put_row(page, t, &t->v[i], widths, indent);
}
