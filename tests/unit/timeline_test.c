/* Unions, overlaps, exclusive shares and links of a timeline against a count by hand, nanosecond by
 * nanosecond; the store against a plain sort, in memory and through its temporary file. */
#include "testing.h"

#include "trace/timeline.h"
#include "trace/timeline_store.h"

static uint64_t next_random(uint64_t *x)
{
    *x = *x * 6364136223846793005u + 1442695040888963407u;
    return *x >> 33;
}

enum { span = 4000, works = 120 };

typedef struct by_hand {
    unsigned char compute[span], comm[span], copy[span], loader[span];
} by_hand;

static void mark(unsigned char *row, int64_t from, int64_t dur)
{
    for (int64_t t = from; t < from + dur && t < span; t++)
        row[t] = 1;
}

static void add_random_work(tv_timeline *t, by_hand *hand, uint64_t *x)
{
    static const char *const names[] = {"ampere_sgemm_128x64_nn", "elementwise_kernel",
                                        "ncclDevKernel_AllReduce",
                                        "Memcpy HtoD (Pinned -> Device)"};
    const size_t k = next_random(x) % 4;
    const int64_t start = (int64_t)(next_random(x) % (span - 200));
    const int64_t dur = (int64_t)(next_random(x) % 60);
    tv_timeline_work(t, &(tv_work){.name = tv_timeline_name(t, tv_str_of(names[k])),
                                   .start_ns = start,
                                   .dur_ns = dur,
                                   .way = k == 3 ? TV_COPY_HTOD : TV_COPY_NONE,
                                   .bytes = (double)NAN});
    mark(k == 3 ? hand->copy : k == 2 ? hand->comm : hand->compute, start, dur);
}

/* The window is all of the span: one step. */
static void check_sums(const tv_note *f, const by_hand *h)
{
    int compute = 0, comm = 0, both = 0, exposed = 0, copy = 0, data = 0, idle = 0;
    for (int t = 0; t < span; t++) {
        compute += h->compute[t];
        comm += h->comm[t];
        both += h->compute[t] && h->comm[t];
        exposed += h->comm[t] && !h->compute[t];
        copy += h->copy[t] && !h->comm[t] && !h->compute[t];
        const bool rests = !h->copy[t] && !h->comm[t] && !h->compute[t];
        data += rests && h->loader[t];
        idle += rests && !h->loader[t];
    }
    const struct {
        const char *key;
        double want;
    } rows[] = {
        {"compute_union_s", compute * 1e-9},
        {"nccl_union_s", comm * 1e-9},
        {"overlap_s", both * 1e-9},
        {"exposed_comm_s", exposed * 1e-9},
        {"exposed_copy_s", copy * 1e-9},
        {"data_exposed_s", data * 1e-9},
        {"shares.idle", (double)idle / span},
        {"shares.data", (double)data / span},
        {"exposed_comm_share", (double)exposed / span},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double got = tv_noted_num(f, rows[i].key);
        if (!(fabs(got - rows[i].want) <= 1e-12))
            fail_msg("%s: got %.12g, want %.12g", rows[i].key, got, rows[i].want);
    }
    double sum = 0;
    for (const tv_note *n = tv_noted(f, "shares")->first; n; n = n->next)
        sum += n->number;
    assert_close(sum, 1, 1e-9);
}

static void sums_agree_with_a_count(void **state)
{
    (void)state;
    uint64_t x = 20240917;
    for (int round = 0; round < 60; round++) {
        tv_arena *a = test_arena();
        by_hand *h = tv_new(a, by_hand, 1);
        tv_timeline *t = tv_timeline_open(a);
        tv_timeline_step(t, 3, 0, span, false);
        for (int i = 0; i < works; i++)
            add_random_work(t, h, &x);
        for (int i = 0; i < 8; i++) {
            const int64_t from = (int64_t)(next_random(&x) % span), dur = 300;
            tv_timeline_host(t, TV_HOST_LOADER_MULTI, TV_S("x"), from, dur, 0);
            mark(h->loader, from, dur);
        }
        tv_note facts = {.type = TV_NOTE_MAP};
        tv_timeline_facts(t, a, &facts);
        check_sums(&facts, h);
        tv_arena_close(a);
    }
}

/* A kernel waits for its launch: of each gap of 10 us the host takes 7. */
static void idle_before_a_launch_is_the_hosts(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_timeline *t = tv_timeline_open(a);
    tv_timeline_step(t, 0, 0, 200000, false);
    for (int i = 0; i < 10; i++) {
        const int64_t start = 10000 + i * 20000;
        const uint64_t call = (uint64_t)(1000 - i); /* not in the order of time */
        tv_timeline_work(t, &(tv_work){.name = tv_timeline_name(t, TV_S("k")),
                                       .start_ns = start,
                                       .dur_ns = 10000,
                                       .call = call,
                                       .bytes = (double)NAN});
        tv_timeline_host(t, TV_HOST_CALL, TV_S("cudaLaunchKernel"), start - 3008, 2000, call);
    }
    tv_note facts = {.type = TV_NOTE_MAP};
    tv_timeline_facts(t, a, &facts);
    assert_close(tv_noted_num(&facts, "linked_share"), 1, 0);
    assert_close(tv_noted_num(&facts, "launch_delay_median_s"), 3008e-9, 0.03);
    assert_close(tv_noted_num(&facts, "host_wait_s"), 10 * 6992e-9, 0.01);
    assert_close(tv_noted_num(&facts, "launches"), 10, 0);
    tv_arena_close(a);
}

