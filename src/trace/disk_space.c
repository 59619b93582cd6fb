/* df and df -i, and the system's own words for a full disk. /dev/shm is another reader's: what
 * lies there is memory. */
#include "glean.h"
#include "trace.h"

typedef struct df_head {
    bool inodes;
    bool blocks; /* 1K-blocks: the numbers are KiB */
    double unit; /* of a bare number, bytes */
} df_head;

/* "Filesystem Size Used Avail Use% Mounted on", "文件系统 容量 已用 可用 已用% 挂载点" */
static bool is_head(tv_str s, df_head *h)
{
    if (!tv_holds(s, "Filesystem") && !tv_holds(s, "\xe6\x96\x87\xe4\xbb\xb6\xe7\xb3\xbb"))
        return false;
    if (!tv_holds(s, "%"))
        return false;
    *h = (df_head){.inodes = tv_holds(s, "Inode") || tv_holds(s, "IUse%"), .unit = 1024};
    if (tv_holds(s, "1M-blocks") || tv_holds(s, "1M-"))
        h->unit = 0x1p20;
    else if (tv_holds(s, "1B-blocks"))
        h->unit = 1;
    else if (tv_holds(s, "512-blocks"))
        h->unit = 512;
    return true;
}

static bool take_size(tv_str s, const df_head *h, double *v)
{
    const bool bare = s.n && s.p[s.n - 1] >= '0' && s.p[s.n - 1] <= '9';
    const tv_double_read r = tv_take_bytes(&s);
    *v = bare && r.ok && !h->inodes ? r.v * h->unit : r.v;
    return r.ok;
}

/* The words of "dev 100G 90G 10G 90% /data": the use is found from the right, for names may hold
 * blanks. */
static size_t use_column(const tv_str *v, size_t n)
{
    for (size_t k = n; k-- > 1;)
        if (v[k].n >= 2 && v[k].n <= 4 && v[k].p[v[k].n - 1] == '%')
            return k;
    return 0;
}

static void put(tv_reading *r, tv_sighting **s, const df_head *h, size_t i, const tv_str *v,
                size_t use)
{
    double size = 0, used = 0, avail = 0;
    if (!take_size(v[use - 3], h, &size) || !take_size(v[use - 2], h, &used) ||
        !take_size(v[use - 1], h, &avail))
        return;
    tv_str share = v[use];
    const tv_double_read percent = tv_take_number(&share);
    const tv_str mount = v[use + 1];
    if (!percent.ok || tv_str_is(mount, "/dev/shm"))
        return;
    if (!*s)
        *s = tv_see(r, "disk-space", i);
    tv_note *list = tv_note_list(r->a, &(*s)->facts, "mounts");
    tv_note *row = tv_at(r, tv_note_map(r->a, list, NULL), i);
    (void)tv_note_str(r->a, row, "device", v[0]);
    (void)tv_note_str(r->a, row, "mount", mount);
    (void)tv_note_num(r->a, row, h->inodes ? "inodes" : "size_bytes", size);
    (void)tv_note_num(r->a, row, h->inodes ? "inodes_used" : "used_bytes", used);
    (void)tv_note_num(r->a, row, h->inodes ? "inodes_free" : "avail_bytes", avail);
    (void)tv_note_num(r->a, row, h->inodes ? "inodes_frac" : "use_frac", percent.v / 100);
}

static void read_row(tv_reading *r, tv_sighting **s, const df_head *h, size_t i)
{
    tv_str v[10] = {{0}};
    size_t n = tv_words(r->sheet->v[i].s, v, 10);
    n = n < 10 ? n : 10;
    const size_t use = use_column(v, n);
    if (use >= 3 && use + 1 < n && *v[use + 1].p == '/')
        put(r, s, h, i, v, use);
}

/* "OSError: [Errno 28] No space left on device: '/data/x.pt'", "... (28)", "Disk quota exceeded" */
static bool is_full(tv_str s)
{
    if (tv_holds(s, "/dev/shm") || tv_holds(s, "shared memory") || tv_holds(s, "NCCL") ||
        tv_holds(s, "ibv_") || tv_holds(s, "posix_fallocate") || tv_holds(s, "torch_shm") ||
        tv_holds(s, "shm_open") || tv_holds(s, "mmap"))
        return false;
    return tv_holds(s, "No space left on device") || tv_holds(s, "Disk quota exceeded") ||
           tv_holds(s, "[Errno 28]") || tv_holds(s, "[Errno 122]") ||
           tv_holds(s, "ENOSPC: no space left");
}

static tv_str path_of(tv_str s)
{
    tv_str rest;
    if (!tv_past(s, "on device: ", &rest) && !tv_past(s, "exceeded: ", &rest))
        return (tv_str){0};
    if (rest.n && (*rest.p == '\'' || *rest.p == '"')) {
        const char quote[2] = {*rest.p, 0};
        return tv_enclosed(rest, quote, quote);
    }
    const tv_str word = tv_take_word(&rest);
    return word.n && *word.p == '/' ? word : (tv_str){0};
}

static void see_full(tv_reading *r, tv_sighting **said, size_t i, tv_str s)
{
    if (*said) {
        const double n = tv_noted_num(&(*said)->facts, "times");
        (void)tv_note_num(r->a, &(*said)->facts, "times", n + 1);
        return;
    }
    *said = tv_see(r, "disk-space", i);
    const bool quota = tv_holds(s, "quota") || tv_holds(s, "Errno 122");
    (void)tv_note_str(r->a, &(*said)->facts, "error",
                      quota ? TV_S("quota exceeded") : TV_S("no space left"));
    (void)tv_note_num(r->a, &(*said)->facts, "times", 1);
    const tv_str path = path_of(s);
    if (path.n)
        (void)tv_note_str(r->a, &(*said)->facts, "path", path);
}

static void read(tv_reading *r)
{
    tv_sighting *mounts = NULL, *said = NULL;
    df_head head = {0};
    bool open = false;
    for (size_t i = 0; i < r->sheet->n; i++) {
        const tv_str s = r->sheet->v[i].s;
        if (is_head(s, &head)) {
            open = true;
        } else if (!s.n) {
            open = false;
        } else if (open) {
            read_row(r, &mounts, &head, i);
        }
        if (is_full(s))
            see_full(r, &said, i, s);
    }
}

static const char *const needles[] = {"Use%",
                                      "IUse%",
                                      "Capacity",
                                      "\xe5\xb7\xb2\xe7\x94\xa8%",
                                      "No space left on device",
                                      "no space left on device",
                                      "Disk quota exceeded",
                                      "[Errno 28]",
                                      "[Errno 122]",
                                      NULL};

extern const tv_log_format tv_log_format_disk_space;
const tv_log_format tv_log_format_disk_space = {"disk-space", needles, read};
