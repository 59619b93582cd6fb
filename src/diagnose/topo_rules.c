/* What a topology alone says: who should work with whom, and what the platform hides. */
#include "comm.h"

#include <math.h>

/* ---- what the table shows ---- */

static bool is_pcie_only(const tv_sighting *topo)
{
    return tv_noted_bool(&topo->facts, "nvlink_unknown", false);
}

/* One adapter beside every card: such boards join their cards by NVLink, so a table without it was
 * likely printed by topo -mp, whose command is not in the paste. */
static bool is_perhaps_pcie_only(const tv_sighting *topo)
{
    const size_t n = tv_topo_gpus(topo);
    size_t near = 0;
    for (size_t x = 0; x < n; x++)
        near += tv_topo_nic_reach(topo, x) <= TV_REACH_PXB;
    return n >= 8 && near == n && tv_noted_num(&topo->facts, "nics") >= (double)n;
}

static bool all_of(const tv_sighting *topo, tv_reach reach)
{
    size_t counts[TV_REACH_UNKNOWN + 1];
    tv_topo_counts(topo, counts);
    for (size_t i = 0; i < TV_REACH_UNKNOWN; i++)
        if (i != reach && counts[i])
            return false;
    return counts[reach] > 0;
}

/* The memory node of a card; NaN where it is not known or no single one. */
static double node_of(const tv_sighting *topo, size_t gpu)
{
    const tv_note *list = tv_noted(&topo->facts, "numa");
    const tv_note *item = list ? list->first : NULL;
    while (item && gpu--)
        item = item->next;
    return item && item->type == TV_NOTE_NUMBER ? item->number : (double)NAN;
}

static tv_str affinity_of(const tv_sighting *topo, size_t gpu)
{
    const tv_note *list = tv_noted(&topo->facts, "cpu_affinity");
    const tv_note *item = list ? list->first : NULL;
    while (item && gpu--)
        item = item->next;
    return item && item->type == TV_NOTE_STR ? item->s : (tv_str){0};
}

static size_t nodes_of(const tv_sighting *topo)
{
    const double n = tv_noted_num(&topo->facts, "numa_nodes");
    return n > 0 && n < 1024 ? (size_t)n : 0;
}

/* ---- groups of cards that are near each other ---- */

typedef struct islands {
    size_t of[128]; /* the first card of its island */
    size_t n_gpus;
} islands;

static bool is_near_all(const tv_sighting *topo, const islands *s, size_t first, size_t x,
                        tv_reach most)
{
    for (size_t y = 0; y < x; y++)
        if (s->of[y] == first && tv_topo_reach(topo, x, y) > most)
            return false;
    return true;
}

/* Within an island every card reaches every other; of two that would do the earlier is taken. */
static islands islands_at(const tv_sighting *topo, tv_reach most)
{
    islands s = {.n_gpus = tv_topo_gpus(topo)};
    for (size_t x = 0; x < s.n_gpus; x++) {
        s.of[x] = x;
        for (size_t y = 0; y < x && s.of[x] == x; y++)
            if (s.of[y] == y && is_near_all(topo, &s, y, x, most))
                s.of[x] = y;
    }
    return s;
}

/* "0,1 2,3 4,5 6,7"; cards alone are left out. */
static tv_str islands_text(tv_arena *a, const islands *s)
{
    tv_buf b = tv_buf_in(a);
    for (size_t x = 0; x < s->n_gpus; x++) {
        size_t members = 0;
        for (size_t y = x; y < s->n_gpus; y++)
            members += s->of[y] == x;
        if (s->of[x] != x || members < 2)
            continue;
        if (b.n)
            tv_puts(&b, " | ");
        bool some = false;
        for (size_t y = x; y < s->n_gpus; y++)
            if (s->of[y] == x) {
                if (some)
                    tv_putc(&b, ',');
                tv_put_u64(&b, y);
                some = true;
            }
    }
    return tv_buf_str(&b);
}

static tv_str first_island(tv_arena *a, const islands *s)
{
    return tv_str_trim(tv_str_cut(islands_text(a, s), '|').head);
}

/* ---- C28: neighbours belong together ---- */

static const char *reach_word(tv_reach reach)
{
    static const char *const words[] = {"NV#", "PIX", "PXB", "PHB", "NODE", "SYS", "?"};
    return words[reach];
}

