/* Gathering cards, and telling what holds for several of them in one finding. */
#include "cards.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"

/* ---- one card ---- */

double tv_card_num(const tv_card *card, const char *fact)
{
    return tv_noted_num(card->note, fact);
}

bool tv_card_bool(const tv_card *card, const char *fact)
{
    return tv_noted_bool(card->note, fact, false);
}

bool tv_card_says(const tv_card *card, const char *fact, const char *word)
{
    return tv_noted_is(card->note, fact, word);
}

int tv_card_perf(const tv_card *card)
{
    const tv_str perf = tv_noted_str(card->note, "perf");
    const tv_u64_read v = tv_str_u64(tv_str_drop(perf, 1));
    return perf.n >= 2 && perf.p[0] == 'P' && v.ok && v.v < 16 ? (int)v.v : -1;
}

bool tv_card_is_busy(const tv_card *card)
{
    const double most = tv_card_num(card, "max_sm_mhz");
    const int perf = tv_card_perf(card);
    if (!(card->util_frac >= 0.1) || perf >= 5 || tv_card_bool(card, "reasons.idle"))
        return false;
    return isnan(most) || isnan(card->sm_clock) || card->sm_clock >= 0.25 * most;
}

bool tv_card_is_mobile(const tv_card *card)
{
    static const char *const signs[] = {"Laptop", "Max-Q", "Mobile", "Notebook", "GeForce MX"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (tv_str_has(card->name, tv_str_of(signs[i])))
            return true;
    /* "GTX 960M", "940MX" */
    const tv_str stem = tv_str_ends(card->name, TV_S("MX"))
                            ? tv_str_take(card->name, card->name.n - 1)
                            : card->name;
    if (stem.n > 2 && stem.p[stem.n - 1] == 'M' && stem.p[stem.n - 2] >= '0' &&
        stem.p[stem.n - 2] <= '9')
        return true;
    /* Cut names of consumer cards may end in "Laptop GPU". */
    return tv_str_ends(card->name, TV_S("...")) &&
           (tv_str_has(card->name, TV_S("GeForce")) || tv_str_has(card->name, TV_S("RTX")) ||
            tv_str_has(card->name, TV_S("Quadro")));
}

bool tv_card_same(const tv_card *x, const tv_card *y)
{
    if (x->s != y->s || x->note == y->note)
        return false;
    if (x->name.n || y->name.n)
        return tv_str_eq(x->name, y->name) && (isnan(x->total_bytes) || isnan(y->total_bytes) ||
                                               fabs(x->total_bytes - y->total_bytes) < 0x1p30);
    /* dmon prints no names: the same memory clock under load is the best sign there is. */
    return fabs(tv_card_num(x, "mem_mhz") - tv_card_num(y, "mem_mhz")) < 1;
}

const tv_note *tv_card_record(const tv_inquiry *q, const tv_card *card)
{
    if (card->name.n)
        for (const tv_sighting *s = tv_scene_first(q->scene, "device-record"); s;
             s = tv_scene_next(s, "device-record"))
            if (tv_str_eq(tv_noted_str(&s->facts, "name"), card->name))
                return &s->facts;
    return NULL;
}

/* ---- all of them ---- */

static double over_time(const tv_card *card, const char *of_series, const char *alone)
{
    const double v = card->series ? tv_noted_num(card->series, of_series) : (double)NAN;
    return isnan(v) ? tv_card_num(card, alone) : v;
}

static void add_card(tv_inquiry *q, tv_cards *all, const tv_sighting *s, const tv_note *note)
{
    if (all->n >= TV_MOST_CARDS || note->type != TV_NOTE_MAP)
        return;
    tv_card *card = tv_push(q->a, all);
    card->s = s;
    card->note = note;
    card->series = tv_noted(note, "series");
    card->name = tv_noted_str(note, "name");
    card->listed = strcmp(s->kind, "nvidia-smi") == 0 || strcmp(s->kind, "smi-q") == 0;
    const double index = tv_noted_num(note, "index");
    if (!isnan(index)) {
        tv_buf b = tv_buf_in(q->a);
        tv_put_double(&b, index);
        card->label = tv_buf_str(&b);
    } else {
        card->label = tv_noted_str(note, "bus");
    }
    card->util_frac = over_time(card, "util_mean_frac", "util_frac");
    card->power_w = over_time(card, "power_mean_w", "power_w");
    card->temp_c = over_time(card, "temp_max_c", "temp_c");
    card->sm_clock = over_time(card, "sm_mean_mhz", "sm_mhz");
    card->used_bytes = over_time(card, "used_max_bytes", "used_bytes");
    card->cap_w = tv_noted_num(note, "cap_w");
    card->total_bytes = tv_noted_num(note, "total_bytes");
}

tv_cards tv_cards_of(tv_inquiry *q)
{
    static const struct {
        const char *kind;
        const char *list;
    } sources[] = {
        {"nvidia-smi", "gpus"}, {"smi-q", "gpus"}, {"dmon", "cards"}, {"prometheus", "gpus"}};
    tv_cards all = {0};
    for (size_t k = 0; k < sizeof sources / sizeof *sources; k++)
        for (const tv_sighting *s = tv_scene_first(q->scene, sources[k].kind); s;
             s = tv_scene_next(s, sources[k].kind)) {
            const tv_note *list = tv_noted(&s->facts, sources[k].list);
            for (const tv_note *note = list ? list->first : NULL; note; note = note->next)
                add_card(q, &all, s, note);
        }
    return all;
}

/* ---- servers ---- */

static bool serves(tv_str name)
{
    static const char *const words[] = {
        "vllm",   "VLLM",         "EngineCore", "tritonserver", "sglang",    "text-generation",
        "ollama", "llama-server", "lmdeploy",   "trtllm",       "fastdeploy"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (tv_str_has(name, tv_str_of(words[i])))
            return true;
    return false;
}

const tv_sighting *tv_serving(const tv_inquiry *q)
{
    static const char *const kinds[] = {"vllm-log", "llama-log"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (tv_scene_first(q->scene, kinds[i]))
            return tv_scene_first(q->scene, kinds[i]);
    for (const tv_sighting *s = q->scene->first; s; s = s->next) {
        const tv_note *list = strcmp(s->kind, "nvidia-smi") == 0 || strcmp(s->kind, "smi-q") == 0
                                  ? tv_noted(&s->facts, "processes")
                                  : NULL;
        for (const tv_note *p = list ? list->first : NULL; p; p = p->next)
            if (serves(tv_noted_str(p, "name")))
                return s;
    }
    return NULL;
}

/* ---- findings ---- */

void tv_card_hit_add(tv_inquiry *q, tv_card_hits *hits, const tv_card *card, const char *fact,
                     double badness)
{
    *tv_push(q->a, hits) = (tv_card_hit){card, fact};
    if (hits->n == 1 || badness > hits->badness) {
        hits->worst = hits->n - 1;
        hits->badness = badness;
    }
}

static const tv_note *place_of(const tv_card_hit *hit)
{
    const tv_note *note = hit->fact ? tv_noted(hit->card->note, hit->fact) : NULL;
    return note && note->line ? note : hit->card->note;
}

/* Numbers in the order of sight, each once. */
static bool is_new(const tv_card_hits *hits, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (tv_str_eq(hits->v[k].card->label, hits->v[i].card->label))
            return false;
    return hits->v[i].card->label.n > 0;
}

/* A long log hits one card again and again. */
enum { MOST_LABELS = 64 };

static void put_labels(tv_inquiry *q, tv_finding *f, const tv_card_hits *hits)
{
    tv_buf text = tv_buf_in(q->a), commands = tv_buf_in(q->a);
    const size_t n = hits->n < MOST_LABELS ? hits->n : MOST_LABELS;
    for (size_t i = 0; i < n; i++) {
        if (!is_new(hits, i))
            continue;
        tv_puts(&text, text.n ? ", GPU " : "GPU ");
        tv_put(&text, hits->v[i].card->label);
        if (commands.n)
            tv_putc(&commands, ',');
        tv_put(&commands, hits->v[i].card->label);
    }
    if (text.n)
        tv_found_str(q, f, "cards", tv_buf_str(&text));
    else
        tv_found_word(q, f, "cards", N_("the GPU"));
    tv_found_str(q, f, "gpus", tv_buf_str(&commands));
    tv_found_str(q, f, "gpu", hits->v[hits->worst].card->label);
}

tv_finding *tv_cards_found(tv_inquiry *q, const tv_rule *rule, const tv_card_hits *hits)
{
    if (!hits->n)
        return NULL;
    const tv_card_hit *worst = &hits->v[hits->worst];
    tv_finding *f = tv_found(q, rule, worst->card->s, place_of(worst));
    for (size_t i = 0; i < hits->n && f->evidence.n < TV_LIMIT_EVIDENCE_OF_FINDING; i++)
        tv_found_also(q, f, hits->v[i].card->s, place_of(&hits->v[i]));
    put_labels(q, f, hits);
    tv_found_str(q, f, "product", worst->card->name);
    return f;
}
