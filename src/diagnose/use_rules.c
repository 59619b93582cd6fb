/* How the cards are used: waiting for each other, for data, by nobody who is listed, or shared. */
#include <math.h>
#include <string.h>

#include "cards.h"

/* ---- C03 ---- */

/* Spinning kernels of a collective keep the card "100 % busy" at little more than idle power. */
static const double spin_share = 0.3;

static bool is_spinning(const tv_inquiry *q, const tv_card *card)
{
    const double least =
        card->series ? tv_noted_num(card->series, "util_min_frac") : tv_card_num(card, "util_frac");
    const double mem = tv_card_num(card, "mem_util_frac");
    double cap = card->cap_w;
    const double usual = tv_noted_num(tv_card_record(q, card), "tdp_w");
    if (isnan(cap) || usual > cap)
        cap = usual;
    return least >= 0.99 && card->power_w <= spin_share * cap && !(mem > 0.05) &&
           !(card->used_bytes < 0x1p20 * 100) && !tv_card_is_mobile(card) && tv_card_perf(card) < 5;
}

static void judge_stuck(tv_inquiry *q, const tv_rule *rule)
{
    const tv_cards all = tv_cards_of(q);
    tv_card_hits hits = {0};
    for (size_t i = 0; i < all.n; i++) {
        if (!is_spinning(q, &all.v[i]))
            continue;
        size_t together = 0;
        for (size_t k = 0; k < all.n && together < 2; k++)
            together += all.v[k].s == all.v[i].s && is_spinning(q, &all.v[k]);
        if (together >= 2)
            tv_card_hit_add(q, &hits, &all.v[i], "util_frac", -all.v[i].power_w);
    }
    tv_finding *f = tv_cards_found(q, rule, &hits);
    if (!f)
        return;
    f->weight = 0.8;
    const tv_card *card = hits.v[hits.worst].card;
    tv_found_num(q, f, "power_w", TV_ARG_WATTS, card->power_w);
    tv_found_num(q, f, "cap_w", TV_ARG_WATTS, card->cap_w);
    tv_ask(q, "py-spy dump --pid PID",
           N_("Where each rank waits: the one that is not inside a collective is the one that is "
              "missing."));
}

/* ---- D05 ---- */

/* The readings of one file: all of its cards, over all of its time. */
typedef struct readings {
    const tv_card *first;
    size_t n, cards;
    double sum, least, most, lowest_mean, highest_mean;
    double rx_bytes_per_s, temp_c;
    bool slow_by_itself; /* something else explains it, or the card is idle */
} readings;

static bool has_a_job(const tv_card *card)
{
    return isnan(card->used_bytes) || card->used_bytes >= 0x1p30;
}

static void see(readings *r, const tv_card *card)
{
    const double samples = tv_noted_num(card->series, "samples");
    const size_t n = samples >= 1 ? (size_t)samples : 1;
    const double least = tv_noted_num(card->series, "util_min_frac");
    const double most = tv_noted_num(card->series, "util_max_frac");
    const double lo = isnan(least) ? card->util_frac : least;
    const double hi = isnan(most) ? card->util_frac : most;
    const bool first = r->n == 0;
    r->least = first || lo < r->least ? lo : r->least;
    r->most = first || hi > r->most ? hi : r->most;
    r->lowest_mean = first || card->util_frac < r->lowest_mean ? card->util_frac : r->lowest_mean;
    r->highest_mean =
        first || card->util_frac > r->highest_mean ? card->util_frac : r->highest_mean;
    r->sum += card->util_frac * (double)n;
    r->n += n;
    r->cards++;
    const double rx = tv_noted_num(card->series, "rx_mean_bytes_per_s");
    const double rx_now = isnan(rx) ? tv_card_num(card, "rx_bytes_per_s") : rx;
    if (first || rx_now > r->rx_bytes_per_s)
        r->rx_bytes_per_s = rx_now;
    if (card->power_w > 0.8 * card->cap_w || tv_card_perf(card) >= 5)
        r->slow_by_itself = true;
}

