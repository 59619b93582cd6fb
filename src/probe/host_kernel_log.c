/* The kernel's log, as dmesg prints it. /dev/kmsg yields one record a read,
 * "6,1207,98765432,-;text" and continuation lines with a blank in front; it is read without
 * waiting. */
#include "host_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Records come one by one up to this long (CONSOLE_EXT_LOG_MAX of Linux); the ring itself is
 * seldom larger than 16 MiB. */
enum { record_bytes = 8192 };
#define MOST_LOG_BYTES ((size_t)16 << 20)

/* "[   98.765432] text" */
static void put_record(tv_buf *b, tv_str record)
{
    const tv_cut head = tv_str_cut(record, ';');
    const tv_cut level = tv_str_cut(head.head, ',');
    const tv_cut number = tv_str_cut(level.tail, ',');
    const tv_u64_read micros = tv_str_u64(tv_str_cut(number.tail, ',').head);
    tv_str text = tv_str_cut(head.tail, '\n').head;
    if (!head.found || !micros.ok)
        return;
    tv_putc(b, '[');
    const uint64_t s = micros.v / 1000000, part = micros.v % 1000000;
    for (uint64_t wide = 10000; wide > (s ? s : 1); wide /= 10)
        tv_putc(b, ' ');
    tv_put_u64(b, s);
    tv_putc(b, '.');
    for (uint64_t digit = 100000; digit; digit /= 10)
        tv_putc(b, (char)('0' + part / digit % 10));
    tv_puts(b, "] ");
    tv_put(b, text);
    tv_putc(b, '\n');
}

static bool read_kmsg(tv_host *h, tv_buf *b, tv_str *why)
{
    const int fd =
        open(tv_cstr(h->a, tv_host_path(h, "/dev/kmsg")), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        *why = tv_errno_text(h->a, errno);
        return false;
    }
    char record[record_bytes];
    int number = 0;
    while (b->n < MOST_LOG_BYTES) {
        const ssize_t got = read(fd, record, sizeof record);
        if (got < 0 && (errno == EINTR || errno == EPIPE)) /* EPIPE: overwritten while we read */
            continue;
        number = got < 0 ? errno : 0;
        if (got <= 0)
            break;
        put_record(b, (tv_str){record, (size_t)got});
    }
    (void)close(fd);
    *why = tv_errno_text(h->a, number);
    return b->n > 0;
}

void tv_host_kernel_log(tv_host *h)
{
    tv_buf b = tv_buf_in(h->a);
    tv_str why, text;
    if (read_kmsg(h, &b, &why)) {
        tv_host_document(h, "dmesg.txt", tv_buf_str(&b));
        return;
    }
    if (tv_host_read(h, "/var/log/dmesg", MOST_LOG_BYTES, &text, NULL)) {
        tv_host_document(h, "dmesg.txt", text);
        return;
    }
    tv_host_unseen(h, "kernel log", tv_str_join(h->a, TV_S("/dev/kmsg: "), why));
}
