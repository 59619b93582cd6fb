/* trivet rules: the small sums that guides give and people ask for on their own, with the right
 * value: numbers in as NAME=VALUE, the result and its verdict out. One row a rule. */
#include "command.h"

#include "base/json.h"
#include "base/message.h"
#include "base/unit.h"
#include "predict/rules.h"

enum { most_inputs = 5 };

typedef enum input_kind { A_NUMBER, A_SIZE, A_RATE, A_TIME } input_kind;

typedef struct input {
    const char *name;
    input_kind kind;
    bool optional;
} input;

typedef struct outcome {
    tv_arg v[5];
    size_t n;
    const char *verdict; /* msgid; NULL: none */
} outcome;

typedef struct rule_row {
    const char *name;
    const char *summary; /* msgid */
    const char *entries; /* requirements and fact checks that it answers */
    input in[most_inputs];
    void (*run)(const double *in, outcome *out);
} rule_row;

static void put(outcome *out, const char *name, tv_arg_kind kind, double v)
{
    out->v[out->n++] = tv_arg_num(name, kind, v);
}

/* ---- the rules ---- */

static void run_elsewhere(const double *in, outcome *out)
{
    put(out, "time_s", TV_ARG_SECONDS, tv_rule_time_elsewhere(in[0], in[1]));
}

static void run_length(const double *in, outcome *out)
{
    put(out, "run_s", TV_ARG_SECONDS, tv_rule_run_s(in[0], in[1]));
}

static void run_rate(const double *in, outcome *out)
{
    put(out, "samples_per_s", TV_ARG_NUMBER, tv_rule_rate_per_s(in[0], in[1]));
}

static void run_achieved(const double *in, outcome *out)
{
    const tv_achieved a = tv_rule_achieved(in[0], in[1], in[2]);
    put(out, "flops", TV_ARG_FLOPS, a.flops);
    put(out, "share_of_peak", TV_ARG_RATIO, a.share);
    out->verdict = tv_plausible_name(a.plausible);
}

static void run_decode(const double *in, outcome *out)
{
    const tv_decode_limit d = tv_rule_decode(in[0], in[1], in[2]);
    put(out, "tokens_per_s_at_most", TV_ARG_NUMBER, d.tokens_per_s);
    if (in[2] > 0)
        put(out, "efficiency", TV_ARG_RATIO, d.efficiency);
}

static void run_transfer(const double *in, outcome *out)
{
    const tv_transfer t = tv_rule_transfer(in[0], in[1], in[2]);
    put(out, "limit_per_s", TV_ARG_NUMBER, t.limit_per_s);
    put(out, "idle", TV_ARG_RATIO, t.idle_share);
}

static void run_loader(const double *in, outcome *out)
{
    const tv_loader l = tv_rule_loader(in[0], in[1], in[2], in[3]);
    put(out, "samples_per_s", TV_ARG_NUMBER, l.samples_per_s);
    put(out, "batch_s", TV_ARG_SECONDS, l.batch_s);
    if (in[3] > 0)
        put(out, "waits", TV_ARG_RATIO, l.wait_share);
    out->verdict = l.binds         ? N_("the loader is slower than the card's step")
                   : in[3] > 0     ? N_("the loader keeps up with the card")
                   : l.guide_fails ? N_("over the guide's 15 s for 100 batches; give step=S to "
                                        "judge it against the card")
                                   : N_("within the guide's 15 s for 100 batches; give step=S to "
                                        "judge it against the card");
}

static void run_read(const double *in, outcome *out)
{
    const tv_read_need r = tv_rule_read(in[0], in[1], in[2]);
    put(out, "need", TV_ARG_RATE, r.need_bytes_per_s);
    put(out, "deficit", TV_ARG_RATE, r.deficit_bytes_per_s);
    put(out, "fed", TV_ARG_RATIO, r.fed_share);
    put(out, "disks", TV_ARG_NUMBER, r.disks);
}

static void run_frames(const double *in, outcome *out)
{
    const tv_frames f = tv_rule_frames(in[0], in[1], in[2]);
    put(out, "frames", TV_ARG_COUNT, f.frames);
    put(out, "size", TV_ARG_DISK, f.total_bytes);
}

