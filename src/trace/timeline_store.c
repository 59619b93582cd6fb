/* Chunks of packed records. When the memory is full, the pieces are linked to their calls (a
 * profile writes both close together), sorted and written to a temporary file as one run a chunk;
 * at the end runs in memory and in the file are merged by a heap. */
#include "timeline_store.h"

#include <stdio.h>
#include <string.h>

enum {
    first_records = 2048,
    chunk_bytes = 4 << 20,
    digit_bits = 11,
    digits = 1 << digit_bits,
    window_records = 1024, /* of a run in the file that is looked at */
};

typedef struct chunk chunk;
struct chunk {
    chunk *next;
    unsigned char *records;
    size_t n, cap;
    size_t at; /* of a merge */
};

typedef struct chunks {
    size_t size; /* of a record */
    chunk *first, *last;
    chunk *spare;
    size_t n;
} chunks;

/* A sorted run of pieces in the file. */
typedef struct run run;
struct run {
    run *next;
    long offset; /* in records */
    size_t left;
    tv_piece *window;
    size_t at, n;
};

/* What a merge takes from: a chunk in memory or a run in the file. */
typedef struct source {
    uint64_t key; /* of the record in front */
    chunk *chunk;
    run *run;
} source;

typedef struct heap {
    source *v;
    size_t n;
    uint64_t (*key)(const void *record);
    size_t size;
} heap;

struct tv_store {
    tv_arena *a;
    size_t most_bytes, used_bytes;
    chunks pieces, calls;
    unsigned char *scratch; /* as large as the largest chunk */
    FILE *file;
    bool no_file;
    run *runs, *last_run;
    long written; /* records in the file */
    int64_t pageable_ns;
    uint64_t linked;
    heap order;
    tv_piece kept;
};

/* ---- chunks ---- */

static void *add_record(tv_store *s, chunks *all)
{
    chunk *c = all->last;
    if (!c || c->n == c->cap) {
        if (all->spare) {
            c = all->spare;
            all->spare = c->next;
            c->next = NULL;
            c->n = 0;
        } else {
            const size_t most = (size_t)chunk_bytes / all->size;
            size_t cap = all->last ? all->last->cap * 2 : (size_t)first_records;
            cap = cap < most ? cap : most;
            c = tv_new(s->a, chunk, 1);
            c->cap = cap;
            c->records = tv_alloc(s->a, cap, all->size);
            s->used_bytes += cap * all->size;
        }
        if (all->last)
            all->last->next = c;
        else
            all->first = c;
        all->last = c;
    }
    all->n++;
    return c->records + all->size * c->n++;
}

/* Full chunks are given back in the order of their size. */
static void empty(chunks *all)
{
    if (!all->last)
        return;
    all->last->next = all->spare;
    all->spare = all->first;
    all->first = all->last = NULL;
    all->n = 0;
}

/* ---- sorting ---- */

static uint64_t piece_start(const void *record)
{
    return (uint64_t)tv_piece_start(record);
}

static uint64_t piece_link(const void *record)
{
    return ((const tv_piece *)record)->link;
}

static uint64_t call_number(const void *record)
{
    return ((const tv_call *)record)->number;
}

static unsigned digit_of(uint64_t key, unsigned shift)
{
    return (unsigned)(key >> shift) & (digits - 1);
}

typedef struct keys {
    uint64_t low, high;
    bool sorted;
} keys;

static keys look_at(const unsigned char *v, size_t n, size_t size, uint64_t (*key)(const void *))
{
    keys k = {UINT64_MAX, 0, true};
    uint64_t last = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t now = key(v + i * size);
        k.low = now < k.low ? now : k.low;
        k.high = now > k.high ? now : k.high;
        k.sorted = k.sorted && now >= last;
        last = now;
    }
    return k;
}

