/* The width of a link does not change with the load, as its speed does: one look is enough. */
#include "narrow_links.h"

#include "xid_seen.h"

static const char *const by_lspci = N_(
    "The card at {bus} uses {lanes} of {lanes_max} lanes, {share} of the bandwidth to the host.");
static const char *const by_kernel = N_(
    "At start the kernel found the card at {bus} behind a link of {lanes} lanes (at {at}), while "
    "the card can use {lanes_max}: {share} of the bandwidth to the host.");

static tv_finding *narrow(tv_inquiry *q, const tv_rule *rule, const tv_sighting *s,
                          const tv_note *at, tv_str bus, double lanes, double most)
{
    tv_finding *f = tv_found(q, rule, s, at);
    tv_found_str(q, f, "bus", bus);
    tv_found_num(q, f, "lanes", TV_ARG_NUMBER, lanes);
    tv_found_num(q, f, "lanes_max", TV_ARG_NUMBER, most);
    tv_found_num(q, f, "share", TV_ARG_RATIO, lanes / most);
    f->weight = most >= 4 * lanes ? 0.5 : 0.3;
    return f;
}

static bool in_lspci(tv_inquiry *q, const tv_rule *rule)
{
    bool any = false;
    for (const tv_sighting *s = tv_scene_first(q->scene, "lspci"); s;
         s = tv_scene_next(s, "lspci")) {
        const tv_note *list = tv_noted(&s->facts, "devices");
        for (const tv_note *d = list ? list->first : NULL; d; d = d->next) {
            const double lanes = tv_noted_num(d, "link_lanes");
            const double most = tv_noted_num(d, "link_max_lanes");
            if (!tv_noted_bool(d, "gpu", false) || !(lanes >= 1) || !(lanes < most))
                continue;
            narrow(q, rule, s, tv_noted(d, "width_downgraded"), tv_noted_str(d, "bdf"), lanes, most)
                ->cause = by_lspci;
            any = true;
        }
    }
    return any;
}

static void in_kernel_log(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "xid"); s; s = tv_scene_next(s, "xid")) {
        const tv_note *list = tv_noted(&s->facts, "pcie_limited");
        for (const tv_note *item = list ? list->first : NULL; item; item = item->next) {
            const tv_str pci = tv_noted_str(item, "pci");
            const double lanes = tv_noted_num(item, "limit_lanes");
            const double most = tv_noted_num(item, "capable_lanes");
            if (!(lanes >= 1) || !(lanes < most) ||
                (!tv_noted_is(item, "driver", "nvidia") && !tv_pci_is_gpu(q->scene, pci)))
                continue;
            tv_finding *f = narrow(q, rule, s, item, pci, lanes, most);
            f->cause = by_kernel;
            tv_found_str(q, f, "at", tv_noted_str(item, "at"));
        }
    }
}

void tv_narrow_links(tv_inquiry *q, const tv_rule *rule)
{
    if (!in_lspci(q, rule))
        in_kernel_log(q, rule);
}
