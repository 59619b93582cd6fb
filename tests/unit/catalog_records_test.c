/* Every record of the catalogue: required keys, defined sources and remarks, references that exist;
 * and a user's own files over them. */
#include "testing.h"

#include <sys/stat.h>
#include <unistd.h>

#include "catalog/catalog.h"

static tv_catalog *open_catalog(tv_arena *a, const char *home)
{
    tv_catalog *c;
    assert_ok(a, tv_catalog_open(a, tv_str_of(home), &c));
    return c;
}

static tv_device_list all_devices(tv_arena *a, tv_catalog *c)
{
    tv_device_list list;
    assert_ok(a, tv_catalog_devices(c, &list));
    return list;
}

static void check_source(const tv_catalog *c, tv_str slug, tv_str id)
{
    tv_source_note note;
    if (!tv_catalog_source(c, id, &note) || !note.where.n)
        fail_msg("%.*s: source \"%.*s\" is not defined", TV_FMT(slug), TV_FMT(id));
}

/* [value, source...] of every number, and the sources of every text that has one. */
static void check_sources(const tv_catalog *c, tv_str slug, const tv_json *j)
{
    for (size_t i = 0; i < j->n; i++) {
        const tv_json *m = &j->items[i];
        if (m->type == TV_JSON_NUMBER)
            fail_msg("%.*s: %.*s has no source", TV_FMT(slug), TV_FMT(m->key));
        if (m->type == TV_JSON_OBJECT) {
            check_sources(c, slug, m);
        } else if (tv_str_is(j->key, "sources") && m->type == TV_JSON_STRING) {
            check_source(c, slug, m->s);
        } else if (m->type == TV_JSON_ARRAY && tv_json_is_num(tv_json_at(m, 0))) {
            assert_true(m->n >= 2);
            for (size_t k = 1; k < m->n; k++)
                check_source(c, slug, m->items[k].s);
        }
    }
}

static void check_device(tv_arena *a, tv_catalog *c, const tv_device *d)
{
    if (!d->slug.n || !d->vendor.n || !d->name.n || !d->segment.n || !d->use_class.n ||
        !d->form_factor.n || !d->confidence.n || !tv_json_has(d->record, "sources"))
        fail_msg("%.*s lacks a required key", TV_FMT(d->slug));
    check_sources(c, d->slug, d->record);
    for (size_t i = 0; i < d->n_notes; i++) {
        tv_str en, zh;
        assert_ok(a, tv_catalog_remark(c, TV_EN, d->notes[i], &en));
        assert_ok(a, tv_catalog_remark(c, TV_ZH, d->notes[i], &zh));
        if (!en.n || !zh.n)
            fail_msg("%.*s: remark \"%.*s\" is not defined", TV_FMT(d->slug), TV_FMT(d->notes[i]));
    }
    if (tv_known(d->mem_usable_bytes))
        assert_true(d->mem_usable_bytes.v <= d->mem_bytes.v);
    if (tv_str_is(d->vendor, "NVIDIA"))
        assert_true(d->compute_capability >= 30);
    /* FP16 accumulate is never slower than FP32 accumulate. */
    if (tv_known(d->rate_flops[TV_RATE_FP16_TENSOR_FP16]))
        assert_true(d->rate_flops[TV_RATE_FP16_TENSOR_FP16].v >=
                    d->rate_flops[TV_RATE_FP16_TENSOR].v);
}

static void records_are_whole(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_catalog *c = open_catalog(a, NULL);
    const tv_device_list list = all_devices(a, c);
    assert_int_equal(list.n, 232);
    for (size_t i = 0; i < list.n; i++) {
        check_device(a, c, &list.v[i]);
        for (size_t k = 0; k < i; k++)
            assert_false(tv_str_eq(list.v[i].slug, list.v[k].slug));
    }
    tv_arena_close(a);
}

static bool has_device(tv_device_list list, tv_str slug)
{
    for (size_t i = 0; i < list.n; i++)
        if (tv_str_eq(list.v[i].slug, slug))
            return true;
    return false;
}

static void references_exist(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_catalog *c = open_catalog(a, NULL);
    const tv_device_list devices = all_devices(a, c);
    tv_group_list groups;
    assert_ok(a, tv_catalog_groups(c, &groups));
    assert_true(groups.n >= 30);
    for (size_t i = 0; i < groups.n; i++) {
        assert_true(groups.v[i].n_members >= 2);
        assert_false(has_device(devices, groups.v[i].slug));
    }
    tv_offer_list offers;
    assert_ok(a, tv_catalog_offers(c, (tv_str){0}, &offers));
    assert_int_equal(offers.n, 1285);
    for (size_t i = 0; i < offers.n; i++) {
        assert_true(has_device(devices, offers.v[i].gpu));
        check_source(c, offers.v[i].instance, offers.v[i].source);
        assert_true(tv_str_is(offers.v[i].currency, "USD") ||
                    tv_str_is(offers.v[i].currency, "CNY"));
    }
    tv_server_list servers;
    assert_ok(a, tv_catalog_servers(c, &servers));
    assert_int_equal(servers.n, 54);
    for (size_t i = 0; i < servers.n; i++) {
        assert_true(!servers.v[i].gpu.n || has_device(devices, servers.v[i].gpu));
        assert_true(servers.v[i].gpu_count > 0);
        const tv_json *sources = tv_json_get(servers.v[i].record, "sources");
        for (size_t k = 0; k < sources->n; k++)
            check_source(c, servers.v[i].slug, sources->items[k].s);
    }
    tv_disk_list disks;
    assert_ok(a, tv_catalog_disks(c, &disks));
    assert_int_equal(disks.n, 22);
    tv_arena_close(a);
}

