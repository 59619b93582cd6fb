/* Rules of a line or two that guides give and that users ask about on their own: numbers in, the
 * number and its verdict out. No ledger and no graph. Each names its section of docs/model.md and
 * the fact check (F) or requirement (R) it answers. Everything is in SI base units; an input of 0
 * is unknown and makes what depends on it 0 (unknown too), unless the line says otherwise. */
#ifndef TV_RULES_H
#define TV_RULES_H

#include "desc/estimate.h"

/* ---- docs/model.md, Data rules: speed ---- */

/* R033, F07: the time of a run on a card that is `ratio` times slower. */
double tv_rule_time_elsewhere(double time_s, double ratio);

/* R216: seconds of an epoch times epochs. */
double tv_rule_run_s(double epoch_s, double epochs);

/* R050: samples per second. */
double tv_rule_rate_per_s(double samples, double time_s);

/* R038, F125: a ratio of two cards' rates is one number only in the same mode. */
typedef enum tv_ratio_state { TV_RATIO_UNKNOWN, TV_RATIO_OK, TV_RATIO_MODES_DIFFER } tv_ratio_state;

typedef struct tv_ratio {
    tv_ratio_state state;
    double v; /* 0 unless state is TV_RATIO_OK */
} tv_ratio;

tv_ratio tv_rule_rate_ratio(const tv_device *x, tv_rate x_mode, const tv_device *y, tv_rate y_mode);

/* R051: FLOP of forward and backward for a token of a transformer encoder: 6 per parameter of its
 * layers, and scores and their products, 12 · layers · width · sequence. */
double tv_rule_train_flop_per_token(double layer_params, double layers, double width, double seq);

typedef enum tv_plausible {
    TV_PLAUSIBLE_UNKNOWN,
    TV_PLAUSIBLE,
    TV_SUSPICIOUS, /* more of the peak than tuned training reaches */
    TV_IMPOSSIBLE, /* more than the peak: another mode, or a wrong count */
} tv_plausible;

typedef struct tv_achieved {
    double flops; /* FLOP/s */
    double share; /* of the peak of the mode that is claimed */
    tv_plausible plausible;
} tv_achieved;

/* R051, F112-F114. */
tv_achieved tv_rule_achieved(double flop, double time_s, double peak_flops);

typedef struct tv_decode_limit {
    double tokens_per_s; /* of one sequence: every weight is read for every token */
    double efficiency;   /* measured over the limit */
} tv_decode_limit;

/* R052, F118: measured_tokens_per_s 0: only the limit. */
tv_decode_limit tv_rule_decode(double weight_bytes, double mem_bytes_per_s,
                               double measured_tokens_per_s);

/* R020: what a change saves of the first amount; below 0: it costs. */
double tv_rule_saving(double before_bytes, double after_bytes);

/* R040, F38: share of kernel time in matrix work: above 60 % dense, below 30 % thin. */
typedef enum tv_density {
    TV_DENSITY_UNKNOWN,
    TV_DENSITY_HIGH,
    TV_DENSITY_MIXED,
    TV_DENSITY_LOW
} tv_density;

tv_density tv_rule_density(double matrix_share);

/* R041, F38: the guide's other rule: below 40 % matrix work and 60 % utilisation the premium of a
 * high-end card is not worth it; otherwise it says nothing. */
bool tv_rule_premium_wasted(double matrix_share, double utilisation);

/* ---- docs/model.md, Data rules: batch ---- */

typedef struct tv_batch_row {
    double batch;
    double step_s;
} tv_batch_row;

typedef enum tv_batch_verdict {
    TV_BATCH_UNKNOWN,
    TV_BATCH_GAINS, /* the largest batch still gains more than 5 % over the one before */
    TV_BATCH_FLAT,  /* it gains or loses less: saturated */
    TV_BATCH_LOSES, /* it is slower: not a matter of memory */
} tv_batch_verdict;

