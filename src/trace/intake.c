/* What the user names -> documents -> readers. Folders are walked, archives unpacked as they
 * stream by; a text longer than a sheet is read sheet after sheet, so that memory is bounded. */
#include "trace.h"

#include <string.h>

#include "captured.h"
#include "needles.h"
#include "sheet.h"
#include "wide_text.h"

#include "codec/tar.h"
#include "codec/zip.h"

/* The readers' working space; one for all documents of a scene. */
struct tv_intake {
    tv_arena *a;    /* of what is kept */
    tv_arena *open; /* streams: given back after each file */
    tv_arena *turn; /* of a sheet */
    tv_mark blank;
    char *text; /* of the sheet; TV_LIMIT_SHEET_BYTES once a file needed more than small_bytes */
    size_t cap;
    tv_scene *scene;
    const tv_needles *needles;
    size_t files;
};

typedef struct tv_intake intake;

/* Room for the text of most files. */
enum { small_bytes = 256 * 1024 };

tv_sighting *tv_see(tv_reading *r, const char *kind, size_t i)
{
    const tv_str text = i < r->sheet->n ? r->sheet->v[i].s : (tv_str){0};
    return tv_scene_add(r->a, r->scene, kind, r->sheet->file, r->sheet->first_line + i, text);
}

tv_note *tv_at(const tv_reading *r, tv_note *note, size_t i)
{
    return i < r->sheet->n ? tv_note_place(r->a, note, r->sheet->first_line + i, r->sheet->v[i].s)
                           : note;
}

/* ---- text ---- */

static void read_sheet(intake *in, tv_str name, uint64_t first_line, tv_str text)
{
    tv_arena *scratch = in->turn;
    tv_arena_rewind(scratch, in->blank);
    bool *hit = tv_new(scratch, bool, tv_needles_formats(in->needles) + 1);
    tv_needles_in(in->needles, name, tv_is_binary(text) ? (tv_str){0} : text, hit);
    tv_sheet sheet = {0};
    for (size_t f = 0; tv_log_formats[f]; f++) {
        if (!hit[f])
            continue;
        if (!sheet.n)
            tv_sheet_fill(scratch, &sheet, name, first_line, text);
        tv_reading r = {in->a, in->scene, &sheet};
        tv_log_formats[f]->read(&r);
    }
}

/* How much of a full sheet is read now: up to its last line end; the rest begins the next one. */
static size_t whole_lines(tv_str text)
{
    const char *end = text.n ? memrchr(text.p, '\n', text.n) : NULL;
    return end ? (size_t)(end - text.p) + 1 : text.n;
}

static void enlarge(intake *in, size_t held)
{
    char *larger = tv_new(in->a, char, TV_LIMIT_SHEET_BYTES);
    if (held)
        memcpy(larger, in->text, held);
    in->text = larger;
    in->cap = TV_LIMIT_SHEET_BYTES;
}

/* Fills the sheet's text behind what the last one left of it. */
static const tv_err *fill_text(intake *in, tv_wide_text *wide, tv_stream *stream, size_t *held,
                               bool *more)
{
    for (;;) {
        size_t got;
        TV_TRY(tv_wide_text_read(wide, stream, in->text + *held, in->cap - *held, &got));
        *held += got;
        *more = !wide->over;
        if (wide->over || in->cap == TV_LIMIT_SHEET_BYTES)
            return NULL;
        enlarge(in, *held);
    }
}

static const tv_err *read_text(intake *in, tv_stream *stream, tv_str name)
{
    tv_wide_text wide = {0};
    TV_TRY(tv_wide_text_begin(&wide, stream));
    size_t held = 0;
    uint64_t first_line = 1;
    bool more = true;
    while (more) {
        TV_TRY(fill_text(in, &wide, stream, &held, &more));
        const size_t whole = more ? whole_lines((tv_str){in->text, held}) : held;
        tv_str text = {in->text, whole};
        while (text.n) { /* parts of so many lines that their table stays small */
            const tv_lines_cut cut = tv_cut_lines(text, TV_LIMIT_SHEET_LINES);
            read_sheet(in, name, first_line, cut.head);
            first_line += cut.n;
            text = cut.tail;
        }
        memmove(in->text, in->text + whole, held - whole);
        held -= whole;
    }
    return NULL;
}