static void judge_placement(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_topo_seen(q->scene, NULL); s; s = tv_topo_seen(q->scene, s)) {
        size_t counts[TV_REACH_UNKNOWN + 1];
        tv_topo_counts(s, counts);
        tv_reach best = TV_REACH_UNKNOWN, worst = TV_REACH_NVLINK;
        for (unsigned i = 0; i < TV_REACH_UNKNOWN; i++)
            if (counts[i]) {
                best = best == TV_REACH_UNKNOWN ? (tv_reach)i : best;
                worst = (tv_reach)i;
            }
        /* unlike links matter where the slowest one crosses a root complex or a socket */
        if (is_pcie_only(s) || tv_topo_gpus(s) < 3 || best >= worst || worst < TV_REACH_PHB)
            continue;
        const islands groups = islands_at(s, best);
        tv_finding *f = tv_found(q, rule, s, NULL);
        tv_found_str(q, f, "groups", islands_text(q->a, &groups));
        tv_found_str(q, f, "group", first_island(q->a, &groups));
        tv_found_str(q, f, "best", tv_str_of(reach_word(best)));
        tv_found_str(q, f, "worst", tv_str_of(reach_word(worst)));
    }
}

/* ---- C27: a card's memory is its own socket's ---- */

/* Copies of one run against another's that was bound to another node. */
static double ratio_of(const tv_sighting *fast, const tv_sighting *slow, const char *key)
{
    return tv_noted_num(&fast->facts, key) / tv_noted_num(&slow->facts, key);
}

static double worst_ratio(const tv_sighting *fast, const tv_sighting *slow)
{
    const double up = ratio_of(fast, slow, "h2d_bytes_per_s");
    const double down = ratio_of(fast, slow, "d2h_bytes_per_s");
    return isnan(up) || down > up ? down : up;
}

static double bound_to(const tv_sighting *s)
{
    const double cpu = tv_noted_num(&s->facts, "cpu_node");
    return isnan(cpu) ? tv_noted_num(&s->facts, "mem_node") : cpu;
}

#define SLOW_RATIO 1.5

static bool judge_measured(tv_inquiry *q, const tv_rule *rule)
{
    const tv_scene *scene = q->scene;
    const tv_sighting *fast = NULL, *slow = NULL;
    for (const tv_sighting *s = tv_scene_first(scene, "bandwidth"); s;
         s = tv_scene_next(s, "bandwidth")) {
        const double rate = tv_noted_num(&s->facts, "h2d_bytes_per_s");
        if (isnan(bound_to(s)) || isnan(rate))
            continue;
        if (!fast || rate > tv_noted_num(&fast->facts, "h2d_bytes_per_s"))
            fast = s;
        if (!slow || rate < tv_noted_num(&slow->facts, "h2d_bytes_per_s"))
            slow = s;
    }
    if (!fast || fabs(bound_to(fast) - bound_to(slow)) < 0.5 ||
        !(worst_ratio(fast, slow) >= SLOW_RATIO))
        return false;
    tv_finding *f = tv_found(q, rule, slow, tv_noted(&slow->facts, "h2d_bytes_per_s"));
    tv_found_also(q, f, slow, tv_noted(&slow->facts, "d2h_bytes_per_s"));
    tv_found_also(q, f, fast, tv_noted(&fast->facts, "h2d_bytes_per_s"));
    tv_found_also(q, f, fast, tv_noted(&fast->facts, "d2h_bytes_per_s"));
    f->cause = N_("Bound to node {node} the host copies {h2d_ratio} times faster to the card and "
                  "{d2h_ratio} times faster from it than bound to node {slow_node}: the card hangs "
                  "on node {node}, and from the other one every copy crosses the link between the "
                  "sockets.");
    tv_found_num(q, f, "node", TV_ARG_NUMBER, bound_to(fast));
    tv_found_num(q, f, "slow_node", TV_ARG_NUMBER, bound_to(slow));
    const double up = ratio_of(fast, slow, "h2d_bytes_per_s");
    const double down = ratio_of(fast, slow, "d2h_bytes_per_s");
    tv_found_num(q, f, "h2d_ratio", TV_ARG_NUMBER, round(up * 10) / 10);
    tv_found_num(q, f, "d2h_ratio", TV_ARG_NUMBER, round((isnan(down) ? up : down) * 10) / 10);
    const tv_sighting *topo = tv_topo_seen(scene, NULL);
    if (topo) {
        tv_found_also(q, f, topo, tv_noted(&topo->facts, "cpu_affinity.0"));
        tv_found_str(q, f, "cpus", affinity_of(topo, 0));
    }
    f->weight = 1 - 1 / worst_ratio(fast, slow);
    return true;
}