static bool same_file(const tv_card *x, const tv_card *y)
{
    return strcmp(x->s->kind, y->s->kind) == 0 && tv_str_eq(x->s->file, y->s->file);
}

/* Low on every reading, or jumping between busy and idle. */
static bool is_starved(const readings *r)
{
    const double mean = r->sum / (double)r->n;
    const bool jumps = r->most >= 0.8 && r->least <= 0.2 && r->n > r->cards;
    const bool low = r->most <= 0.6 && r->lowest_mean >= 0.05;
    return r->n >= 4 && mean >= 0.05 && mean <= 0.6 && (jumps || low) && !r->slow_by_itself &&
           !(r->rx_bytes_per_s >= 6e9);
}

static void judge_starved(tv_inquiry *q, const tv_rule *rule)
{
    const tv_cards all = tv_cards_of(q);
    if (tv_serving(q))
        return; /* a server waits for requests */
    for (size_t i = 0; i < all.n; i++) {
        bool seen = false;
        for (size_t k = i; k-- > 0 && !seen && i - k < 1024;)
            seen = same_file(&all.v[k], &all.v[i]);
        if (seen)
            continue;
        readings r = {.first = &all.v[i]};
        for (size_t k = i; k < all.n && same_file(&all.v[k], &all.v[i]); k++)
            if (has_a_job(&all.v[k]) && !isnan(all.v[k].util_frac))
                see(&r, &all.v[k]);
        if (!r.n || !is_starved(&r))
            continue;
        const bool over_time = r.n > r.cards;
        if (!over_time && all.v[i].listed && tv_serving(q))
            continue;
        tv_finding *f = tv_found(q, rule, all.v[i].s, all.v[i].note);
        for (size_t k = i + 1; k < all.n && same_file(&all.v[k], &all.v[i]); k++)
            tv_found_also(q, f, all.v[k].s, all.v[k].note);
        f->sure = over_time || !all.v[i].listed ? TV_MEDIUM : TV_LOW;
        f->weight = 0.6 * (1 - r.sum / (double)r.n);
        tv_found_num(q, f, "util", TV_ARG_RATIO, r.sum / (double)r.n);
        tv_found_num(q, f, "least", TV_ARG_RATIO, r.least);
        tv_found_num(q, f, "most", TV_ARG_RATIO, r.most);
        tv_found_num(q, f, "rx_bytes_per_s", TV_ARG_RATE, r.rx_bytes_per_s);
        tv_ask(q, "py-spy top --pid PID",
               N_("Whether the training process waits in the loader (next, collate, decode) while "
                  "the card is idle."));
    }
}

/* ---- O32 ---- */

static double listed_bytes(const tv_card *card, size_t *n)
{
    const tv_note *list = tv_noted(&card->s->facts, "processes");
    const double index = tv_card_num(card, "index");
    double sum = 0;
    *n = 0;
    for (const tv_note *p = list ? list->first : NULL; p; p = p->next) {
        if (tv_noted_num(p, "gpu") != index)
            continue;
        const double used = tv_noted_num(p, "used_bytes");
        sum += isnan(used) ? 0 : used;
        ++*n;
    }
    return sum;
}

static void judge_orphan(tv_inquiry *q, const tv_rule *rule)
{
    const tv_cards all = tv_cards_of(q);
    tv_card_hits hits = {0};
    bool works = false;
    for (size_t i = 0; i < all.n; i++) {
        const tv_card *card = &all.v[i];
        size_t n;
        if (!tv_noted(&card->s->facts, "processes") ||
            tv_noted_str(&card->s->facts, "platform").n ||
            tv_str_starts(tv_noted_str(card->note, "mig"), TV_S("Enabled")) ||
            tv_noted_str(card->note, "driver_model").n)
            continue;
        (void)listed_bytes(card, &n);
        if (n || !(card->used_bytes >= 0x1p30) || card->used_bytes < 0.02 * card->total_bytes)
            continue;
        tv_card_hit_add(q, &hits, card, "used_bytes", card->used_bytes);
        works = works || card->util_frac > 0.05;
    }
    tv_finding *f = tv_cards_found(q, rule, &hits);
    if (!f)
        return;
    f->weight = 0.4;
    const tv_card *card = hits.v[hits.worst].card;
    tv_found_num(q, f, "used_bytes", TV_ARG_MEMORY, card->used_bytes);
    tv_found_num(q, f, "total_bytes", TV_ARG_MEMORY, card->total_bytes);
    if (works) {
        f->severity = TV_INFO;
        f->cause = N_("{cards} holds {used_bytes} and is working, but no process is listed: it "
                      "belongs to another container or namespace, which nvidia-smi in a container "
                      "cannot see.");
    }
}