/* ---- one file ---- */

static const tv_err *read_stream(intake *in, tv_stream *stream, tv_str name, tv_str path,
                                 unsigned depth);

static void list_file(intake *in, tv_str name, const tv_sighting *before, uint64_t bytes,
                      const tv_err *damage)
{
    tv_note *file = tv_note_map(in->a, &in->scene->files, NULL);
    (void)tv_note_str(in->a, file, "file", name);
    (void)tv_note_num(in->a, file, "bytes", (double)bytes);
    tv_note *kinds = tv_note_list(in->a, file, "kinds");
    for (const tv_sighting *s = before ? before->next : in->scene->first; s; s = s->next)
        (void)tv_note_str(in->a, kinds, NULL, tv_str_of(s->kind));
    if (damage)
        (void)tv_note_str(in->a, file, "damage", tv_text_in(in->a, TV_EN, damage->what));
}

static tv_str inner_name(intake *in, tv_str name, tv_str member)
{
    return tv_str_join(in->a, tv_str_join(in->a, name, TV_S(":")), tv_shown_name(in->a, member));
}

static const tv_err *read_tar(intake *in, tv_stream *stream, tv_str name, unsigned depth)
{
    for (tv_tar tar = tv_tar_open(in->open, stream);;) {
        const tv_mark mark = tv_arena_mark(in->open);
        bool more = false;
        TV_TRY(tv_tar_next(&tar, &more));
        if (!more || in->files >= TV_LIMIT_CAPTURED_FILES)
            return NULL;
        tv_stream *part;
        const tv_str inner = inner_name(in, name, tar.name);
        TV_TRY(tv_stream_part(in->open, stream, inner, tar.bytes, &part));
        TV_TRY(read_stream(in, part, inner, (tv_str){0}, depth + 1));
        tv_arena_rewind(in->open, mark);
    }
}

static const tv_err *read_entry(intake *in, const tv_zip *zip, const tv_zip_entry *entry,
                                tv_str name)
{
    if (entry->encrypted || (entry->method != 0 && entry->method != 8))
        return TV_FAIL0(in->a, TV_UNSUPPORTED, "zip.method",
                        N_("is encrypted or packed in a way that is not read"));
    uint64_t at;
    TV_TRY(tv_zip_data(in->a, zip, entry, &at));
    const tv_bytes_view bytes = {zip->bytes.p + at, (size_t)entry->packed_bytes};
    tv_stream *stream;
    if (entry->method == 0) {
        TV_TRY(tv_stream_over(in->open, name, bytes, &stream));
    } else { /* as a part, for it may be packed itself */
        tv_stream *inflated;
        TV_TRY(tv_stream_deflated(in->open, name, bytes, &inflated));
        TV_TRY(tv_stream_part(in->open, inflated, name, entry->bytes, &stream));
    }
    return read_stream(in, stream, name, (tv_str){0}, 1);
}

/* The archive that was already opened as a stream is looked at as a whole: its list of entries
 * stands at its end. */
static const tv_err *read_zip(intake *in, tv_str path, tv_str name)
{
    tv_bytes_view bytes;
    tv_zip zip;
    TV_TRY(tv_file_map(in->open, path, &bytes));
    TV_TRY(tv_zip_open(in->open, name, bytes, &zip));
    /* entries may share their bytes: all together keep the ratio */
    const uint64_t most = TV_LIMIT_INFLATE_FREE_BYTES + TV_LIMIT_INFLATE_RATIO * (uint64_t)bytes.n;
    uint64_t total = 0;
    for (size_t i = 0; i < zip.n && in->files < TV_LIMIT_CAPTURED_FILES; i++) {
        if (tv_str_ends(zip.entries[i].name, TV_S("/")))
            continue;
        if (zip.entries[i].bytes > most - total) {
            list_file(
                in, name, in->scene->last, total,
                TV_FAIL0(in->a, TV_LIMIT, "zip.bomb", N_("inflates far beyond what data does")));
            return NULL;
        }
        total += zip.entries[i].bytes;
        const tv_mark mark = tv_arena_mark(in->open);
        const tv_str inner = inner_name(in, name, zip.entries[i].name);
        const tv_err *e = read_entry(in, &zip, &zip.entries[i], inner);
        if (e)
            list_file(in, inner, in->scene->last, 0, e);
        tv_arena_rewind(in->open, mark);
    }
    return NULL;
}

