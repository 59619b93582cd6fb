/* The lines of rules.h. Thresholds are named here with where they come from. */
#include "rules.h"

#include <math.h>

/* Published large-model training stays below 0.6 of the tensor peak (Korthikanti et al. report
 * 0.56); a small script that claims more has probably run in another mode. */
#define SUSPICIOUS_SHARE 0.70

/* Below this a larger batch changes nothing that a repeated run would not. */
#define BATCH_FLAT 0.05

/* The guide's rule for a loader: 100 batches in 15 s. */
#define GUIDE_BATCH_S 0.15

/* The guide's rule for several cards. */
#define GUIDE_SPEEDUP 1.5

/* Data-parallel training over NVLink or a fitting network keeps above 0.8 (Paddle's published
 * 8-card rows: 0.85 to 0.95); below 0.6 something is wrong rather than slow. */
#define EFFICIENCY_GOOD 0.80
#define EFFICIENCY_POOR 0.60

/* The guide's threshold, without a source of its own. */
#define GUIDE_OVERLAP 0.60

/* torch.utils.data.DataLoader's prefetch_factor. */
#define DEFAULT_PREFETCH 2

/* The rest of the RAM is for the page cache and the processes themselves. */
#define BUFFER_RAM_SHARE 0.5

/* The guide's head-room over the sum of the parts. */
#define SUPPLY_HEADROOM 1.3

static double over(double x, double y)
{
    return x > 0 && y > 0 ? x / y : 0;
}

/* ---- speed ---- */

double tv_rule_time_elsewhere(double time_s, double ratio)
{
    return ratio > 0 ? time_s * ratio : 0;
}

double tv_rule_run_s(double epoch_s, double epochs)
{
    return epoch_s * epochs;
}

double tv_rule_rate_per_s(double samples, double time_s)
{
    return over(samples, time_s);
}

tv_ratio tv_rule_rate_ratio(const tv_device *x, tv_rate x_mode, const tv_device *y, tv_rate y_mode)
{
    if (x_mode != y_mode)
        return (tv_ratio){.state = TV_RATIO_MODES_DIFFER};
    const tv_fact p = x->rate_flops[x_mode], q = y->rate_flops[y_mode];
    if (!tv_known(p) || !tv_known(q) || !(q.v > 0))
        return (tv_ratio){0};
    return (tv_ratio){TV_RATIO_OK, p.v / q.v};
}

double tv_rule_train_flop_per_token(double layer_params, double layers, double width, double seq)
{
    return 6 * layer_params + 12 * layers * width * seq;
}

static tv_plausible judge_share(double share)
{
    if (!(share > 0))
        return TV_PLAUSIBLE_UNKNOWN;
    if (share > 1)
        return TV_IMPOSSIBLE;
    return share > SUSPICIOUS_SHARE ? TV_SUSPICIOUS : TV_PLAUSIBLE;
}

tv_achieved tv_rule_achieved(double flop, double time_s, double peak_flops)
{
    tv_achieved r = {.flops = over(flop, time_s)};
    r.share = over(r.flops, peak_flops);
    r.plausible = judge_share(r.share);
    return r;
}

tv_decode_limit tv_rule_decode(double weight_bytes, double mem_bytes_per_s,
                               double measured_tokens_per_s)
{
    const double limit = over(mem_bytes_per_s, weight_bytes);
    return (tv_decode_limit){limit, over(measured_tokens_per_s, limit)};
}

/* ---- batch ---- */

static double row_per_s(tv_batch_row row)
{
    return over(row.batch, row.step_s);
}

static tv_batch_verdict judge_last(double change)
{
    if (change > BATCH_FLAT)
        return TV_BATCH_GAINS;
    return change < -BATCH_FLAT ? TV_BATCH_LOSES : TV_BATCH_FLAT;
}

tv_batch_answer tv_rule_batch(const tv_batch_row *rows, size_t n)
{
    tv_batch_answer r = {0};
    for (size_t i = 0; i < n; i++) {
        if (row_per_s(rows[i]) > r.best_per_s) {
            r.best_per_s = row_per_s(rows[i]);
            r.best_batch = rows[i].batch;
        }
    }
    for (size_t i = 0; i < n && !(r.saturation_batch > 0); i++)
        if (r.best_per_s > 0 && row_per_s(rows[i]) >= (1 - BATCH_FLAT) * r.best_per_s)
            r.saturation_batch = rows[i].batch;
    if (n < 2 || !(row_per_s(rows[n - 2]) > 0))
        return r;
    r.last_change = row_per_s(rows[n - 1]) / row_per_s(rows[n - 2]) - 1;
    r.verdict = judge_last(r.last_change);
    return r;
}