enum { MOST_CPUS = 2048 };

/* "0-15,32-47": false where it is none. */
static bool take_cpus(tv_str list, bool *set)
{
    bool some = false;
    for (tv_cut cut = tv_str_cut(list, ','); cut.head.n; cut = tv_str_cut(cut.tail, ',')) {
        const tv_cut ends = tv_str_cut(tv_str_trim(cut.head), '-');
        const tv_u64_read low = tv_str_u64(ends.head);
        const tv_u64_read high = ends.found ? tv_str_u64(ends.tail) : low;
        if (!low.ok || !high.ok || high.v >= MOST_CPUS)
            return false;
        for (uint64_t i = low.v; i <= high.v; i++)
            set[i] = some = true;
    }
    return some;
}

/* A process that may run on no CPU of any card. */
static bool judge_confined(tv_inquiry *q, const tv_rule *rule)
{
    const tv_sighting *topo = tv_topo_seen(q->scene, NULL);
    const size_t n = topo ? tv_topo_gpus(topo) : 0;
    bool *near = tv_new(q->a, bool, MOST_CPUS);
    bool known = n > 0;
    for (size_t x = 0; x < n; x++)
        known &= take_cpus(affinity_of(topo, x), near);
    for (const tv_sighting *s = known ? tv_scene_first(q->scene, "affinity") : NULL; s;
         s = tv_scene_next(s, "affinity")) {
        bool *own = tv_new(q->a, bool, MOST_CPUS);
        bool meets = !take_cpus(tv_noted_str(&s->facts, "cpus"), own);
        for (size_t i = 0; i < MOST_CPUS; i++)
            meets |= own[i] && near[i];
        if (meets)
            continue;
        tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "cpus"));
        tv_found_also(q, f, topo, tv_noted(&topo->facts, "cpu_affinity.0"));
        f->cause =
            N_("The process may run on CPUs {bound_cpus} only, the cards hang on {cpus}: every "
               "copy between host and card crosses the link between the sockets.");
        tv_found_str(q, f, "bound_cpus", tv_noted_str(&s->facts, "cpus"));
        tv_found_str(q, f, "cpus", affinity_of(topo, 0));
        tv_found_num(q, f, "node", TV_ARG_NUMBER, node_of(topo, 0));
        return true;
    }
    return false;
}

static void judge_binding(tv_inquiry *q, const tv_rule *rule)
{
    if (judge_measured(q, rule) || judge_confined(q, rule))
        return;
    for (const tv_sighting *s = tv_topo_seen(q->scene, NULL); s; s = tv_topo_seen(q->scene, s)) {
        const size_t n = tv_topo_gpus(s);
        size_t apart = 0, pairs = 0;
        for (size_t x = 0; x < n; x++)
            for (size_t y = x + 1; y < n; y++, pairs++)
                apart += affinity_of(s, x).n && affinity_of(s, y).n &&
                         !tv_str_eq(affinity_of(s, x), affinity_of(s, y));
        if (!pairs || apart < pairs || !all_of(s, TV_REACH_SYS) || n > 2 || is_pcie_only(s))
            continue;
        tv_finding *f = tv_found(q, rule, s, NULL);
        f->severity = TV_INFO;
        f->cause =
            N_("Each card hangs on a socket of its own: GPU 0 on CPUs {cpus}. A process that "
               "runs on the other socket's CPUs or memory copies to its card across the "
               "link between the sockets, three to five times slower.");
        tv_found_str(q, f, "cpus", affinity_of(s, 0));
        tv_found_num(q, f, "node", TV_ARG_NUMBER, isnan(node_of(s, 0)) ? 0 : node_of(s, 0));
    }
}

/* ---- C29, C32, C33: every pair far apart ---- */