static void run_workers(const double *in, outcome *out)
{
    const tv_workers w = tv_rule_workers(in[0], in[1], in[2], in[3], in[4]);
    put(out, "workers_per_rank", TV_ARG_NUMBER, w.per_rank);
    put(out, "buffers", TV_ARG_MEMORY, w.buffer_bytes);
    out->verdict = w.ram_limits ? N_("memory allows fewer than the cores would") : NULL;
}

static void run_shm(const double *in, outcome *out)
{
    const double bytes = tv_rule_shm_bytes(in[0], in[1], in[2]);
    put(out, "shm_size", TV_ARG_MEMORY, bytes);
    out->verdict = bytes > TV_SHM_DEFAULT_BYTES
                       ? N_("more than a container's 64 MiB: set --shm-size or --ipc=host")
                       : N_("a container's 64 MiB are enough");
}

static void run_upload(const double *in, outcome *out)
{
    const tv_upload u = tv_rule_upload(in[0], in[1], in[2]);
    put(out, "time_s", TV_ARG_SECONDS, u.time_s);
    put(out, "idle_cost", TV_ARG_NUMBER, u.idle_cost);
}

static void run_sampler(const double *in, outcome *out)
{
    const tv_padding p = tv_rule_sampler(in[0], in[1], in[2], in[3] > 0);
    put(out, "samples_of_a_rank", TV_ARG_COUNT, p.rank_samples);
    put(out, "steps", TV_ARG_COUNT, p.steps);
    put(out, "seen_twice", TV_ARG_COUNT, p.padded);
    put(out, "dropped", TV_ARG_COUNT, p.dropped);
    put(out, "last_batch", TV_ARG_COUNT, p.last_batch);
}

static void run_uplink(const double *in, outcome *out)
{
    put(out, "each", TV_ARG_RATE, tv_rule_shared_uplink(in[0], in[1]));
}

static void run_ring(const double *in, outcome *out)
{
    put(out, "time_s", TV_ARG_SECONDS, tv_rule_ring_s(in[0], in[1], in[2], in[3]));
}

static void run_scaling(const double *in, outcome *out)
{
    const tv_scaling_answer s = tv_rule_scaling(in[0], 1, in[1], in[2] > 0 ? in[2] : -1);
    put(out, "speedup", TV_ARG_NUMBER, s.speedup);
    put(out, "efficiency", TV_ARG_RATIO, s.efficiency);
    out->verdict = tv_scaling_name(s.verdict);
}

static void run_overlap(const double *in, outcome *out)
{
    const tv_overlap o = tv_rule_overlap(in[0], in[1]);
    put(out, "hidden", TV_ARG_RATIO, o.share);
    out->verdict =
        o.low ? N_("below the guide's 60 %: overlap more") : N_("above the guide's 60 %");
}

static void run_lanes(const double *in, outcome *out)
{
    const tv_lane_balance l = tv_rule_lanes(in[0], in[1], in[2], in[3] > 0);
    out->v[out->n++] = tv_arg_str("slowest", tv_str_of(tv_bound_name(l.slowest)));
    put(out, "over_the_next", TV_ARG_NUMBER, l.ratio);
    put(out, "gain_if_removed", TV_ARG_RATIO, l.gain_if_removed);
}

static void run_states(const double *in, outcome *out)
{
    const double whole = tv_rule_states_bytes(in[0], 1, TV_STRATEGY_DDP, 1);
    put(out, "states", TV_ARG_DISK, whole);
    put(out, "on_each_of_n", TV_ARG_DISK,
        tv_rule_states_bytes(in[0], in[1], TV_STRATEGY_FSDP, in[1]));
    put(out, "cards_at_least", TV_ARG_NUMBER, tv_rule_min_cards(whole, in[2]));
}

static void run_supply(const double *in, outcome *out)
{
    const tv_power_supply s = tv_rule_power_supply(in, 4);
    put(out, "parts", TV_ARG_WATTS, s.parts_w);
    put(out, "supply", TV_ARG_WATTS, s.supply_w);
    put(out, "rail_12v_a", TV_ARG_NUMBER, s.rail_a);
    put(out, "rail_12v_rounded_a", TV_ARG_NUMBER, s.rail_rounded_a);
}

static void run_saving(const double *in, outcome *out)
{
    put(out, "saving", TV_ARG_RATIO, tv_rule_saving(in[0], in[1]));
}