static const tv_dump_format *dump_of(const tv_input *input)
{
    for (size_t i = 0; tv_dump_formats[i]; i++)
        if (tv_dump_formats[i]->is(input))
            return tv_dump_formats[i];
    return NULL;
}

static const tv_err *read_stream(intake *in, tv_stream *stream, tv_str name, tv_str path,
                                 unsigned depth)
{
    in->files++;
    tv_bytes_view head;
    TV_TRY(tv_stream_peek(stream, 65536, &head));
    if (depth < TV_LIMIT_CAPTURED_DEPTH && tv_tar_is(head))
        return read_tar(in, stream, name, depth);
    const tv_sighting *before = in->scene->last;
    tv_input input = {name, path, {(const char *)head.p, head.n}, stream};
    const tv_dump_format *dump = dump_of(&input);
    if (!dump && path.n && !tv_stream_is_packed(stream) && tv_zip_is(head))
        return read_zip(in, path, name);
    const tv_err *e = dump ? dump->read(in->a, &input, in->scene) : read_text(in, stream, name);
    list_file(in, name, before, tv_stream_at(stream), e ? e : tv_stream_damage(stream));
    return NULL;
}

/* ---- what the user names ---- */

static const tv_err *read_file(intake *in, tv_str path, tv_str name)
{
    tv_stream *stream;
    const tv_mark mark = tv_arena_mark(in->open);
    TV_TRY(tv_stream_open(in->open, path, &stream));
    TV_TRY(read_stream(in, stream, name, path, 0));
    tv_arena_rewind(in->open, mark);
    return NULL;
}

/* One unreadable file does not hide the others. */
static void read_found(intake *in, tv_str path)
{
    const tv_str name = tv_shown_name(in->a, path);
    const tv_mark mark = tv_arena_mark(in->open);
    const tv_err *e = read_file(in, path, name);
    if (e)
        list_file(in, name, in->scene->last, 0, e);
    tv_arena_rewind(in->open, mark);
}

static const tv_err *read_folder(intake *in, tv_str path)
{
    tv_captured_walk walk = tv_captured_begin(in->a, path);
    TV_TRY(walk.failed);
    for (tv_str file; in->files < TV_LIMIT_CAPTURED_FILES && tv_captured_next(&walk, &file);)
        read_found(in, file);
    return NULL;
}

static intake *intake_of(tv_arena *a, tv_scene *scene)
{
    if (scene->intake && scene->intake->a == a)
        return scene->intake;
    intake *in = tv_new(a, intake, 1);
    *in = (intake){.a = a, .scene = scene, .needles = tv_needles_of(a, tv_log_formats)};
    scene->files.type = TV_NOTE_LIST;
    scene->intake = in;
    in->open = tv_arena_child(a, TV_LIMIT_ARENA_BYTES);
    in->turn = tv_arena_child(a, TV_LIMIT_ARENA_BYTES);
    in->blank = tv_arena_mark(in->turn);
    in->text = tv_new(a, char, small_bytes);
    in->cap = small_bytes;
    return in;
}

const tv_err *tv_trace_read(tv_arena *a, tv_str path, tv_scene *scene)
{
    intake *in = intake_of(a, scene);
    in->files = 0;
    if (!tv_str_is(path, "-") && tv_file_stat(a, path).is_dir)
        return read_folder(in, path);
    return read_file(in, path, tv_shown_name(a, path));
}

const tv_err *tv_trace_document(tv_arena *a, tv_str name, tv_str text, tv_scene *scene)
{
    intake *in = intake_of(a, scene);
    const tv_mark mark = tv_arena_mark(in->open);
    const tv_bytes_view bytes = {(const unsigned char *)text.p, text.n};
    tv_stream *stream;
    TV_TRY(tv_stream_over(in->open, name, bytes, &stream));
    TV_TRY(read_stream(in, stream, tv_shown_name(a, name), (tv_str){0}, 0));
    tv_arena_rewind(in->open, mark);
    return NULL;
}
