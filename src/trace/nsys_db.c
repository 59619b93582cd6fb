/* The SQLite export of Nsight Systems -> the facts of a trace (docs/facts/trace.md). Tables are
 * there only where something was recorded, and columns come and go, so both are looked up first.
 * The file is somebody else's: it is opened read only and immutable, with a schema that is not
 * trusted, an authorizer that permits nothing but reading columns, and an end to the work that one
 * query may do. Schema: docs.nvidia.com/nsight-systems, "SQLite Export Schema Reference". */
#include "nsys_db.h"

#include <math.h>
#include <sqlite3.h>
#include <string.h>

#include "base/limits.h"
#include "timeline.h"

typedef struct database {
    tv_arena *a; /* scratch */
    sqlite3 *db;
    uint64_t ticks; /* of TV_TICK_OPS each, that are left */
} database;

/* Virtual-machine instructions between two looks at the budget. */
enum { TV_TICK_OPS = 100000 };

/* ---- opening ---- */

static int permits(void *unused, int action, const char *x, const char *y, const char *z,
                   const char *w)
{
    (void)unused, (void)x, (void)y, (void)z, (void)w;
    return action == SQLITE_SELECT || action == SQLITE_READ ? SQLITE_OK : SQLITE_DENY;
}

static int tick(void *what)
{
    database *d = what;
    return d->ticks ? (d->ticks--, 0) : 1;
}

static void close_database(void *what)
{
    database *d = what;
    if (d->db)
        (void)sqlite3_close_v2(d->db);
    d->db = NULL;
}

/* A row of n bytes takes some dozen instructions; a damaged tree that leads in circles takes more
 * than the bytes allow, and is ended. */
