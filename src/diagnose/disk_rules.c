/* Full disks. What lies in /dev/shm is memory and judged elsewhere. */
#include <math.h>

#include "diagnose.h"

/* File systems that are always full, or are no disks. */
static bool counts(const tv_note *row)
{
    static const char *const heads[] = {"/snap",     "/boot/efi", "/sys",       "/proc",
                                        "/run/snap", "/media",    "/mnt/cdrom", "/var/lib/snapd"};
    static const char *const devices[] = {"/dev/loop", "overlayfs-ro", "squashfs", "devtmpfs",
                                          "udev",      "efivarfs",     "tmpfs"};
    const tv_str mount = tv_noted_str(row, "mount"), device = tv_noted_str(row, "device");
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (tv_str_starts(mount, tv_str_of(heads[i])))
            return false;
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (tv_str_starts(device, tv_str_of(devices[i])))
            return false;
    return true;
}

/* Full is what root's reserve leaves nothing of, or less than 100 MB. */
static bool is_full(const tv_note *row, bool *inodes)
{
    const double use = tv_noted_num(row, "use_frac"), avail = tv_noted_num(row, "avail_bytes");
    const double inode_use = tv_noted_num(row, "inodes_frac");
    *inodes = inode_use >= 0.99;
    return *inodes || use >= 0.995 || (use >= 0.98 && avail < 1e8);
}

static tv_finding *find(tv_inquiry *q, const tv_rule *rule, const tv_sighting *s,
                        const tv_note *row, bool inodes)
{
    tv_finding *f = tv_found(q, rule, s, row);
    tv_found_str(q, f, "mount", tv_noted_str(row, "mount"));
    tv_found_num(q, f, "avail_bytes", TV_ARG_DISK, tv_noted_num(row, "avail_bytes"));
    tv_found_num(q, f, "use_frac", TV_ARG_RATIO,
                 tv_noted_num(row, inodes ? "inodes_frac" : "use_frac"));
    f->cause = inodes ? N_("The file system {mount} has no inodes left: it holds as many files as "
                           "it can, however small they are. New files fail with \"No space left on "
                           "device\" although df shows free space.")
                      : N_("The file system {mount} is full ({use_frac} used). Checkpoints, caches "
                           "and logs that are written there fail or are cut short.");
    f->weight = 0.8;
    return f;
}

static void judge_d17(tv_inquiry *q, const tv_rule *rule)
{
    tv_finding *said = NULL;
    for (const tv_sighting *s = tv_scene_first(q->scene, "disk-space"); s;
         s = tv_scene_next(s, "disk-space")) {
        if (!tv_noted_str(&s->facts, "error").n)
            continue;
        tv_finding *f = tv_found(q, rule, s, NULL);
        f->severity = TV_CRITICAL;
        f->weight = 1;
        tv_found_str(q, f, "path", tv_noted_str(&s->facts, "path"));
        if (tv_noted_is(&s->facts, "error", "quota exceeded"))
            f->cause =
                N_("The user's quota on this file system is used up, even where the disk has "
                   "space left.");
        said = said ? said : f;
    }
    for (const tv_sighting *s = tv_scene_first(q->scene, "disk-space"); s;
         s = tv_scene_next(s, "disk-space")) {
        const tv_note *rows = tv_noted(&s->facts, "mounts");
        for (const tv_note *row = rows ? rows->first : NULL; row; row = row->next) {
            bool inodes;
            if (!counts(row) || !is_full(row, &inodes))
                continue;
            if (said)
                tv_found_also(q, said, s, row);
            else
                (void)find(q, rule, s, row, inodes);
        }
    }
}

static const tv_rule rules[] = {
    {
        .id = "D17",
        .severity = TV_WARNING,
        .sure = TV_HIGH,
        .title = N_("The disk, its inodes or the quota are used up"),
        .cause = N_("Writing failed because the file system has no space, or no inodes, left. "
                    "Checkpoints that were being written are cut short."),
        .decided =
            N_("A message says \"No space left on device\" or \"Disk quota exceeded\" about "
               "something that is not in /dev/shm, or df shows a file system 99.5 % full, or "
               "98 % full with less than 100 MB left, or 99 % of its inodes used."),
        .unless = N_("/dev/shm is memory (O28, C05). Read-only images such as snaps are always "
                     "full. \"No space left\" about inotify watches is a limit of the kernel."),
        .source = "https://man7.org/linux/man-pages/man3/errno.3.html",
        .steps = {{.command = "df -h . /tmp ~; df -i . /tmp ~",
                   .why = N_("Space and inodes of the places that are written to.")},
                  {.command = "du -xh --max-depth=2 {mount} | sort -h | tail -20",
                   .why = N_("What fills it: old checkpoints, caches of pip, conda and models, "
                             "container images.")},
                  {.command = "pip cache purge && conda clean --all --yes && docker system df",
                   .why = N_("Caches can be filled again by downloading; look at docker's figures "
                             "before removing images.")},
                  {.why = N_("Keep only the last few checkpoints, and write them to a file system "
                             "with room for two.")}},
        .judge = judge_d17,
    },
};

extern const tv_rule_group tv_rule_group_disk_rules;
const tv_rule_group tv_rule_group_disk_rules = {"disk-space", N_("Disk space"), rules,
                                                sizeof rules / sizeof *rules};
