/* The rules with the corrected values of the requirement list. */
#include "testing.h"

#include "predict/rules.h"

static tv_fact catalog(double v)
{
    return tv_fact_of(v, TV_CATALOG, TV_S("test"));
}

static void speed(void **state)
{
    (void)state;
    assert_close(tv_rule_time_elsewhere(6 * 3600, 1.4), 8.4 * 3600, 1e-12); /* R033 */
    assert_close(tv_rule_run_s(45, 5), 225, 1e-12);                         /* R216 */
    assert_close(tv_rule_run_s(680, 3), 2040, 1e-12);
    assert_close(tv_rule_run_s(420, 3), 1260, 1e-12);
    const double r3060 = tv_rule_rate_per_s(50000, 45); /* R050 */
    const double r4090 = tv_rule_rate_per_s(50000, 18);
    assert_close(r3060, 1111, 1e-3);
    assert_close(r4090, 2778, 1e-3);
    assert_close(tv_rule_rate_per_s(50000, 22), 2273, 1e-3);
    assert_close(r4090 / r3060, 2.5, 1e-12);
    assert_false(tv_rule_rate_per_s(50000, 0) > 0);
}

/* R038, F125. */
static void rates_divide_in_one_mode(void **state)
{
    (void)state;
    tv_device x = {0}, y = {0};
    x.rate_flops[TV_RATE_FP16_TENSOR] = catalog(165.2e12);
    x.rate_flops[TV_RATE_FP16_TENSOR_FP16] = catalog(330.3e12);
    y.rate_flops[TV_RATE_FP16_TENSOR] = catalog(71.2e12);
    tv_ratio r = tv_rule_rate_ratio(&x, TV_RATE_FP16_TENSOR, &y, TV_RATE_FP16_TENSOR);
    assert_int_equal(r.state, TV_RATIO_OK);
    assert_close(r.v, 2.32, 1e-3);
    r = tv_rule_rate_ratio(&x, TV_RATE_FP16_TENSOR_FP16, &y, TV_RATE_FP16_TENSOR);
    assert_int_equal(r.state, TV_RATIO_MODES_DIFFER);
    assert_false(r.v > 0);
    r = tv_rule_rate_ratio(&x, TV_RATE_FP16_TENSOR_FP16, &y, TV_RATE_FP16_TENSOR_FP16);
    assert_int_equal(r.state, TV_RATIO_UNKNOWN);
}