static void tame(database *d, uint64_t bytes)
{
    (void)sqlite3_limit(d->db, SQLITE_LIMIT_LENGTH, (int)TV_LIMIT_DATABASE_VALUE_BYTES);
    (void)sqlite3_limit(d->db, SQLITE_LIMIT_SQL_LENGTH, 65536);
    (void)sqlite3_limit(d->db, SQLITE_LIMIT_COLUMN, 256);
    (void)sqlite3_limit(d->db, SQLITE_LIMIT_EXPR_DEPTH, 32);
    (void)sqlite3_limit(d->db, SQLITE_LIMIT_ATTACHED, 0);
    (void)sqlite3_limit(d->db, SQLITE_LIMIT_TRIGGER_DEPTH, 1);
    (void)sqlite3_limit(d->db, SQLITE_LIMIT_WORKER_THREADS, 0);
    (void)sqlite3_db_config(d->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(d->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_db_config(d->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    (void)sqlite3_db_config(d->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    (void)sqlite3_db_config(d->db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    d->ticks = (bytes / TV_TICK_OPS + 1) * 64;
    sqlite3_progress_handler(d->db, TV_TICK_OPS, tick, d);
    (void)sqlite3_set_authorizer(d->db, permits, NULL);
}

static database *new_database(tv_arena *a)
{
    database *d = tv_new(a, database, 1);
    d->a = a;
    tv_defer(a, close_database, d);
    return d;
}

/* "file:...?immutable=1" with every byte that is no plain letter written as %XX. */
static const char *uri_of(tv_arena *a, tv_str path)
{
    static const char digits[] = "0123456789ABCDEF";
    tv_buf b = tv_buf_in(a);
    tv_puts(&b, path.n && path.p[0] == '/' ? "file://" : "file:");
    for (size_t i = 0; i < path.n; i++) {
        const unsigned char c = (unsigned char)path.p[i];
        const bool plain = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') ||
                           c == '/' || c == '.' || c == '_' || c == '-';
        if (plain) {
            tv_putc(&b, (char)c);
        } else {
            tv_putc(&b, '%');
            tv_putc(&b, digits[c >> 4]);
            tv_putc(&b, digits[c & 15]);
        }
    }
    tv_puts(&b, "?mode=ro&immutable=1");
    return tv_cstr(a, tv_buf_str(&b));
}

static database *open_path(tv_arena *a, tv_str path, uint64_t bytes)
{
    database *d = new_database(a);
    const int flags =
        SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
    if (sqlite3_open_v2(uri_of(a, path), &d->db, flags, NULL) != SQLITE_OK)
        return NULL;
    tame(d, bytes);
    return d;
}

/* Deserialized read only: SQLite never writes to the bytes, though it does not say so by const. */
static database *open_bytes(tv_arena *a, tv_bytes_view bytes)
{
    database *d = new_database(a);
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX;
    unsigned char *copy = tv_new(a, unsigned char, bytes.n + 1);
    memcpy(copy, bytes.p, bytes.n);
    /* A file that says "write-ahead log" cannot be opened in memory; nothing is in the log here. */
    if (bytes.n > 20 && copy[18] == 2)
        copy[18] = copy[19] = 1;
    if (sqlite3_open_v2(":memory:", &d->db, flags, NULL) != SQLITE_OK ||
        sqlite3_deserialize(d->db, "main", copy, (sqlite3_int64)bytes.n, (sqlite3_int64)bytes.n,
                            SQLITE_DESERIALIZE_READONLY) != SQLITE_OK)
        return NULL;
    tame(d, bytes.n);
    return d;
}

/* ---- queries ---- */

static void finalize(void *what)
{
    (void)sqlite3_finalize(what);
}

static sqlite3_stmt *prepare(database *d, const char *sql)
{
    sqlite3_stmt *q = NULL;
    if (sqlite3_prepare_v2(d->db, sql, -1, &q, NULL) != SQLITE_OK)
        return NULL;
    tv_defer(d->a, finalize, q);
    return q;
}

static bool next(sqlite3_stmt *q)
{
    return q && sqlite3_step(q) == SQLITE_ROW;
}

/* A table of its own, with rows in the file: no view, no virtual table. */
static bool has_table(database *d, const char *name)
{
    sqlite3_stmt *q =
        prepare(d, "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = ?1");
    return q && sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC) == SQLITE_OK && next(q) &&
           sqlite3_column_int(q, 0) > 0;
}

enum { MOST_COLUMNS = 12 };

/* A query for those of the columns that the table has; places[i] is where the i-th comes, or -1. */
static sqlite3_stmt *select_columns(database *d, const char *table, const char *const *columns,
                                    size_t n, int *places)
{
    tv_buf b = tv_buf_in(d->a);
    tv_puts(&b, "SELECT * FROM ");
    tv_puts(&b, table);
    tv_puts(&b, " LIMIT 0");
    sqlite3_stmt *all = has_table(d, table) ? prepare(d, tv_cstr(d->a, tv_buf_str(&b))) : NULL;
    if (!all)
        return NULL;
    b = tv_buf_in(d->a);
    tv_puts(&b, "SELECT ");
    int taken = 0;
    for (size_t i = 0; i < n; i++) {
        places[i] = -1;
        for (int k = 0; k < sqlite3_column_count(all); k++)
            if (tv_str_is(tv_str_of(sqlite3_column_name(all, k)), columns[i]))
                places[i] = taken;
        if (places[i] < 0)
            continue;
        tv_puts(&b, taken++ ? ", \"" : "\"");
        tv_puts(&b, columns[i]);
        tv_puts(&b, "\"");
    }
    tv_puts(&b, " FROM ");
    tv_puts(&b, table);
    return taken ? prepare(d, tv_cstr(d->a, tv_buf_str(&b))) : NULL;
}

static bool has(sqlite3_stmt *q, int place)
{
    return place >= 0 && sqlite3_column_type(q, place) != SQLITE_NULL;
}

static int64_t whole(sqlite3_stmt *q, int place)
{
    return place >= 0 ? sqlite3_column_int64(q, place) : 0;
}

static tv_str text(sqlite3_stmt *q, int place)
{
    if (place < 0 || sqlite3_column_type(q, place) != SQLITE_TEXT)
        return (tv_str){0};
    const void *p = sqlite3_column_text(q, place);
    const int n = sqlite3_column_bytes(q, place);
    return p && n > 0 ? (tv_str){p, (size_t)n} : (tv_str){0};
}

/* ---- names ---- */

/* The texts behind ids, each looked up once: names of kernels by the thousand, of calls by the
 * dozen. */
typedef struct name_slot {
    int64_t id;
    uint32_t number; /* of the timeline */
    bool used;
    bool waits; /* a call that waits for the device */
    unsigned char n;
    char text[48]; /* its beginning */
} name_slot;

enum { NAME_SLOTS = 65536 };

typedef struct export
{
    database *d;
    tv_timeline *t;
    sqlite3_stmt *string_of;
    name_slot *names;
    uint64_t rows;
}
export;

static tv_str string_of(export *e, int64_t id)
{
    if (!e->string_of)
        return (tv_str){0};
    (void)sqlite3_reset(e->string_of);
    (void)sqlite3_bind_int64(e->string_of, 1, id);
    return next(e->string_of) ? text(e->string_of, 0) : (tv_str){0};
}

static const name_slot *name_of(export *e, int64_t id)
{
    const size_t at = (size_t)((uint64_t)id * 0x9E3779B97F4A7C15u >> 48) % NAME_SLOTS;
    name_slot *slot = &e->names[at];
    if (slot->used && slot->id == id)
        return slot;
    tv_str s = string_of(e, id);
    if (!s.n)
        s = TV_S("(unnamed)");
    const tv_str begin = tv_str_take(s, sizeof slot->text);
    *slot = (name_slot){.id = id, .used = true, .waits = tv_call_waits(s)};
    slot->n = (unsigned char)begin.n;
    memcpy(slot->text, begin.p, begin.n);
    slot->number = tv_timeline_name(e->t, s);
    return slot;
}

/* ---- tables ---- */

static int64_t span_ns(int64_t start_ns, int64_t end_ns)
{
    int64_t dur_ns;
    return __builtin_sub_overflow(end_ns, start_ns, &dur_ns) || dur_ns < 0 ? 0 : dur_ns;
}

static uint32_t small(int64_t v)
{
    return v >= 0 && v < 1024 ? (uint32_t)v : 0;
}

static void read_kernels(export *e)
{
    static const char *const columns[] = {"start",         "end",           "deviceId", "streamId",
                                          "correlationId", "demangledName", "shortName"};
    int at[7];
    sqlite3_stmt *q = select_columns(e->d, "CUPTI_ACTIVITY_KIND_KERNEL", columns, 7, at);
    while (at[0] >= 0 && at[1] >= 0 && next(q)) {
        const int name_at = has(q, at[5]) ? at[5] : at[6];
        const tv_str name = text(q, name_at);
        const tv_work w = {
            .name = name.n ? tv_timeline_name(e->t, name) : name_of(e, whole(q, name_at))->number,
            .start_ns = whole(q, at[0]),
            .dur_ns = span_ns(whole(q, at[0]), whole(q, at[1])),
            .device = small(whole(q, at[2])),
            .stream = whole(q, at[3]),
            .call = (uint64_t)whole(q, at[4]),
            .way = TV_COPY_NONE,
            .bytes = 0,
        };
        tv_timeline_work(e->t, &w);
        e->rows++;
    }
}

/* CUpti_ActivityMemcpyKind. */
static tv_copy_way way_of(int64_t kind)
{
    switch (kind) {
    case 1:
        return TV_COPY_HTOD;
    case 2:
        return TV_COPY_DTOH;
    case 8:
        return TV_COPY_DTOD;
    case 10:
        return TV_COPY_PTOP;
    default:
        return TV_COPY_OTHER;
    }
}

static void read_copies(export *e)
{
    static const char *const columns[] = {"start",    "end",           "deviceId",
                                          "streamId", "correlationId", "copyKind",
                                          "bytes",    "srcKind",       "dstKind"};
    int at[9];
    sqlite3_stmt *q = select_columns(e->d, "CUPTI_ACTIVITY_KIND_MEMCPY", columns, 9, at);
    const uint32_t name = tv_timeline_name(e->t, TV_S("Memcpy"));
    while (at[0] >= 0 && at[1] >= 0 && next(q)) {
        const tv_copy_way way = way_of(whole(q, at[5]));
        /* The host's end of the copy: 0 pageable, 1 pinned. */
        const int end = way == TV_COPY_HTOD ? at[7] : way == TV_COPY_DTOH ? at[8] : -1;
        const bool known = has(q, end);
        const tv_work w = {
            .name = name,
            .start_ns = whole(q, at[0]),
            .dur_ns = span_ns(whole(q, at[0]), whole(q, at[1])),
            .device = small(whole(q, at[2])),
            .stream = whole(q, at[3]),
            .call = (uint64_t)whole(q, at[4]),
            .way = way,
            .pageable = known && whole(q, end) == 0,
            .pinned = known && whole(q, end) == 1,
            .bytes = has(q, at[6]) ? (double)whole(q, at[6]) : (double)NAN,
        };
        tv_timeline_work(e->t, &w);
        e->rows++;
    }
}

static void read_sets(export *e)
{
    static const char *const columns[] = {"start",    "end",           "deviceId",
                                          "streamId", "correlationId", "bytes"};
    int at[6];
    sqlite3_stmt *q = select_columns(e->d, "CUPTI_ACTIVITY_KIND_MEMSET", columns, 6, at);
    const uint32_t name = tv_timeline_name(e->t, TV_S("Memset"));
    while (at[0] >= 0 && at[1] >= 0 && next(q)) {
        const tv_work w = {
            .name = name,
            .start_ns = whole(q, at[0]),
            .dur_ns = span_ns(whole(q, at[0]), whole(q, at[1])),
            .device = small(whole(q, at[2])),
            .stream = whole(q, at[3]),
            .call = (uint64_t)whole(q, at[4]),
            .way = TV_COPY_SET,
            .bytes = (double)whole(q, at[5]),
        };
        tv_timeline_work(e->t, &w);
        e->rows++;
    }
}

static void read_calls(export *e)
{
    static const char *const columns[] = {"start", "end", "correlationId", "nameId"};
    int at[4];
    sqlite3_stmt *q = select_columns(e->d, "CUPTI_ACTIVITY_KIND_RUNTIME", columns, 4, at);
    while (at[0] >= 0 && at[1] >= 0 && next(q)) {
        const int64_t start_ns = whole(q, at[0]), dur_ns = span_ns(start_ns, whole(q, at[1]));
        const name_slot *name = name_of(e, whole(q, at[3]));
        tv_timeline_host(e->t, name->waits ? TV_HOST_SYNC : TV_HOST_CALL,
                         (tv_str){name->text, name->n}, start_ns, dur_ns,
                         (uint64_t)whole(q, at[2]));
        e->rows++;
    }
}

/* "ProfilerStep#12", "step 12", "iteration: 12", "Iter_12" */
static bool is_step(tv_str s, int64_t *number)
{
    static const char *const words[] = {"ProfilerStep", "training_step", "train_step", "step",
                                        "iteration",    "iter",          "batch"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t n = strlen(words[i]);
        if (s.n <= n || !tv_str_eq_nocase(tv_str_take(s, n), tv_str_of(words[i])))
            continue;
        tv_str rest = tv_str_drop(s, n);
        while (rest.n && memchr("#: _[=", *rest.p, 6))
            rest = tv_str_drop(rest, 1);
        if (tv_str_ends(rest, TV_S("]")))
            rest = tv_str_take(rest, rest.n - 1);
        const tv_u64_read r = tv_str_u64(rest);
        *number = (int64_t)(r.v & INT64_MAX);
        return r.ok;
    }
    return false;
}

static void take_range(export *e, tv_str s, int64_t start_ns, int64_t dur_ns)
{
    int64_t number;
    if (is_step(s, &number))
        tv_timeline_step(e->t, number, start_ns, dur_ns, false);
    else if (tv_str_starts(s, TV_S("enumerate(DataLoader)#_Single")))
        tv_timeline_host(e->t, TV_HOST_LOADER_SINGLE, s, start_ns, dur_ns, 0);
    else if (tv_str_starts(s, TV_S("enumerate(DataLoader)#_Multi")))
        tv_timeline_host(e->t, TV_HOST_LOADER_MULTI, s, start_ns, dur_ns, 0);
    else if (tv_str_starts(s, TV_S("enumerate(DataLoader)")) ||
             tv_str_eq_nocase(s, TV_S("dataloader")) || tv_str_eq_nocase(s, TV_S("data_loading")) ||
             tv_str_eq_nocase(s, TV_S("data loading")) || tv_str_eq_nocase(s, TV_S("data")))
        tv_timeline_host(e->t, TV_HOST_LOADER, s, start_ns, dur_ns, 0);
    else if (tv_str_starts(s, TV_S("aten::item")) || tv_str_has(s, TV_S("_local_scalar_dense")))
        tv_timeline_host(e->t, TV_HOST_ITEM, s, start_ns, dur_ns, 0);
}

static void read_ranges(export *e)
{
    static const char *const columns[] = {"start", "end", "text", "textId"};
    int at[4];
    sqlite3_stmt *q = select_columns(e->d, "NVTX_EVENTS", columns, 4, at);
    while (at[0] >= 0 && at[1] >= 0 && next(q)) {
        if (!has(q, at[1]))
            continue;
        tv_str s = text(q, at[2]);
        if (!s.n && has(q, at[3]))
            s = string_of(e, whole(q, at[3]));
        const int64_t start_ns = whole(q, at[0]);
        if (s.n)
            take_range(e, s, start_ns, span_ns(start_ns, whole(q, at[1])));
        e->rows++;
    }
}

/* ---- the file's own words about itself ---- */

static void note_devices(database *d, tv_arena *a, tv_note *facts)
{
    static const char *const columns[] = {"name", "id"};
    int at[2];
    sqlite3_stmt *q = select_columns(d, "TARGET_INFO_GPU", columns, 2, at);
    tv_note *list = NULL;
    for (unsigned n = 0; n < 64 && next(q); n++) {
        const tv_str name = text(q, at[0]);
        if (!name.n)
            continue;
        list = list ? list : tv_note_list(a, facts, "gpu_names");
        (void)tv_note_str(a, list, NULL, name);
    }
}

/* What nsys itself complains of: lost events, counters that it may not read. */
static void note_complaints(database *d, tv_arena *a, tv_note *facts)
{
    static const char *const columns[] = {"text", "severity"};
    int at[2];
    sqlite3_stmt *q = select_columns(d, "DIAGNOSTIC_EVENT", columns, 2, at);
    for (unsigned n = 0; n < 32 && at[1] >= 0 && next(q); n++)
        if (whole(q, at[1]) >= 2 && text(q, at[0]).n) /* 1 information, 2 warning, 3 error */
            (void)tv_note_str(a, tv_note_list(a, facts, "complaints"), NULL, text(q, at[0]));
}

static bool is_export(database *d)
{
    static const char *const tables[] = {"StringIds", "CUPTI_ACTIVITY_KIND_KERNEL",
                                         "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS",
                                         "TARGET_INFO_SYSTEM_ENV"};
    size_t n = 0;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        n += has_table(d, tables[i]);
    return n >= 2;
}

/* The timeline lies in the scene's arena: its own scratch is given back with d->a. */
static void read_export(database *d, tv_arena *a, tv_str name, tv_scene *scene)
{
    if (!is_export(d))
        return;
    export e = {.d = d, .t = tv_timeline_open(d->a), .names = tv_new(d->a, name_slot, NAME_SLOTS)};
    if (has_table(d, "StringIds"))
        e.string_of = prepare(d, "SELECT value FROM StringIds WHERE id = ?1");
    read_kernels(&e);
    read_copies(&e);
    read_sets(&e);
    read_calls(&e);
    read_ranges(&e);
    tv_sighting *s =
        tv_scene_add(a, scene, "trace", name, 0, TV_S("Nsight Systems, SQLite export"));
    (void)tv_note_str(a, &s->facts, "profile", TV_S("nsys"));
    (void)tv_note_num(a, &s->facts, "events", (double)e.rows);
    if (!d->ticks)
        (void)tv_note_bool(a, &s->facts, "truncated", true);
    tv_timeline_facts(e.t, a, &s->facts);
    note_devices(d, a, &s->facts);
    note_complaints(d, a, &s->facts);
}

/* ---- the format ---- */

static const char magic[] = "SQLite format 3";

static bool is(const tv_input *in)
{
    return in->head.n >= 100 && memcmp(in->head.p, magic, sizeof magic) == 0;
}

const tv_err *tv_nsys_read(tv_arena *a, tv_str name, tv_bytes_view bytes, tv_scene *scene)
{
    tv_arena *scratch = tv_arena_child(a, TV_LIMIT_ARENA_BYTES);
    const tv_mark mark = tv_arena_mark(scratch);
    database *d = open_bytes(scratch, bytes);
    if (d)
        read_export(d, a, name, scene);
    tv_arena_rewind(scratch, mark);
    return NULL;
}

static const tv_err *read(tv_arena *a, tv_input *in, tv_scene *scene)
{
    if (in->path.n && !tv_stream_is_packed(in->stream)) {
        tv_arena *scratch = tv_arena_child(a, TV_LIMIT_ARENA_BYTES);
        const tv_mark mark = tv_arena_mark(scratch);
        database *d = open_path(scratch, in->path, tv_file_stat(scratch, in->path).bytes);
        if (d)
            read_export(d, a, in->name, scene);
        tv_arena_rewind(scratch, mark);
        return NULL;
    }
    /* In an archive or compressed: SQLite needs the whole file at once. */
    tv_arena *whole_file = tv_arena_child(a, TV_LIMIT_ARENA_BYTES);
    const tv_mark mark = tv_arena_mark(whole_file);
    tv_str all;
    TV_TRY(tv_stream_take(in->stream, whole_file, TV_LIMIT_DATABASE_BYTES, &all));
    if (all.n == TV_LIMIT_DATABASE_BYTES) {
        tv_arena_rewind(whole_file, mark);
        return tv_hint(
            tv_in_file(TV_FAIL(a, TV_LIMIT, "trace.database-large",
                               N_("the database is larger than {limit}, which is read only as a "
                                  "file of its own"),
                               tv_arg_num("limit", TV_ARG_MEMORY, (double)TV_LIMIT_DATABASE_BYTES)),
                       in->name),
            TV_TEXT0("trace.database-unpack", N_("Unpack it first.")));
    }
    const tv_err *e =
        tv_nsys_read(a, in->name, (tv_bytes_view){(const unsigned char *)all.p, all.n}, scene);
    tv_arena_rewind(whole_file, mark);
    return e;
}

extern const tv_dump_format tv_dump_format_nsys_db;
const tv_dump_format tv_dump_format_nsys_db = {"nsys-sqlite", is, read};
