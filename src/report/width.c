/* How wide a text is on a terminal, and where it breaks. Knows Unicode through libunistring;
 * knows nothing of what the text says. */
#include "report.h"

#include <unilbrk.h>
#include <uniwidth.h>

#include "base/message.h"

/* Below this a table cannot be laid out; above it prose is hard to read. */
#define WIDTH_LEAST 40
#define WIDTH_MOST 120
#define WIDTH_USUAL 80

tv_page tv_page_on(const tv_request *req, tv_buf *b)
{
    int width = req->width > 0 ? req->width : WIDTH_USUAL;
    if (width < WIDTH_LEAST)
        width = WIDTH_LEAST;
    if (width > WIDTH_MOST)
        width = WIDTH_MOST;
    return (tv_page){.b = b, .lang = req->lang, .colour = req->colour, .width = width};
}

int tv_width(tv_str s)
{
    return s.n ? u8_width((const uint8_t *)s.p, s.n, "UTF-8") : 0;
}

void tv_page_put(const tv_page *page, tv_style style, tv_str s)
{
    static const char *const codes[] = {"",         "\x1b[1m",  "\x1b[2m",
                                        "\x1b[32m", "\x1b[33m", "\x1b[31m"};
    const bool on = page->colour && style != TV_PLAIN && s.n > 0;
    if (on)
        tv_puts(page->b, codes[style]);
    tv_put(page->b, s);
    if (on)
        tv_puts(page->b, "\x1b[0m");
}

void tv_page_say(const tv_page *page, tv_style style, const char *msgid)
{
    tv_page_put(page, style, tv_str_of(tv_message(page->lang, msgid)));
}

void tv_page_head(const tv_page *page, const char *msgid)
{
    tv_putc(page->b, '\n');
    tv_page_say(page, TV_BOLD, msgid);
    tv_putc(page->b, '\n');
}

static void put_line(const tv_page *page, tv_style style, int indent, tv_str line)
{
    tv_put_repeat(page->b, TV_S(" "), (size_t)indent);
    tv_page_put(page, style, line);
    tv_putc(page->b, '\n');
}

static tv_str without_end_space(tv_str s)
{
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\n'))
        s.n--;
    return s;
}

/* May a line end before byte i? Not inside an option's name: "--" and its word stay together. */
static bool may_break(tv_str s, const char *breaks, size_t i)
{
    return breaks[i] == UC_BREAK_MANDATORY || (breaks[i] == UC_BREAK_POSSIBLE && s.p[i - 1] != '-');
}

tv_str tv_next_line(tv_arena *a, tv_str *rest, int width)
{
    const tv_str s = *rest;
    char *breaks = tv_new(a, char, s.n + 1);
    u8_possible_linebreaks((const uint8_t *)s.p, s.n, "UTF-8", breaks);
    size_t end = s.n, from = 0;
    int columns = 0;
    bool some = false;
    for (size_t i = 1; i <= s.n; i++) {
        if (i < s.n && !may_break(s, breaks, i))
            continue;
        const tv_str piece = tv_str_take(tv_str_drop(s, from), i - from);
        if (some && columns + tv_width(without_end_space(piece)) > width) {
            end = from;
            break;
        }
        columns += tv_width(piece);
        some = true;
        from = i;
        end = i;
        if (i < s.n && breaks[i] == UC_BREAK_MANDATORY)
            break;
    }
    *rest = tv_str_drop(s, end);
    return without_end_space(tv_str_take(s, end));
}

void tv_page_wrap(const tv_page *page, tv_style style, int indent, tv_str s)
{
    while (s.n)
        put_line(page, style, indent, tv_next_line(page->b->a, &s, page->width - indent));
}

void tv_page_text(const tv_page *page, tv_style style, int indent, tv_text t)
{
    tv_page_wrap(page, style, indent, tv_text_in(page->b->a, page->lang, t));
}
