/* Money: the guides' worked sums with their corrections, and what stays unknown. */
#include "testing.h"

#include "base/file.h"
#include "command/market.h"
#include "cost/cost.h"

static tv_fact known(double v)
{
    return tv_fact_of(v, TV_STATED, TV_S("test"));
}

/* R127, F69: five rows that sum to 302,400 on 480,000; R129, F70: a fifth of it. */
static void hidden_costs_sum(void **state)
{
    (void)state;
    tv_hidden_cost rows[TV_HIDDEN_COUNT] = {0};
    static const double amounts[TV_HIDDEN_COUNT] = {100800, 60480, 40320, 75600, 25200};
    for (tv_hidden h = 0; h < TV_HIDDEN_COUNT; h++)
        rows[h] = (tv_hidden_cost){.id = tv_hidden_id(h), .amount = amounts[h], .known = true};
    tv_hidden_sum sum = tv_cost_hidden_sum(rows, TV_HIDDEN_COUNT, 480000);
    assert_close(sum.total, 302400, 1e-12);
    assert_close(sum.share, 0.63, 1e-12);
    assert_close(sum.total / 5, 60480, 1e-12);
    assert_int_equal(sum.n_unknown, 0);
    rows[TV_HIDDEN_IDLE].known = false;
    sum = tv_cost_hidden_sum(rows, TV_HIDDEN_COUNT, 480000);
    assert_close(sum.total, 302400 - 25200, 1e-12);
    assert_int_equal(sum.n_unknown, 1);
}

/* R130: four cards of 400 W, a whole year at full use. */
static void electricity_of_a_year(void **state)
{
    (void)state;
    assert_close(tv_cost_energy_year(known(400), 4, TV_HOURS_PER_YEAR, 1.5, 0.8).v, 16819.2, 1e-12);
    assert_false(tv_known(tv_cost_energy_year((tv_fact){0}, 4, 8760, 1.5, 0.8)));
    assert_false(tv_known(tv_cost_energy_year(known(400), 4, 8760, 1.5, 0)));
}

/* R131: 200 h at 10, and at a third of it. */
static void spot_runs(void **state)
{
    (void)state;
    tv_spot s = {.run_h = 200, .per_h = 10};
    assert_close(tv_cost_spot_run(&s).v, 2000, 1e-12);
    s.per_h = 10.0 / 3;
    assert_close(tv_cost_spot_run(&s).v, 667, 1e-3);
    /* one interruption in 20 h that costs half of an hour between checkpoints and half an hour */
    s.interruptions_per_h = 0.05;
    s.checkpoint_h = 1;
    s.restart_h = 0.5;
    assert_close(tv_cost_spot_hours(&s).v, 200 / 0.95, 1e-12);
    s.interruptions_per_h = 1;
    assert_false(tv_known(tv_cost_spot_run(&s)));
}

/* R132: 13,000 against 8 an hour; a card of 450 W at PUE 1.5 and 0.8 for a kWh. */
static void rent_against_buy(void **state)
{
    (void)state;
    assert_close(tv_cost_break_even_h(13000, 0, 8, 0).v, 1625, 1e-12);
    const double running = tv_cost_power_per_h(450, 1.5, 0.8);
    assert_close(running, 0.54, 1e-12);
    assert_close(tv_cost_break_even_h(13000, 0, 8, running).v, 1742.6, 1e-4);
    assert_false(tv_known(tv_cost_break_even_h(13000, 0, 0.5, running)));
    assert_false(tv_known(tv_cost_break_even_h(0, 0, 8, running)));
}

/* R109, F57: per work 1200/1.8 against 800; R110, F60: queries per second and watt. */
static void energy_for_work(void **state)
{
    (void)state;
    const double ada = tv_cost_energy_per_work_j(4 * 300, 1.8);
    const double a100 = tv_cost_energy_per_work_j(2 * 400, 1);
    assert_close(1 - ada / a100, 1 / 6.0, 1e-12);
    const double l4 = tv_cost_work_per_joule(72, 210), big = tv_cost_work_per_joule(400, 195);
    assert_close(l4, 2.9167, 1e-4);
    assert_close(big, 0.4875, 1e-12);
    assert_close(l4 / big, 5.98, 1e-3);
    assert_close(l4 / tv_cost_work_per_joule(250, 195), 3.74, 1e-3);
    assert_close(tv_cost_per_million(3.6, 100), 10, 1e-12);
}