static size_t most_in_one_node(const tv_sighting *topo)
{
    const size_t n = tv_topo_gpus(topo);
    size_t most = 0;
    for (size_t x = 0; x < n; x++) {
        size_t same = 0;
        for (size_t y = 0; y < n; y++)
            same += fabs(node_of(topo, x) - node_of(topo, y)) < 0.5;
        most = same > most ? same : most;
    }
    return most;
}

static void judge_interconnect(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_topo_seen(q->scene, NULL); s; s = tv_topo_seen(q->scene, s)) {
        if (tv_topo_gpus(s) < 3 || !all_of(s, TV_REACH_SYS) || nodes_of(s) < 2 || is_pcie_only(s))
            continue;
        tv_finding *f = tv_found(q, rule, s, NULL);
        tv_found_num(q, f, "gpus", TV_ARG_NUMBER, (double)tv_topo_gpus(s));
        tv_found_num(q, f, "numa_nodes", TV_ARG_NUMBER, (double)nodes_of(s));
        tv_found_num(q, f, "node", TV_ARG_NUMBER, node_of(s, 0));
        if (is_perhaps_pcie_only(s))
            f->severity = TV_INFO;
    }
    if (tv_has_found(q, rule->id))
        tv_ask(q, "lscpu | grep -E 'Model name|Socket|NUMA'",
               N_("How many sockets there are tells whether a BIOS setting splits them."));
}

static void judge_nps(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_topo_seen(q->scene, NULL); s; s = tv_topo_seen(q->scene, s)) {
        /* two sockets are what such boards have; more nodes than that split them */
        if (tv_topo_gpus(s) < 3 || !all_of(s, TV_REACH_SYS) || nodes_of(s) < 4 || is_pcie_only(s) ||
            most_in_one_node(s) > 1)
            continue;
        tv_finding *f = tv_found(q, rule, s, NULL);
        tv_found_num(q, f, "numa_nodes", TV_ARG_NUMBER, (double)nodes_of(s));
    }
}

static void judge_sys_inside(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_topo_seen(q->scene, NULL); s; s = tv_topo_seen(q->scene, s)) {
        const tv_note *odd = tv_noted(&s->facts, "odd");
        if (!odd || is_pcie_only(s))
            continue;
        tv_finding *f = tv_found(q, rule, s, odd);
        if (is_perhaps_pcie_only(s))
            f->severity = TV_INFO;
        tv_found_num(q, f, "gpus", TV_ARG_NUMBER, (double)tv_topo_gpus(s));
    }
}

/* ---- C15: a virtual machine's flat bus ---- */

static bool is_flat_around_nics(const tv_sighting *topo)
{
    const size_t n = tv_topo_gpus(topo);
    if (n < 4 || tv_noted_num(&topo->facts, "nics") < 4 ||
        !tv_noted_bool(&topo->facts, "nvlink", false))
        return false;
    const tv_note *links = tv_noted(&topo->facts, "links");
    for (const tv_note *link = links ? links->first : NULL; link; link = link->next)
        if (link->key[0] == 'G' && !tv_str_is(link->s, "PHB"))
            return false;
    return true;
}

static void judge_flat(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_topo_seen(q->scene, NULL); s; s = tv_topo_seen(q->scene, s)) {
        if (is_flat_around_nics(s)) {
            tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "near_nic_link"));
            f->severity = TV_INFO;
            f->sure = TV_MEDIUM;
            f->cause = N_("NVLink joins the cards, but every adapter stands at the same distance "
                          "(PHB) from every card: that is how a virtual machine's bus looks. "
                          "Without a topology file NCCL keeps GPUDirect RDMA off between hosts.");
            continue;
        }
        /* three cards on root ports of one complex occur on desktops */
        if (tv_topo_gpus(s) < 4 || !all_of(s, TV_REACH_PHB) || nodes_of(s) > 1 || is_pcie_only(s))
            continue;
        tv_finding *f = tv_found(q, rule, s, NULL);
        tv_found_num(q, f, "gpus", TV_ARG_NUMBER, (double)tv_topo_gpus(s));
        if (tv_topo_gpus(s) < 8)
            f->sure = TV_MEDIUM;
        tv_ask(q, "systemd-detect-virt", N_("Only a virtual machine flattens the bus like this."));
    }
}

/* ---- C34: a card without a near adapter ---- */