/* ---- feeding ---- */

tv_transfer tv_rule_transfer(double step_bytes, double link_bytes_per_s, double card_steps_per_s)
{
    tv_transfer r = {.limit_per_s = over(link_bytes_per_s, step_bytes)};
    if (r.limit_per_s > 0 && card_steps_per_s > r.limit_per_s)
        r.idle_share = 1 - r.limit_per_s / card_steps_per_s;
    return r;
}

tv_loader tv_rule_loader(double batches, double batch, double time_s, double step_s)
{
    tv_loader r = {
        .samples_per_s = over(batches * batch, time_s),
        .batch_s = over(time_s, batches),
    };
    r.guide_fails = r.batch_s > GUIDE_BATCH_S;
    r.binds = step_s > 0 && r.batch_s > step_s;
    if (r.binds)
        r.wait_share = 1 - step_s / r.batch_s;
    return r;
}

tv_read_need tv_rule_read(double card_bytes_per_s, double cards, double disk_bytes_per_s)
{
    tv_read_need r = {.need_bytes_per_s = card_bytes_per_s * cards};
    if (!(disk_bytes_per_s > 0) || !(r.need_bytes_per_s > 0))
        return r;
    r.deficit_bytes_per_s = fmax(0, r.need_bytes_per_s - disk_bytes_per_s);
    r.fed_share = fmin(1, disk_bytes_per_s / r.need_bytes_per_s);
    r.disks = ceil(r.need_bytes_per_s / disk_bytes_per_s);
    return r;
}

tv_frames tv_rule_frames(double clips, double frames_per_clip, double frame_bytes)
{
    const double frames = clips * frames_per_clip;
    return (tv_frames){frames, frames * frame_bytes};
}

double tv_rule_raw_frame_bytes(double width, double height)
{
    return width * height * 3;
}

tv_workers tv_rule_workers(double cores, double ranks, double ram_bytes, double batch_bytes,
                           double prefetch)
{
    if (!(cores > 0) || !(ranks > 0))
        return (tv_workers){0};
    const double each_bytes = (prefetch > 0 ? prefetch : DEFAULT_PREFETCH) * batch_bytes;
    tv_workers r = {.per_rank = fmax(1, floor(cores / ranks))};
    if (ram_bytes > 0 && each_bytes > 0) {
        const double most = fmax(1, floor(ram_bytes * BUFFER_RAM_SHARE / (ranks * each_bytes)));
        r.ram_limits = most < r.per_rank;
        r.per_rank = fmin(most, r.per_rank);
    }
    r.buffer_bytes = ranks * r.per_rank * each_bytes;
    return r;
}

double tv_rule_shm_bytes(double workers, double prefetch, double batch_bytes)
{
    return 2 * workers * (prefetch > 0 ? prefetch : DEFAULT_PREFETCH) * batch_bytes;
}

tv_upload tv_rule_upload(double bytes, double bytes_per_s, double price_per_h)
{
    const double time_s = over(bytes, bytes_per_s);
    return (tv_upload){time_s, time_s / 3600 * price_per_h};
}

tv_padding tv_rule_sampler(double samples, double ranks, double batch, bool drop)
{
    if (!(samples > 0) || !(ranks > 0) || !(batch > 0))
        return (tv_padding){0};
    tv_padding r = {.rank_samples = drop ? floor(samples / ranks) : ceil(samples / ranks)};
    const double seen = r.rank_samples * ranks;
    r.padded = fmax(0, seen - samples);
    r.dropped = fmax(0, samples - seen);
    r.steps = ceil(r.rank_samples / batch);
    r.last_batch = r.steps > 0 ? r.rank_samples - (r.steps - 1) * batch : 0;
    return r;
}

/* ---- scaling ---- */

double tv_rule_shared_uplink(double uplink_bytes_per_s, double cards)
{
    return over(uplink_bytes_per_s, cards);
}

