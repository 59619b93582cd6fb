/* The directory stands at the end of the file; everything is reached from there. Numbers that do
 * not fit their field stand in an extra field (Zip64). Sections are APPNOTE 6.3.10's. */
#include "zip.h"

#include "base/limits.h"

#include <string.h>

/* The header is const-correct only when asked; the input is never written. */
#define ZLIB_CONST
#include <zlib.h>

#include "zlib_memory.h"

enum {
    end_bytes = 22,     /* 4.3.16 */
    locator_bytes = 20, /* 4.3.15 */
    end64_bytes = 56,   /* 4.3.14 */
    central_bytes = 46, /* 4.3.12 */
    local_bytes = 30,   /* 4.3.7 */
    stored = 0,         /* 4.4.5 */
    deflated = 8,
    extra_zip64 = 0x0001, /* 4.5.3 */
    /* Deflate cannot shrink further: a block of 258 bytes takes two bits. */
    deflate_most = 1032,
};

typedef struct directory {
    uint64_t begin, end; /* in the file */
    uint64_t base;       /* what stands before the archive: offsets are counted from there */
    uint64_t n;
} directory;

static uint16_t get16(const unsigned char *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t get32(const unsigned char *p)
{
    return get16(p) | (uint32_t)get16(p + 2) << 16;
}

static uint64_t get64(const unsigned char *p)
{
    return get32(p) | (uint64_t)get32(p + 4) << 32;
}

static bool is_at(tv_bytes_view b, uint64_t at, uint64_t n, const char *mark)
{
    return at <= b.n && n <= b.n - at && memcmp(b.p + at, mark, 4) == 0;
}

bool tv_zip_is(tv_bytes_view bytes)
{
    return is_at(bytes, 0, local_bytes, "PK\x03\x04") || is_at(bytes, 0, end_bytes, "PK\x05\x06");
}

static const tv_err *broken(tv_arena *a, const tv_zip *z, const char *id, const char *msgid,
                            uint64_t at)
{
    return tv_fail_at(a, TV_INPUT, TV_TEXT0(id, msgid), z->file, at);
}

/* ---- the directory's place ---- */

/* The end record, behind which a comment may stand that fills the file; its offset. */
static bool find_end(tv_bytes_view b, uint64_t *at)
{
    if (b.n < end_bytes)
        return false;
    const uint64_t last = b.n - end_bytes;
    for (uint64_t back = 0; back <= last && back <= UINT16_MAX; back++) {
        *at = last - back;
        if (is_at(b, *at, end_bytes, "PK\x05\x06") && get16(b.p + *at + 20) == back)
            return true;
    }
    return false;
}

static const tv_err *no_directory(tv_arena *a, const tv_zip *z, uint64_t at)
{
    return broken(a, z, "zip.directory",
                  N_("the archive's directory does not lie where its end says"), at);
}

/* 4.3.15: a locator stands before the end record where numbers did not fit. */
static const tv_err *read_end64(tv_arena *a, const tv_zip *z, uint64_t end, directory *d,
                                uint64_t *size, uint64_t *offset)
{
    const tv_bytes_view b = z->bytes;
    const uint64_t stated = get64(b.p + end - locator_bytes + 8);
    /* What was put before the archive moves the record too. */
    const uint64_t at = end - locator_bytes >= end64_bytes ? end - locator_bytes - end64_bytes : 0;
    const uint64_t where = is_at(b, stated, end64_bytes, "PK\x06\x06") ? stated : at;
    if (!is_at(b, where, end64_bytes, "PK\x06\x06") || where > end - locator_bytes)
        return no_directory(a, z, end - locator_bytes);
    d->n = get64(b.p + where + 32);
    *size = get64(b.p + where + 40);
    *offset = get64(b.p + where + 48);
    d->end = where;
    return NULL;
}

static const tv_err *find_directory(tv_arena *a, const tv_zip *z, directory *d)
{
    uint64_t end = 0;
    if (!find_end(z->bytes, &end))
        return broken(a, z, "zip.no-end",
                      N_("the archive has no end: the file was cut, or is no zip file"),
                      z->bytes.n);
    const unsigned char *p = z->bytes.p + end;
    uint64_t size = get32(p + 12), offset = get32(p + 16);
    *d = (directory){.end = end, .n = get16(p + 10)};
    if (end >= locator_bytes && is_at(z->bytes, end - locator_bytes, locator_bytes, "PK\x06\x07"))
        TV_TRY(read_end64(a, z, end, d, &size, &offset));
    if (size > d->end || offset > d->end - size)
        return no_directory(a, z, end);
    d->begin = d->end - size;
    d->base = d->begin - offset;
    return NULL;
}

/* ---- entries ---- */

/* 4.5.3: the numbers that did not fit, in this order, each only where its field is full. */
static bool read_zip64(tv_bytes_view extra, tv_zip_entry *x)
{
    uint64_t *const slots[] = {&x->bytes, &x->packed_bytes, &x->header};
    for (size_t at = 0; extra.n - at >= 4;) {
        const uint16_t id = get16(extra.p + at);
        size_t n = get16(extra.p + at + 2);
        at += 4;
        if (n > extra.n - at)
            return false;
        const unsigned char *p = extra.p + at;
        at += n;
        if (id != extra_zip64)
            continue;
        for (size_t i = 0; i < 3; i++) {
            if (*slots[i] != UINT32_MAX)
                continue;
            if (n < 8)
                return false;
            *slots[i] = get64(p);
            p += 8;
            n -= 8;
        }
        return true;
    }
    return false;
}

static const tv_err *check_entry(tv_arena *a, const tv_zip *z, const directory *d, uint64_t at,
                                 tv_zip_entry *x)
{
    const uint64_t room = d->begin - d->base;
    if (x->header > room || room - x->header < local_bytes + x->name.n ||
        x->packed_bytes > room - x->header - local_bytes - x->name.n)
        return tv_fail_at(a, TV_INPUT,
                          TV_TEXT(a, "zip.outside",
                                  N_("\"{name}\" does not lie inside the archive"),
                                  tv_arg_str("name", x->name)),
                          z->file, at);
    x->header += d->base;
    return NULL;
}

static const tv_err *read_entry(tv_arena *a, const tv_zip *z, const directory *d, uint64_t *at,
                                tv_zip_entry *x)
{
    const tv_bytes_view rest = {z->bytes.p + *at, d->end - *at};
    if (!is_at(rest, 0, central_bytes, "PK\x01\x02"))
        return broken(a, z, "zip.entry", N_("an entry of the archive's directory is damaged"), *at);
    const unsigned char *p = rest.p;
    const size_t name = get16(p + 28), extra = get16(p + 30), comment = get16(p + 32);
    if (name + extra + comment > rest.n - central_bytes)
        return broken(a, z, "zip.entry", N_("an entry of the archive's directory is damaged"), *at);
    *x = (tv_zip_entry){
        .name = {(const char *)p + central_bytes, name},
        .bytes = get32(p + 24),
        .packed_bytes = get32(p + 20),
        .header = get32(p + 42),
        .crc = get32(p + 16),
        .method = get16(p + 10),
        .encrypted = p[8] & 1,
    };
    const bool full =
        x->bytes == UINT32_MAX || x->packed_bytes == UINT32_MAX || x->header == UINT32_MAX;
    if (full && !read_zip64((tv_bytes_view){p + central_bytes + name, extra}, x))
        return broken(a, z, "zip.entry64",
                      N_("an entry lacks the sizes that its fields cannot hold"), *at);
    TV_TRY(check_entry(a, z, d, *at, x));
    *at += central_bytes + name + extra + comment;
    return NULL;
}

/* ---- names ---- */

static size_t slot_of(const tv_zip *z, const uint32_t *slots, tv_str name)
{
    size_t i = tv_str_hash(name) & (z->n_slots - 1);
    while (slots[i] && !tv_str_eq(z->entries[slots[i] - 1].name, name))
        i = (i + 1) & (z->n_slots - 1);
    return i;
}

static const tv_err *index_names(tv_arena *a, tv_zip *z)
{
    z->n_slots = 16;
    while (z->n_slots < 2 * z->n)
        z->n_slots *= 2;
    uint32_t *slots = tv_new(a, uint32_t, z->n_slots);
    for (size_t i = 0; i < z->n; i++) {
        const tv_zip_entry *x = &z->entries[i];
        const size_t at = slot_of(z, slots, x->name);
        if (slots[at])
            return tv_fail_at(a, TV_INPUT,
                              TV_TEXT(a, "zip.twice", N_("\"{name}\" stands twice in the archive"),
                                      tv_arg_str("name", x->name)),
                              z->file, (uint64_t)((const unsigned char *)x->name.p - z->bytes.p));
        slots[at] = (uint32_t)(i + 1);
    }
    z->slots = slots;
    return NULL;
}

const tv_err *tv_zip_open(tv_arena *a, tv_str file, tv_bytes_view bytes, tv_zip *zip)
{
    directory d = {0};
    *zip = (tv_zip){.file = file, .bytes = bytes};
    TV_TRY(find_directory(a, zip, &d));
    if (d.n > (d.end - d.begin) / central_bytes)
        return no_directory(a, zip, d.end);
    if (d.n > TV_LIMIT_ZIP_ENTRIES)
        return tv_fail_at(a, TV_LIMIT,
                          TV_TEXT0("zip.too-many", N_("the archive has too many entries")), file,
                          d.end);
    tv_zip_entry *entries = tv_new(a, tv_zip_entry, d.n ? (size_t)d.n : 1);
    uint64_t at = d.begin;
    for (uint64_t i = 0; i < d.n; i++)
        TV_TRY(read_entry(a, zip, &d, &at, &entries[i]));
    zip->entries = entries;
    zip->n = (size_t)d.n;
    return index_names(a, zip);
}

const tv_zip_entry *tv_zip_find(const tv_zip *zip, tv_str name)
{
    if (zip->n == 0)
        return NULL;
    const uint32_t slot = zip->slots[slot_of(zip, zip->slots, name)];
    return slot ? &zip->entries[slot - 1] : NULL;
}

/* ---- data ---- */

static const tv_err *entry_fails(tv_arena *a, const tv_zip *z, const tv_zip_entry *x, tv_code code,
                                 const char *id, const char *msgid)
{
    return tv_fail_at(a, code, TV_TEXT(a, id, msgid, tv_arg_str("name", x->name)), z->file,
                      x->header);
}

const tv_err *tv_zip_data(tv_arena *a, const tv_zip *zip, const tv_zip_entry *entry,
                          uint64_t *offset)
{
    const tv_bytes_view b = zip->bytes;
    const char *const damaged = N_("the header of \"{name}\" in the archive is damaged");
    if (!is_at(b, entry->header, local_bytes, "PK\x03\x04"))
        return entry_fails(a, zip, entry, TV_INPUT, "zip.local", damaged);
    const unsigned char *p = b.p + entry->header;
    const uint64_t room = b.n - entry->header - local_bytes;
    const uint64_t skip = (uint64_t)get16(p + 26) + get16(p + 28);
    if (skip > room || entry->packed_bytes > room - skip)
        return entry_fails(a, zip, entry, TV_INPUT, "zip.local", damaged);
    *offset = entry->header + local_bytes + skip;
    return NULL;
}

/* The whole entry at once: its size is known and was held against the limit. */
static bool inflate_all(tv_arena *a, tv_bytes_view packed, unsigned char *out, size_t n)
{
    if (packed.n > UINT32_MAX || n > UINT32_MAX)
        return false;
    z_stream z = {.zalloc = tv_zlib_alloc, .zfree = tv_zlib_free, .opaque = a};
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
        return false;
    z.next_in = packed.p;
    z.avail_in = (unsigned)packed.n;
    z.next_out = out;
    z.avail_out = (unsigned)n;
    return inflate(&z, Z_FINISH) == Z_STREAM_END && z.avail_out == 0;
}

static const tv_err *inflate_entry(tv_arena *a, const tv_zip *z, const tv_zip_entry *x,
                                   tv_bytes_view packed, tv_bytes_view *bytes)
{
    const char *const damaged = N_("the data of \"{name}\" in the archive is damaged");
    if (x->bytes / deflate_most > packed.n)
        return entry_fails(a, z, x, TV_INPUT, "zip.data", damaged);
    const size_t n = (size_t)x->bytes;
    unsigned char *out = tv_new(a, unsigned char, n + 1); /* zlib wants a place even for nothing */
    if (!inflate_all(a, packed, out, n) || crc32_z(0, out, n) != x->crc)
        return entry_fails(a, z, x, TV_INPUT, "zip.data", damaged);
    *bytes = (tv_bytes_view){out, n};
    return NULL;
}

const tv_err *tv_zip_read(tv_arena *a, const tv_zip *zip, const tv_zip_entry *entry, size_t limit,
                          tv_bytes_view *bytes)
{
    uint64_t offset = 0;
    if (entry->encrypted || (entry->method != stored && entry->method != deflated))
        return entry_fails(a, zip, entry, TV_UNSUPPORTED, "zip.method",
                           N_("\"{name}\" is packed in a way that is not read"));
    if (entry->bytes > limit)
        return entry_fails(a, zip, entry, TV_LIMIT, "zip.too-large",
                           N_("\"{name}\" in the archive is larger than what is read at once"));
    TV_TRY(tv_zip_data(a, zip, entry, &offset));
    const tv_bytes_view packed = {zip->bytes.p + offset, (size_t)entry->packed_bytes};
    if (entry->method == deflated)
        return inflate_entry(a, zip, entry, packed, bytes);
    if (entry->packed_bytes != entry->bytes)
        return entry_fails(a, zip, entry, TV_INPUT, "zip.local",
                           N_("the header of \"{name}\" in the archive is damaged"));
    *bytes = packed;
    return NULL;
}
