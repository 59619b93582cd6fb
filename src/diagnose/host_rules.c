/* What a host itself shows: no card in sight and why, limits and mounts that training runs into. */
#include "diagnose.h"

#include <math.h>
#include <string.h>

/* ---- facts of one host ---- */

/* A host's facts stand in several documents; those of one host lie below one folder. */
static tv_str root_of(tv_str file)
{
    static const char *const inner[] = {"/proc/", "/etc/", "/sys/"};
    size_t n = 0;
    for (size_t i = 0; i < file.n; i++) {
        for (size_t k = 0; k < sizeof inner / sizeof *inner; k++)
            if (tv_str_starts(tv_str_drop(file, i), tv_str_of(inner[k])))
                return tv_str_take(file, i);
        if (file.p[i] == '/' || file.p[i] == ':')
            n = i;
    }
    return tv_str_take(file, n);
}

static bool is_beside(const tv_sighting *x, const tv_sighting *y)
{
    return tv_str_eq(root_of(x->file), root_of(y->file));
}

typedef struct fact {
    const tv_sighting *s;
    const tv_note *note;
} fact;

/* A fact of the same host as `near` is; note NULL: not known. */
static fact fact_near(const tv_inquiry *q, const tv_sighting *near, const char *kind,
                      const char *path)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, kind); s; s = tv_scene_next(s, kind)) {
        const tv_note *note = is_beside(s, near) ? tv_noted(&s->facts, path) : NULL;
        if (note && note->type != TV_NOTE_NULL)
            return (fact){s, note};
    }
    return (fact){0};
}

static double number_near(const tv_inquiry *q, const tv_sighting *near, const char *path)
{
    const fact f = fact_near(q, near, "host", path);
    return f.note ? tv_noted_num(f.note, "") : (double)NAN;
}

static bool is_in_container(const tv_inquiry *q, const tv_sighting *near)
{
    const fact f = fact_near(q, near, "host", "container");
    return f.note && !tv_noted_is(f.note, "", "no");
}

/* What the probe itself wrote: there is one for each host that was looked at. */
static bool is_probed(const tv_sighting *s)
{
    return tv_noted(&s->facts, "driver_loaded") != NULL;
}

static double gpus_on_bus(const tv_sighting *s)
{
    return tv_noted_num(&s->facts, "pci_nvidia_gpus_n") + tv_noted_num(&s->facts, "pci_amd_gpus_n");
}

/* ---- S24: no card in sight ---- */

static void judge_none(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "host"); s; s = tv_scene_next(s, "host")) {
        if (!is_probed(s) || gpus_on_bus(s) > 0 || tv_noted_num(&s->facts, "nvml_gpus_n") > 0 ||
            tv_noted_n(&s->facts, "device_nodes") ||
            tv_noted_bool(&s->facts, "driver_loaded", false))
            continue;
        tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "driver_loaded"));
        if (!tv_noted(&s->facts, "pci_devices_n"))
            f->cause = N_("The PCI bus cannot be seen from here, no driver is loaded and there is "
                          "no device node: a container or a virtual machine that was given no "
                          "card. What was looked at is judged all the same.");
        tv_found_num(q, f, "devices", TV_ARG_COUNT, tv_noted_num(&s->facts, "pci_devices_n"));
        const tv_note *unseen = tv_noted(&s->facts, "unseen");
        for (const tv_note *u = unseen ? unseen->first : NULL; u; u = u->next)
            tv_found_also(q, f, s, u);
        tv_ask(q, "lspci -nn | grep -Ei 'nvidia|3d|display'",
               N_("Says whether the machine has a card at all, or whether this is a container or a "
                  "guest that was given none."));
    }
}

/* ---- S26, S27: a card, and no way to it ---- */

