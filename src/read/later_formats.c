/* Formats that are recognised, so that the answer names them, but not read. A row moves out of
 * here when its reader comes. */
#include "gather.h"

static bool ends_with_any(tv_str name, const char *const *endings)
{
    for (; *endings; endings++)
        if (tv_str_ends(name, tv_str_of(*endings)))
            return true;
    return false;
}

static bool is_other(tv_str name, tv_bytes_view bytes)
{
    (void)bytes;
    return ends_with_any(name, (const char *const[]){".h5", ".keras", ".tflite", ".msgpack", ".npz",
                                                     ".mlmodel", ".engine", ".plan", ".mar", NULL});
}

#define FROM_CONFIG N_("Name the model's config.json, or give the size with --params.")

const tv_format tv_formats_later[] = {
    {
        .name = "other",
        .summary = N_("TensorFlow, Core ML, TensorRT, NumPy or archive"),
        .probe = is_other,
        .instead = FROM_CONFIG,
    },
};

const size_t tv_n_formats_later = sizeof tv_formats_later / sizeof *tv_formats_later;
