/* The host as documents: files of /proc as they are, single values of /sys as lines "path:value",
 * and what is no file as lines "key: value". Nothing is judged here. */
#include "host_parts.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- looking ---- */

tv_str tv_host_path(const tv_host *h, const char *path)
{
    return tv_str_join(h->a, h->place->root, tv_str_of(path));
}

bool tv_host_has(const tv_host *h, const char *path)
{
    struct stat st;
    return lstat(tv_cstr(h->a, tv_host_path(h, path)), &st) == 0;
}

static bool read_open(int fd, char *to, size_t limit, size_t *n, int *number)
{
    *n = 0;
    while (*n < limit) {
        const ssize_t got = read(fd, to + *n, limit - *n);
        if (got < 0 && errno == EINTR)
            continue;
        *number = errno;
        if (got < 0)
            return *n > 0; /* some files of /sys end with an error */
        if (got == 0)
            break;
        *n += (size_t)got;
    }
    return true;
}

bool tv_host_read(const tv_host *h, const char *path, size_t limit, tv_str *text, tv_str *why)
{
    *text = (tv_str){0};
    if (why)
        *why = (tv_str){0};
    int number = 0;
    const int fd = open(tv_cstr(h->a, tv_host_path(h, path)), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool ok = fd >= 0;
    if (!ok)
        number = errno;
    char *to = tv_new(h->a, char, limit);
    if (ok) {
        ok = read_open(fd, to, limit, &text->n, &number);
        text->p = to;
        (void)close(fd);
    }
    if (!ok && why && number != ENOENT && number != ENOTDIR)
        *why = tv_errno_text(h->a, number);
    return ok;
}

tv_str tv_host_link(const tv_host *h, const char *path)
{
    char to[4096];
    const ssize_t n = readlink(tv_cstr(h->a, tv_host_path(h, path)), to, sizeof to);
    return n > 0 ? tv_str_copy(h->a, tv_path_name((tv_str){to, (size_t)n})) : (tv_str){0};
}

/* ---- writing ---- */

void tv_host_document(tv_host *h, const char *name, tv_str text)
{
    if (text.n)
        *tv_push(h->a, h->out) = (tv_document){tv_str_of(name), text};
}

/* One line: what stands in files of others must not begin a line of its own. */
static void put_line(tv_buf *b, const char *key, const char *colon, tv_str value)
{
    tv_puts(b, key);
    tv_puts(b, colon);
    for (size_t i = 0; i < value.n; i++)
        tv_putc(b, (unsigned char)value.p[i] < 32 ? ' ' : value.p[i]);
    tv_putc(b, '\n');
}

void tv_host_fact(tv_host *h, const char *key, tv_str value)
{
    put_line(&h->facts, key, ": ", value);
}

void tv_host_number(tv_host *h, const char *key, uint64_t value)
{
    tv_buf b = tv_buf_in(h->a);
    tv_put_u64(&b, value);
    tv_host_fact(h, key, tv_buf_str(&b));
}

void tv_host_unseen(tv_host *h, const char *what, tv_str why)
{
    tv_buf b = tv_buf_in(h->a);
    tv_puts(&b, what);
    tv_puts(&b, ": ");
    tv_put(&b, why);
    tv_host_fact(h, "unseen", tv_buf_str(&b));
}

bool tv_host_grab(tv_host *h, const char *path)
{
    tv_str text;
    if (!tv_host_read(h, path, 512, &text, NULL))
        return false;
    put_line(&h->sys, path, ":", tv_str_trim(tv_str_cut(text, '\n').head));
    return true;
}

/* ---- the whole ---- */

void tv_probe_host(tv_request *r, const tv_host_place *place, tv_documents *out)
{
    tv_host *h = tv_new(r->a, tv_host, 1);
    *h = (tv_host){.a = r->a, .place = place, .out = out};
    h->facts = tv_buf_in(r->a);
    h->sys = tv_buf_in(r->a);
    tv_puts(&h->facts, "trivet host facts 1\n");
    tv_host_files(h);
    tv_host_pci(h);
    tv_host_software(h);
    tv_host_nvml(h);
    if (h->smi_wanted)
        tv_host_smi(h);
    tv_host_kernel_log(h);
    tv_host_document(h, "sys.txt", tv_buf_str(&h->sys));
    tv_host_document(h, "host.txt", tv_buf_str(&h->facts));
}