typedef struct tv_batch_answer {
    double best_batch; /* most samples per second */
    double best_per_s;
    double saturation_batch; /* the smallest within 5 % of the best */
    double last_change;      /* samples/s of the largest batch over the one before, less 1 */
    tv_batch_verdict verdict;
} tv_batch_answer;

/* R058, F32, R217: rows in ascending order of batch. What counts is samples per second; steps per
 * second always fall, and a larger batch needs another learning rate. */
tv_batch_answer tv_rule_batch(const tv_batch_row *rows, size_t n);

/* ---- docs/model.md, Data rules: feeding ---- */

typedef struct tv_transfer {
    double limit_per_s; /* steps that the link can feed */
    double idle_share;  /* of the card's time */
} tv_transfer;

/* R059, F33: bytes that really cross the link in a step (inputs, not feature maps). */
tv_transfer tv_rule_transfer(double step_bytes, double link_bytes_per_s, double card_steps_per_s);

typedef struct tv_loader {
    double samples_per_s;
    double batch_s;
    bool guide_fails;  /* the guide's own rule: 100 batches in more than 15 s */
    bool binds;        /* a batch takes longer than the card's step; false too where step_s is 0 */
    double wait_share; /* of the step that the card waits */
} tv_loader;

/* R061, F52. */
tv_loader tv_rule_loader(double batches, double batch, double time_s, double step_s);

typedef struct tv_read_need {
    double need_bytes_per_s;
    double deficit_bytes_per_s; /* 0: none */
    double fed_share;           /* at most 1 */
    double disks;               /* of this kind, side by side */
} tv_read_need;

/* R063, R067, F44: decoding on the card does not lower it. */
tv_read_need tv_rule_read(double card_bytes_per_s, double cards, double disk_bytes_per_s);

typedef struct tv_frames {
    double frames;
    double total_bytes;
} tv_frames;

/* R064, F45: what a decoded copy of videos takes. */
tv_frames tv_rule_frames(double clips, double frames_per_clip, double frame_bytes);

/* Three bytes a pixel. */
double tv_rule_raw_frame_bytes(double width, double height);

typedef struct tv_workers {
    double per_rank;     /* at least 1 */
    double buffer_bytes; /* all ranks' prefetched batches */
    bool ram_limits;     /* fewer than the cores would allow */
} tv_workers;

/* R070: floor(cores / ranks), as many as half of the RAM can buffer. prefetch 0: 2 batches a
 * worker, as torch has it; ram_bytes or batch_bytes 0: not judged. */
tv_workers tv_rule_workers(double cores, double ranks, double ram_bytes, double batch_bytes,
                           double prefetch);

/* R072, F76: shared memory of a container: every worker's prefetched batches, twice, because a
 * batch is filled while another is taken. */
double tv_rule_shm_bytes(double workers, double prefetch, double batch_bytes);

/* What a container has when nobody says (64 MiB). */
#define TV_SHM_DEFAULT_BYTES 67108864.0

typedef struct tv_upload {
    double time_s;
    double idle_cost; /* of a rented machine that waits for it */
} tv_upload;

/* R071. */
tv_upload tv_rule_upload(double bytes, double bytes_per_s, double price_per_h);

typedef struct tv_padding {
    double rank_samples; /* each rank's, all equal */
    double padded;       /* samples seen twice; 0 when dropping */
    double dropped;      /* samples not seen; 0 when padding */
    double steps;        /* of each rank */
    double last_batch;   /* samples in the last step */
} tv_padding;

/* R158, F78: a distributed sampler pads so that all ranks have equal lengths (drop: cuts). */
tv_padding tv_rule_sampler(double samples, double ranks, double batch, bool drop);

/* ---- docs/model.md, Scaling rules ---- */

/* R073: what each of n cards has behind one uplink when all talk. */
double tv_rule_shared_uplink(double uplink_bytes_per_s, double cards);

