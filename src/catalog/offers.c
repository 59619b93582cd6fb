/* What clouds ask for a card and an hour. Picks among offers; converts no currency. */
#include "records.h"

TV_BLOB(prices);

/* Columns of a block's rows, see docs/catalogue.md. */
enum { REGION, INSTANCE, GPU, GPUS, VCPU, RAM_BYTES, NODE_PER_H, SPOT_PER_H };

typedef struct offers {
    tv_offer *v;
    size_t n;
    size_t cap;
} offers;

static const tv_err *read_row(tv_catalog *c, const tv_record *r, const tv_json *row, tv_offer block,
                              offers *list)
{
    const double gpus = tv_json_num(tv_json_at(row, GPUS), -1);
    const double price = tv_json_num(tv_json_at(row, NODE_PER_H), 0);
    block.gpu = tv_json_str(tv_json_at(row, GPU));
    if (row->type != TV_JSON_ARRAY || !block.gpu.n || !(gpus >= 0 && gpus <= 1e5) ||
        !(price >= 0 && price <= 1e7))
        return tv_record_fail(
            c, r, row,
            TV_TEXT0("catalog.offer-row", N_("a price row needs region, instance, gpu, gpus, "
                                             "vcpu, ram_bytes, node_per_h, spot_per_h")));
    block.region = tv_json_str(tv_json_at(row, REGION));
    block.instance = tv_json_str(tv_json_at(row, INSTANCE));
    block.gpu_count = (uint32_t)gpus;
    block.vcpu = tv_json_num(tv_json_at(row, VCPU), 0);
    block.ram_bytes = tv_json_num(tv_json_at(row, RAM_BYTES), 0);
    block.node_per_h = price;
    block.node_spot_per_h = tv_json_num(tv_json_at(row, SPOT_PER_H), 0);
    *tv_push(c->a, list) = block;
    return NULL;
}

static const tv_err *read_blocks(tv_catalog *c, const tv_records *blocks, offers *list)
{
    for (size_t i = 0; i < blocks->n; i++) {
        const tv_json *j = blocks->v[i].json;
        const tv_json *rows = tv_json_get(j, "rows");
        const tv_str source = tv_json_str(tv_json_get(j, "source"));
        const tv_offer block = {
            .provider = tv_json_str(tv_json_get(j, "provider")),
            .currency = tv_json_str(tv_json_get(j, "currency")),
            .date = tv_json_str(tv_json_get(j, "date")),
            .source = source.n ? source : blocks->v[i].file,
            .note = tv_json_str(tv_json_get(j, "note")),
        };
        if (!block.currency.n)
            return tv_record_fail(c, &blocks->v[i], j,
                                  TV_TEXT(c->a, "catalog.no-id", N_("a record has no \"{key}\""),
                                          tv_arg_str("key", TV_S("currency"))));
        for (size_t k = 0; k < rows->n; k++)
            TV_TRY(read_row(c, &blocks->v[i], &rows->items[k], block, list));
    }
    return NULL;
}

const tv_err *tv_catalog_offers(tv_catalog *c, tv_str prices, tv_offer_list *result)
{
    if (!c->offers.n || prices.n) {
        const tv_json *doc;
        tv_records blocks = {0};
        offers list = {0};
        TV_TRY(tv_blob_parse(c->a, "prices", TV_BLOB_OF(prices), &doc));
        TV_TRY(tv_records_append(c->a, doc, "offers", (tv_str){0}, &blocks));
        TV_TRY(tv_records_user(c, "prices", "offers", &blocks));
        if (prices.n) {
            TV_TRY(tv_json_parse_file(c->a, prices, &doc));
            TV_TRY(tv_records_append(c->a, doc, "offers", prices, &blocks));
        }
        TV_TRY(read_blocks(c, &blocks, &list));
        c->offers = (tv_offer_list){.v = list.v, .n = list.n};
    }
    *result = c->offers;
    return NULL;
}

double tv_offer_gpu_per_h(const tv_offer *o, bool spot)
{
    const double node = spot ? o->node_spot_per_h : o->node_per_h;
    return o->gpu_count ? node / o->gpu_count : 0;
}

/* Days from 0000-03-01 of the proleptic calendar; months count from March so that leap days come
 * last. */
static int day_number(int y, int m, int d)
{
    y -= m <= 2;
    m += m <= 2 ? 9 : -3;
    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + d;
}

static int read_day(tv_str date)
{
    static const uint64_t most[] = {9999, 12, 31};
    int part[3] = {0, 1, 1};
    tv_cut c = tv_str_cut(date, '-');
    for (int i = 0; i < 3; i++) {
        const tv_u64_read r = tv_str_u64(c.head);
        if (!r.ok || r.v > most[i] || r.v < 1)
            return -1;
        part[i] = (int)r.v;
        if (!c.found)
            break;
        c = tv_str_cut(c.tail, '-');
    }
    return day_number(part[0], part[1], part[2]);
}

int tv_date_age_days(tv_str date, tv_str today)
{
    const int then = read_day(date), now = read_day(today);
    return then < 0 || now < 0 ? -1 : now > then ? now - then : 0;
}

bool tv_offer_counts(const tv_offer *o, const tv_offer_query *q)
{
    if (!(tv_offer_gpu_per_h(o, q->spot) > 0) || o->gpu_count < q->gpus)
        return false;
    if (q->gpu.n && !tv_str_eq(o->gpu, q->gpu))
        return false;
    if (q->currency.n && !tv_str_eq(o->currency, q->currency))
        return false;
    if (!q->today.n)
        return true;
    const int age = tv_date_age_days(o->date, q->today);
    return age >= 0 && age <= (q->max_age_days ? q->max_age_days : 365);
}

const tv_offer *tv_offer_cheapest(tv_offer_list list, const tv_offer_query *q)
{
    const tv_offer *best = NULL;
    for (size_t i = 0; i < list.n; i++) {
        const tv_offer *o = &list.v[i];
        if (!tv_offer_counts(o, q))
            continue;
        const double price = tv_offer_gpu_per_h(o, q->spot);
        const double least = best ? tv_offer_gpu_per_h(best, q->spot) : 0;
        if (!best || price < least || (!(price > least) && tv_str_cmp(o->date, best->date) > 0))
            best = o;
    }
    return best;
}
