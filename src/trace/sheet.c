/* Most lines are views of the text: only those with an escape, an entity or a wide character are
 * copied. */
#include "sheet.h"

#include <string.h>

typedef struct plain_row {
    const char *seen;
    const char *meant;
} plain_row;

/* What pages and input methods put in the place of plain characters. */
static const plain_row plain[] = {
    {"&lt;", "<"},         {"&gt;", ">"},         {"&amp;", "&"},         {"&quot;", "\""},
    {"&#39;", "'"},        {"&nbsp;", " "},       {"\xc2\xa0", " "},      {"\xef\xbc\x9a", ":"},
    {"\xe3\x80\x80", " "}, {"\xef\xbc\x8c", ","}, {"\xef\xbc\x88", "("},  {"\xef\xbc\x89", ")"},
    {"\xe2\x80\x98", "'"}, {"\xe2\x80\x99", "'"}, {"\xe2\x80\x9c", "\""}, {"\xe2\x80\x9d", "\""},
    {"\xef\xbb\xbf", ""},  {"\xe2\x80\x8b", ""},
};

/* "ESC [ ... letter", "ESC ] ... BEL": how many bytes at i belong to it. */
static size_t escape_at(tv_str s, size_t i)
{
    if (s.p[i] != 27)
        return 0;
    if (i + 1 >= s.n || (s.p[i + 1] != '[' && s.p[i + 1] != ']'))
        return 1;
    const bool system = s.p[i + 1] == ']';
    size_t k = i + 2;
    while (k < s.n && (system ? s.p[k] != 7 : (s.p[k] < '@' || s.p[k] > '~')))
        k++;
    return (k < s.n ? k + 1 : k) - i;
}

static const plain_row *plain_at(tv_str s, size_t i)
{
    const unsigned char c = (unsigned char)s.p[i];
    if (c != '&' && c < 0xc2)
        return NULL;
    for (size_t k = 0; k < sizeof plain / sizeof *plain; k++) {
        const size_t n = strlen(plain[k].seen);
        if (n <= s.n - i && memcmp(s.p + i, plain[k].seen, n) == 0)
            return &plain[k];
    }
    return NULL;
}

/* What a terminal would act upon: a log that is shown must not move the cursor. */
static bool is_control(unsigned char c)
{
    return (c < 32 && c != '\t') || c == 127;
}

static bool is_clean(tv_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        const unsigned char c = (unsigned char)s.p[i];
        if (c == '&' || c >= 0xc2 || is_control(c))
            return false;
    }
    return true;
}

static tv_str cleaned(tv_arena *a, tv_str s)
{
    tv_buf b = tv_buf_in(a);
    for (size_t i = 0; i < s.n;) {
        const size_t escape = escape_at(s, i);
        const plain_row *row = plain_at(s, i);
        if (row)
            tv_puts(&b, row->meant);
        else if (!escape && !is_control((unsigned char)s.p[i]))
            tv_putc(&b, s.p[i]);
        i += escape ? escape : row ? strlen(row->seen) : 1;
    }
    return tv_buf_str(&b);
}

static tv_str without_end(tv_str s)
{
    while (s.n && strchr(" \t\r", s.p[s.n - 1]) && s.p[s.n - 1])
        s.n--;
    return s;
}

/* What stands behind the last carriage return within a line is what a terminal shows: progress
 * bars write over themselves. */
static tv_str as_shown(tv_str s)
{
    s = without_end(s);
    const char *last = s.n ? memrchr(s.p, '\r', s.n) : NULL;
    return last ? tv_str_span(last + 1, s.p + s.n) : s;
}

size_t tv_count_lines(tv_str text)
{
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == '\n';
    return n;
}

bool tv_is_binary(tv_str text)
{
    enum { looks = 1 << 16 };
    const size_t stride = text.n / looks + 1;
    size_t controls = 0, others = 0;
    for (size_t i = 0; i < text.n; i += stride) {
        const unsigned char c = (unsigned char)text.p[i];
        const bool is_layout = (c >= 7 && c <= 13) || c == 27;
        controls += c && c < 32 && !is_layout;
        others += c != 0;
    }
    return controls * 20 > others;
}

tv_lines_cut tv_cut_lines(tv_str text, size_t most)
{
    tv_lines_cut cut = {text, {0}, tv_count_lines(text)};
    if (cut.n <= most)
        return cut;
    size_t at = 0;
    for (cut.n = 0; at < text.n && cut.n < most; at++)
        cut.n += text.p[at] == '\n';
    cut.head = tv_str_take(text, at);
    cut.tail = tv_str_drop(text, at);
    return cut;
}

void tv_sheet_fill(tv_arena *a, tv_sheet *sheet, tv_str file, uint64_t first_line, tv_str text)
{
    *sheet = (tv_sheet){.file = file, .first_line = first_line};
    sheet->v = tv_new(a, tv_line, tv_count_lines(text) + 1);
    while (text.n) {
        const tv_cut cut = tv_str_cut(text, '\n');
        tv_line *line = &sheet->v[sheet->n++];
        line->raw = tv_str_take(cut.head, TV_LIMIT_LINE_BYTES);
        const tv_str shown = as_shown(line->raw);
        line->s = without_end(is_clean(shown) ? shown : cleaned(a, shown));
        text = cut.tail;
    }
}