static void judge_no_driver(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "host"); s; s = tv_scene_next(s, "host")) {
        const double without = tv_noted_num(&s->facts, "pci_gpus_without_driver_n");
        const bool nouveau = tv_noted_is(&s->facts, "pci_gpu_driver", "nouveau");
        const bool held = tv_noted_is(&s->facts, "pci_gpu_driver", "vfio-pci");
        const double cards = gpus_on_bus(s);
        if (!(cards > 0) || held || (!(without >= cards) && !nouveau) ||
            tv_noted_bool(&s->facts, "driver_loaded", false))
            continue;
        tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "pci_gpus_without_driver_n"));
        tv_found_num(q, f, "cards", TV_ARG_COUNT, cards);
        tv_found_str(q, f, "kernel", tv_noted_str(&s->facts, "kernel_release"));
        tv_found_word(q, f, "driver", nouveau ? "nouveau" : N_("no driver"));
    }
}

static void judge_no_library(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "host"); s; s = tv_scene_next(s, "host")) {
        if (!tv_noted_is(&s->facts, "nvml", "no library") ||
            !tv_noted_bool(&s->facts, "driver_loaded", false) ||
            fact_near(q, s, "smi-q", "gpus").note)
            continue;
        tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "nvml"));
        tv_found_also(q, f, s, tv_noted(&s->facts, "driver_loaded"));
        if (is_in_container(q, s))
            f->cause = N_("The kernel's driver is loaded, and libnvidia-ml.so.1 is not in this "
                          "container: it was started without the container toolkit's help, or "
                          "without --gpus.");
    }
}

/* ---- S25: containers without cards ---- */

static void judge_no_toolkit(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "host"); s; s = tv_scene_next(s, "host")) {
        if (!tv_noted_n(&s->facts, "container_engines") || is_in_container(q, s) ||
            !tv_noted_bool(&s->facts, "driver_loaded", false) ||
            tv_noted_n(&s->facts, "container_toolkit") || tv_noted_n(&s->facts, "cdi_specs"))
            continue;
        tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "container_engines"));
        tv_found_str(q, f, "engine", tv_noted_str(&s->facts, "container_engines.0"));
    }
}

/* ---- S28: NVSwitches and nobody who sets them up ---- */

static void judge_fabric(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "host"); s; s = tv_scene_next(s, "host")) {
        if (!(tv_noted_num(&s->facts, "nvswitches_n") > 0) || is_in_container(q, s) ||
            !tv_noted_bool(&s->facts, "driver_loaded", false) ||
            tv_noted_bool(&s->facts, "fabric_manager_running", true))
            continue;
        tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "fabric_manager_running"));
        tv_found_num(q, f, "switches", TV_ARG_COUNT, tv_noted_num(&s->facts, "nvswitches_n"));
    }
}

/* ---- H36: memory that may not be locked ---- */

/* A queue pair and its buffers take a few MiB each, a communicator of many ranks hundreds. */
static const double least_locked_bytes = 0x1p30;

static bool has_rdma(const tv_inquiry *q, const tv_sighting *near, fact *at)
{
    *at = fact_near(q, near, "host", "ib_ports");
    for (const tv_note *p = at->note ? at->note->first : NULL; p; p = p->next)
        if (tv_noted_is(p, "state", "ACTIVE"))
            return true;
    return false;
}

static void judge_memlock(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "limits"); s;
         s = tv_scene_next(s, "limits")) {
        const double locked = tv_noted_num(&s->facts, "memlock_bytes");
        const fact may = fact_near(q, s, "host", "may_lock");
        fact rdma;
        if (!(locked < least_locked_bytes) || (may.note && may.note->yes) || !has_rdma(q, s, &rdma))
            continue;
        tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "memlock_bytes"));
        tv_found_also(q, f, rdma.s, rdma.note->first);
        tv_found_num(q, f, "limit_bytes", TV_ARG_MEMORY, locked);
    }
}

/* ---- H37: traffic between cards that takes a detour ---- */