static void run_density(const double *in, outcome *out)
{
    put(out, "matrix_share", TV_ARG_RATIO, in[0]);
    out->verdict = tv_density_name(tv_rule_density(in[0]));
}

static void run_premium(const double *in, outcome *out)
{
    put(out, "matrix_share", TV_ARG_RATIO, in[0]);
    put(out, "utilisation", TV_ARG_RATIO, in[1]);
    out->verdict = tv_rule_premium_wasted(in[0], in[1])
                       ? N_("not worth a high-end card's premium")
                       : N_("no verdict: the rule speaks only below 40 % and 60 %");
}

static const rule_row rules[] = {
    {"achieved",
     N_("FLOP/s that a run reaches, and whether that can be"),
     "R051, F112-F114",
     {{"flop", A_NUMBER, false}, {"time", A_TIME, false}, {"peak", A_NUMBER, false}},
     run_achieved},
    {"decode",
     N_("tokens a second that memory bandwidth allows at most"),
     "R052, F118",
     {{"weights", A_SIZE, false}, {"bandwidth", A_RATE, false}, {"measured", A_NUMBER, true}},
     run_decode},
    {"density",
     N_("what the share of matrix work says about the card"),
     "R040, F38",
     {{"share", A_NUMBER, false}},
     run_density},
    {"elsewhere",
     N_("time of a run on a card that is so many times slower"),
     "R033, F07",
     {{"time", A_TIME, false}, {"ratio", A_NUMBER, false}},
     run_elsewhere},
    {"frames",
     N_("size of videos decoded to frames"),
     "R064, F45",
     {{"clips", A_NUMBER, false}, {"frames", A_NUMBER, false}, {"frame", A_SIZE, false}},
     run_frames},
    {"lanes",
     N_("which of compute, communication and data holds a step back"),
     "R056",
     {{"compute", A_TIME, false},
      {"communication", A_TIME, false},
      {"data", A_TIME, false},
      {"parallel", A_NUMBER, true}},
     run_lanes},
    {"loader",
     N_("speed of a data loader against the card's step"),
     "R061, F52",
     {{"batches", A_NUMBER, false},
      {"batch", A_NUMBER, false},
      {"time", A_TIME, false},
      {"step", A_TIME, true}},
     run_loader},
    {"overlap",
     N_("share of communication that is hidden"),
     "R089, F95",
     {{"communication", A_TIME, false}, {"hidden", A_TIME, false}},
     run_overlap},
    {"premium",
     N_("whether a high-end card is worth its premium"),
     "R041, F38",
     {{"share", A_NUMBER, false}, {"utilisation", A_NUMBER, false}},
     run_premium},
    {"rate",
     N_("samples per second"),
     "R050",
     {{"samples", A_NUMBER, false}, {"time", A_TIME, false}},
     run_rate},
    {"read",
     N_("what cards read together against what a disk gives"),
     "R063, R067, F44",
     {{"card", A_RATE, false}, {"cards", A_NUMBER, false}, {"disk", A_RATE, false}},
     run_read},
    {"ring",
     N_("time of a ring all-reduce"),
     "R074, R081",
     {{"cards", A_NUMBER, false},
      {"bytes", A_SIZE, false},
      {"link", A_RATE, false},
      {"hop", A_TIME, true}},
     run_ring},
    {"run",
     N_("time of a run from its epochs"),
     "R216",
     {{"epoch", A_TIME, false}, {"epochs", A_NUMBER, false}},
     run_length},
    {"sampler",
     N_("steps and padding of a distributed sampler"),
     "R158, F78",
     {{"samples", A_NUMBER, false},
      {"ranks", A_NUMBER, false},
      {"batch", A_NUMBER, false},
      {"drop", A_NUMBER, true}},
     run_sampler},
    {"saving",
     N_("share that a change saves"),
     "R020",
     {{"before", A_SIZE, false}, {"after", A_SIZE, false}},
     run_saving},
    {"scaling",
     N_("efficiency of several cards"),
     "R076, R086, F93",
     {{"cards", A_NUMBER, false}, {"speedup", A_NUMBER, false}, {"data-wait", A_NUMBER, true}},
     run_scaling},
    {"shm",
     N_("shared memory that loader workers need in a container"),
     "R072, F76",
     {{"workers", A_NUMBER, false}, {"prefetch", A_NUMBER, false}, {"batch", A_SIZE, false}},
     run_shm},
    {"states",
     N_("weights, gradients and Adam's states over several cards"),
     "R159, R173, F107",
     {{"params", A_NUMBER, false}, {"cards", A_NUMBER, false}, {"card", A_SIZE, false}},
     run_states},
    {"supply",
     N_("power supply for four groups of parts in watts"),
     "R181, F97",
     {{"cards", A_NUMBER, false},
      {"processor", A_NUMBER, false},
      {"board", A_NUMBER, false},
      {"disks", A_NUMBER, false}},
     run_supply},
    {"transfer",
     N_("steps a second that a link can feed"),
     "R059, F33",
     {{"bytes", A_SIZE, false}, {"link", A_RATE, false}, {"steps", A_NUMBER, false}},
     run_transfer},
    {"uplink",
     N_("what each card has behind one uplink"),
     "R073",
     {{"link", A_RATE, false}, {"cards", A_NUMBER, false}},
     run_uplink},
    {"upload",
     N_("time to bring data to a cloud, and what waiting costs"),
     "R071",
     {{"bytes", A_SIZE, false}, {"link", A_RATE, false}, {"per-hour", A_NUMBER, true}},
     run_upload},
    {"workers",
     N_("loader workers for each rank"),
     "R070",
     {{"cores", A_NUMBER, false},
      {"ranks", A_NUMBER, false},
      {"ram", A_SIZE, true},
      {"batch", A_SIZE, true},
      {"prefetch", A_NUMBER, true}},
     run_workers},
};
enum { n_rules = sizeof rules / sizeof *rules };