/* Stable, by digits from the lowest; only as many as the range of keys asks for. */
static void sort_chunk(tv_store *s, chunk *c, size_t size, uint64_t (*key)(const void *))
{
    const keys k = look_at(c->records, c->n, size, key);
    if (k.sorted)
        return;
    if (!s->scratch)
        s->scratch = tv_alloc(s->a, chunk_bytes, 1);
    unsigned char *from = c->records, *to = s->scratch;
    for (unsigned shift = 0; shift < 64 && (k.high - k.low) >> shift; shift += digit_bits) {
        size_t begin[digits] = {0};
        for (size_t i = 0; i < c->n; i++)
            begin[digit_of(key(from + i * size) - k.low, shift)]++;
        size_t sum = 0;
        for (size_t d = 0; d < digits; d++) {
            const size_t n = begin[d];
            begin[d] = sum;
            sum += n;
        }
        for (size_t i = 0; i < c->n; i++) {
            const unsigned d = digit_of(key(from + i * size) - k.low, shift);
            memcpy(to + begin[d]++ * size, from + i * size, size);
        }
        unsigned char *other = from;
        from = to;
        to = other;
    }
    if (from != c->records)
        memcpy(c->records, from, c->n * size);
}

static void sort_chunks(tv_store *s, const chunks *all, uint64_t (*key)(const void *))
{
    for (chunk *c = all->first; c; c = c->next)
        sort_chunk(s, c, all->size, key);
}

/* ---- merging ---- */

static const void *front_of(const heap *h, const source *from)
{
    if (from->chunk)
        return from->chunk->records + from->chunk->at * h->size;
    return &from->run->window[from->run->at];
}

static void sink(heap *h, size_t i)
{
    for (;;) {
        size_t least = i;
        for (size_t k = 2 * i + 1; k <= 2 * i + 2 && k < h->n; k++)
            least = h->v[k].key < h->v[least].key ? k : least;
        if (least == i)
            return;
        const source held = h->v[i];
        h->v[i] = h->v[least];
        h->v[least] = held;
        i = least;
    }
}

static void build(tv_store *s, heap *h, const chunks *all, run *runs, uint64_t (*key)(const void *))
{
    size_t n = 0;
    for (const chunk *c = all->first; c; c = c->next)
        n += c->n > 0;
    for (const run *r = runs; r; r = r->next)
        n++;
    *h = (heap){.v = tv_new(s->a, source, n + 1), .key = key, .size = all->size};
    for (chunk *c = all->first; c; c = c->next) {
        c->at = 0;
        if (c->n)
            h->v[h->n++] = (source){.chunk = c};
    }
    for (run *r = runs; r; r = r->next)
        if (r->n)
            h->v[h->n++] = (source){.run = r};
    for (size_t i = 0; i < h->n; i++)
        h->v[i].key = key(front_of(h, &h->v[i]));
    for (size_t i = h->n / 2 + 1; i-- > 0;)
        if (i < h->n)
            sink(h, i);
}

static void fill_window(tv_store *s, run *r)
{
    r->at = r->n = 0;
    const size_t n = r->left < window_records ? r->left : (size_t)window_records;
    if (!n || fseek(s->file, r->offset * (long)sizeof(tv_piece), SEEK_SET))
        return;
    r->n = fread(r->window, sizeof(tv_piece), n, s->file);
    r->offset += (long)r->n;
    r->left = r->n ? r->left - r->n : 0;
}

/* The record in front, valid until the next call; the source behind it moves on. */
static const void *take(tv_store *s, heap *h, tv_piece *kept)
{
    if (!h->n)
        return NULL;
    source *top = &h->v[0];
    const void *record = front_of(h, top);
    bool more;
    if (top->chunk) {
        more = ++top->chunk->at < top->chunk->n;
    } else {
        *kept = *(const tv_piece *)record; /* the window may be read over */
        record = kept;
        if (++top->run->at == top->run->n)
            fill_window(s, top->run);
        more = top->run->at < top->run->n;
    }
    if (more)
        top->key = h->key(front_of(h, top));
    else
        *top = h->v[--h->n];
    sink(h, 0);
    return record;
}

/* ---- linking ---- */

static void link_piece(tv_store *s, tv_piece *p, const tv_call *c)
{
    int64_t ns = tv_piece_start(p) - tv_call_start(c);
    ns = ns > 0 ? ns / TV_LINK_UNIT_NS : 0;
    p->link = ns < (int64_t)TV_LINK_UNKNOWN ? (uint32_t)ns : TV_LINK_UNKNOWN - 1;
    s->linked++;
    if (p->what & TV_PIECE_PAGEABLE)
        s->pageable_ns += (int64_t)c->dur * TV_CALL_DUR_NS;
}

