/* Accelerators, network adapters and the bridges above them, from /sys/bus/pci. Link, NUMA node
 * and driver stand in files of text; access control (ACS) only in the configuration space, beyond
 * the first 64 bytes, which root alone may read. */
#include "host_parts.h"

#include "base/file.h"

enum { most_devices = 4096, config_bytes = 4096, first_extended = 0x100, acs_id = 0x000d };

typedef struct device {
    tv_str folder; /* "/sys/bus/pci/devices/0000:41:00.0" */
    tv_str bus;
    unsigned class;
    unsigned vendor;
    unsigned id;
} device;

static unsigned hex_of(const tv_host *h, tv_str folder, const char *name)
{
    tv_str text;
    if (!tv_host_read(h, tv_cstr(h->a, tv_path_join(h->a, folder, tv_str_of(name))), 32, &text,
                      NULL))
        return 0;
    unsigned v = 0;
    text = tv_str_drop(tv_str_trim(text), 2);
    for (size_t i = 0; i < text.n && i < 6; i++) {
        const char c = text.p[i];
        v = v << 4 | (unsigned)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
    }
    return v;
}

static bool is_gpu(const device *d)
{
    /* 0x03: display controllers, with 0x0302 the "3D controller" of data-centre cards; 0x12:
     * processing accelerators (PCI Code and ID Assignment Specification) */
    return d->class >> 16 == 0x03 || d->class >> 16 == 0x12;
}

static bool is_network(const device *d)
{
    return d->class >> 16 == 0x02;
}

static bool is_bridge(const device *d)
{
    return d->class >> 8 == 0x0604;
}

static unsigned le16(tv_str s, size_t at)
{
    return (unsigned)(unsigned char)s.p[at] | (unsigned)(unsigned char)s.p[at + 1] << 8;
}

/* The control register of the ACS capability: PCI Express Base Specification, 7.7.8. */
static bool acs_control(tv_str config, unsigned *control)
{
    size_t at = first_extended;
    for (unsigned hops = 0; at + 8 <= config.n && hops < 64; hops++) {
        if (le16(config, at) == acs_id) {
            *control = le16(config, at + 6);
            return true;
        }
        const size_t next = le16(config, at + 2) >> 4;
        if (next < first_extended)
            return false;
        at = next;
    }
    return false;
}

/* ---- as lspci -vv prints it ---- */

static void put_hex(tv_buf *b, unsigned v, unsigned digits)
{
    static const char names[] = "0123456789abcdef";
    while (digits--)
        tv_putc(b, names[v >> 4 * digits & 15]);
}

static tv_str value_of(const tv_host *h, const device *d, const char *name)
{
    tv_str text;
    const char *path = tv_cstr(h->a, tv_path_join(h->a, d->folder, tv_str_of(name)));
    return tv_host_read(h, path, 128, &text, NULL) ? tv_str_trim(tv_str_cut(text, '\n').head)
                                                   : (tv_str){0};
}

static const char *class_name(unsigned class)
{
    switch (class >> 8) {
    case 0x0200:
        return "Ethernet controller";
    case 0x0207:
        return "Infiniband controller";
    case 0x0300:
        return "VGA compatible controller";
    case 0x0302:
        return "3D controller";
    case 0x0380:
        return "Display controller";
    case 0x0604:
        return "PCI bridge";
    case 0x0680:
        return "Bridge";
    case 0x1200:
        return "Processing accelerators";
    }
    return "Network controller";
}

static const char *vendor_name(unsigned vendor)
{
    switch (vendor) {
    case 0x10de:
        return "NVIDIA Corporation";
    case 0x1002:
        return "Advanced Micro Devices, Inc. [AMD/ATI]";
    case 0x15b3:
        return "Mellanox Technologies";
    case 0x8086:
        return "Intel Corporation";
    }
    return "Vendor";
}

/* "16.0 GT/s PCIe" -> "16GT/s" */
static void put_speed(tv_buf *b, tv_str speed)
{
    tv_str number = tv_str_cut(speed, ' ').head;
    if (tv_str_ends(number, TV_S(".0")))
        number.n -= 2;
    tv_put(b, number);
    tv_puts(b, "GT/s");
}

static void put_link(tv_buf *b, const char *title, tv_str speed, tv_str width)
{
    const tv_u64_read lanes = tv_str_u64(width);
    if (!lanes.ok || !lanes.v || lanes.v > 32 || !tv_str_has(speed, TV_S("GT/s")))
        return; /* "Unknown", 255: no link */
    tv_puts(b, title);
    put_speed(b, speed);
    tv_puts(b, ", Width x");
    tv_put_u64(b, lanes.v);
    tv_putc(b, '\n');
}

static void put_name(tv_buf *b, const device *d)
{
    tv_put(b, d->bus);
    tv_putc(b, ' ');
    tv_puts(b, class_name(d->class));
    tv_puts(b, " [");
    put_hex(b, d->class >> 8, 4);
    tv_puts(b, "]: ");
    tv_puts(b, vendor_name(d->vendor));
    tv_puts(b, " Device [");
    put_hex(b, d->vendor, 4);
    tv_putc(b, ':');
    put_hex(b, d->id, 4);
    tv_puts(b, "]\n");
}