/* ---- I06 ---- */

static void judge_shared_metric(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "prometheus"); s;
         s = tv_scene_next(s, "prometheus")) {
        if (!tv_noted(&s->facts, "warning"))
            continue;
        tv_finding *f = tv_found(q, rule, s, NULL);
        f->sure = TV_HIGH;
        tv_found_num(q, f, "samples", TV_ARG_COUNT, tv_noted_num(&s->facts, "samples"));
        tv_found_str(q, f, "metric", tv_noted_str(&s->facts, "metric"));
        f->cause = N_("The exporter repeats one reading of a shared card for each pod that uses it "
                      "({metric}, {samples} samples): it is one card that the pods take turns on, "
                      "not several. Sums and averages over pods count it several times.");
        return;
    }
}

static size_t computing_on(const tv_card *card, tv_str *first, tv_str *second)
{
    const tv_note *list = tv_noted(&card->s->facts, "processes");
    const double index = tv_card_num(card, "index");
    size_t n = 0;
    for (const tv_note *p = list ? list->first : NULL; p; p = p->next) {
        if (tv_noted_num(p, "gpu") != index || !tv_noted_is(p, "type", "C"))
            continue;
        n++;
        if (n == 1)
            *first = tv_noted_str(p, "name");
        else if (!tv_str_eq(*first, tv_noted_str(p, "name")))
            *second = tv_noted_str(p, "name");
    }
    return n;
}

static void judge_shared(tv_inquiry *q, const tv_rule *rule)
{
    judge_shared_metric(q, rule);
    const tv_cards all = tv_cards_of(q);
    tv_card_hits hits = {0};
    tv_str first = {0}, second = {0};
    for (size_t i = 0; i < all.n; i++) {
        tv_str x = {0}, y = {0};
        if (tv_str_starts(tv_noted_str(all.v[i].note, "mig"), TV_S("Enabled")))
            continue;
        const size_t n = computing_on(&all.v[i], &x, &y);
        if (n < 2)
            continue;
        tv_card_hit_add(q, &hits, &all.v[i], NULL, (double)n);
        first = x;
        second = y.n ? y : x;
    }
    tv_finding *f = tv_cards_found(q, rule, &hits);
    if (!f)
        return;
    f->severity = TV_INFO;
    f->sure = TV_MEDIUM;
    tv_found_num(q, f, "processes", TV_ARG_COUNT, hits.badness);
    tv_found_str(q, f, "first", first);
    tv_found_str(q, f, "second", second);
}