/* Both sides in the order of the numbers: one pass. Of several calls with one number the first
 * counts. The pieces of a graph share the number of its launch. */
static void join(tv_store *s)
{
    sort_chunks(s, &s->pieces, piece_link);
    sort_chunks(s, &s->calls, call_number);
    heap pieces, calls;
    build(s, &pieces, &s->pieces, NULL, piece_link);
    build(s, &calls, &s->calls, NULL, call_number);
    const tv_call *call = take(s, &calls, NULL);
    for (;;) {
        chunk *from = pieces.n ? pieces.v[0].chunk : NULL;
        if (!from)
            break;
        tv_piece *p = (tv_piece *)(void *)(from->records + from->at * sizeof *p);
        const uint32_t number = p->link;
        (void)take(s, &pieces, NULL); /* the heap holds the old key until here */
        while (call && call->number < number)
            call = take(s, &calls, NULL);
        if (number && call && call->number == number)
            link_piece(s, p, call);
        else
            p->link = TV_LINK_UNKNOWN;
    }
}

/* ---- the temporary file ---- */

static void close_file(void *file)
{
    (void)fclose(file);
}

static bool spill(tv_store *s)
{
    if (!s->file && !s->no_file) {
        s->file = tmpfile();
        s->no_file = !s->file;
        if (s->file)
            tv_defer(s->a, close_file, s->file);
    }
    if (s->no_file)
        return false;
    join(s);
    sort_chunks(s, &s->pieces, piece_start);
    for (chunk *c = s->pieces.first; c; c = c->next) {
        if (!c->n)
            continue;
        if (fseek(s->file, s->written * (long)sizeof(tv_piece), SEEK_SET) ||
            fwrite(c->records, sizeof(tv_piece), c->n, s->file) != c->n) {
            s->no_file = true;
            return false;
        }
        run *r = tv_new(s->a, run, 1);
        *r = (run){.offset = s->written, .left = c->n};
        if (s->last_run)
            s->last_run->next = r;
        else
            s->runs = r;
        s->last_run = r;
        s->written += (long)c->n;
    }
    empty(&s->pieces);
    empty(&s->calls);
    return true;
}

/* ---- the face ---- */

tv_store *tv_store_open(tv_arena *a, size_t most_bytes)
{
    tv_store *s = tv_new(a, tv_store, 1);
    s->a = a;
    s->most_bytes = most_bytes;
    s->pieces.size = sizeof(tv_piece);
    s->calls.size = sizeof(tv_call);
    return s;
}

static bool full(const tv_store *s, const chunks *all)
{
    return s->used_bytes >= s->most_bytes && !all->spare && all->last &&
           all->last->n == all->last->cap;
}

bool tv_store_piece(tv_store *s, const tv_piece *p)
{
    if (full(s, &s->pieces) && !spill(s))
        return false;
    *(tv_piece *)add_record(s, &s->pieces) = *p;
    return true;
}

/* Calls that find no room are not kept: their work counts as not linked. */
void tv_store_call(tv_store *s, const tv_call *c)
{
    if (full(s, &s->calls) && (!s->pieces.n || !spill(s)))
        return;
    if (full(s, &s->calls))
        return;
    *(tv_call *)add_record(s, &s->calls) = *c;
}

void tv_store_end(tv_store *s)
{
    join(s);
    sort_chunks(s, &s->pieces, piece_start);
    for (run *r = s->runs; r; r = r->next) {
        r->window = tv_new(s->a, tv_piece, window_records);
        fill_window(s, r);
    }
    build(s, &s->order, &s->pieces, s->runs, piece_start);
}

int64_t tv_store_pageable_ns(const tv_store *s)
{
    return s->pageable_ns;
}

uint64_t tv_store_linked(const tv_store *s)
{
    return s->linked;
}

uint64_t tv_store_spilled_bytes(const tv_store *s)
{
    return (uint64_t)s->written * sizeof(tv_piece);
}

const tv_piece *tv_store_next(tv_store *s)
{
    return take(s, &s->order, &s->kept);
}
