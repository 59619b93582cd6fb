/* Opening the catalogue: the built-in texts, the user's files beside them, and who says so. Knows
 * nothing of what a record means. */
#include "records.h"

#include <stdlib.h>

#include "base/file.h"

TV_BLOB(accelerators);
TV_BLOB(groups);
TV_BLOB(remarks);
TV_BLOB(sources);
TV_BLOB(street_prices);

const tv_err *tv_blob_parse(tv_arena *a, const char *name, tv_blob blob, const tv_json **doc)
{
    return tv_json_parse(a, tv_str_of(name), tv_str_span(blob.start, blob.end), doc);
}

const tv_err *tv_record_fail(const tv_catalog *c, const tv_record *r, const tv_json *j,
                             tv_text what)
{
    return tv_fail_at(c->a, TV_INPUT, what, r->file.n ? r->file : TV_S("built-in catalogue"),
                      j->offset);
}

static const tv_err *not_a_list(tv_arena *a, tv_str file, const char *list, uint64_t offset)
{
    return tv_fail_at(a, TV_INPUT,
                      TV_TEXT(a, "catalog.no-list",
                              N_("the document has no list \"{list}\" of objects"),
                              tv_arg_str("list", tv_str_of(list))),
                      file, offset);
}

const tv_err *tv_records_append(tv_arena *a, const tv_json *doc, const char *list, tv_str file,
                                tv_records *records)
{
    const tv_json *items = tv_json_get(doc, list);
    if (items->type != TV_JSON_ARRAY)
        return not_a_list(a, file, list, doc->offset);
    for (size_t i = 0; i < items->n; i++) {
        if (items->items[i].type != TV_JSON_OBJECT)
            return not_a_list(a, file, list, items->items[i].offset);
        *tv_push(a, records) = (tv_record){.json = &items->items[i], .file = file};
    }
    return NULL;
}

const tv_err *tv_records_user(tv_catalog *c, const char *name, const char *list,
                              tv_records *records)
{
    if (!c->home.n)
        return NULL;
    const tv_str folder = tv_path_join(c->a, c->home, TV_S(".config/trivet"));
    if (!tv_file_stat(c->a, folder).is_dir)
        return NULL;
    tv_dir dir = {0};
    TV_TRY(tv_dir_list(c->a, folder, &dir));
    for (size_t i = 0; i < dir.n; i++) {
        const tv_str file = dir.v[i].name;
        if (dir.v[i].is_dir || !tv_str_starts(file, tv_str_of(name)) ||
            !tv_str_ends(file, TV_S(".json")))
            continue;
        const tv_str path = tv_path_join(c->a, folder, file);
        const tv_json *doc;
        TV_TRY(tv_json_parse_file(c->a, path, &doc));
        TV_TRY(tv_records_append(c->a, doc, list, path, records));
    }
    return NULL;
}

static const tv_json *merged(tv_arena *a, const tv_json *base, const tv_json *over);

/* A member that is an object on both sides is merged itself: rate_flops, sources. */
static tv_json merged_member(tv_arena *a, const tv_json *base, const tv_json *over)
{
    if (base->type != TV_JSON_OBJECT || over->type != TV_JSON_OBJECT)
        return *over;
    tv_json j = *merged(a, base, over);
    j.key = base->key;
    return j;
}

static const tv_json *merged(tv_arena *a, const tv_json *base, const tv_json *over)
{
    tv_json *items = tv_new(a, tv_json, base->n + over->n);
    size_t n = 0;
    for (size_t i = 0; i < base->n; i++) {
        items[n++] = base->items[i];
        for (size_t k = 0; k < over->n; k++)
            if (tv_str_eq(over->items[k].key, base->items[i].key))
                items[n - 1] = merged_member(a, &base->items[i], &over->items[k]);
    }
    for (size_t k = 0; k < over->n; k++) {
        bool known = false;
        for (size_t i = 0; i < base->n && !known; i++)
            known = tv_str_eq(over->items[k].key, base->items[i].key);
        if (!known)
            items[n++] = over->items[k];
    }
    tv_json *j = tv_new(a, tv_json, 1);
    *j = *over;
    j->items = items;
    j->n = n;
    return j;
}

const tv_err *tv_record_read(tv_catalog *c, tv_record *r)
{
    return r->json ? NULL : tv_json_parse(c->a, TV_S("built-in catalogue"), r->text, &r->json);
}

