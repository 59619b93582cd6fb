/* The data a job reads: what a scan saw or the user stated. */
#ifndef TV_DATASET_H
#define TV_DATASET_H

#include "fact.h"

typedef enum tv_codec_kind {
    TV_CODEC_OTHER,
    TV_CODEC_JPEG,
    TV_CODEC_PNG,
    TV_CODEC_WEBP,
    TV_CODEC_TIFF,
    TV_CODEC_VIDEO,
    TV_CODEC_AUDIO,
    TV_CODEC_TEXT,   /* json, txt, csv */
    TV_CODEC_ARRAY,  /* npy, npz, bin, pt */
    TV_CODEC_RECORD, /* tfrecord, webdataset tar, lmdb, parquet, arrow: many samples a file */
    TV_CODEC_DICOM,
    TV_CODEC_COUNT,
} tv_codec_kind;

typedef struct tv_dataset {
    tv_str path;
    bool scanned;
    bool sampled; /* the scan stopped early: counts are extrapolated */
    double files;
    double total_bytes;
    double samples;                      /* 0 unknown */
    double sample_bytes;                 /* mean on disk; 0 unknown */
    double size_p10, size_p50, size_p90; /* bytes */
    double small_files;                  /* share of files under 128 KiB */
    double by_codec_files[TV_CODEC_COUNT];
    double by_codec_bytes[TV_CODEC_COUNT];
    tv_codec_kind main_codec;
    double scan_s;
} tv_dataset;

#endif
