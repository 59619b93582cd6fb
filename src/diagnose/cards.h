/* The cards of a scene, from whatever document named them: tables, lists of keys, CSV, dmon and
 * metrics alike. For judges; knows no rule. */
#ifndef TV_CARDS_H
#define TV_CARDS_H

#include "diagnose.h"

/* A log of days names a card thousands of times; what follows says nothing new. */
enum { TV_MOST_CARDS = 8192 };

typedef struct tv_card {
    const tv_sighting *s;
    const tv_note *note;
    const tv_note *series; /* NULL: one reading */
    tv_str name;
    tv_str label; /* its number, or its place on the bus; empty: neither is said */
    bool listed;  /* by nvidia-smi, not by dmon or metrics */
    double util_frac, power_w, temp_c, sm_clock, cap_w; /* over time: mean, mean, most, mean */
    double used_bytes, total_bytes;                     /* sm_clock is in MHz, as cards print it */
} tv_card;

typedef struct tv_cards {
    tv_card *v;
    size_t n, cap;
} tv_cards;

tv_cards tv_cards_of(tv_inquiry *q);

double tv_card_num(const tv_card *card, const char *fact); /* NaN: unknown */
bool tv_card_bool(const tv_card *card, const char *fact);  /* unknown is false */
bool tv_card_says(const tv_card *card, const char *fact, const char *word);
/* "P2" -> 2; -1: unknown */
int tv_card_perf(const tv_card *card);
/* It computes: utilisation of a tenth or more, and clocks that are not those of an idle card. */
bool tv_card_is_busy(const tv_card *card);
/* A part of a laptop: its caps move by themselves, and its name does not tell the product. */
bool tv_card_is_mobile(const tv_card *card);
/* Two of the same product, listed together. */
bool tv_card_same(const tv_card *x, const tv_card *y);
/* The catalogue's facts of the product, or NULL. */
const tv_note *tv_card_record(const tv_inquiry *q, const tv_card *card);

/* An inference server: its log, or its process on a card; NULL: none is seen. */
const tv_sighting *tv_serving(const tv_inquiry *q);

/* The cards that a rule means, the worst one first known. */
typedef struct tv_card_hit {
    const tv_card *card;
    const char *fact; /* where its evidence stands */
} tv_card_hit;

typedef struct tv_card_hits {
    tv_card_hit *v;
    size_t n, cap;
    size_t worst;
    double badness;
} tv_card_hits;

void tv_card_hit_add(tv_inquiry *q, tv_card_hits *hits, const tv_card *card, const char *fact,
                     double badness);
/* One finding for them all: evidence of each, the worst first, and the values {cards} ("GPU 0,
 * GPU 3"), {gpus} ("0,3", for commands) and {gpu} (the worst one). NULL: none was hit. */
tv_finding *tv_cards_found(tv_inquiry *q, const tv_rule *rule, const tv_card_hits *hits);

#endif
