/* Hands what the probe saw to the readers, and writes or reads records of it. */
#include "doctor_host.h"

#include <stddef.h>

#include "probe/bundle.h"
#include "probe/probe.h"
#include "trace/trace.h"

const tv_option tv_doctor_host_rows[TV_DOCTOR_HOST_ROWS] = {
    {.name = "host",
     .kind = TV_OPTION_FLAG,
     .offset = offsetof(tv_doctor_host, host),
     .help = N_("this host too, beside the files that are named")},
    {.name = "record",
     .kind = TV_OPTION_TEXT,
     .offset = offsetof(tv_doctor_host, record),
     .value = "DIR",
     .help = N_("write everything that was seen of this host to a new folder, without names, "
                "addresses and serial numbers")},
    {.name = "replay",
     .kind = TV_OPTION_TEXT,
     .offset = offsetof(tv_doctor_host, replay),
     .value = "DIR",
     .help = N_("a recorded folder in the place of this host")},
    {.name = "nvml",
     .kind = TV_OPTION_TEXT,
     .offset = offsetof(tv_doctor_host, nvml),
     .value = "FILE",
     .help = N_("the library that reports NVIDIA's GPUs"),
     .otherwise = N_("libnvidia-ml.so.1 of the system")},
};

static const tv_err *read_documents(tv_request *r, const tv_documents *all, tv_scene *scene)
{
    for (size_t i = 0; i < all->n; i++)
        TV_TRY(tv_trace_document(r->a, all->v[i].name, all->v[i].text, scene));
    scene->live = true;
    return NULL;
}

const tv_err *tv_doctor_host_read(tv_request *r, const tv_doctor_host *o, size_t n_files,
                                  tv_scene *scene)
{
    tv_documents all = {0};
    if (o->replay.n) {
        TV_TRY(tv_bundle_read(r->a, o->replay, &all));
        return read_documents(r, &all, scene);
    }
    if (n_files && !o->host && !o->record.n)
        return NULL;
    const tv_host_place place = {.nvml = o->nvml, .path = r->path};
    tv_probe_host(r, &place, &all);
    if (o->record.n)
        TV_TRY(tv_bundle_write(r, o->record, &all));
    return read_documents(r, &all, scene);
}