static void put_text(tv_buf *b, const char *title, tv_str value)
{
    if (!value.n)
        return;
    tv_puts(b, title);
    tv_put(b, value);
    tv_putc(b, '\n');
}

static tv_str driver_of(const tv_host *h, const device *d)
{
    return tv_host_link(h, tv_cstr(h->a, tv_path_join(h->a, d->folder, TV_S("driver"))));
}

static void put_device(const tv_host *h, const device *d, tv_buf *b)
{
    put_name(b, d);
    const tv_str node = value_of(h, d, "numa_node");
    if (!tv_str_starts(node, TV_S("-")))
        put_text(b, "\tNUMA node: ", node);
    put_text(b, "\tIOMMU group: ",
             tv_host_link(h, tv_cstr(h->a, tv_path_join(h->a, d->folder, TV_S("iommu_group")))));
    put_link(b, "\t\tLnkCap:\tPort #0, Speed ", value_of(h, d, "max_link_speed"),
             value_of(h, d, "max_link_width"));
    put_link(b, "\t\tLnkSta:\tSpeed ", value_of(h, d, "current_link_speed"),
             value_of(h, d, "current_link_width"));
    put_text(b, "\tKernel driver in use: ", driver_of(h, d));
    tv_putc(b, '\n');
}

/* Bits 0 to 6 of the register. */
static void put_acs(const device *d, unsigned control, tv_buf *b)
{
    static const char *const names[] = {"SrcValid",    "TransBlk",   "ReqRedir",   "CmpltRedir",
                                        "UpstreamFwd", "EgressCtrl", "DirectTrans"};
    put_name(b, d);
    tv_puts(b, "\t\tACSCtl:\t");
    for (unsigned k = 0; k < 7; k++) {
        tv_puts(b, k ? " " : "");
        tv_puts(b, names[k]);
        tv_putc(b, control >> k & 1 ? '+' : '-');
    }
    tv_puts(b, "\n\n");
}

/* Yields false where the configuration is cut short: no right to read it. */
static bool see_bridge(tv_host *h, const device *d, tv_buf *b)
{
    tv_str config;
    unsigned control = 0;
    const char *path = tv_cstr(h->a, tv_path_join(h->a, d->folder, TV_S("config")));
    if (!tv_host_read(h, path, config_bytes, &config, NULL) || config.n <= first_extended)
        return false;
    if (acs_control(config, &control))
        put_acs(d, control, b);
    return true;
}

/* ---- the bus ---- */

static void count_device(tv_host *h, const device *d)
{
    h->nvidia_n += is_gpu(d) && d->vendor == 0x10de;
    if (is_gpu(d) && d->vendor == 0x10de)
        *tv_push(h->a, &h->gpu_bus) = d->bus;
    h->amd_n += is_gpu(d) && d->vendor == 0x1002;
    h->switch_n += d->class >> 8 == 0x0680 && d->vendor == 0x10de;
    if (is_gpu(d) && (d->vendor == 0x10de || d->vendor == 0x1002)) {
        const tv_str driver = driver_of(h, d);
        h->without_driver_n += driver.n == 0;
        if (driver.n)
            h->gpu_driver = driver;
    }
}

static device device_at(const tv_host *h, tv_str bus)
{
    device d = {.folder = tv_path_join(h->a, TV_S("/sys/bus/pci/devices"), bus), .bus = bus};
    d.class = hex_of(h, d.folder, "class");
    d.vendor = hex_of(h, d.folder, "vendor");
    d.id = hex_of(h, d.folder, "device");
    return d;
}

void tv_host_pci(tv_host *h)
{
    tv_dir dir = {0};
    const tv_err *e = tv_dir_list(h->a, tv_host_path(h, "/sys/bus/pci/devices"), &dir);
    if (e) {
        tv_host_unseen(h, "PCI devices", TV_S("/sys/bus/pci/devices is not there"));
        return;
    }
    bool hidden = false;
    tv_buf b = tv_buf_in(h->a);
    for (size_t i = 0; i < dir.n && i < most_devices; i++) {
        const device d = device_at(h, dir.v[i].name);
        count_device(h, &d);
        if (is_gpu(&d) || is_network(&d))
            put_device(h, &d, &b);
        else if (is_bridge(&d))
            hidden = !see_bridge(h, &d, &b) || hidden;
    }
    tv_host_document(h, "lspci.txt", tv_buf_str(&b));
    tv_host_number(h, "pci_devices", dir.n);
    tv_host_number(h, "pci_nvidia_gpus", h->nvidia_n);
    tv_host_number(h, "pci_amd_gpus", h->amd_n);
    tv_host_number(h, "pci_gpus_without_driver", h->without_driver_n);
    tv_host_number(h, "nvswitches", h->switch_n);
    if (h->gpu_driver.n)
        tv_host_fact(h, "pci_gpu_driver", h->gpu_driver);
    if (hidden && h->nvidia_n + h->amd_n > 1)
        tv_host_unseen(h, "PCIe access control (ACS)",
                       TV_S("the bridges' configuration can only be read by root"));
}
