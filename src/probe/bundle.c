/* "/proc/meminfo" lies at proc/meminfo below the folder; the manifest tells both names. */
#include "bundle.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "redact.h"

#include "base/file.h"
#include "base/json.h"
#include "base/limits.h"

enum { most_documents = 4096 };

/* ---- writing ---- */

static const tv_err *cannot(tv_arena *a, tv_str path, int number)
{
    return tv_in_file(TV_FAIL(a, TV_SYSTEM, "bundle.folder", N_("cannot be made: {why}"),
                              tv_arg_str("why", tv_errno_text(a, number))),
                      path);
}

static const tv_err *make_folder(tv_arena *a, tv_str path)
{
    if (mkdir(tv_cstr(a, path), 0777) != 0 && errno != EEXIST)
        return cannot(a, path, errno);
    return NULL;
}

/* The folders between the record's own and the file. */
static const tv_err *make_folders(tv_arena *a, tv_str folder, tv_str name)
{
    for (size_t i = 0; i < name.n; i++)
        if (name.p[i] == '/')
            TV_TRY(make_folder(a, tv_path_join(a, folder, tv_str_take(name, i))));
    return NULL;
}

static const tv_err *begin_folder(tv_arena *a, tv_str folder)
{
    TV_TRY(make_folder(a, folder));
    tv_dir dir = {0};
    TV_TRY(tv_dir_list(a, folder, &dir));
    if (!dir.n)
        return NULL;
    return tv_hint(tv_in_file(TV_FAIL0(a, TV_USAGE, "bundle.not-empty",
                                       N_("the folder is not empty, nothing is written over")),
                              folder),
                   TV_TEXT0("bundle.new-hint", N_("Name a folder that does not exist yet.")));
}

static tv_str name_below(tv_str name)
{
    while (name.n && name.p[0] == '/')
        name = tv_str_drop(name, 1);
    return name;
}

/* Lines "unseen: what: why" of host.txt. */
static void put_unseen(tv_json_out *w, const tv_documents *all)
{
    tv_json_key(w, "not_seen");
    tv_json_begin(w, '[');
    for (size_t i = 0; i < all->n; i++) {
        tv_str text = tv_str_is(all->v[i].name, "host.txt") ? all->v[i].text : (tv_str){0};
        while (text.n) {
            const tv_cut line = tv_str_cut(text, '\n');
            if (tv_str_starts(line.head, TV_S("unseen: ")))
                tv_json_put_str(w, tv_str_drop(line.head, 8));
            text = line.tail;
        }
    }
    tv_json_end(w, ']');
}

static tv_str manifest_of(const tv_request *r, const tv_documents *all)
{
    tv_buf b = tv_buf_in(r->a);
    tv_json_out w = tv_json_write(&b);
    tv_json_begin(&w, '{');
    tv_json_key(&w, "schema");
    tv_json_put_str(&w, TV_S("trivet.host/1"));
    tv_json_key(&w, "trivet");
    tv_json_put_str(&w, TV_S(TV_VERSION));
    tv_json_key(&w, "date");
    if (r->today.n)
        tv_json_put_str(&w, r->today);
    else
        tv_json_put_null(&w);
    tv_json_key(&w, "documents");
    tv_json_begin(&w, '[');
    for (size_t i = 0; i < all->n; i++) {
        tv_json_begin(&w, '{');
        tv_json_key(&w, "name");
        tv_json_put_str(&w, all->v[i].name);
        tv_json_key(&w, "file");
        tv_json_put_str(&w, name_below(all->v[i].name));
        tv_json_key(&w, "bytes");
        tv_json_put_num(&w, (double)all->v[i].text.n);
        tv_json_end(&w, '}');
    }
    tv_json_end(&w, ']');
    put_unseen(&w, all);
    tv_json_end(&w, '}');
    tv_putc(&b, '\n');
    return tv_buf_str(&b);
}

const tv_err *tv_bundle_write(tv_request *r, tv_str folder, const tv_documents *all)
{
    tv_arena *a = r->a;
    TV_TRY(begin_folder(a, folder));
    tv_documents clean = {0};
    struct utsname u;
    const tv_redact_names names = {
        .host = uname(&u) == 0 ? tv_str_copy(a, tv_str_of(u.nodename)) : (tv_str){0},
        .user = tv_path_name(r->home),
    };
    tv_redact(a, &names, all, &clean);
    for (size_t i = 0; i < clean.n; i++) {
        const tv_str name = name_below(clean.v[i].name);
        TV_TRY(make_folders(a, folder, name));
        TV_TRY(tv_file_write(a, tv_path_join(a, folder, name), clean.v[i].text));
    }
    return tv_file_write(a, tv_path_join(a, folder, TV_S("manifest.json")), manifest_of(r, &clean));
}

/* ---- reading ---- */

/* A name from the manifest must not lead out of the folder. */
static bool stays_below(tv_str name)
{
    if (!name.n || name.p[0] == '/')
        return false;
    while (name.n) {
        const tv_cut part = tv_str_cut(name, '/');
        if (!part.head.n || tv_str_is(part.head, "..") || memchr(part.head.p, 0, part.head.n))
            return false;
        name = part.tail;
    }
    return true;
}

static const tv_err *no_record(tv_arena *a, tv_str path)
{
    return tv_in_file(
        TV_FAIL0(a, TV_INPUT, "bundle.no-record",
                 N_("is no manifest of a record that `trivet doctor --record` wrote")),
        path);
}

const tv_err *tv_bundle_read(tv_arena *a, tv_str folder, tv_documents *all)
{
    const tv_json *doc;
    const tv_str path = tv_path_join(a, folder, TV_S("manifest.json"));
    TV_TRY(tv_json_parse_file(a, path, &doc));
    const tv_json *list = tv_json_get(doc, "documents");
    if (!tv_str_is(tv_json_str(tv_json_get(doc, "schema")), "trivet.host/1") ||
        list->n > most_documents)
        return no_record(a, path);
    for (size_t i = 0; i < list->n; i++) {
        const tv_json *row = tv_json_at(list, i);
        const tv_str file = tv_json_str(tv_json_get(row, "file"));
        const tv_str name = tv_json_str(tv_json_get(row, "name"));
        if (!stays_below(file) || !name.n)
            return no_record(a, path);
        tv_str text;
        TV_TRY(tv_file_read(a, tv_path_join(a, folder, file), TV_LIMIT_JSON_DOC_BYTES, &text));
        *tv_push(a, all) = (tv_document){name, text};
    }
    return NULL;
}
