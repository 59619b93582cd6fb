/* The three grades of the one-page report. Thresholds: R040 and R041 for density (share of GEMM,
 * convolution and attention in kernel time), R118 for memory; IO by the share of the step that
 * waits for data. */
#include "predict.h"

static tv_grade grade_vram(tv_arena *a, const tv_memory *m, tv_text *text)
{
    const double share = m->capacity_bytes > 0 ? m->total_bytes / m->capacity_bytes : 0;
    const tv_arg used = tv_arg_num("used", TV_ARG_RATIO, share);
    switch (m->verdict) {
    case TV_VERDICT_UNKNOWN:
        *text = TV_TEXT0("vram.unknown", N_("the card's memory is not known"));
        return TV_GRADE_UNKNOWN;
    case TV_FITS:
        if (share <= 0.85) {
            *text = TV_TEXT(a, "vram.room", N_("{used} of the card's memory: room to spare"), used);
            return TV_GRADE_GOOD;
        }
        *text = TV_TEXT(a, "vram.full",
                        N_("{used} of the card's memory: it fits, with little room"), used);
        return TV_GRADE_FAIR;
    case TV_TIGHT:
        *text = TV_TEXT(a, "vram.tight",
                        N_("{used} of the card's memory: within the error of the "
                           "prediction"),
                        used);
        return TV_GRADE_FAIR;
    case TV_NO_FIT:
        break;
    }
    *text = TV_TEXT(a, "vram.no", N_("{used} of the card's memory: it does not fit"), used);
    return TV_GRADE_POOR;
}

static tv_grade grade_density(tv_arena *a, const tv_time *t, tv_text *text)
{
    if (!(t->step_s.v > 0)) {
        *text = TV_TEXT0("density.unknown", N_("the card's speed is not known well enough"));
        return TV_GRADE_UNKNOWN;
    }
    const tv_arg share = tv_arg_num("share", TV_ARG_RATIO, t->gemm_share);
    const tv_grade grade = tv_grade_of_gemm_share(t->gemm_share);
    if (grade == TV_GRADE_GOOD) {
        *text = TV_TEXT(a, "density.high",
                        N_("{share} of kernel time is matrix work: the newest "
                           "tensor cores pay"),
                        share);
        return grade;
    }
    if (grade == TV_GRADE_FAIR) {
        *text = TV_TEXT(a, "density.mixed",
                        N_("{share} of kernel time is matrix work: mixed; memory "
                           "bandwidth counts as much"),
                        share);
        return TV_GRADE_FAIR;
    }
    *text = TV_TEXT(a, "density.low",
                    N_("{share} of kernel time is matrix work: a consumer card "
                       "gives more for the money"),
                    share);
    return TV_GRADE_POOR;
}

static tv_grade grade_io(tv_arena *a, const tv_case *c, const tv_time *t, tv_text *text)
{
    if (!c->dataset) {
        *text =
            TV_TEXT0("io.unknown", N_("nothing is known of the data: give --data DIR and --disk"));
        return TV_GRADE_UNKNOWN;
    }
    if (!(t->step_s.v > 0) || !(t->storage_s + t->decode_s > 0)) {
        *text = TV_TEXT0("io.too-little", N_("too little is known of the data: give --disk, or "
                                             "--samples and --sample-bytes"));
        return TV_GRADE_UNKNOWN;
    }
    const double share = t->data_exposed_s / t->step_s.v;
    const tv_arg waits = tv_arg_num("share", TV_ARG_RATIO, share);
    if (share < 0.05) {
        *text = TV_TEXT0("io.good", N_("the loader keeps up with the card"));
        return TV_GRADE_GOOD;
    }
    *text = TV_TEXT(a, "io.waits", N_("the card waits for data {share} of the step"), waits);
    return share < 0.2 ? TV_GRADE_FAIR : TV_GRADE_POOR;
}

void tv_predict_grades(tv_arena *a, const tv_case *c, const tv_memory *memory, const tv_time *time,
                       tv_grades *out)
{
    *out = (tv_grades){.gemm_share = time->gemm_share};
    out->vram = grade_vram(a, memory, &out->vram_text);
    out->density = grade_density(a, time, &out->density_text);
    out->io = grade_io(a, c, time, &out->io_text);
}
