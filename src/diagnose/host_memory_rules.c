/* Memory that is not the card's: shared memory, and the host's own. */
#include "diagnose.h"

static void judge_shm(tv_inquiry *q, const tv_rule *rule)
{
    const tv_scene *scene = q->scene;
    for (const tv_sighting *s = tv_scene_first(scene, "worker-lost"); s;
         s = tv_scene_next(s, "worker-lost")) {
        if (!tv_noted_is(&s->facts, "signal", "Bus error"))
            continue;
        tv_finding *f = tv_found(q, rule, s, NULL);
        tv_found_num(q, f, "pid", TV_ARG_NUMBER, tv_noted_num(&s->facts, "worker_pid"));
    }
}

static const tv_rule rules[] = {
    {
        .id = "O28",
        .severity = TV_CRITICAL,
        .sure = TV_HIGH,
        .title = N_("Shared memory is too small for the loader's workers"),
        .cause =
            N_("A loader's worker ended by a bus error: the batches that workers hand over lie "
               "in /dev/shm, and it is full. Containers get 64 MB of it unless told otherwise."),
        .decided = N_("A worker of a DataLoader is killed by \"Bus error\", or PyTorch names "
                      "insufficient shared memory, or df shows /dev/shm nearly full."),
        .unless = N_("A worker killed by \"Killed\" ran out of the host's memory instead (O29)."),
        .source = "https://github.com/pytorch/pytorch/issues/5040",
        .steps = {{.command = "df -h /dev/shm", .why = N_("See how large it is.")},
                  {.command = "docker run --shm-size=16g IMAGE",
                   .why = N_("Give the container more, or share the host's with --ipc=host.")}},
        .judge = judge_shm,
    },
};

extern const tv_rule_group tv_rule_group_host_memory_rules;
const tv_rule_group tv_rule_group_host_memory_rules = {"host-memory", N_("Host and shared memory"),
                                                       rules, sizeof rules / sizeof *rules};