static const tv_err *overlay(tv_catalog *c, const char *id, tv_record user, tv_records *records)
{
    const tv_json *slug = tv_json_get(user.json, id);
    if (slug->type != TV_JSON_STRING || !slug->s.n)
        return tv_record_fail(c, &user, user.json,
                              TV_TEXT(c->a, "catalog.no-id", N_("a record has no \"{key}\""),
                                      tv_arg_str("key", tv_str_of(id))));
    user.id = slug->s;
    for (size_t i = 0; i < records->n; i++) {
        tv_record *r = &records->v[i];
        if (!tv_str_eq(r->id, slug->s))
            continue;
        TV_TRY(tv_record_read(c, r));
        r->json = merged(c->a, r->json, user.json);
        r->file = user.file;
        return NULL;
    }
    *tv_push(c->a, records) = user;
    return NULL;
}

/* The lines that begin with {"ID":"; the packer writes one record a line. */
static void index_lines(tv_arena *a, tv_blob blob, const char *id, tv_records *records)
{
    tv_buf start = tv_buf_in(a);
    tv_puts(&start, "{\"");
    tv_puts(&start, id);
    tv_puts(&start, "\":\"");
    tv_cut line = tv_str_cut(tv_str_span(blob.start, blob.end), '\n');
    for (;; line = tv_str_cut(line.tail, '\n')) {
        tv_str text = line.head;
        if (tv_str_ends(text, TV_S(",")))
            text = tv_str_take(text, text.n - 1);
        if (tv_str_starts(text, tv_buf_str(&start)))
            *tv_push(a, records) = (tv_record){
                .id = tv_str_cut(tv_str_drop(text, start.n), '"').head,
                .text = text,
            };
        if (!line.found)
            return;
    }
}

const tv_err *tv_records_load(tv_catalog *c, const char *name, const char *list, const char *id,
                              tv_blob blob, tv_records *records)
{
    index_lines(c->a, blob, id, records);
    tv_records user = {0};
    TV_TRY(tv_records_user(c, name, list, &user));
    for (size_t i = 0; i < user.n; i++)
        TV_TRY(overlay(c, id, user.v[i], records));
    return NULL;
}

static int by_id(const void *x, const void *y)
{
    return tv_str_cmp(((const tv_source_note *)x)->id, ((const tv_source_note *)y)->id);
}

static const tv_err *read_sources(tv_catalog *c)
{
    const tv_json *doc;
    TV_TRY(tv_blob_parse(c->a, "sources", TV_BLOB_OF(sources), &doc));
    const tv_json *list = tv_json_get(doc, "sources");
    tv_source_note *notes = tv_new(c->a, tv_source_note, list->n);
    for (size_t i = 0; i < list->n; i++) {
        const tv_json *j = &list->items[i];
        notes[i] = (tv_source_note){
            .id = j->key,
            .where = tv_json_str(tv_json_get(j, "where")),
            .date = tv_json_str(tv_json_get(j, "date")),
            .licence = tv_json_str(tv_json_get(j, "licence")),
            .grade = tv_json_str(tv_json_get(j, "grade")),
            .note = tv_json_str(tv_json_get(j, "note")),
        };
    }
    if (list->n)
        qsort(notes, list->n, sizeof *notes, by_id);
    c->sources = notes;
    c->n_sources = list->n;
    return NULL;
}

bool tv_catalog_source(const tv_catalog *c, tv_str id, tv_source_note *note)
{
    const tv_source_note key = {.id = id};
    const tv_source_note *found =
        c->n_sources ? bsearch(&key, c->sources, c->n_sources, sizeof key, by_id) : NULL;
    *note = found ? *found : (tv_source_note){.id = id};
    return found != NULL;
}

size_t tv_catalog_source_count(const tv_catalog *c)
{
    return c->n_sources;
}

static const tv_err *index_devices(tv_catalog *c)
{
    TV_TRY(tv_records_load(c, "accelerators", "accelerators", "slug", TV_BLOB_OF(accelerators),
                           &c->records));
    c->n_devices = c->records.n;
    c->devices = tv_new(c->a, tv_device, c->n_devices);
    for (size_t i = 0; i < c->n_devices; i++)
        if (c->records.v[i].file.n)
            TV_TRY(tv_catalog_need(c, i)); /* a mistake in a user's file is told at once */
    return NULL;
}

size_t tv_catalog_index(const tv_catalog *c, tv_str slug)
{
    size_t i = 0;
    while (i < c->n_devices && !tv_str_eq_nocase(c->records.v[i].id, slug))
        i++;
    return i;
}

/* Rows of [gpu, currency, value, date, channel, source]; one card's stand together, the newest
 * first. */