/* ---- reading ---- */

static tv_double_read read_value(input_kind kind, tv_str s)
{
    if (kind == A_RATE && tv_str_ends(s, TV_S("/s")))
        s = tv_str_take(s, s.n - 2);
    switch (kind) {
    case A_NUMBER:
        return tv_read_count(s);
    case A_SIZE:
    case A_RATE:
        return tv_read_bytes(s);
    case A_TIME:
        return tv_read_seconds(s);
    }
    return (tv_double_read){0, false};
}

static void put_form(tv_buf *b, const rule_row *rule)
{
    tv_puts(b, rule->name);
    for (size_t i = 0; i < most_inputs && rule->in[i].name; i++) {
        static const char *const units[] = {"N", "BYTES", "BYTES/s", "TIME"};
        tv_puts(b, rule->in[i].optional ? " [" : " ");
        tv_puts(b, rule->in[i].name);
        tv_putc(b, '=');
        tv_puts(b, units[rule->in[i].kind]);
        tv_puts(b, rule->in[i].optional ? "]" : "");
    }
}

static tv_err *wrong_input(tv_arena *a, const rule_row *rule, tv_text what)
{
    tv_buf b = tv_buf_in(a);
    put_form(&b, rule);
    return tv_hint(tv_fail(a, TV_USAGE, what),
                   TV_TEXT(a, "rules.form", N_("Write: trivet rules {form}"),
                           tv_arg_str("form", tv_buf_str(&b))));
}

static const tv_err *read_input(tv_arena *a, const rule_row *rule, tv_str word, double *in,
                                bool *given)
{
    const tv_cut c = tv_str_cut(word, '=');
    for (size_t i = 0; i < most_inputs && rule->in[i].name; i++) {
        if (!tv_str_is(c.head, rule->in[i].name))
            continue;
        const tv_double_read r = read_value(rule->in[i].kind, c.tail);
        if (!c.found || !r.ok || r.v < 0)
            break;
        in[i] = r.v;
        given[i] = true;
        return NULL;
    }
    return wrong_input(a, rule,
                       TV_TEXT(a, "rules.bad-input", N_("\"{word}\" is no input of this rule"),
                               tv_arg_str("word", word)));
}

static const tv_err *read_inputs(tv_arena *a, const rule_row *rule, const tv_args *args, double *in)
{
    bool given[most_inputs] = {false};
    for (size_t i = 1; i < args->n; i++)
        TV_TRY(read_input(a, rule, args->v[i], in, given));
    for (size_t i = 0; i < most_inputs && rule->in[i].name; i++)
        if (!given[i] && !rule->in[i].optional)
            return wrong_input(a, rule,
                               TV_TEXT(a, "rules.missing", N_("{name} is missing"),
                                       tv_arg_str("name", tv_str_of(rule->in[i].name))));
    return NULL;
}

