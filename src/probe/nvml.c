/* Loads the library, asks for every card, and writes what it says as the documents that nvidia-smi
 * would print. Its failures are told in nvidia-smi's words, so that their readers know them. */
#include "host_parts.h"

#include <dlfcn.h>
#include <string.h>

#include "nvml_topo.h"
#include "nvml_xml.h"

tv_nvml_call tv_nvml_find(const tv_nvml *n, const char *names)
{
    tv_str rest = tv_str_of(names);
    while (rest.n) {
        const tv_cut name = tv_str_cut(rest, '|');
        const tv_mark mark = tv_arena_mark(n->a);
        void *symbol = dlsym(n->library, tv_cstr(n->a, name.head));
        tv_arena_rewind(n->a, mark);
        if (symbol)
            return (tv_nvml_call){.symbol = symbol};
        rest = name.tail;
    }
    return (tv_nvml_call){0};
}

const char *tv_nvml_words(int status)
{
    switch (status) {
    case TV_NVML_NOT_SUPPORTED:
    case TV_NVML_MISSING:
        return "N/A";
    case TV_NVML_NO_PERMISSION:
        return "Insufficient Permissions";
    case TV_NVML_DRIVER_NOT_LOADED:
        return "Driver Not Loaded";
    case TV_NVML_GPU_IS_LOST:
        return "GPU is lost";
    case TV_NVML_VERSION_MISMATCH:
        return "Driver/library version mismatch";
    case 8:
        return "Insufficient External Power";
    case 10:
        return "Timeout";
    case 16:
        return "GPU requires reset";
    case 17:
        return "GPU access blocked by the operating system";
    }
    return "Unknown Error";
}

static void close_library(void *library)
{
    (void)dlclose(library);
}

/* ---- the library ---- */

/* Told in the words that the failures' reader knows; a host without any card of NVIDIA's has no
 * failure. */
static void tell_failure(tv_host *h, const tv_nvml *n, int status)
{
    tv_host_number(h, "nvml_error", (uint64_t)status);
    tv_host_fact(h, "nvml", TV_S("error"));
    tv_host_unseen(h, "NVML", TV_S("the library does not start, see nvml_error"));
    if (!h->nvidia_n && !h->driver)
        return;
    tv_buf b = tv_buf_in(h->a);
    if (status == TV_NVML_DRIVER_NOT_LOADED) {
        tv_puts(&b, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
                    "Make sure that the latest NVIDIA driver is installed and running.\n");
    } else {
        tv_puts(&b, "Failed to initialize NVML: ");
        tv_puts(&b, tv_nvml_words(status));
        tv_putc(&b, '\n');
        char version[96] = "";
        const tv_nvml_call call = tv_nvml_find(n, "nvmlSystemGetNVMLVersion");
        if (status == TV_NVML_VERSION_MISMATCH && call.symbol &&
            call.get_text(version, sizeof version - 1) == TV_NVML_OK) {
            /* "12.550.54": nvidia-smi leaves out the first part */
            const tv_cut cut = tv_str_cut(tv_str_of(version), '.');
            tv_puts(&b, "NVML library version: ");
            tv_put(&b, cut.tail);
            tv_putc(&b, '\n');
        }
    }
    tv_host_document(h, "nvidia-smi.txt", tv_buf_str(&b));
}

static void put_versions(const tv_nvml *n, tv_buf *b)
{
    char driver[96] = "";
    int cuda = 0;
    tv_nvml_call call = tv_nvml_find(n, "nvmlSystemGetDriverVersion");
    if (call.symbol && call.get_text(driver, sizeof driver - 1) == TV_NVML_OK)
        tv_nvml_element(b, "driver_version", tv_str_of(driver));
    call = tv_nvml_find(n, "nvmlSystemGetCudaDriverVersion_v2|nvmlSystemGetCudaDriverVersion");
    if (call.symbol && call.get_number(&cuda) == TV_NVML_OK && cuda > 0) {
        tv_buf text = tv_buf_in(n->a); /* 12040 is 12.4 */
        tv_put_u64(&text, (uint64_t)(cuda / 1000));
        tv_putc(&text, '.');
        tv_put_u64(&text, (uint64_t)(cuda % 1000 / 10));
        tv_nvml_element(b, "cuda_version", tv_buf_str(&text));
    }
}

/* ---- the cards ---- */