double tv_rule_ring_s(double n, double bytes, double bytes_per_s, double hop_s)
{
    if (!(n > 1) || !(bytes_per_s > 0))
        return 0;
    return 2 * (n - 1) / n * bytes / bytes_per_s + 2 * (n - 1) * hop_s;
}

tv_comm_bounds tv_rule_comm_bounds(double step_s, double comm_s)
{
    if (!(step_s > 0) || !(comm_s >= 0))
        return (tv_comm_bounds){0};
    return (tv_comm_bounds){step_s / (step_s + comm_s), step_s / fmax(step_s, comm_s)};
}

tv_link_ratio tv_rule_link_ratio(double x_bytes_per_s, bool x_both, double y_bytes_per_s,
                                 bool y_both)
{
    return (tv_link_ratio){
        .one_way = over(x_bytes_per_s / (x_both ? 2 : 1), y_bytes_per_s / (y_both ? 2 : 1)),
        .headline = over(x_bytes_per_s, y_bytes_per_s),
        .mixed = x_both != y_both,
    };
}

double tv_rule_efficiency(double cards, double speedup)
{
    return over(speedup, cards);
}

/* A loss that the wait for data explains alone says nothing about communication. */
static tv_scaling judge_scaling(double efficiency, double data_wait_share)
{
    if (efficiency >= EFFICIENCY_GOOD)
        return TV_SCALING_GOOD;
    if (data_wait_share >= 1 - efficiency)
        return TV_SCALING_LOADER_FIRST;
    return efficiency < EFFICIENCY_POOR ? TV_SCALING_POOR : TV_SCALING_WEAK;
}

tv_scaling_answer tv_rule_scaling(double cards, double one_per_s, double all_per_s,
                                  double data_wait_share)
{
    tv_scaling_answer r = {.speedup = over(all_per_s, one_per_s)};
    r.efficiency = tv_rule_efficiency(cards, r.speedup);
    if (!(r.efficiency > 0))
        return r;
    r.guide_fails = r.speedup < GUIDE_SPEEDUP;
    r.verdict = judge_scaling(r.efficiency, data_wait_share);
    return r;
}

tv_overlap tv_rule_overlap(double comm_s, double hidden_s)
{
    if (!(comm_s > 0))
        return (tv_overlap){0};
    const double share = fmin(1, fmax(0, hidden_s / comm_s));
    return (tv_overlap){share, share < GUIDE_OVERLAP};
}

tv_lane_balance tv_rule_lanes(double compute_s, double comm_s, double data_s, bool side_by_side)
{
    const struct {
        tv_bound bound;
        double time_s;
    } lanes[] = {
        {TV_BOUND_COMPUTE, compute_s},
        {TV_BOUND_COMMUNICATION, comm_s},
        {TV_BOUND_STORAGE, data_s},
    };
    double most = 0, next = 0, sum = 0;
    tv_lane_balance r = {0};
    for (size_t i = 0; i < sizeof lanes / sizeof *lanes; i++) {
        sum += lanes[i].time_s;
        if (lanes[i].time_s > most) {
            next = most;
            most = lanes[i].time_s;
            r.slowest = lanes[i].bound;
        } else if (lanes[i].time_s > next) {
            next = lanes[i].time_s;
        }
    }
    const double whole = side_by_side ? most : sum;
    const double rest = side_by_side ? next : sum - most;
    r.ratio = over(most, next);
    r.gain_if_removed = rest > 0 ? whole / rest - 1 : 0;
    return r;
}

tv_lost tv_rule_lost(double alone_s, double step_s, double comm_exposed_s, double data_wait_s,
                     double straggler_s)
{
    tv_lost r = {.lost_s = step_s - alone_s};
    if (!(r.lost_s > 0))
        return (tv_lost){0};
    const double named = comm_exposed_s + data_wait_s + straggler_s;
    /* what was measured apart may overlap: then the parts share the loss */
    const double whole = fmax(r.lost_s, named);
    r.comm = comm_exposed_s / whole;
    r.loader = data_wait_s / whole;
    r.straggler = straggler_s / whole;
    r.other = (whole - named) / whole;
    return r;
}