static void steps_count_once(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_timeline *t = tv_timeline_open(a);
    tv_timeline_work(
        t, &(tv_work){.name = tv_timeline_name(t, TV_S("k")), .dur_ns = 5, .bytes = (double)NAN});
    tv_timeline_step(t, 7, 1000, 3000, false);
    tv_timeline_step(t, 7, 1200, 3000, false); /* another thread's */
    tv_timeline_step(t, 8, 4200, 2000, false);
    tv_timeline_step(t, 7, 1500, 2500, true);
    tv_note facts = {.type = TV_NOTE_MAP};
    tv_timeline_facts(t, a, &facts);
    assert_close(tv_noted_num(&facts, "steps"), 2, 0);
    assert_close(tv_noted_num(&facts, "step_s.0"), 3200e-9, 1e-9);
    assert_close(tv_noted_num(&facts, "gpu_step_s.0"), 2500e-9, 1e-9);
    tv_arena_close(a);
}

/* ---- memory ---- */

static tv_note memory_of(tv_arena *a, double leak_bytes)
{
    tv_timeline *t = tv_timeline_open(a);
    for (int step = 0; step < 40; step++)
        for (int k = 0; k < 10; k++)
            tv_timeline_memory(t, 0, (int64_t)step * 10000000 + k * 1000000,
                               1e9 + step * leak_bytes + (k < 9 ? k * 1e8 : 0), 3e9);
    tv_note facts = {.type = TV_NOTE_MAP};
    tv_timeline_memory_facts(t, a, &facts);
    return facts;
}

static void memory_that_grows_is_seen(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_note grows = memory_of(a, 2e7), stays = memory_of(a, 0);
    assert_close(tv_noted_num(&grows, "mem_slope_bytes_per_s"), 2e9, 0.1);
    assert_true(tv_noted_bool(&grows, "mem_grows", false));
    assert_true(fabs(tv_noted_num(&stays, "mem_slope_bytes_per_s")) < 2e8);
    assert_false(tv_noted_bool(&stays, "mem_grows", true));
    assert_close(tv_noted_num(&stays, "mem_peak_bytes"), 1.8e9, 1e-9);
    tv_arena_close(a);
}

/* ---- the store ---- */

static void store_gives_back_in_order(size_t most_bytes, size_t n, bool spills)
{
    tv_arena *a = test_arena();
    tv_store *s = tv_store_open(a, most_bytes);
    uint64_t x = 11;
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t start = next_random(&x) << 9;
        const tv_piece p = {.start_low = (uint32_t)start,
                            .start_high = (uint16_t)(start >> 32),
                            .dur_low = (uint32_t)i,
                            .link = (uint32_t)i + 1};
        assert_true(tv_store_piece(s, &p));
        const uint64_t called = start > 3200 ? start - 3200 : 0;
        tv_store_call(s,
                      &(tv_call){(uint32_t)i + 1, (uint32_t)called, (uint16_t)(called >> 32), 4});
        sum += start;
    }
    tv_store_end(s);
    int64_t last = 0;
    size_t seen = 0;
    for (const tv_piece *p; (p = tv_store_next(s)); seen++) {
        assert_true(tv_piece_start(p) >= last);
        last = tv_piece_start(p);
        sum -= (uint64_t)last;
        if (last > 3200)
            assert_int_equal(p->link, 3200 / TV_LINK_UNIT_NS);
    }
    assert_int_equal(seen, n);
    assert_int_equal(sum, 0);
    assert_int_equal(tv_store_linked(s), n);
    assert_int_equal(tv_store_spilled_bytes(s) > 0, spills);
    tv_arena_close(a);
}

static void store_sorts_and_links(void **state)
{
    (void)state;
    store_gives_back_in_order(TV_LIMIT_TIMELINE_BYTES, 0, false);
    store_gives_back_in_order(TV_LIMIT_TIMELINE_BYTES, 1, false);
    store_gives_back_in_order(TV_LIMIT_TIMELINE_BYTES, 50000, false);
    store_gives_back_in_order(400000, 100000, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_agree_with_a_count),
        cmocka_unit_test(idle_before_a_launch_is_the_hosts),
        cmocka_unit_test(steps_count_once),
        cmocka_unit_test(memory_that_grows_is_seen),
        cmocka_unit_test(store_sorts_and_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