static void instances_are_rented_whole(void **state)
{
    (void)state;
    const tv_offer eight = {.instance = TV_S("big"), .gpu_count = 8, .node_per_h = 32};
    const tv_offer card = {.gpu_count = 1, .node_per_h = 2};
    const tv_offer single = {.instance = TV_S("small"), .gpu_count = 1, .node_per_h = 1};
    const tv_offer part = {.instance = TV_S("slice"), .gpu_count = 0, .node_per_h = 0.1};
    assert_close(tv_cost_node_per_h(&eight, 1, false), 32, 0);
    assert_close(tv_cost_node_per_h(&eight, 8, false), 32, 0);
    assert_close(tv_cost_node_per_h(&card, 4, false), 8, 0);
    assert_false(tv_cost_node_per_h(&single, 4, false) > 0);
    assert_false(tv_cost_node_per_h(&part, 1, false) > 0);
    assert_false(tv_cost_node_per_h(&card, 1, true) > 0);
}

static const tv_price street[] = {
    {.currency = {"CNY", 3}, .value = 12999, .date = {"2025-09-01", 10}, .source = {"s", 1}},
    {.currency = {"USD", 3}, .value = 1500, .date = {"2025-08-06", 10}, .source = {"s", 1}},
};

static tv_device card_of(void)
{
    tv_device d = {.slug = TV_S("x"), .board_w = known(450), .prices = street, .n_prices = 2};
    d.msrp_usd = known(1599);
    d.msrp_usd.as_of = TV_S("2022-10-12");
    return d;
}

static void prices_of_a_card(void **state)
{
    (void)state;
    const tv_device d = card_of();
    assert_close(tv_cost_card_price(&d, TV_S("USD"), 0).value, 1500, 0);
    assert_close(tv_cost_card_price(&d, TV_S("CNY"), 0).value, 12999, 0);
    assert_close(tv_cost_card_price(&d, TV_S("USD"), 7).value, 12999,
                 0); /* newer, and 7 is known */
    tv_device listed = d;
    listed.n_prices = 0;
    assert_close(tv_cost_card_price(&listed, TV_S("USD"), 0).value, 1599, 0);
    const tv_device none = {0};
    assert_false(tv_cost_card_price(&none, TV_S("USD"), 0).value > 0);
}

static void a_whole_cost(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    const tv_device d = card_of();
    const tv_offer o = {.provider = TV_S("p"),
                        .gpu_count = 1,
                        .node_per_h = 10,
                        .currency = TV_S("CNY"),
                        .date = TV_S("2026-07-01"),
                        .source = TV_S("src")};
    tv_cost_input in = {.device = &d,
                        .gpus = 4,
                        .nodes = 1,
                        .currency = TV_S("CNY"),
                        .offer = &o,
                        .offer_age_days = 152,
                        .offer_per_h = 40,
                        .card = street[0],
                        .run_s = 200 * 3600.0};
    tv_cost c;
    tv_cost_fill(a, &in, &c);
    assert_str(c.currency, "CNY");
    assert_close(c.per_hour.v, 40, 0);
    assert_close(c.per_run.v, 8000, 1e-12);
    assert_close(c.buy.v, 4 * 12999.0, 0);
    assert_true(c.stale);
    assert_false(tv_known(c.energy_per_year));
    assert_close(c.total_year.v, 40 * 8760.0, 1e-12);
    assert_int_equal(c.n_hidden, TV_HIDDEN_COUNT);
    for (size_t i = 0; i < c.n_hidden; i++)
        assert_false(c.hidden[i].known);
    /* with a price for the kWh the year is owned */
    in.kwh_price = 0.8;
    in.pue = 1.5;
    in.offer_age_days = -1;
    tv_cost_fill(a, &in, &c);
    assert_false(c.stale);
    const double power = 4 * 0.45 * 1.5 * 0.8 * 8760;
    assert_close(c.energy_per_year.v, power, 1e-12);
    assert_true(c.hidden[TV_HIDDEN_ELECTRICITY].known);
    assert_close(c.total_year.v, 4 * 12999.0 + power, 1e-12);
    assert_true(c.n_notes > 0);
    /* another currency without a rate stays what it is; with one it is turned */
    in.currency = TV_S("USD");
    tv_cost_fill(a, &in, &c);
    assert_str(c.currency, "CNY");
    assert_string_equal(c.notes[0].id, "cost.no-rate");
    assert_false(tv_known(c.energy_per_year)); /* 0.8 USD cannot be added to CNY */
    in.cny_per_usd = 8;
    tv_cost_fill(a, &in, &c);
    assert_str(c.currency, "USD");
    assert_close(c.per_hour.v, 5, 1e-12);
    /* nothing known stays unknown; what was looked for in vain is said */
    in = (tv_cost_input){.currency = TV_S("USD"), .gpus = 1, .nodes = 1, .offer_age_days = -1};
    in.offers_smaller = true;
    tv_cost_fill(a, &in, &c);
    assert_int_equal(c.n_notes, 1);
    assert_string_equal(c.notes[0].id, "cost.no-machine");
    assert_str(c.currency, "USD");
    assert_false(tv_known(c.per_hour) || tv_known(c.per_run) || tv_known(c.buy) ||
                 tv_known(c.total_year));
    tv_arena_close(a);
}

