/* The data side of a step: disk, decoding, the copy to the card. docs/model.md, "data side". */
#include "lanes.h"

#include <math.h>

/* One worker's time per sample: fixed part and per stored byte. Assumed, from what loaders reach
 * (about 100-150 ImageNet JPEGs of 110 kB a second and core with torchvision's transforms); PNG and
 * TIFF inflate more slowly per pixel, arrays are copied. */
typedef struct decode_cost {
    double fixed_s, per_byte_s;
} decode_cost;

static const decode_cost decode[TV_CODEC_COUNT] = {
    [TV_CODEC_OTHER] = {0.2e-3, 1e-9},   [TV_CODEC_JPEG] = {2.0e-3, 5.0e-8},
    [TV_CODEC_PNG] = {2.0e-3, 4.0e-8},   [TV_CODEC_WEBP] = {2.0e-3, 1.2e-7},
    [TV_CODEC_TIFF] = {1.0e-3, 1.5e-8},  [TV_CODEC_VIDEO] = {30e-3, 2.0e-8},
    [TV_CODEC_AUDIO] = {1.0e-3, 1.0e-8}, [TV_CODEC_TEXT] = {0.1e-3, 2.0e-8},
    [TV_CODEC_ARRAY] = {0.1e-3, 0.5e-9}, [TV_CODEC_RECORD] = {0.1e-3, 5.0e-8},
    [TV_CODEC_DICOM] = {3.0e-3, 1.0e-8},
};

static double sample_bytes(const tv_case *c)
{
    if (c->job.sample_bytes > 0)
        return c->job.sample_bytes;
    return c->dataset ? c->dataset->sample_bytes : 0;
}

/* Share of reads that the page cache serves after the first epoch: memory left for it over the
 * size of the data. */
static double cached_share(const tv_case *c)
{
    const double total = c->dataset ? c->dataset->total_bytes : 0;
    const double ram = c->machine->ram_bytes;
    if (!(total > 0) || !(ram > 0) || c->job.epochs < 2)
        return 0;
    return fmin(1, 0.7 * ram / total);
}

static double storage_s(const tv_case *c, double samples)
{
    const tv_disk *disk = c->machine->disk;
    const double bytes = sample_bytes(c);
    if (!disk || !tv_known(disk->read_bytes_per_s) || !(bytes > 0))
        return 0;
    const double gpus = c->machine->gpus > 1 ? c->machine->gpus : 1;
    double each_s = bytes / disk->read_bytes_per_s.v;
    /* One file a sample: an operation each, and its opening, which workers do side by side. */
    const bool files = !c->dataset || c->dataset->main_codec != TV_CODEC_RECORD;
    if (files && tv_known(disk->read_iops) && disk->read_iops.v > 0)
        each_s = fmax(each_s, 1 / disk->read_iops.v);
    if (files && tv_known(disk->open_s))
        each_s = fmax(each_s, disk->open_s.v / fmax(1, c->job.loader_workers));
    return samples * each_s * gpus * (1 - cached_share(c));
}

static double decode_s(const tv_case *c, double samples)
{
    const double bytes = sample_bytes(c);
    if (!c->dataset || !c->dataset->scanned || !(bytes > 0))
        return 0;
    const decode_cost cost = decode[c->dataset->main_codec];
    double workers = fmax(1, c->job.loader_workers);
    if (c->machine->cpu_cores > 0) {
        const double cores = c->machine->cpu_cores / fmax(1, c->machine->gpus);
        workers = fmin(workers, fmax(1, cores));
    }
    return samples * (cost.fixed_s + cost.per_byte_s * bytes) / workers;
}

/* What is copied: the decoded sample, fp32 pixels or 8-byte tokens with mask and labels. */
static double host_bytes(const tv_case *c)
{
    const tv_model *m = c->model;
    if (c->job.image_h && m->image_c)
        return 4.0 * c->job.image_h * c->job.image_w * m->image_c;
    return 3 * 8.0 * c->graph->tokens_per_sample;
}

/* Pinned copies reach 12.35 GB/s on generation 3 (V100 PCIe), some 24 on 4, 50 on 5. */
static double copy_bytes_per_s(const tv_device *d)
{
    if (!d || !tv_known(d->pcie_gen) || !tv_known(d->pcie_lanes))
        return 0;
    return 12.35e9 * pow(2, d->pcie_gen.v - 3) * d->pcie_lanes.v / 16;
}

tv_data_time tv_data_side(const tv_case *c, double samples_per_step)
{
    tv_data_time t = {
        .storage_s = storage_s(c, samples_per_step),
        .decode_s = decode_s(c, samples_per_step),
        .host_bytes = host_bytes(c) * samples_per_step,
    };
    const double rate = copy_bytes_per_s(c->machine->device);
    t.copy_s = rate > 0 ? t.host_bytes / rate : 0;
    t.slowest_s = fmax(t.storage_s, fmax(t.decode_s, t.copy_s));
    return t;
}
