/* What the user names -> documents -> readers. Folders are walked, archives unpacked as they
 * stream by; a text longer than a sheet is read sheet after sheet, so that memory is bounded. */
#include "trace.h"

#include <string.h>

#include "codec/tar.h"
#include "needles.h"
#include "sheet.h"

typedef struct intake {
    tv_arena *a;       /* of what is kept */
    tv_arena *open;    /* streams: given back after each file */
    tv_arena *turn[2]; /* of a sheet, in turns: the end of one begins the next */
    tv_mark blank[2];
    tv_scene *scene;
    const tv_needles *needles;
    size_t files;
} intake;

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

static void read_sheet(intake *in, tv_arena *scratch, tv_str name, uint64_t first_line, tv_str text)
{
    bool *hit = tv_new(scratch, bool, tv_needles_formats(in->needles) + 1);
    tv_needles_in(in->needles, name, text, hit);
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

static const tv_err *read_text(intake *in, tv_stream *stream, tv_str name)
{
    tv_str left = {0};
    uint64_t first_line = 1;
    bool more = true;
    for (unsigned k = 0; more; k = !k) {
        tv_arena *scratch = in->turn[k];
        tv_arena_rewind(scratch, in->blank[k]);
        tv_str fresh;
        TV_TRY(tv_stream_take(stream, scratch, TV_LIMIT_SHEET_BYTES - left.n, &fresh));
        more = left.n + fresh.n == TV_LIMIT_SHEET_BYTES;
        const tv_str text = left.n ? tv_str_join(scratch, left, fresh) : fresh;
        const size_t n = more ? whole_lines(text) : text.n;
        read_sheet(in, scratch, name, first_line, tv_str_take(text, n));
        first_line += tv_count_lines(tv_str_take(text, n));
        left = tv_str_drop(text, n);
    }
    return NULL;
}

/* ---- one file ---- */

static const tv_err *read_stream(intake *in, tv_stream *stream, tv_str name, tv_str path,
                                 unsigned depth);

static const tv_err *read_tar(intake *in, tv_stream *stream, tv_str name, unsigned depth)
{
    tv_tar tar = tv_tar_open(in->a, stream);
    for (;;) {
        bool more = false;
        TV_TRY(tv_tar_next(&tar, &more));
        if (!more || in->files >= TV_LIMIT_CAPTURED_FILES)
            return NULL;
        tv_stream *part;
        const tv_str inner = tv_str_join(in->a, tv_str_join(in->a, name, TV_S(":")), tar.name);
        const tv_mark mark = tv_arena_mark(in->open);
        TV_TRY(tv_stream_part(in->open, stream, inner, tar.bytes, &part));
        TV_TRY(read_stream(in, part, inner, (tv_str){0}, depth + 1));
        tv_arena_rewind(in->open, mark);
    }
}

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
    const tv_err *e = dump ? dump->read(in->a, &input, in->scene) : read_text(in, stream, name);
    list_file(in, name, before, tv_stream_at(stream), e ? e : tv_stream_damage(stream));
    return NULL;
}

/* ---- what the user names ---- */

static const tv_err *read_path(intake *in, tv_str path, unsigned depth);

static const tv_err *read_folder(intake *in, tv_str path, unsigned depth)
{
    tv_dir dir = {0};
    TV_TRY(tv_dir_list(in->a, path, &dir));
    for (size_t i = 0; i < dir.n && in->files < TV_LIMIT_CAPTURED_FILES; i++) {
        const tv_str inner = tv_path_join(in->a, path, dir.v[i].name);
        const tv_err *e = read_path(in, inner, depth + 1);
        if (e) /* one unreadable file does not hide the others */
            list_file(in, inner, in->scene->last, 0, e);
    }
    return NULL;
}

static const tv_err *read_path(intake *in, tv_str path, unsigned depth)
{
    if (depth > TV_LIMIT_CAPTURED_DEPTH)
        return NULL;
    if (!tv_str_is(path, "-") && tv_file_stat(in->a, path).is_dir)
        return read_folder(in, path, depth);
    tv_stream *stream;
    const tv_mark mark = tv_arena_mark(in->open);
    TV_TRY(tv_stream_open(in->open, path, &stream));
    TV_TRY(read_stream(in, stream, path, path, 0));
    tv_arena_rewind(in->open, mark);
    return NULL;
}

static intake begin(tv_arena *a, tv_scene *scene)
{
    scene->files.type = TV_NOTE_LIST;
    intake in = {.a = a, .scene = scene, .needles = tv_needles_of(a, tv_log_formats)};
    in.open = tv_arena_child(a, TV_LIMIT_ARENA_BYTES);
    for (unsigned k = 0; k < 2; k++) {
        in.turn[k] = tv_arena_child(a, TV_LIMIT_ARENA_BYTES);
        in.blank[k] = tv_arena_mark(in.turn[k]);
    }
    return in;
}

const tv_err *tv_trace_read(tv_arena *a, tv_str path, tv_scene *scene)
{
    intake in = begin(a, scene);
    return read_path(&in, path, 0);
}

const tv_err *tv_trace_document(tv_arena *a, tv_str name, tv_str text, tv_scene *scene)
{
    intake in = begin(a, scene);
    tv_stream *stream;
    TV_TRY(
        tv_stream_over(a, name, (tv_bytes_view){(const unsigned char *)text.p, text.n}, &stream));
    return read_stream(&in, stream, name, (tv_str){0}, 0);
}
