/* Complaints of NCCL, RCCL and what they rest on: which of them is the cause and which follows from
 * another rank's failure. */
#include "nccl_parts.h"

#include <math.h>
#include <string.h>

/* Linux's words (errno(3)); longer ones first where one holds another. */
const tv_errno_word *tv_errno_in(tv_str text)
{
    static const tv_errno_word words[] = {
        {28, "No space left on device"},
        {12, "Cannot allocate memory"},
        {101, "Network is unreachable"},
        {113, "No route to host"},
        {110, "Connection timed out"},
        {111, "Connection refused"},
        {104, "Connection reset by peer"},
        {103, "Software caused connection abort"},
        {22, "Invalid argument"},
        {13, "Permission denied"},
        {1, "Operation not permitted"},
        {2, "No such file or directory"},
        {19, "No such device"},
        {32, "Broken pipe"},
        {98, "Address already in use"},
        {99, "Cannot assign requested address"},
        {24, "Too many open files"},
        {5, "Input/output error"},
        {11, "Resource temporarily unavailable"},
        {14, "Bad address"},
        {95, "Operation not supported"},
        {93, "Protocol not supported"},
        {61, "No data available"},
        {62, "Timer expired"},
        {121, "Remote I/O error"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (tv_holds(text, words[i].text))
            return &words[i];
    return NULL;
}

typedef enum standing {
    ROOT,        /* can be the cause */
    CONSEQUENCE, /* another rank or an earlier complaint is */
    BENIGN,      /* says nothing of a failure */
} standing;

typedef struct warn_row {
    const char *needle;
    const char *class; /* language-free, for rules */
    standing standing;
} warn_row;

/* Read in this order. The classes are those of docs/facts/nccl.md. */
static const warn_row rows[] = {
    {"Failed to open libibverbs", "no-libibverbs", BENIGN},
    {"Proxy Service", "proxy", CONSEQUENCE},
    {"Failed to execute operation", "proxy", CONSEQUENCE},
    {"Socket recv failed", "peer-gone", CONSEQUENCE},
    {"Connection closed by remote peer", "peer-gone", CONSEQUENCE},
    {"Call to posix_fallocate failed", "shm", ROOT},
    {"failed to extend", "shm", ROOT},
    {"failed to truncate", "shm", ROOT},
    {"Error while creating shared memory segment", "shm", ROOT},
    {"Error while attaching to shared memory segment", "shm", ROOT},
    {"Call to shm_open failed", "shm", ROOT},
    {"Call to ibv_", "ib-call", ROOT},
    {"ibv_", "ib-call", ROOT},
    {"Got completion", "ib-completion", ROOT},
    {"GID table changed", "gid-changed", ROOT},
    {"Got async event", "ib-event", ROOT},
    {"Duplicate GPU detected", "same-gpu", ROOT},
    {"ultiple Ranks are using the same GPU", "same-gpu", ROOT},
    {"ultiple ranks are using the same GPU", "same-gpu", ROOT},
    {"Mismatched NCCL version", "version-mismatch", ROOT},
    {"Mismatched collective detected", "order", ROOT},
    {"CUDA Driver version found", "driver-old", ROOT},
    {"P2P is disabled between NVLINK", "p2p-off", ROOT},
    {"peer mapping resources exhausted", "peer-mappings", ROOT},
    {"Cuda failure", "cuda", ROOT},
    {"HIP failure", "cuda", ROOT},
    {"essage truncated", "order", ROOT},
    {"no socket interface found", "no-interface", ROOT},
    {"No interface found in the same subnet", "no-interface", ROOT},
    {"No socket interface found", "no-interface", ROOT},
    {"No usable listening interface found", "no-interface", ROOT},
    {"NET/Socket : No interface found", "no-interface", ROOT},
    {"Could not open XML", "topo-file", ROOT},
    {"XML", "topo-file", ROOT},
    {"Failed to find reverse path", "topo-file", ROOT},
    {"Connection refused", "connect", CONSEQUENCE},
    {"Connection reset by peer", "peer-gone", CONSEQUENCE},
    {"Broken pipe", "peer-gone", CONSEQUENCE},
    {"Software caused connection abort", "peer-gone", CONSEQUENCE},
    {"remote process exited or there was a network error", "peer-gone", CONSEQUENCE},
    {"Timeout", "timeout", CONSEQUENCE},
    {"Connection timed out", "connect", ROOT},
    {"No route to host", "connect", ROOT},
    {"Network is unreachable", "connect", ROOT},
    {"NCCL_DEBUG", "other", BENIGN},
    {"is not set", "other", BENIGN},
    {"is not a PCI device", "other", BENIGN},
    {"Missing \"iommu=pt\"", "iommu", BENIGN},
    {"NUMA auto balancing enabled", "numa-balancing", BENIGN},
};

static const warn_row *class_of(tv_str text)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (tv_holds(text, rows[i].needle))
            return &rows[i];
    return NULL;
}

/* The name of what failed: "Call to ibv_modify_qp failed", "ibv_create_cq() failed". */
static tv_str call_of(tv_str text)
{
    tv_str rest;
    if (tv_past(text, "Call to ", &rest))
        return tv_take_word(&rest);
    const tv_str verb = tv_enclosed(text, "ibv_", " ");
    if (!tv_past(text, "ibv_", &rest))
        return (tv_str){0};
    const tv_str name = tv_take_word(&rest);
    return verb.n ? tv_str_span(name.p - 4, name.p + name.n) : (tv_str){0};
}

/* ---- of one class ---- */

static void set_once_str(tv_nccl *n, const char *key, tv_str s, size_t at)
{
    if (s.n && !tv_noted(n->facts, key))
        (void)tv_at(n->r, tv_note_str(n->r->a, n->facts, key, s), at);
}

static void set_once_num(tv_nccl *n, const char *key, tv_double_read v, size_t at)
{
    if (v.ok && !tv_noted(n->facts, key))
        (void)tv_at(n->r, tv_note_num(n->r->a, n->facts, key, v.v), at);
}

static void warn_shm(tv_nccl *n, const tv_nccl_line *line, const tv_errno_word *word)
{
    tv_str rest;
    if (tv_past(line->text, "/dev/shm/", &rest)) {
        const tv_str name = tv_take_word(&rest);
        set_once_str(n, "path", tv_str_span(name.p - 9, name.p + name.n), line->at);
    }
    tv_double_read need = {0};
    for (tv_str at = line->text; tv_past(at, " to ", &at);)
        need = tv_number_past(at, "");
    if (!need.ok)
        need = tv_number_past(line->text, "(size ");
    set_once_num(n, "need_bytes", need, line->at);
    if (word && word->number == 28)
        set_once_str(n, "cause", TV_S("/dev/shm too small"), line->at);
}

/* "status=12", "status=IBV_WC_RETRY_EXC_ERR(12)", "with error 12" */
static tv_double_read in_brackets(tv_str text, const char *now, const char *before)
{
    tv_double_read r = tv_number_past(text, now);
    tv_str rest;
    if (!r.ok && tv_past(text, now, &rest))
        r = tv_number_past(rest, "(");
    return r.ok ? r : tv_number_past(text, before);
}

static tv_double_read first_of(tv_str text, const char *one, const char *two)
{
    const tv_double_read r = tv_number_past(text, one);
    return r.ok ? r : tv_number_past(text, two);
}

/* An address: what follows until a blank; blanks before it are optional. */
static tv_str address_past(tv_str text, const char *needle)
{
    tv_str rest;
    if (!tv_past(text, needle, &rest))
        return (tv_str){0};
    if (tv_str_starts(rest, TV_S("s")))
        rest = tv_str_drop(rest, 1);
    rest = tv_str_trim(rest);
    size_t k = 0;
    while (k < rest.n && rest.p[k] != ' ' && rest.p[k] != '\t' && rest.p[k] != ',')
        k++;
    return tv_str_take(rest, k);
}

static void add_gid(tv_nccl *n, const char *key, tv_str gid)
{
    if (!gid.n)
        return;
    tv_note *list = tv_note_list(n->r->a, n->facts, key);
    for (const tv_note *item = list->first; item; item = item->next)
        if (tv_str_eq(item->s, gid))
            return;
    if (list->n < 64)
        (void)tv_note_str(n->r->a, list, NULL, gid);
}

static void warn_completion(tv_nccl *n, const tv_nccl_line *line)
{
    const tv_str text = line->text;
    set_once_num(n, "status", in_brackets(text, "status=", "with error "), line->at);
    set_once_num(n, "vendor_err", first_of(text, "vendor err ", "vendor_err="), line->at);
    set_once_str(n, "peer", address_past(text, "from peer "), line->at);
    set_once_num(n, "opcode", in_brackets(text, "opcode=", "opcode "), line->at);
    set_once_num(n, "len", first_of(text, "len=", "len "), line->at);
    if (tv_holds(text, "(Recv)") || tv_holds(text, "req_type=Recv"))
        set_once_str(n, "direction", TV_S("Recv"), line->at);
    if (tv_holds(text, "(Send)") || tv_holds(text, "req_type=Send"))
        set_once_str(n, "direction", TV_S("Send"), line->at);
    set_once_str(n, "hca", address_past(text, " hca "), line->at);
    add_gid(n, "local_gid", address_past(text, "localGid"));
    add_gid(n, "remote_gid", address_past(text, "remoteGid"));
    if (!tv_noted(n->facts, "worked_before"))
        (void)tv_note_bool(n->r->a, n->facts, "worked_before", n->worked);
}

static void warn_ib_call(tv_nccl *n, const tv_nccl_line *line, const tv_errno_word *word)
{
    set_once_str(n, "dev", address_past(line->text, "on dev "), line->at);
    set_once_num(n, "gid_index", tv_number_past(line->text, "local GID index "), line->at);
    set_once_str(n, "qp_state", address_past(line->text, "curr state "), line->at);
    set_once_str(n, "qp_next", address_past(line->text, "next state "), line->at);
    if (word && word->number == 12)
        set_once_str(n, "cause", TV_S("ulimit -l too small"), line->at);
}

/* "rank 1 and rank 0 both on CUDA device 1a000" */
static void warn_same_gpu(tv_nccl *n, const tv_nccl_line *line)
{
    set_once_num(n, "same_gpu_rank", tv_number_past(line->text, "rank "), line->at);
    tv_str rest;
    if (tv_past(line->text, "and rank ", &rest))
        set_once_num(n, "same_gpu_other_rank", tv_take_number(&rest), line->at);
    set_once_str(n, "same_gpu_bus", address_past(line->text, "CUDA device "), line->at);
}

/* "rank 0 version 22005 rank 1 version 21903": 22005 is 2.20.5 (2.4.8 was 2408). */
static void warn_versions(tv_nccl *n, const tv_nccl_line *line)
{
    tv_arena *a = n->r->a;
    tv_str rest = line->text;
    while (tv_past(rest, "version ", &rest)) {
        const tv_u64_read v = tv_take_u64(&rest);
        if (!v.ok || v.v < 2000 || v.v > 99999)
            continue;
        const bool wide = v.v >= 10000;
        const uint64_t minor = wide ? v.v / 100 % 100 : v.v / 100 % 10;
        tv_buf b = tv_buf_in(a);
        tv_put_u64(&b, wide ? v.v / 10000 : v.v / 1000);
        tv_putc(&b, '.');
        tv_put_u64(&b, minor);
        tv_putc(&b, '.');
        tv_put_u64(&b, v.v % 100);
        (void)tv_note_str(a, tv_note_list(a, n->facts, "versions"), NULL, tv_buf_str(&b));
        set_once_str(n, "version", tv_buf_str(&b), line->at);
    }
}

static void warn_of_class(tv_nccl *n, const tv_nccl_line *line, const char *class,
                          const tv_errno_word *word)
{
    if (strcmp(class, "shm") == 0)
        warn_shm(n, line, word);
    else if (strcmp(class, "ib-completion") == 0)
        warn_completion(n, line);
    else if (strcmp(class, "ib-call") == 0)
        warn_ib_call(n, line, word);
    else if (strcmp(class, "same-gpu") == 0)
        warn_same_gpu(n, line);
    else if (strcmp(class, "version-mismatch") == 0)
        warn_versions(n, line);
    else if (strcmp(class, "cuda") == 0)
        set_once_str(n, "cuda_failure", tv_enclosed(line->text, "'", "'"), line->at);
    else if (strcmp(class, "driver-old") == 0)
        set_once_num(n, "driver_cuda_needed", tv_number_past(line->text, "requirement is "),
                     line->at);
}

/* ---- one complaint ---- */

static tv_note *note_of(tv_nccl *n, const tv_nccl_line *line, const warn_row *row)
{
    tv_arena *a = n->r->a;
    tv_note *warn = tv_note_map(a, tv_note_list(a, n->facts, "warn"), NULL);
    (void)tv_at(n->r, warn, line->at);
    if (line->file.n) {
        (void)tv_note_str(a, warn, "file", line->file);
        (void)tv_note_num(a, warn, "line", line->line);
    }
    (void)tv_note_str(a, warn, "text", line->text);
    (void)tv_note_str(a, warn, "class", row ? tv_str_of(row->class) : TV_S("other"));
    if (line->host.n)
        (void)tv_note_str(a, warn, "host", line->host);
    if (!isnan(line->device))
        (void)tv_note_num(a, warn, "device", line->device);
    if (!isnan(line->rank))
        (void)tv_note_num(a, warn, "rank", line->rank);
    return warn;
}

static void put_consequence(tv_nccl *n, const tv_nccl_line *line, const warn_row *row)
{
    const tv_str name = tv_str_of(row->needle);
    set_once_str(n, "consequence_warn", name, line->at);
    tv_note *list = tv_note_list(n->r->a, n->facts, "consequences");
    for (const tv_note *item = list->first; item; item = item->next)
        if (tv_str_eq(item->s, name))
            return;
    (void)tv_note_str(n->r->a, list, NULL, name);
}

static void put_root(tv_nccl *n, const tv_nccl_line *line, tv_note *warn, tv_str call,
                     const tv_errno_word *word)
{
    if (n->root)
        return;
    n->root = warn;
    tv_arena *a = n->r->a;
    (void)tv_note_num(a, n->facts, "root_warn_index", (double)n->n_warn);
    tv_buf b = tv_buf_in(a);
    if (call.n && word) {
        tv_put(&b, call);
        tv_puts(&b, ": ");
        tv_puts(&b, word->text);
    }
    (void)tv_at(n->r, tv_note_str(a, n->facts, "root_warn", b.n ? tv_buf_str(&b) : line->text),
                line->at);
    set_once_str(n, "call", call, line->at);
    if (word) {
        set_once_str(n, "errno_text", tv_str_of(word->text), line->at);
        set_once_num(n, "errno", (tv_double_read){word->number, true}, line->at);
    }
}

/* The first complaints tell the story; what a thousand lines later repeats them does not. */
enum { MOST_WARNS = 1000 };

void tv_nccl_warned(tv_nccl *n, const tv_nccl_line *line)
{
    if (n->n_warn >= MOST_WARNS)
        return;
    tv_arena *a = n->r->a;
    const warn_row *row = class_of(line->text);
    const tv_errno_word *word = tv_errno_in(line->text);
    const tv_str call = call_of(line->text);
    tv_note *warn = note_of(n, line, row);
    const standing as = row ? row->standing : ROOT;
    if (word) {
        (void)tv_note_str(a, warn, "errno_text", tv_str_of(word->text));
        (void)tv_note_num(a, warn, "errno", word->number);
    }
    if (call.n)
        (void)tv_note_str(a, warn, "call", call);
    (void)tv_note_bool(a, warn, "root", as == ROOT);
    set_once_num(n, "rank_reporting", tv_number_past(line->text, "from rank "), line->at);
    set_once_num(n, "retcode", tv_number_past(line->text, "retcode "), line->at);
    if (line->stamped)
        (void)tv_note_bool(a, n->facts, "timestamped_warn", true);
    if (row)
        warn_of_class(n, line, row->class, word);
    if (as == CONSEQUENCE)
        put_consequence(n, line, row);
    if (as == ROOT)
        put_root(n, line, warn, call, word);
    if (as == BENIGN && !tv_noted(n->facts, "benign_warn"))
        (void)tv_note_bool(a, n->facts, "benign_warn", true);
    if (row && strcmp(row->class, "no-libibverbs") == 0)
        (void)tv_note_bool(a, n->facts, "ib_available", false);
    n->n_warn++;
}