static const tv_err *add_street_prices(tv_catalog *c, tv_device *d)
{
    if (!c->street) {
        const tv_json *doc;
        TV_TRY(tv_blob_parse(c->a, "street_prices", TV_BLOB_OF(street_prices), &doc));
        c->street = tv_json_get(doc, "cards");
    }
    tv_price *prices = NULL;
    for (size_t i = 0; i < c->street->n; i++) {
        const tv_json *row = tv_json_at(c->street, i);
        if (!tv_str_eq(tv_json_str(tv_json_at(row, 0)), d->slug))
            continue;
        if (!prices)
            prices = tv_new(c->a, tv_price, c->street->n - i);
        prices[d->n_prices++] = (tv_price){
            .currency = tv_json_str(tv_json_at(row, 1)),
            .value = tv_json_num(tv_json_at(row, 2), 0),
            .date = tv_json_str(tv_json_at(row, 3)),
            .channel = tv_json_str(tv_json_at(row, 4)),
            .source = tv_json_str(tv_json_at(row, 5)),
        };
    }
    d->prices = prices;
    return NULL;
}

const tv_err *tv_catalog_need(tv_catalog *c, size_t i)
{
    if (c->devices[i].slug.n)
        return NULL;
    tv_device d;
    TV_TRY(tv_record_read(c, &c->records.v[i]));
    TV_TRY(tv_device_read(c, &c->records.v[i], &d));
    TV_TRY(add_street_prices(c, &d));
    c->devices[i] = d;
    return NULL;
}

const tv_err *tv_catalog_need_all(tv_catalog *c)
{
    for (size_t i = 0; i < c->n_devices; i++)
        TV_TRY(tv_catalog_need(c, i));
    return NULL;
}

static const tv_err *read_members(tv_catalog *c, const tv_json *members, tv_device_group *g)
{
    const tv_device **v = tv_new(c->a, const tv_device *, members->n);
    for (size_t k = 0; k < members->n; k++) {
        const size_t i = tv_catalog_index(c, members->items[k].s);
        if (i == c->n_devices)
            continue;
        TV_TRY(tv_catalog_need(c, i));
        v[g->n_members++] = &c->devices[i];
    }
    g->members = v;
    return NULL;
}

const tv_err *tv_catalog_need_groups(tv_catalog *c)
{
    if (c->groups)
        return NULL;
    const tv_json *doc;
    TV_TRY(tv_blob_parse(c->a, "groups", TV_BLOB_OF(groups), &doc));
    const tv_json *list = tv_json_get(doc, "groups");
    tv_device_group *groups = tv_new(c->a, tv_device_group, list->n);
    for (size_t i = 0; i < list->n; i++) {
        const tv_json *j = &list->items[i];
        groups[i].slug = tv_json_str(tv_json_get(j, "slug"));
        groups[i].name = tv_json_str(tv_json_get(j, "name"));
        TV_TRY(read_members(c, tv_json_get(j, "members"), &groups[i]));
    }
    c->groups = groups;
    c->n_groups = list->n;
    c->references = tv_json_get(doc, "references");
    return NULL;
}

const tv_err *tv_catalog_open(tv_arena *a, tv_str home, tv_catalog **catalog)
{
    tv_catalog *c = tv_new(a, tv_catalog, 1);
    c->a = a;
    c->home = home;
    TV_TRY(read_sources(c));
    TV_TRY(index_devices(c));
    *catalog = c;
    return NULL;
}

const tv_err *tv_catalog_devices(tv_catalog *c, tv_device_list *devices)
{
    TV_TRY(tv_catalog_need_all(c));
    *devices = (tv_device_list){.v = c->devices, .n = c->n_devices};
    return NULL;
}

const tv_err *tv_catalog_groups(tv_catalog *c, tv_group_list *groups)
{
    TV_TRY(tv_catalog_need_groups(c));
    *groups = (tv_group_list){.v = c->groups, .n = c->n_groups};
    return NULL;
}

const tv_err *tv_catalog_remark(tv_catalog *c, tv_lang lang, tv_str id, tv_str *text)
{
    if (!c->remarks.n)
        TV_TRY(tv_records_load(c, "remarks", "remarks", "id", TV_BLOB_OF(remarks), &c->remarks));
    *text = (tv_str){0};
    for (size_t i = 0; i < c->remarks.n; i++) {
        tv_record *r = &c->remarks.v[i];
        if (!tv_str_eq(r->id, id))
            continue;
        TV_TRY(tv_record_read(c, r));
        *text = tv_json_str(tv_json_get(r->json, lang == TV_ZH ? "zh" : "en"));
    }
    return NULL;
}

const tv_err *tv_catalog_reference(tv_catalog *c, tv_str slug, tv_str *class)
{
    *class = (tv_str){0};
    TV_TRY(tv_catalog_need_groups(c));
    for (size_t i = 0; i < c->references->n; i++) {
        const tv_json *j = &c->references->items[i];
        if (tv_str_eq(tv_json_str(tv_json_get(j, "gpu")), slug))
            *class = tv_json_str(tv_json_get(j, "class"));
    }
    return NULL;
}