/* ---- writing ---- */

static void list_rules(tv_request *r)
{
    for (size_t i = 0; i < n_rules; i++) {
        put_form(r->out, &rules[i]);
        tv_puts(r->out, "\n    ");
        tv_puts(r->out, tv_message(r->lang, rules[i].summary));
        tv_puts(r->out, " (");
        tv_puts(r->out, rules[i].entries);
        tv_puts(r->out, ")\n");
    }
}

static void list_json(tv_request *r)
{
    tv_json_out w = tv_json_write(r->out);
    tv_json_begin(&w, '[');
    for (size_t i = 0; i < n_rules; i++) {
        tv_json_begin(&w, '{');
        tv_json_key(&w, "name");
        tv_json_put_str(&w, tv_str_of(rules[i].name));
        tv_json_key(&w, "summary");
        tv_json_put_str(&w, tv_str_of(tv_message(r->lang, rules[i].summary)));
        tv_json_key(&w, "inputs");
        tv_json_begin(&w, '[');
        for (size_t k = 0; k < most_inputs && rules[i].in[k].name; k++)
            tv_json_put_str(&w, tv_str_of(rules[i].in[k].name));
        tv_json_end(&w, ']');
        tv_json_end(&w, '}');
    }
    tv_json_end(&w, ']');
}

static void answer_json(tv_request *r, const rule_row *rule, const outcome *out)
{
    tv_json_out w = tv_json_write(r->out);
    tv_json_begin(&w, '{');
    tv_json_key(&w, "rule");
    tv_json_put_str(&w, tv_str_of(rule->name));
    for (size_t i = 0; i < out->n; i++) {
        tv_json_key(&w, out->v[i].name);
        if (out->v[i].kind == TV_ARG_STR)
            tv_json_put_str(&w, out->v[i].s);
        else
            tv_json_put_num(&w, out->v[i].v);
    }
    tv_json_key(&w, "verdict");
    if (out->verdict)
        tv_json_put_str(&w, tv_str_of(tv_message(r->lang, out->verdict)));
    else
        tv_json_put_null(&w);
    tv_json_key(&w, "entries");
    tv_json_put_str(&w, tv_str_of(rule->entries));
    tv_json_end(&w, '}');
}

static void answer_text(tv_request *r, const rule_row *rule, const outcome *out)
{
    for (size_t i = 0; i < out->n; i++) {
        tv_puts(r->out, out->v[i].name);
        tv_puts(r->out, ": ");
        tv_put_arg(r->out, r->lang, &out->v[i]);
        tv_putc(r->out, '\n');
    }
    if (out->verdict) {
        tv_puts(r->out, tv_message(r->lang, out->verdict));
        tv_putc(r->out, '\n');
    }
    tv_puts(r->out, rule->entries);
    tv_putc(r->out, '\n');
}

static const rule_row *find_rule(tv_str name)
{
    for (size_t i = 0; i < n_rules; i++)
        if (tv_str_is(name, rules[i].name))
            return &rules[i];
    return NULL;
}

static const tv_err *run(tv_request *r, const void *options, const tv_args *args)
{
    (void)options;
    if (args->n == 0) {
        if (r->json)
            list_json(r);
        else
            list_rules(r);
        return NULL;
    }
    const rule_row *rule = find_rule(args->v[0]);
    if (!rule)
        return tv_hint(TV_FAIL(r->a, TV_USAGE, "rules.unknown", N_("no rule is called \"{name}\""),
                               tv_arg_str("name", args->v[0])),
                       TV_TEXT0("rules.list", N_("trivet rules lists them.")));
    double in[most_inputs] = {0};
    TV_TRY(read_inputs(r->a, rule, args, in));
    outcome out = {0};
    rule->run(in, &out);
    if (r->json)
        answer_json(r, rule, &out);
    else
        answer_text(r, rule, &out);
    return NULL;
}

extern const tv_command tv_command_rules;
const tv_command tv_command_rules = {
    .name = "rules",
    .summary = N_("small sums that guides give, with the right value"),
    .usage = "[RULE NAME=VALUE...]",
    .details = N_("Without words the rules are listed with their inputs. Sizes and rates are read "
                  "as 1.8GB, 32GB/s; times as 23ms, 6h; counts as 7e9, 110M."),
    .max_args = 1 + most_inputs,
    .run = run,
};
