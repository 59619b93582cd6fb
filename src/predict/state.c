/* Optimizers: bytes of state per trainable parameter, and the temporaries of their step.
 * docs/model.md, "optimizer states" and "optimizer transients". */
#include "predict.h"

#include "state.h"

double tv_predict_state_bytes(tv_optimizer optimizer, tv_dtype state, bool master)
{
    const double e = tv_dtype_bytes(state);
    const double copy = master ? 4 : 0;
    switch (optimizer) {
    case TV_OPT_DEFAULT:
    case TV_OPT_ADAMW:
    case TV_OPT_ADAM:
        return 2 * e + copy;
    case TV_OPT_AMSGRAD:
        return 3 * e + copy;
    case TV_OPT_SGD:
        return copy;
    case TV_OPT_MOMENTUM:
    case TV_OPT_LION:
    case TV_OPT_MUON:
        return e + copy;
    case TV_OPT_ADAFACTOR:
        return copy; /* rows and columns are added per matrix */
    case TV_OPT_ADAMW8BIT:
        return 2 + 8.0 / 256 + copy; /* an fp32 scale per block of 256, twice */
    case TV_OPT_LION8BIT:
        return 1 + 4.0 / 256 + copy;
    case TV_OPT_COUNT:
        break;
    }
    return 2 * e + copy;
}

/* bitsandbytes keeps tensors under 4096 elements in fp32; Muon serves matrices of the body only,
 * the rest stays on Adam. */
double tv_state_of_weight(tv_optimizer optimizer, const tv_policy *p, const tv_weight *w)
{
    const double each = w->count > 0 ? w->elements / w->count : w->elements;
    const bool master = p->master && w->dtype != TV_F32;
    const tv_dtype state = w->dtype == TV_F32 ? TV_F32 : p->state;
    if (optimizer == TV_OPT_ADAMW8BIT && each < 4096)
        return w->elements * 8;
    if (optimizer == TV_OPT_LION8BIT && each < 4096)
        return w->elements * 4;
    const bool matrix = w->role == TV_WEIGHT_MATRIX || w->role == TV_WEIGHT_EXPERT;
    if (optimizer == TV_OPT_MUON && !matrix)
        optimizer = TV_OPT_ADAMW;
    double bytes = w->elements * tv_predict_state_bytes(optimizer, state, master);
    if (optimizer == TV_OPT_ADAFACTOR)
        bytes += w->cols > 1 ? 4 * w->count * (w->rows + w->cols) : 4 * w->elements;
    return bytes;
}

/* foreach works on lists: one list of the parameters' size (square roots of the second moment);
 * a loop holds three tensors of one parameter; fused kernels hold nothing. */
tv_step_temp tv_state_step_temp(tv_optimizer optimizer, tv_optimizer_form form)
{
    const bool adam = optimizer == TV_OPT_DEFAULT || optimizer == TV_OPT_ADAMW ||
                      optimizer == TV_OPT_ADAM || optimizer == TV_OPT_AMSGRAD;
    const bool eightbit = optimizer == TV_OPT_ADAMW8BIT || optimizer == TV_OPT_LION8BIT;
    switch (form) {
    case TV_FORM_DEFAULT:
    case TV_FORM_FOREACH:
        if (adam)
            return (tv_step_temp){.lists = 1};
        return (tv_step_temp){.largest = eightbit || optimizer == TV_OPT_SGD ? 0 : 1};
    case TV_FORM_FUSED:
        return (tv_step_temp){0};
    case TV_FORM_LOOP:
        return (tv_step_temp){.largest = adam ? 3 : 1};
    }
    return (tv_step_temp){0};
}