static bool redirects(const tv_inquiry *q, const tv_sighting *near, fact *at)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "lspci"); s;
         s = tv_scene_next(s, "lspci")) {
        const tv_note *devices = is_beside(s, near) ? tv_noted(&s->facts, "devices") : NULL;
        for (const tv_note *d = devices ? devices->first : NULL; d; d = d->next) {
            const tv_note *set = tv_noted(d, "acs");
            for (const tv_note *bit = set ? set->first : NULL; bit; bit = bit->next)
                if (tv_noted_is(bit, "", "ReqRedir") || tv_noted_is(bit, "", "CmpltRedir")) {
                    *at = (fact){s, d};
                    return true;
                }
        }
    }
    return false;
}

static bool has_nvlink(const tv_inquiry *q, const tv_sighting *near)
{
    const fact topo = fact_near(q, near, "topo", "nvlink");
    return (topo.note && topo.note->yes) || fact_near(q, near, "nvlink", "gpus").note;
}

static void judge_iommu(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "host"); s; s = tv_scene_next(s, "host")) {
        const double groups = tv_noted_num(&s->facts, "iommu.groups_n");
        const double passing = tv_noted_num(&s->facts, "iommu.passing_n");
        fact probed = fact_near(q, s, "host", "pci_nvidia_gpus_n"), acs;
        if (!(groups > passing) || !probed.s || !(gpus_on_bus(probed.s) >= 2) || has_nvlink(q, s))
            continue;
        tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "iommu.groups_n"));
        tv_found_num(q, f, "groups", TV_ARG_COUNT, groups);
        tv_found_num(q, f, "cards", TV_ARG_COUNT, gpus_on_bus(probed.s));
        if (redirects(q, s, &acs))
            tv_found_also(q, f, acs.s, acs.note);
        else
            tv_ask(q, "sudo lspci -vvv | grep ACSCtl",
                   N_("Shows whether the bridges send traffic between cards upwards (ReqRedir+)."));
    }
}

/* ---- O41: shared memory of a container ---- */

static const double small_shm_bytes = 0x1p30;
static const double docker_shm_bytes = 0x1p26;

static void judge_small_shm(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "host"); s; s = tv_scene_next(s, "host")) {
        const double bytes = tv_noted_num(&s->facts, "shm_bytes");
        if (!(bytes < small_shm_bytes) || !is_in_container(q, s))
            continue;
        tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "shm_bytes"));
        tv_found_num(q, f, "shm_bytes", TV_ARG_MEMORY, bytes);
        if (bytes <= docker_shm_bytes)
            f->sure = TV_HIGH;
    }
}

/* ---- O42 to O44: memory of the host ---- */

static void judge_address_space(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "limits"); s;
         s = tv_scene_next(s, "limits")) {
        const double bytes = tv_noted_num(&s->facts, "address_space_bytes");
        if (!(bytes < 0x1p40))
            continue;
        tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "address_space_bytes"));
        tv_found_num(q, f, "limit_bytes", TV_ARG_MEMORY, bytes);
    }
}

static void judge_overcommit(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "host"); s; s = tv_scene_next(s, "host")) {
        if (tv_noted_num(&s->facts, "overcommit") < 2 || !tv_noted(&s->facts, "overcommit"))
            continue;
        tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "overcommit"));
        tv_found_num(q, f, "limit_bytes", TV_ARG_MEMORY, number_near(q, s, "commit_limit_bytes"));
        tv_found_num(q, f, "committed_bytes", TV_ARG_MEMORY, number_near(q, s, "committed_bytes"));
    }
}

/* The kernel begins to drop what it needs when so little is left. */
static const double full_frac = 0.03;

static void judge_full(tv_inquiry *q, const tv_rule *rule)
{
    for (const tv_sighting *s = tv_scene_first(q->scene, "host"); s; s = tv_scene_next(s, "host")) {
        const double all = tv_noted_num(&s->facts, "mem_total_bytes");
        const double left = tv_noted_num(&s->facts, "mem_available_bytes");
        if (!(all > 0) || !(left < full_frac * all))
            continue;
        tv_finding *f = tv_found(q, rule, s, tv_noted(&s->facts, "mem_available_bytes"));
        tv_found_num(q, f, "left_bytes", TV_ARG_MEMORY, left);
        tv_found_num(q, f, "total_bytes", TV_ARG_MEMORY, all);
    }
}