static void write_file(tv_arena *a, tv_str home, const char *name, const char *text)
{
    const tv_str folder = tv_str_join(a, home, TV_S("/.config/trivet/"));
    FILE *f = fopen(tv_cstr(a, tv_str_join(a, folder, tv_str_of(name))), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

/* A home of its own, gone at the end of the test. */
static tv_str make_home(tv_arena *a)
{
    char name[] = "/tmp/trivet-catalog-XXXXXX";
    assert_non_null(mkdtemp(name));
    const tv_str home = tv_str_copy(a, tv_str_of(name));
    assert_int_equal(mkdir(tv_cstr(a, tv_str_join(a, home, TV_S("/.config"))), 0700), 0);
    assert_int_equal(mkdir(tv_cstr(a, tv_str_join(a, home, TV_S("/.config/trivet"))), 0700), 0);
    return home;
}

static void remove_home(tv_arena *a, tv_str home, const char *const *names)
{
    for (; *names; names++)
        (void)unlink(tv_cstr(
            a, tv_str_join(a, tv_str_join(a, home, TV_S("/.config/trivet/")), tv_str_of(*names))));
    (void)rmdir(tv_cstr(a, tv_str_join(a, home, TV_S("/.config/trivet"))));
    (void)rmdir(tv_cstr(a, tv_str_join(a, home, TV_S("/.config"))));
    (void)rmdir(tv_cstr(a, home));
}

static const char mine[] =
    "{\"accelerators\": [{\"slug\": \"nvidia-rtx-4090\", \"mem_bytes\": 51539607552,"
    " \"rate_flops\": {\"bf16_tensor\": 150e12}},"
    " {\"slug\": \"my-card\", \"name\": \"My card\", \"mem_bytes\": [8589934592, \"my lab\"]}]}";
static const char my_prices[] =
    "{\"offers\": [{\"provider\": \"lab\", \"currency\": \"USD\", \"date\": \"2026-11-01\","
    " \"rows\": [[null, \"node\", \"my-card\", 2, 8, 1e9, 1.5, null]]}]}";

static void a_users_file_wins(void **state)
{
    (void)state;
    static const char *const names[] = {"accelerators-lab.json", "prices.json", NULL};
    tv_arena *a = test_arena();
    const tv_str home = make_home(a);
    write_file(a, home, names[0], mine);
    write_file(a, home, names[1], my_prices);
    tv_catalog *c = open_catalog(a, tv_cstr(a, home));
    const tv_device *d;
    assert_ok(a, tv_catalog_device(c, TV_S("rtx-4090"), 0, &d));
    assert_close(d->mem_bytes.v, 48 * 0x1p30, 1e-12);
    assert_int_equal(d->mem_bytes.origin, TV_STATED);
    assert_true(tv_str_ends(d->mem_bytes.source, TV_S("accelerators-lab.json")));
    assert_close(d->rate_flops[TV_RATE_BF16_TENSOR].v, 150e12, 1e-12);
    assert_close(d->rate_flops[TV_RATE_FP16_TENSOR].v, 165.2e12, 1e-3); /* the built-in one */
    assert_ok(a, tv_catalog_device(c, TV_S("My Card"), 0, &d));
    assert_str(d->mem_bytes.source, "my lab");
    assert_false(tv_known(d->mem_bytes_per_s));
    tv_offer_list offers;
    assert_ok(a, tv_catalog_offers(c, (tv_str){0}, &offers));
    const tv_offer *o = tv_offer_cheapest(offers, &(tv_offer_query){.gpu = TV_S("my-card")});
    assert_non_null(o);
    assert_close(tv_offer_gpu_per_h(o, false), 0.75, 1e-12);
    remove_home(a, home, names);
    tv_arena_close(a);
}

typedef struct bad_case {
    const char *text;
    const char *id;
} bad_case;

static void a_users_mistake_is_told(void **state)
{
    (void)state;
    static const char *const names[] = {"accelerators.json", NULL};
    static const bad_case cases[] = {
        {"{\"cards\": []}", "catalog.no-list"},
        {"{\"accelerators\": [7]}", "catalog.no-list"},
        {"{\"accelerators\": [{\"name\": \"x\"}]}", "catalog.no-id"},
        {"{\"accelerators\": [{\"slug\": \"x\", \"memory\": 1}]}", "catalog.unknown-key"},
        {"{\"accelerators\": [{\"slug\": \"x\", \"mem_bytes\": 24}]}", "catalog.out-of-range"},
        {"{\"accelerators\": [{\"slug\": \"x\", \"mem_bytes\": \"24GB\"}]}", "catalog.no-number"},
        {"{\"accelerators\": [{\"slug\": \"x\", \"fabric_shape\": \"star\"}]}", "catalog.shape"},
        {"{\"accelerators\": [{\"slug\": \"x\", \"rate_flops\": {\"fp7\": 1e12}}]}",
         "catalog.unknown-key"},
        {"{\"accelerators\": [{\"slug\": \"x\", \"compute_capability\": \"89\"}]}",
         "catalog.capability"},
    };
    tv_arena *a = test_arena();
    const tv_str home = make_home(a);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_file(a, home, names[0], cases[i].text);
        tv_catalog *c;
        const tv_err *e = tv_catalog_open(a, home, &c);
        assert_non_null(e);
        assert_int_equal(e->code, TV_INPUT);
        assert_string_equal(e->what.id, cases[i].id);
        assert_true(e->has_offset);
    }
    remove_home(a, home, names);
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_whole),
        cmocka_unit_test(references_exist),
        cmocka_unit_test(a_users_file_wins),
        cmocka_unit_test(a_users_mistake_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