/* R051: 25,000 sequences of 512 tokens. */
static void achieved_rates(void **state)
{
    (void)state;
    const double token = tv_rule_train_flop_per_token(85.65e6, 12, 768, 512);
    assert_close(token, 570.5e6, 1e-3);
    static const struct {
        double time_s, peak, achieved, share;
        tv_plausible plausible;
    } rows[] = {
        {680, 12.74e12, 10.74e12, 0.84, TV_SUSPICIOUS},
        {420, 51.0e12, 17.39e12, 0.34, TV_PLAUSIBLE},
        {150, 165.2e12, 48.68e12, 0.295, TV_PLAUSIBLE},
        {190, 312e12, 38.44e12, 0.123, TV_PLAUSIBLE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tv_achieved r = tv_rule_achieved(token * 25000 * 512, rows[i].time_s, rows[i].peak);
        assert_close(r.flops, rows[i].achieved, 1e-3);
        assert_close(r.share, rows[i].share, 1e-2);
        assert_int_equal(r.plausible, rows[i].plausible);
    }
    assert_int_equal(tv_rule_achieved(2, 1, 1).plausible, TV_IMPOSSIBLE);
    assert_int_equal(tv_rule_achieved(2, 1, 0).plausible, TV_PLAUSIBLE_UNKNOWN);
}

/* R052, F118: 12 GB of weights. */
static void decode_limits(void **state)
{
    (void)state;
    assert_close(tv_rule_decode(12e9, 1008e9, 0).tokens_per_s, 84, 1e-12);
    assert_close(tv_rule_decode(12e9, 1555e9, 0).tokens_per_s, 129.6, 1e-3);
    assert_close(tv_rule_decode(12e9, 1008e9, 15).efficiency, 0.179, 3e-3);
    assert_close(tv_rule_decode(12e9, 1008e9, 20).efficiency, 0.238, 3e-3);
    assert_close(tv_rule_decode(12e9, 1555e9, 30).efficiency, 0.231, 3e-3);
    assert_close(tv_rule_decode(12e9, 1555e9, 40).efficiency, 0.309, 3e-3);
    assert_false(tv_rule_decode(0, 1008e9, 15).efficiency > 0);
}

/* R058: 16 to 32 with 12 % less speed; R217. */
static void batches(void **state)
{
    (void)state;
    const tv_batch_row worse[] = {{16, 1}, {32, 2 / 0.88}};
    tv_batch_answer r = tv_rule_batch(worse, 2);
    assert_close(r.best_batch, 16, 0);
    assert_close(r.last_change, -0.12, 1e-12);
    assert_int_equal(r.verdict, TV_BATCH_LOSES);
    const tv_batch_row rising[] = {{8, 0.10}, {16, 0.12}, {32, 0.20}, {64, 0.39}};
    r = tv_rule_batch(rising, 4);
    assert_close(r.best_batch, 64, 0);
    assert_close(r.best_per_s, 64 / 0.39, 1e-12);
    assert_close(r.saturation_batch, 32, 0);
    assert_int_equal(r.verdict, TV_BATCH_FLAT);
    assert_int_equal(tv_rule_batch(rising, 3).verdict, TV_BATCH_GAINS);
    assert_int_equal(tv_rule_batch(rising, 1).verdict, TV_BATCH_UNKNOWN);
    assert_int_equal(tv_rule_batch(NULL, 0).verdict, TV_BATCH_UNKNOWN);
}

static void feeding(void **state)
{
    (void)state;
    tv_transfer t = tv_rule_transfer(1.8e9, 32e9, 23); /* R059 */
    assert_close(t.limit_per_s, 17.78, 1e-3);
    assert_close(t.idle_share, 0.227, 1e-3);
    t = tv_rule_transfer(1.8e9, 25e9, 23);
    assert_close(t.limit_per_s, 13.9, 1e-3);
    assert_close(t.idle_share, 0.396, 1e-3);
    assert_false(tv_rule_transfer(1.8e9, 32e9, 10).idle_share > 0);

    tv_loader l = tv_rule_loader(100, 32, 15, 0); /* R061 */
    assert_close(l.samples_per_s, 213.3, 1e-3);
    assert_false(l.guide_fails);
    assert_false(l.binds);
    l = tv_rule_loader(100, 32, 15.1, 0.2);
    assert_close(l.samples_per_s, 211.9, 1e-3);
    assert_true(l.guide_fails);
    assert_false(l.binds); /* the card is slower still */
    l = tv_rule_loader(100, 32, 10, 0.05);
    assert_false(l.guide_fails);
    assert_true(l.binds);
    assert_close(l.wait_share, 0.5, 1e-12);

    tv_read_need d = tv_rule_read(1.2e9, 8, 7e9); /* R063 */
    assert_close(d.need_bytes_per_s, 9.6e9, 1e-12);
    assert_close(d.deficit_bytes_per_s, 2.6e9, 1e-9);
    assert_close(d.fed_share, 0.729, 1e-3);
    assert_close(d.disks, 2, 0);
    d = tv_rule_read(0.5e9, 8, 7e9);
    assert_false(d.deficit_bytes_per_s > 0);
    assert_close(d.fed_share, 1, 0);

    const tv_frames jpeg = tv_rule_frames(100000, 200, 0.6e6); /* R064 */
    assert_close(jpeg.frames, 2e7, 0);
    assert_close(jpeg.total_bytes, 12.0e12, 1e-12);
    assert_close(tv_rule_frames(1e5, 200, tv_rule_raw_frame_bytes(1920, 1080)).total_bytes,
                 124.4e12, 1e-3);
}

static void loaders_and_containers(void **state)
{
    (void)state;
    tv_workers w = tv_rule_workers(64, 8, 0, 0, 0); /* R070 */
    assert_close(w.per_rank, 8, 0);
    assert_close(tv_rule_workers(15, 4, 0, 0, 0).per_rank, 3, 0);
    assert_close(tv_rule_workers(2, 8, 0, 0, 0).per_rank, 1, 0);
    w = tv_rule_workers(64, 8, 64e9, 1e9, 2);
    assert_true(w.ram_limits);
    assert_close(w.per_rank, 2, 0);
    assert_close(w.buffer_bytes, 32e9, 1e-12);
    assert_false(tv_rule_workers(64, 8, 1e12, 1e6, 2).ram_limits);

    const tv_upload u = tv_rule_upload(100e9, 12.5e6, 10); /* R071: 100 GB at 100 Mb/s */
    assert_close(u.time_s, 8000, 1e-12);
    assert_close(u.idle_cost, 22.22, 1e-3);

    /* R072: 8 workers, 2 batches of 32 pictures of 224 x 224 in fp32 */
    const double shm = tv_rule_shm_bytes(8, 2, 32 * 3 * 224 * 224 * 4.0);
    assert_close(shm, 616562688, 1e-12);
    assert_true(shm > TV_SHM_DEFAULT_BYTES);

    tv_padding p = tv_rule_sampler(1000, 8, 32, false); /* R158 */
    assert_close(p.rank_samples, 125, 0);
    assert_false(p.padded > 0);
    p = tv_rule_sampler(1001, 8, 32, false);
    assert_close(p.rank_samples, 126, 0);
    assert_close(p.padded, 7, 0);
    assert_close(p.steps, 4, 0);
    assert_close(p.last_batch, 30, 0);
    p = tv_rule_sampler(1001, 8, 32, true);
    assert_close(p.dropped, 1, 0);
    assert_close(p.last_batch, 29, 0);
}

static void links_and_rings(void **state)
{
    (void)state;
    assert_close(tv_rule_shared_uplink(32e9, 4), 8e9, 1e-12);     /* R073 */
    assert_close(tv_rule_ring_s(2, 1e9, 1.25e9, 0), 0.80, 1e-12); /* R074 */
    assert_close(tv_rule_ring_s(2, 1e9, 25e9, 0), 0.040, 1e-12);
    assert_close(tv_rule_ring_s(8, 102e6, 12e9, 0), 14.875e-3, 1e-12); /* R081 */
    assert_close(tv_rule_ring_s(8, 0, 12e9, 1e-6), 14e-6, 1e-12);
    assert_false(tv_rule_ring_s(1, 102e6, 12e9, 1e-6) > 0);

    /* a step of 0.4 s: 10 GbE is twice that, InfiniBand a tenth */
    tv_comm_bounds b = tv_rule_comm_bounds(0.4, 0.8);
    assert_close(b.worst, 1 / 3.0, 1e-12);
    assert_close(b.best, 0.5, 1e-12);
    b = tv_rule_comm_bounds(0.4, 0.04);
    assert_close(b.worst, 0.909, 1e-3);
    assert_close(b.best, 1, 0);
    assert_false(tv_rule_comm_bounds(0, 0.04).best > 0);

    tv_link_ratio r = tv_rule_link_ratio(600e9, true, 32e9, false); /* R077 */
    assert_close(r.one_way, 9.375, 1e-12);
    assert_close(r.headline, 18.75, 1e-12);
    assert_true(r.mixed);
    r = tv_rule_link_ratio(600e9, true, 64e9, true);
    assert_close(r.one_way, 9.375, 1e-12);
    assert_false(r.mixed);
}

static void scaling(void **state)
{
    (void)state;
    assert_close(tv_rule_efficiency(4, 3.8), 0.95, 1e-12); /* R076 */
    assert_close(tv_rule_efficiency(4, 2.1), 0.525, 1e-12);
    assert_close(3.8 / 2.1, 1.81, 1e-3);

    tv_scaling_answer s = tv_rule_scaling(4, 100, 140, -1); /* R086 */
    assert_close(s.efficiency, 0.35, 1e-12);
    assert_true(s.guide_fails);
    assert_int_equal(s.verdict, TV_SCALING_POOR);
    s = tv_rule_scaling(2, 100, 150, -1);
    assert_close(s.efficiency, 0.75, 1e-12);
    assert_false(s.guide_fails);
    assert_int_equal(s.verdict, TV_SCALING_WEAK);
    assert_int_equal(tv_rule_scaling(8, 100, 180, -1).verdict, TV_SCALING_POOR);
    assert_false(tv_rule_scaling(8, 100, 180, -1).guide_fails); /* 22 % passes the guide's rule */
    assert_int_equal(tv_rule_scaling(4, 100, 240, 0.45).verdict, TV_SCALING_LOADER_FIRST);
    assert_int_equal(tv_rule_scaling(4, 100, 380, 0.45).verdict, TV_SCALING_GOOD);
    assert_int_equal(tv_rule_scaling(4, 0, 380, 0).verdict, TV_SCALING_UNKNOWN);

    const tv_overlap o = tv_rule_overlap(257.23e-3, 39.13e-3); /* R089 */
    assert_close(o.share, 0.152, 1e-3);
    assert_true(o.low);
    assert_false(tv_rule_overlap(1, 0.7).low);

    tv_lane_balance b = tv_rule_lanes(0.2, 0.1, 0.3, true); /* R056 */
    assert_int_equal(b.slowest, TV_BOUND_STORAGE);
    assert_close(b.ratio, 1.5, 1e-12);
    assert_close(b.gain_if_removed, 0.5, 1e-12);
    b = tv_rule_lanes(0.2, 0.1, 0.3, false);
    assert_close(b.gain_if_removed, 1, 1e-12);
    assert_int_equal(tv_rule_lanes(0, 0, 0, true).slowest, TV_BOUND_UNKNOWN);

    tv_lost l = tv_rule_lost(1, 1.5, 0.2, 0.1, 0.05); /* R097 */
    assert_close(l.comm, 0.4, 1e-12);
    assert_close(l.comm + l.loader + l.straggler + l.other, 1, 1e-12);
    l = tv_rule_lost(1, 1.1, 0.2, 0.1, 0);
    assert_close(l.comm + l.loader + l.straggler + l.other, 1, 1e-12);
    assert_true(l.other >= 0);
}

/* R159, R173: 65 B parameters. */
static void sharding(void **state)
{
    (void)state;
    const double p = 65e9;
    assert_close(tv_rule_states_bytes(p, 1, TV_STRATEGY_DDP, 0), 1.04e12, 1e-12);
    assert_close(tv_rule_min_cards(1.04e12, 80e9), 13, 0);
    assert_close(tv_rule_states_bytes(p, 16, TV_STRATEGY_ZERO1, 8), p * 4.75, 1e-12);
    assert_close(tv_rule_states_bytes(p, 16, TV_STRATEGY_ZERO2, 8), p * 2.875, 1e-12);
    assert_close(tv_rule_states_bytes(p, 16, TV_STRATEGY_FSDP, 8), p, 1e-12);
    assert_close(tv_rule_states_bytes(p, 16, TV_STRATEGY_HSDP, 8), 2 * p, 1e-12);
    /* F90: on one node both are equal */
    assert_close(tv_rule_states_bytes(p, 8, TV_STRATEGY_HSDP, 8),
                 tv_rule_states_bytes(p, 8, TV_STRATEGY_FSDP, 8), 0);
}

/* R181. */
static void power_supply(void **state)
{
    (void)state;
    const double parts_w[] = {4 * 400, 250, 100, 50};
    const tv_power_supply r = tv_rule_power_supply(parts_w, 4);
    assert_close(r.parts_w, 2000, 0);
    assert_close(r.supply_w, 2600, 1e-12);
    assert_close(r.rail_a, 216.7, 1e-3);
    assert_close(r.rail_rounded_a, 220, 0);
}

static void verdicts_have_words(void **state)
{
    (void)state;
    for (tv_plausible v = 0; v <= TV_IMPOSSIBLE; v++)
        assert_true(strlen(tv_plausible_name(v)) > 3);
    for (tv_batch_verdict v = 0; v <= TV_BATCH_LOSES; v++)
        assert_true(strlen(tv_batch_verdict_name(v)) > 3);
    for (tv_scaling v = 0; v <= TV_SCALING_LOADER_FIRST; v++)
        assert_true(strlen(tv_scaling_name(v)) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speed),
        cmocka_unit_test(rates_divide_in_one_mode),
        cmocka_unit_test(achieved_rates),
        cmocka_unit_test(decode_limits),
        cmocka_unit_test(batches),
        cmocka_unit_test(feeding),
        cmocka_unit_test(loaders_and_containers),
        cmocka_unit_test(links_and_rings),
        cmocka_unit_test(scaling),
        cmocka_unit_test(sharding),
        cmocka_unit_test(power_supply),
        cmocka_unit_test(verdicts_have_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