static const tv_rule rules[] = {
    {
        .id = "S24",
        .severity = TV_INFO,
        .sure = TV_HIGH,
        .title = N_("No GPU is visible on this host"),
        .cause = N_("None of the {devices} devices on the PCI bus is a GPU of NVIDIA or AMD, no "
                    "driver is loaded and there is no device node: the host has no card, or it is "
                    "a container or a virtual machine that was given none. What was looked at is "
                    "judged all the same."),
        .decided =
            N_("No display or 3D controller of NVIDIA or AMD on the PCI bus, no "
               "/proc/driver/nvidia, no /dev/nvidia*, /dev/kfd or /dev/dxg, and NVML reports "
               "none."),
        .unless = N_("A card that has fallen off the bus is not listed either: the kernel's log "
                     "tells (Xid 79)."),
        .source = "https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci",
        .steps = {{.command = "lspci -nn | grep -Ei 'nvidia|3d|display'",
                   .why = N_("See whether the machine has a card at all.")},
                  {.command = "docker run --rm --gpus all ubuntu nvidia-smi",
                   .why = N_("In a container: start it with the cards.")}},
        .judge = judge_none,
    },
    {
        .id = "S26",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("A GPU is on the bus and NVIDIA's or AMD's driver does not serve it"),
        .cause = N_("{cards} GPUs are on the PCI bus, served by {driver}: the kernel module is not "
                    "installed, was not built for this kernel ({kernel}), was refused by Secure "
                    "Boot, or nouveau took the card."),
        .decided = N_("GPUs on the PCI bus without a driver, or with nouveau, and no "
                      "/proc/driver/nvidia/version."),
        .unless = N_("Cards that are held for virtual machines (vfio-pci) have their driver inside "
                     "the guest."),
        .source = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/",
        .steps = {{.command = "modinfo -F version nvidia; dkms status; mokutil --sb-state",
                   .why = N_("Says whether a module is installed, built for this kernel, and "
                             "allowed to load.")},
                  {.command = "sudo modprobe nvidia && sudo dmesg | tail -20",
                   .undo = "sudo modprobe -r nvidia",
                   .why = N_("Load it once by hand: the kernel's log says why not.")}},
        .outranks = "S05",
        .judge = judge_no_driver,
    },
    {
        .id = "S27",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("The driver is loaded and its library is not found"),
        .cause =
            N_("The kernel's driver is loaded, and libnvidia-ml.so.1 is in none of the "
               "loader's folders: the driver's user-space packages are missing or lie where "
               "the loader does not look. CUDA's own libcuda.so.1 is usually missing with it."),
        .decided = N_("/proc/driver/nvidia/version is there, and libnvidia-ml.so.1 cannot be "
                      "loaded."),
        .unless = N_("In WSL the libraries lie in /usr/lib/wsl/lib."),
        .source = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/"
                  "troubleshooting.html",
        .steps = {{.command = "ldconfig -p | grep -E 'libnvidia-ml|libcuda'",
                   .why = N_("See whether the loader knows them.")},
                  {.command = "docker run --rm --gpus all ubuntu nvidia-smi",
                   .why = N_("In a container: the toolkit puts the host's libraries into it.")}},
        .judge = judge_no_library,
    },
    {
        .id = "S25",
        .severity = TV_INFO,
        .sure = TV_HIGH,
        .title = N_("Containers on this host cannot use its GPUs yet"),
        .cause = N_("A container engine is installed ({engine}) and NVIDIA's driver is loaded, and "
                    "the container toolkit is missing: docker run --gpus all will fail with "
                    "\"could not select device driver\"."),
        .decided = N_("A container engine, a loaded driver, and neither nvidia-ctk nor "
                      "nvidia-container-runtime nor a CDI specification."),
        .unless = N_("Engines that bring their own (a GPU operator in Kubernetes) keep it in a "
                     "container."),
        .source = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/"
                  "install-guide.html",
        .steps = {{.command = "sudo apt-get install -y nvidia-container-toolkit",
                   .undo = "sudo apt-get remove nvidia-container-toolkit",
                   .why = N_("From NVIDIA's own repository.")},
                  {.command =
                       "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl "
                       "restart docker",
                   .undo = "sudo nvidia-ctk runtime configure --runtime=docker --unset",
                   .why = N_("Restarting the engine stops containers that have no restart "
                             "policy.")}},
        .judge = judge_no_toolkit,
    },
    {
        .id = "S28",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("NVSwitches without their fabric manager"),
        .cause = N_("{switches} NVSwitches are on the bus and nv-fabricmanager does not run: CUDA "
                    "waits for the NVLink fabric and fails with error 802, \"system not yet "
                    "initialized\"."),
        .decided = N_("Bridges of NVIDIA's (NVSwitch) on the PCI bus, a loaded driver, and no "
                      "process nv-fabricmanager; not inside a container."),
        .unless = N_("On systems whose switches are set up elsewhere (GB200 NVL72) none is on the "
                     "bus of the host."),
        .source = "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html",
        .steps = {{.command = "systemctl status nvidia-fabricmanager",
                   .why = N_("See whether it is installed, and why it ended.")},
                  {.command = "sudo systemctl enable --now nvidia-fabricmanager",
                   .undo = "sudo systemctl disable --now nvidia-fabricmanager",
                   .why = N_("Its version must be the driver's, to the last digit.")}},
        .outranks = "S18 C17",
        .judge = judge_fabric,
    },
    {
        .id = "H36",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("Too little memory may be locked for RDMA"),
        .cause = N_("A port for RDMA is active, and a process may lock {limit_bytes} of memory: "
                    "NCCL's registrations (ibv_reg_mr) will fail with \"Cannot allocate memory\", "
                    "at the latest with many ranks."),
        .decided = N_("An InfiniBand or RoCE port is ACTIVE, the limit of locked memory is below "
                      "1 GiB, and the process has no right to pass it (CAP_IPC_LOCK)."),
        .unless = N_("The limit is this process's own: a job may be started with another one "
                     "(systemd's LimitMEMLOCK, Slurm's PropagateResourceLimits)."),
        .source = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
        .steps = {{.command = "docker run --ulimit memlock=-1 --ulimit stack=67108864 IMAGE",
                   .why = N_("In a container: give it the limit when it starts.")},
                  {.command =
                       "printf '* soft memlock unlimited\\n* hard memlock unlimited\\n' | sudo "
                       "tee /etc/security/limits.d/90-rdma.conf",
                   .undo = "sudo rm /etc/security/limits.d/90-rdma.conf",
                   .why = N_("On the host: holds from the next login on.")}},
        .outranks = "C06",
        .judge = judge_memlock,
    },
    {
        .id = "H37",
        .severity = TV_INFO,
        .sure = TV_LOW,
        .title = N_("The IOMMU translates on a host with several GPUs"),
        .cause = N_("{groups} IOMMU groups translate addresses, and {cards} GPUs have no NVLink "
                    "between them: transfers from card to card may be sent through the root "
                    "complex, which is slow, and on some platforms hang. A candidate only: measure "
                    "before it is changed."),
        .decided = N_("At least two GPUs, no NVLink, and IOMMU groups of a type other than "
                      "identity."),
        .unless = N_("Virtual machines need the IOMMU of their host; with NVLink, peers do not "
                     "cross it."),
        .source = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
        .steps = {{.command = "NCCL_P2P_DISABLE=1 ./all_reduce_perf -b 64M -e 64M -g {cards}",
                   .why = N_("Against a run without the variable: where it is as fast or faster, "
                             "the detour is real.")},
                  {.command =
                       "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&iommu=pt /' /etc/default/grub "
                       "&& sudo update-grub",
                   .undo = "sudo sed -i 's/iommu=pt //' /etc/default/grub && sudo update-grub",
                   .why = N_("Only then: pass the host's own traffic through, from the next boot "
                             "on.")}},
        .judge = judge_iommu,
    },
    {
        .id = "O41",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("The container's shared memory is too small for a loader's workers"),
        .cause = N_("/dev/shm holds {shm_bytes}: batches that workers of a DataLoader hand over, "
                    "and NCCL's buffers between processes, lie there. A worker ends by a bus error "
                    "when it is full."),
        .decided = N_("Inside a container, /dev/shm below 1 GiB; 64 MiB is Docker's default, with "
                      "which it is certain."),
        .unless = N_("A job without loader workers and with one process does not need it."),
        .source = "https://github.com/pytorch/pytorch/issues/5040",
        .steps = {{.command = "docker run --shm-size=16g IMAGE",
                   .why = N_("Or --ipc=host, which shares the host's.")},
                  {.why = N_("In Kubernetes: mount an emptyDir with medium: Memory at /dev/shm.")}},
        .outranks = "O28 C05",
        .judge = judge_small_shm,
    },
    {
        .id = "O42",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("The address space of processes is limited"),
        .cause = N_("A process may map {limit_bytes} (ulimit -v). CUDA reserves addresses for all "
                    "memory of the host and of every card when it starts: it fails with \"out of "
                    "memory\" while both have room."),
        .decided = N_("The limit of the address space is a number below 1 TiB."),
        .unless = N_("A limit far above RAM and the cards' memory together does no harm."),
        .source = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html",
        .steps = {{.command = "ulimit -v unlimited",
                   .why = N_("In the shell that starts the job; a batch system's own limit must be "
                             "asked for there. It ends with the shell.")}},
        .judge = judge_address_space,
    },
    {
        .id = "O43",
        .severity = TV_WARNING,
        .sure = TV_MEDIUM,
        .title = N_("The host promises no more memory than it has"),
        .cause = N_("vm.overcommit_memory is 2: every reservation counts, used or not. CUDA, "
                    "forked loader workers and pinned buffers reserve far more than they use, and "
                    "are refused with \"Cannot allocate memory\" while memory is free."),
        .decided = N_("vm.overcommit_memory is 2."),
        .unless = N_("Where the commit limit was raised (vm.overcommit_ratio) it may be enough."),
        .source = "https://www.kernel.org/doc/Documentation/vm/overcommit-accounting",
        .steps = {{.command = "sudo sysctl vm.overcommit_memory=0",
                   .undo = "sudo sysctl vm.overcommit_memory=2",
                   .why = N_("The kernel's default, until the next boot.")}},
        .judge = judge_overcommit,
    },
    {
        .id = "O44",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("The host's memory is nearly used up"),
        .cause = N_("{left_bytes} of {total_bytes} are left, page cache counted as free: the next "
                    "worker or checkpoint meets the kernel's OOM killer, and files are read from "
                    "disk again and again."),
        .decided = N_("MemAvailable is below 3 % of MemTotal."),
        .unless = N_("A moment's reading: look again under load."),
        .source = "https://www.kernel.org/doc/Documentation/filesystems/proc.rst",
        .steps = {{.command = "ps -eo pid,rss,comm --sort=-rss | head", .why = N_("Who holds it.")},
                  {.why = N_("Fewer loader workers, memory-mapped data instead of lists, or more "
                             "RAM.")}},
        .judge = judge_full,
    },
};

extern const tv_rule_group tv_rule_group_host_rules;
const tv_rule_group tv_rule_group_host_rules = {"host", N_("This host"), rules,
                                                sizeof rules / sizeof *rules};