/* A file of the user's own prices counts, and a broken one is an error, not silence. */
static void own_prices_count(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_request r = {.a = a, .today = TV_S("2026-11-30")};
    const tv_machine_options machine_options = {0};
    const tv_str path = TV_S(TEST_BUILD "/own-prices.json");
    const tv_money_options money = {.prices_file = path};
    assert_ok(
        a, tv_file_write(a, path,
                         TV_S("{\"schema\": \"trivet prices 1\", \"offers\": [{\"provider\": "
                              "\"home\", \"currency\": \"USD\", \"date\": \"2026-11-29\", "
                              "\"rows\": [[null, \"box\", \"nvidia-rtx-4090\", 2, 8, null, 0.02, "
                              "0.01]]}]}")));
    tv_market m;
    assert_ok(a, tv_market_open(&r, &machine_options, &money, &m));
    const tv_device *d = NULL;
    assert_ok(a, tv_catalog_device(m.catalog, TV_S("nvidia-rtx-4090"), 0, &d));
    tv_machine machine = {.device = d, .gpus = 2, .nodes = 3};
    tv_estimate est = {.machine = &machine};
    tv_market_price(&m, a, &est);
    assert_close(est.cost.per_hour.v, 0.06, 1e-12);
    assert_close(est.cost.spot_per_hour.v, 0.03, 1e-12);
    assert_false(est.cost.stale);
    assert_str(est.cost.offer, "home box");
    machine.gpus = 1000;
    tv_market_price(&m, a, &est);
    assert_true(est.cost.per_hour.v > 100); /* quoted by the card: as many as one likes */
    assert_ok(a, tv_file_write(a, path, TV_S("{\"offers\": [")));
    assert_non_null(tv_market_open(&r, &machine_options, &money, &m));
    tv_arena_close(a);
}

/* The catalogue's own offers: every card that has one gets a price, in one currency. */
static void the_market_prices_cards(void **state)
{
    (void)state;
    tv_arena *a = test_arena();
    tv_request r = {.a = a, .today = TV_S("2026-11-30")};
    const tv_machine_options machine_options = {0};
    const tv_money_options money = {0};
    tv_market m;
    assert_ok(a, tv_market_open(&r, &machine_options, &money, &m));
    tv_card_list cards;
    assert_ok(a, tv_market_cards(&m, &cards));
    size_t priced = 0;
    for (size_t i = 0; i < cards.n; i++) {
        double before = 0;
        for (uint32_t n = 1; n <= 8; n *= 2) {
            const tv_machine machine = {.device = cards.v[i], .gpus = n, .nodes = 1};
            tv_estimate est = {.machine = &machine, .time = {.run_s = 7200}};
            tv_market_price(&m, a, &est);
            const tv_cost *c = &est.cost;
            if (!tv_known(c->per_hour))
                continue;
            assert_true(c->per_hour.v > 0 && c->price_date.n && c->price_source.n);
            assert_close(c->per_run.v, c->per_hour.v * 2, 1e-12);
            assert_true(c->per_hour.v >= before); /* more cards never cost less */
            before = c->per_hour.v;
            priced += n == 1;
        }
    }
    assert_true(priced > 30);
    tv_arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hidden_costs_sum), cmocka_unit_test(electricity_of_a_year),
        cmocka_unit_test(spot_runs),        cmocka_unit_test(rent_against_buy),
        cmocka_unit_test(energy_for_work),  cmocka_unit_test(instances_are_rented_whole),
        cmocka_unit_test(prices_of_a_card), cmocka_unit_test(a_whole_cost),
        cmocka_unit_test(own_prices_count), cmocka_unit_test(the_market_prices_cards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