/* R074, R081: ring all-reduce among n: 2(n-1)/n · bytes / bandwidth (one direction) + 2(n-1) hops
 * of latency. n below 2 costs nothing. */
double tv_rule_ring_s(double n, double bytes, double bytes_per_s, double hop_s);

typedef struct tv_comm_bounds {
    double worst; /* efficiency when nothing of the communication is hidden */
    double best;  /* and when all that the step can hide is */
} tv_comm_bounds;

/* R074, R075: a step of step_s on one card, and what it sends when there are more. */
tv_comm_bounds tv_rule_comm_bounds(double step_s, double comm_s);

typedef struct tv_link_ratio {
    double one_way;  /* like for like */
    double headline; /* what dividing the numbers as given says */
    bool mixed;      /* one is of both directions, the other of one */
} tv_link_ratio;

/* R077, F40: x_both, y_both: the number counts both directions. */
tv_link_ratio tv_rule_link_ratio(double x_bytes_per_s, bool x_both, double y_bytes_per_s,
                                 bool y_both);

/* R076: speed-up over cards. */
double tv_rule_efficiency(double cards, double speedup);

typedef enum tv_scaling {
    TV_SCALING_UNKNOWN,
    TV_SCALING_GOOD,
    TV_SCALING_WEAK,         /* below 80 % */
    TV_SCALING_POOR,         /* below 60 % */
    TV_SCALING_LOADER_FIRST, /* the loss is no larger than the wait for data */
} tv_scaling;

typedef struct tv_scaling_answer {
    double speedup;
    double efficiency;
    bool guide_fails; /* the guide's own rule: less than 1.5 times, for any number of cards */
    tv_scaling verdict;
} tv_scaling_answer;

/* R086, F93: work per second on one card and on n; data_wait_share: of the step on n cards,
 * negative: not known (then nothing is laid on the loader). */
tv_scaling_answer tv_rule_scaling(double cards, double one_per_s, double all_per_s,
                                  double data_wait_share);

typedef struct tv_overlap {
    double share; /* of communication that is hidden */
    bool low;     /* below the guide's 60 % */
} tv_overlap;

/* R089, F95. */
tv_overlap tv_rule_overlap(double comm_s, double hidden_s);

typedef struct tv_lane_balance {
    tv_bound slowest;
    double ratio;           /* the slowest over the next */
    double gain_if_removed; /* work per second, less 1, when the slowest costs nothing */
} tv_lane_balance;

/* R056: three times of a step that run side by side (then the slowest is the step) or one after
 * the other (then their sum is). */
tv_lane_balance tv_rule_lanes(double compute_s, double comm_s, double data_s, bool side_by_side);

typedef struct tv_lost {
    double lost_s;                         /* of the step over that of one card alone */
    double comm, loader, straggler, other; /* shares of it, sum to 1 */
} tv_lost;

/* R097. */
tv_lost tv_rule_lost(double alone_s, double step_s, double comm_exposed_s, double data_wait_s,
                     double straggler_s);

/* R159, R173, F90, F107: parameters, gradients and Adam's states on one of n cards under mixed
 * precision (16 bytes a parameter in all); node_cards: cards that hsdp shards over. */
double tv_rule_states_bytes(double params, double cards, tv_strategy strategy, double node_cards);
/* Cards that hold `total` when it is divided evenly and nothing else needs room. */
double tv_rule_min_cards(double total_bytes, double card_bytes);

typedef struct tv_power_supply {
    double parts_w;
    double supply_w; /* with 30 % head-room */
    double rail_a;   /* at 12 V */
    double rail_rounded_a;
} tv_power_supply;

/* R181, F97: parts in watts. */
tv_power_supply tv_rule_power_supply(const double *parts_w, size_t n);

/* Verdicts in a sentence (msgids). */
const char *tv_plausible_name(tv_plausible v);
const char *tv_batch_verdict_name(tv_batch_verdict v);
const char *tv_scaling_name(tv_scaling v);
const char *tv_density_name(tv_density v);

#endif