/* Bytes a parameter: 2 weights, 2 gradients, 12 of fp32 master and two moments. */
double tv_rule_states_bytes(double params, double cards, tv_strategy strategy, double node_cards)
{
    if (!(cards >= 1))
        return 0;
    switch (strategy) {
    case TV_STRATEGY_DEFAULT:
    case TV_STRATEGY_DDP:
        return params * 16;
    case TV_STRATEGY_ZERO1:
        return params * (4 + 12 / cards);
    case TV_STRATEGY_ZERO2:
        return params * (2 + 14 / cards);
    case TV_STRATEGY_ZERO3:
    case TV_STRATEGY_FSDP:
        return params * 16 / cards;
    case TV_STRATEGY_HSDP:
        return params * 16 / (node_cards >= 1 ? fmin(node_cards, cards) : cards);
    }
    return 0;
}

double tv_rule_min_cards(double total_bytes, double card_bytes)
{
    return ceil(over(total_bytes, card_bytes));
}

tv_power_supply tv_rule_power_supply(const double *parts_w, size_t n)
{
    tv_power_supply r = {0};
    for (size_t i = 0; i < n; i++)
        r.parts_w += parts_w[i];
    r.supply_w = r.parts_w * SUPPLY_HEADROOM;
    r.rail_a = r.supply_w / 12;
    r.rail_rounded_a = ceil(r.rail_a / 10) * 10;
    return r;
}

/* ---- verdicts ---- */

const char *tv_plausible_name(tv_plausible v)
{
    switch (v) {
    case TV_PLAUSIBLE_UNKNOWN:
        break;
    case TV_PLAUSIBLE:
        return N_("plausible");
    case TV_SUSPICIOUS:
        return N_("suspicious: more of the peak than tuned training reaches");
    case TV_IMPOSSIBLE:
        return N_("impossible: more than the peak of this mode");
    }
    return N_("unknown");
}

const char *tv_batch_verdict_name(tv_batch_verdict v)
{
    switch (v) {
    case TV_BATCH_UNKNOWN:
        break;
    case TV_BATCH_GAINS:
        return N_("a larger batch still gains samples per second");
    case TV_BATCH_FLAT:
        return N_("saturated: a larger batch gains nothing");
    case TV_BATCH_LOSES:
        return N_("a larger batch loses samples per second: memory is not what holds it back");
    }
    return N_("unknown");
}

const char *tv_scaling_name(tv_scaling v)
{
    switch (v) {
    case TV_SCALING_UNKNOWN:
        break;
    case TV_SCALING_GOOD:
        return N_("scales well");
    case TV_SCALING_WEAK:
        return N_("scales weakly");
    case TV_SCALING_POOR:
        return N_("scales badly: look at communication");
    case TV_SCALING_LOADER_FIRST:
        return N_("the wait for data explains the loss: look at the loader first");
    }
    return N_("unknown");
}

/* ---- memory and density ---- */

double tv_rule_saving(double before_bytes, double after_bytes)
{
    return before_bytes > 0 ? 1 - after_bytes / before_bytes : 0;
}

tv_density tv_rule_density(double matrix_share)
{
    if (!(matrix_share > 0))
        return TV_DENSITY_UNKNOWN;
    switch (tv_grade_of_gemm_share(matrix_share)) {
    case TV_GRADE_GOOD:
        return TV_DENSITY_HIGH;
    case TV_GRADE_FAIR:
        return TV_DENSITY_MIXED;
    case TV_GRADE_POOR:
        return TV_DENSITY_LOW;
    case TV_GRADE_UNKNOWN:
        break;
    }
    return TV_DENSITY_UNKNOWN;
}

bool tv_rule_premium_wasted(double matrix_share, double utilisation)
{
    return matrix_share > 0 && matrix_share < 0.4 && utilisation > 0 && utilisation < 0.6;
}

const char *tv_density_name(tv_density v)
{
    switch (v) {
    case TV_DENSITY_UNKNOWN:
        return N_("unknown");
    case TV_DENSITY_HIGH:
        return N_("dense: the newest tensor cores pay");
    case TV_DENSITY_MIXED:
        return N_("mixed: memory bandwidth counts as much");
    case TV_DENSITY_LOW:
        return N_("thin: a consumer card gives more for the money");
    }
    return N_("unknown");
}