static const tv_rule rules[] = {
    {
        .id = "C03",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("A collective is stuck: full utilisation at idle power"),
        .cause =
            N_("{cards} shows 100 % utilisation at {power_w} of {cap_w}: no computing draws so "
               "little. Its kernel spins in a collective and waits for a rank that does not "
               "come, or for a transfer that does not arrive."),
        .decided =
            N_("Two cards or more at 99 % utilisation or above, at 30 % of their power limit "
               "or less, memory controller below 5 % where it is known, and memory in use."),
        .unless = N_("A single card may run one small kernel after the other; a card without a job "
                     "may show 100 % after the driver was loaded."),
        .source = "https://github.com/NVIDIA/nccl/issues/199",
        .steps = {{.command = "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET",
                   .why = N_("Set for one run: which transport every pair uses, and where the "
                             "start-up ends.")},
                  {.command = "nvidia-smi topo -m",
                   .why = N_("How the cards that wait are connected.")},
                  {.command = "lspci -vvv | grep ACSCtl",
                   .why = N_("Redirection on bridges (SrcValid+, ReqRedir+) breaks copies between "
                             "cards and ends like this.")},
                  {.command = "NCCL_P2P_DISABLE=1",
                   .why = N_("As a test in the environment of one run: if it goes through, copies "
                             "between the cards are what is broken.")}},
        .outranks = "D05",
        .judge = judge_stuck,
    },
    {
        .id = "D05",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("The cards wait for input"),
        .cause = N_("A job is loaded, but the cards work only {util} of the time (between {least} "
                    "and {most}): they wait, most often for the data loader."),
        .decided = N_("At least four readings of cards with a job in memory, mean utilisation of 5 "
                      "to 60 %, either low throughout or jumping between below 20 and above 80 %, "
                      "draw below 80 % of the limit, PCIe traffic below 6 GB/s where it is known, "
                      "and no inference server."),
        .unless = N_("An idle machine, a server without requests, small kernels behind a slow "
                     "Python loop, evaluation and checkpoints look alike: a profile of one step "
                     "decides."),
        .source = "https://github.com/mozilla/DeepSpeech/issues/178",
        .steps = {{.command = "nvidia-smi dmon -s pucmt -c 60",
                   .why = N_("A minute of utilisation, power and PCIe traffic.")},
                  {.command = "python -m torch.utils.bottleneck TRAIN.py",
                   .why = N_("Or the framework's profiler over ten steps: how much of a step the "
                             "loader takes.")},
                  {.why =
                       N_("If it is the loader: more workers, persistent workers, pinned memory, "
                          "faster decoding, data on a local disk.")}},
        .judge = judge_starved,
    },
    {
        .id = "O32",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("Memory is in use, and no process is listed"),
        .cause = N_("{cards} holds {used_bytes} of {total_bytes} without a listed process and "
                    "without work: a process that died holds it, or one in another container or "
                    "namespace."),
        .decided =
            N_("The process list is there and names nothing on the card, 1 GiB or more is "
               "used, utilisation is 5 % or less; not on Windows, WSL or with MIG. With work "
               "on the card it is only told."),
        .unless = N_("In a container the list is always empty: look from the host."),
        .source = "https://docs.nvidia.com/deploy/nvidia-smi/index.html",
        .steps = {{.command = "fuser -v /dev/nvidia*",
                   .why = N_("On the host, as root: every process that has a card open.")},
                  {.why = N_("Ask the owner to stop what is left over; ending a process loses its "
                             "unsaved work.")},
                  {.command = "nvidia-smi --gpu-reset -i {gpus}",
                   .why =
                       N_("The last resort, on a drained machine: it ends everything on the card "
                          "and cannot be taken back.")}},
        .judge = judge_orphan,
    },
    {
        .id = "I06",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("Several processes take turns on one card"),
        .cause =
            N_("{processes} processes compute on {cards} ({first}, {second}): they take turns, "
               "and each one's latency depends on the others."),
        .decided =
            N_("An exporter gives the same reading for several pods, or nvidia-smi lists two "
               "computing processes on one card without MIG or MPS (only told)."),
        .unless = N_("Workers of one job on one card are meant to share it."),
        .source = "https://github.com/NVIDIA/dcgm-exporter/issues/594",
        .steps = {{.why = N_("In dashboards and alerts, aggregate by UUID (or by host and GPU "
                             "number) before adding up: max by (UUID) of the metric.")},
                  {.command = "nvidia-cuda-mps-control -d",
                   .undo = "echo quit | nvidia-cuda-mps-control",
                   .why = N_("Lets kernels of several processes run side by side; MIG instances or "
                             "a card of its own isolate them.")}},
        .judge = judge_shared,
    },
};

extern const tv_rule_group tv_rule_group_use_rules;
const tv_rule_group tv_rule_group_use_rules = {"use", N_("How the cards are used"), rules,
                                               sizeof rules / sizeof *rules};
