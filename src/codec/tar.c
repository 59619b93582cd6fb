/* Headers are 512 bytes with numbers in octal text; long names come as members of their own. */
#include "tar.h"

#include <string.h>

enum { block_bytes = 512, most_name_bytes = 65536, most_names = 16 };

static uint64_t octal(const unsigned char *p, size_t n)
{
    uint64_t v = 0;
    if (p[0] & 0x80) { /* GNU's base 256 */
        for (size_t i = n > 8 ? n - 8 : 1; i < n; i++)
            v = v << 8 | p[i];
        return v;
    }
    for (size_t i = 0; i < n && p[i]; i++)
        if (p[i] >= '0' && p[i] <= '7')
            v = v << 3 | (uint64_t)(p[i] - '0');
    return v;
}

bool tv_tar_is(tv_bytes_view head)
{
    if (head.n < block_bytes)
        return false;
    uint64_t sum = 0;
    for (size_t i = 0; i < block_bytes; i++)
        sum += i >= 148 && i < 156 ? ' ' : head.p[i];
    return head.p[0] && sum == octal(head.p + 148, 8);
}

tv_tar tv_tar_open(tv_arena *a, tv_stream *stream)
{
    return (tv_tar){.a = a, .stream = stream, .next_at = tv_stream_at(stream)};
}

static tv_str text_field(const unsigned char *p, size_t n)
{
    return (tv_str){(const char *)p, strnlen((const char *)p, n)};
}

static tv_str header_name(tv_arena *a, const unsigned char *h)
{
    const tv_str name = text_field(h, 100);
    const tv_str prefix = memcmp(h + 257, "ustar", 5) == 0 ? text_field(h + 345, 155) : (tv_str){0};
    tv_buf b = tv_buf_in(a);
    tv_put(&b, prefix);
    if (prefix.n)
        tv_putc(&b, '/');
    tv_put(&b, name);
    return tv_buf_str(&b);
}

/* "27 path=some/name\n": the records of a pax header. */
static tv_str pax_path(tv_str records)
{
    while (records.n) {
        const tv_cut line = tv_str_cut(records, '\n');
        const tv_cut record = tv_str_cut(line.head, ' ');
        if (tv_str_starts(record.tail, TV_S("path=")))
            return tv_str_drop(record.tail, 5);
        records = line.tail;
    }
    return (tv_str){0};
}

static uint64_t padded(uint64_t n)
{
    return n > UINT64_MAX - block_bytes ? n : (n + block_bytes - 1) / block_bytes * block_bytes;
}

const tv_err *tv_tar_next(tv_tar *tar, bool *more)
{
    tv_str long_name = {0};
    unsigned names = 0;
    *more = false;
    for (;;) {
        const uint64_t at = tv_stream_at(tar->stream);
        if (tar->next_at > at)
            TV_TRY(tv_stream_skip(tar->stream, tar->next_at - at));
        unsigned char block[block_bytes];
        tv_bytes_view head = {block, 0};
        TV_TRY(tv_stream_read(tar->stream, block, block_bytes, &head.n));
        if (!tv_tar_is(head))
            return NULL;
        const char type = (char)block[156];
        tar->bytes = octal(head.p + 124, 12);
        tar->next_at = tv_stream_at(tar->stream) + padded(tar->bytes);
        if (type == 'L' || type == 'x') {
            tv_str text;
            if (++names > most_names) /* headers for headers: no archive has them */
                return NULL;
            const size_t n = tar->bytes < most_name_bytes ? (size_t)tar->bytes : most_name_bytes;
            TV_TRY(tv_stream_take(tar->stream, tar->a, n, &text));
            long_name =
                type == 'L' ? text_field((const unsigned char *)text.p, text.n) : pax_path(text);
        } else if (type == '0' || type == 0 || type == '7') {
            tar->name = long_name.n ? long_name : header_name(tar->a, head.p);
            *more = true;
            return NULL;
        } else {
            long_name = (tv_str){0};
        }
    }
}