static void tell_lost(const tv_host *h, tv_buf *failures, unsigned i, tv_str bus, int status)
{
    /* NVML counts in the order of the bus: where it has as many cards, the place is known */
    if (!bus.n && i < h->gpu_bus.n && h->all_have_handles)
        bus = h->gpu_bus.v[i];
    tv_puts(failures, "Unable to determine the device handle for GPU");
    if (bus.n) {
        tv_putc(failures, ' ');
        tv_put(failures, bus);
    } else {
        tv_puts(failures, " number ");
        tv_put_u64(failures, i);
    }
    tv_puts(failures, ": ");
    tv_puts(failures, tv_nvml_words(status));
    tv_puts(failures,
            status == TV_NVML_GPU_IS_LOST ? ".  Reboot the system to recover this GPU\n" : "\n");
}

static void put_cards(tv_host *h, const tv_nvml *n, tv_nvml_gpus *gpus, tv_buf *b)
{
    tv_buf failures = tv_buf_in(h->a);
    const tv_nvml_call at =
        tv_nvml_find(n, "nvmlDeviceGetHandleByIndex_v2|nvmlDeviceGetHandleByIndex");
    for (unsigned i = 0; i < gpus->n; i++) {
        const int status = at.symbol ? at.handle_at(i, &gpus->v[i]) : TV_NVML_MISSING;
        bool lost = false;
        if (status) {
            gpus->v[i] = NULL;
            tell_lost(h, &failures, i, (tv_str){0}, status);
            continue;
        }
        tv_nvml_gpu(n, gpus->v[i], b, &lost);
        if (lost)
            tell_lost(h, &failures, i, tv_nvml_bus(n, gpus->v[i]), TV_NVML_GPU_IS_LOST);
    }
    tv_host_document(h, "nvidia-smi.txt", tv_buf_str(&failures));
}

static void see_cards(tv_host *h, const tv_nvml *n)
{
    tv_nvml_gpus *gpus = tv_new(h->a, tv_nvml_gpus, 1);
    const tv_nvml_call call = tv_nvml_find(n, "nvmlDeviceGetCount_v2|nvmlDeviceGetCount");
    const int status = call.symbol ? call.get_count(&gpus->n) : TV_NVML_MISSING;
    if (status) {
        tv_host_unseen(h, "number of GPUs", tv_str_of(tv_nvml_words(status)));
        return;
    }
    tv_host_number(h, "nvml_gpus", gpus->n);
    h->all_have_handles = gpus->n == h->nvidia_n;
    if (gpus->n > TV_NVML_MOST_GPUS)
        gpus->n = TV_NVML_MOST_GPUS;
    tv_buf b = tv_buf_in(h->a), topo = tv_buf_in(h->a), links = tv_buf_in(h->a);
    tv_puts(&b, "<?xml version=\"1.0\" ?>\n<nvidia_smi_log>\n");
    put_versions(n, &b);
    tv_buf count = tv_buf_in(h->a);
    tv_put_u64(&count, gpus->n);
    tv_nvml_element(&b, "attached_gpus", tv_buf_str(&count));
    put_cards(h, n, gpus, &b);
    tv_puts(&b, "</nvidia_smi_log>\n");
    tv_nvml_put_topo(n, gpus, &topo);
    tv_nvml_put_links(n, gpus, &links);
    if (gpus->n)
        tv_host_document(h, "nvml.xml", tv_buf_str(&b));
    tv_host_document(h, "topo.txt", tv_buf_str(&topo));
    tv_host_document(h, "nvlink.txt", tv_buf_str(&links));
}

void tv_host_nvml(tv_host *h)
{
    const tv_str file = h->place->nvml;
    const char *path = file.n ? tv_cstr(h->a, file) : "libnvidia-ml.so.1";
    tv_nvml n = {dlopen(path, RTLD_NOW | RTLD_LOCAL), h->a};
    if (!n.library) {
        h->smi_wanted = true;
        const tv_str why = tv_str_copy(h->a, tv_str_of(dlerror()));
        const bool absent = tv_str_has(why, TV_S("No such file"));
        tv_host_fact(h, "nvml", TV_S("no library"));
        tv_host_unseen(h, "NVML", absent ? TV_S("libnvidia-ml.so.1 is not found") : why);
        return;
    }
    tv_defer(h->a, close_library, n.library);
    const tv_nvml_call init = tv_nvml_find(&n, "nvmlInit_v2|nvmlInit");
    const int status = init.symbol ? init.none() : TV_NVML_MISSING;
    if (status) {
        tell_failure(h, &n, status);
        return;
    }
    tv_host_fact(h, "nvml", TV_S("loaded"));
    see_cards(h, &n);
    const tv_nvml_call shut = tv_nvml_find(&n, "nvmlShutdown");
    if (shut.symbol)
        (void)shut.none();
}