static void judge_rail(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_topo_seen(q->scene, NULL); s; s = tv_topo_seen(q->scene, s)) {
        const size_t n = tv_topo_gpus(s);
        tv_buf far = tv_buf_in(q->a);
        size_t near = 0, without = 0;
        for (size_t x = 0; x < n; x++) {
            const tv_reach reach = tv_topo_nic_reach(s, x);
            near += reach <= TV_REACH_PXB;
            if (reach < TV_REACH_NODE || reach == TV_REACH_UNKNOWN)
                continue;
            tv_puts(&far, without++ ? "," : "");
            tv_put_u64(&far, x);
        }
        /* one adapter beside one card is how a storage or service port stands: half must be near */
        if (!without || near < 2 || near < without)
            continue;
        tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "near_nic_link"));
        tv_found_str(q, f, "far", tv_buf_str(&far));
        tv_found_num(q, f, "near_gpus", TV_ARG_NUMBER, (double)near);
    }
}

static const tv_rule rules[] = {
    {
        .id = "C15",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("The guest sees a flat PCIe bus"),
        .cause = N_("All {gpus} cards stand at the same distance (PHB) on one memory node: that is "
                    "how a virtual machine's bus looks, not a board. NCCL cannot tell neighbours "
                    "from strangers and keeps GPUDirect RDMA off."),
        .decided = N_("Four or more cards, every pair PHB, one NUMA node at most, no NVLink. For "
                      "information: cards with NVLink whose four or more adapters are all PHB."),
        .unless = N_("Boards with few slots show PHB for two or three cards rightly. Where NVLink "
                     "joins the cards, the pairs say NV# and nothing is lost between them."),
        .source = "https://docs.nvidia.com/ai-enterprise/planning-resource/"
                  "optimizing-vm-configuration-ai-inference/latest/appendix.html",
        .steps = {{.command = "systemd-detect-virt", .why = N_("See whether this is a guest.")},
                  {.command = "NCCL_TOPO_FILE=/etc/nccl-topo.xml",
                   .why =
                       N_("Give NCCL the real topology: the cloud's own image carries a file for "
                          "its type of machine. Leave it out again to undo.")},
                  {.why = N_("On your own hypervisor pass the PCIe switches through to the guest, "
                             "and enable ATS on the adapter for GPUDirect RDMA.")}},
        .judge = judge_flat,
    },
    {
        .id = "C29",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("Every pair of cards talks across the link between sockets"),
        .cause =
            N_("All pairs of the {gpus} cards are SYS, over {numa_nodes} memory nodes: no two "
               "cards share a root complex or NVLink that the table shows, so all their traffic "
               "crosses the processors' interconnect (xGMI, UPI). Its width and speed set the "
               "rate of every collective."),
        .decided = N_("Three or more cards, every pair SYS, two or more NUMA nodes, no NVLink, not "
                      "from topo -mp."),
        .unless = N_("Two cards on two sockets are SYS rightly. topo -mp never shows NVLink."),
        .source = "https://github.com/tinygrad/open-gpu-kernel-modules/issues/17",
        .steps = {{.command = "nvidia-smi topo -p2p r",
                   .why = N_("See whether the driver lets the cards reach each other at all.")},
                  {.why = N_("In the BIOS: xGMI link width x16 and its highest speed, not dynamic; "
                             "one memory node per socket (NPS1), so that pairs within a socket are "
                             "seen as NODE. Note the old settings first.")},
                  {.command = "numactl --cpunodebind={node} --membind={node} python train.py",
                   .why = N_("Until then bind every rank to its card's own node.")}},
        .outranks = "C32 C33",
        .judge = judge_interconnect,
    },
    {
        .id = "C32",
        .severity = TV_WARNING,
        .sure = TV_LOW,
        .title = N_("A BIOS setting splits each socket into several memory nodes"),
        .cause = N_("There are {numa_nodes} memory nodes with one card each and every pair is SYS. "
                    "With NPS4 (or sub-NUMA clustering) cards of one socket are shown as if they "
                    "were on different sockets, and NCCL treats them so."),
        .decided = N_("Three or more cards, every pair SYS, four or more NUMA nodes, no two cards "
                      "on one node."),
        .unless = N_("A host with four sockets looks the same; lscpu tells."),
        .source = "https://github.com/tinygrad/open-gpu-kernel-modules/issues/17",
        .steps = {{.command = "lscpu | grep -E 'Socket|NUMA'",
                   .why = N_("More NUMA nodes than sockets: the setting is on.")},
                  {.why = N_("Set NPS1 or NPS2 in the BIOS (set the old value again to undo), and "
                             "bind the ranks.")}},
        .judge = judge_nps,
    },
    {
        .id = "C33",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("Cards of one memory node are shown as if on different sockets"),
        .cause = N_("Cards with the same NUMA node stand at SYS, where a common node means NODE or "
                    "nearer: the platform reports an incomplete topology, as virtual machines and "
                    "some firmware do. NCCL then takes the slowest path for all of them."),
        .decided = N_("Two cards with the same NUMA Affinity and SYS between them."),
        .unless = N_("topo -mp and pairs joined by NVLink are left out."),
        .source = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
        .steps = {{.command = "lspci -tv",
                   .why = N_("See the real tree of bridges; in a guest it is flat.")},
                  {.command = "NCCL_TOPO_FILE=/etc/nccl-topo.xml",
                   .why =
                       N_("Describe the real tree to NCCL, or pass it through to the guest. Leave "
                          "it out again to undo.")}},
        .judge = judge_sys_inside,
    },
    {
        .id = "C34",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("Some cards have no adapter near them"),
        .cause = N_("GPU {far}: the nearest network adapter is across a root complex or a socket, "
                    "while {near_gpus} other cards have one on their own switch. Every collective "
                    "between hosts waits for the cards with the long way."),
        .decided =
            N_("The nearest adapter of a card is NODE or SYS, and at least half of the cards, "
               "two or more, have theirs at PIX or PXB."),
        .unless =
            N_("On one host alone the adapters do not matter. Adapters for storage or service "
               "are not part of the rail."),
        .source = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
        .steps = {{.command = "ibstat -l", .why = N_("See whether an adapter is missing.")},
                  {.why = N_("Move the adapter to the switch of those cards, or name only the "
                             "adapters of the rail in NCCL_IB_HCA.")}},
        .judge = judge_rail,
    },
    {
        .id = "C28",
        .severity = TV_INFO,
        .sure = TV_HIGH,
        .title = N_("Cards that talk most belong on the nearest pairs"),
        .cause = N_("The cards are not equally near: {groups} are joined by {best}, others only by "
                    "{worst}. Tensor parallel groups belong inside one of these; data and pipeline "
                    "parallelism may cross them."),
        .decided = N_("Three or more cards whose pairs differ, the farthest of them PHB, NODE or "
                      "SYS. Nothing is broken: it is told so that ranks are placed well."),
        .unless = N_("topo -mp hides NVLink, so it decides nothing."),
        .source = "https://www.alibabacloud.com/help/doc-detail/190482.htm",
        .steps = {{.command = "CUDA_VISIBLE_DEVICES={group} python train.py",
                   .why = N_("A job of one group stays inside it.")},
                  {.why = N_("For several groups list the cards of each next to each other: "
                             "neighbouring ranks form the tensor parallel groups.")}},
        .judge = judge_placement,
    },
    {
        .id = "C27",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("A process on the wrong socket"),
        .cause = N_("The card hangs on CPUs {cpus}; the process ran on another socket and copied "
                    "across the link between them."),
        .decided =
            N_("Copies between host and card are at least 1.5 times slower when bound to one "
               "node than to another; or the process may run on no CPU that topo -m lists "
               "for any card; or, as advice only, two cards sit on two sockets."),
        .unless = N_("A link that is slow from every node is the link itself (H05)."),
        .source = "https://github.com/mpicbg-scicomp/gearshifft/issues/82",
        .steps = {{.command = "numactl --cpunodebind={node} --membind={node} python train.py",
                   .why = N_("Run on the card's own node; one launcher line per card, or "
                             "torchrun with a wrapper that binds by local rank.")},
                  {.command = "NCCL_IGNORE_CPU_AFFINITY=1",
                   .why =
                       N_("If the launcher set a wrong mask, let NCCL choose by the topology.")}},
        .judge = judge_binding,
    },
};

extern const tv_rule_group tv_rule_group_topo_rules;
const tv_rule_group tv_rule_group_topo_rules = {"topology", N_("Topology"), rules,
                                                sizeof rules / sizeof *rules};
