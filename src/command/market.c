/* Machines from the catalogue and the options that override it. Prices: market_price.c. */
#include "market.h"

const tv_err *tv_market_open(tv_request *r, const tv_machine_options *machine,
                             const tv_money_options *money, tv_market *out)
{
    *out = (tv_market){.r = r, .machine = machine, .money = money};
    TV_TRY(tv_catalog_open(r->a, r->home, &out->catalog));
    return tv_market_read_offers(out);
}

static const tv_err *find_server(tv_market *m, const tv_device *d, uint32_t gpus,
                                 const tv_server **server)
{
    if (m->machine->server.n)
        return tv_catalog_server(m->catalog, m->machine->server, server);
    return tv_catalog_server_for(m->catalog, d, gpus, server);
}

/* What the options say wins over the server's record. */
static void override(const tv_machine_options *o, tv_machine *machine)
{
    if (o->cpu_cores)
        machine->cpu_cores = o->cpu_cores;
    if (o->ram_bytes > 0)
        machine->ram_bytes = o->ram_bytes;
}

const tv_err *tv_market_machine(void *ctx, tv_arena *a, const tv_device *d, uint32_t gpus,
                                uint32_t nodes, tv_machine *machine)
{
    tv_market *m = ctx;
    (void)a; /* records live as long as the catalogue */
    *machine = (tv_machine){
        .device = d,
        .gpus = gpus ? gpus : 1,
        .nodes = nodes ? nodes : 1,
    };
    TV_TRY(find_server(m, d, machine->gpus, &machine->server));
    const tv_server *s = machine->server;
    if (machine->gpus > 1)
        TV_TRY(tv_catalog_link(m->catalog, d, s, machine->gpus, &machine->intra));
    if (machine->nodes > 1)
        machine->inter = tv_catalog_network(s ? s->network_bytes_per_s : (tv_fact){0});
    if (m->machine->disk.n)
        TV_TRY(tv_catalog_disk(m->catalog, m->machine->disk, &machine->disk));
    if (s && tv_known(s->cpu_cores))
        machine->cpu_cores = s->cpu_cores.v;
    if (s && tv_known(s->ram_bytes))
        machine->ram_bytes = s->ram_bytes.v;
    override(m->machine, machine);
    return NULL;
}

static const tv_err *add_named(tv_market *m, tv_str name, tv_card_list *cards)
{
    tv_naming found = {0};
    TV_TRY(tv_catalog_find(m->catalog, name, 0, &found));
    for (size_t i = 0; i < tv_naming_count(found); i++)
        *tv_push(m->r->a, cards) = tv_naming_at(found, i);
    return NULL;
}

const tv_err *tv_market_cards(tv_market *m, tv_card_list *cards)
{
    *cards = (tv_card_list){0};
    if (m->machine->gpu.n == 0) {
        tv_device_list all = {0};
        TV_TRY(tv_catalog_devices(m->catalog, &all));
        for (size_t i = 0; i < all.n; i++)
            *tv_push(m->r->a, cards) = &all.v[i];
        return NULL;
    }
    for (tv_cut c = tv_str_cut(m->machine->gpu, ',');; c = tv_str_cut(c.tail, ',')) {
        TV_TRY(add_named(m, tv_str_trim(c.head), cards));
        if (!c.found)
            return NULL;
    }
}
