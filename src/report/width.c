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

void tv_page_wrap(const tv_page *page, tv_style style, int indent, tv_str s)
{
    if (s.n == 0)
        return;
    char *breaks = tv_new(page->b->a, char, s.n);
    (void)u8_width_linebreaks((const uint8_t *)s.p, s.n, page->width - indent, 0, 0, NULL, "UTF-8",
                              breaks);
    size_t from = 0;
    for (size_t i = 1; i < s.n; i++) {
        if (breaks[i] != UC_BREAK_POSSIBLE && breaks[i] != UC_BREAK_MANDATORY)
            continue;
        put_line(page, style, indent,
                 without_end_space(tv_str_take(tv_str_drop(s, from), i - from)));
        from = i;
    }
    put_line(page, style, indent, without_end_space(tv_str_drop(s, from)));
}

void tv_page_text(const tv_page *page, tv_style style, int indent, tv_text t)
{
    tv_page_wrap(page, style, indent, tv_text_in(page->b->a, page->lang, t));
}
