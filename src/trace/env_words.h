/* Words that reports about environments share. Views only, nothing fails. */
#ifndef TV_ENV_WORDS_H
#define TV_ENV_WORDS_H

#include "glean.h"
#include "trace.h"

/* "Could not collect", "None", "N/A", "not installed", "": asked and not known. */
bool tv_env_is_unknown(tv_str value);
/* Yes, True, 1 / No, False, 0; said is false for anything else. */
typedef struct tv_env_yes {
    bool said;
    bool yes;
} tv_env_yes;
tv_env_yes tv_env_truth(tv_str value);
/* The version at the front: digits and points, then what pip allows ("2.1.0a0+git.f1"). */
tv_str tv_env_version(tv_str value);
/* The CUDA that a package's local version names: "2.1.0+cu118" -> "11.8", "2.6.2.post112" ->
 * "11.2", "py3.10_cuda11.7_cudnn8.5" -> "11.7". Empty: it names none. */
tv_str tv_env_cuda_of(tv_arena *a, tv_str version);
/* "2.1.0+cpu", "py3.9_cpu_0", "cpu_py310h...": built without a GPU. */
bool tv_env_is_cpu_build(tv_str version);
/* True where s begins with the phrase, letters without case; *value is what follows it behind
 * blanks and one ':' or '='. colon: one of the two stands there. */
bool tv_env_entry(tv_str s, const char *phrase, tv_str *value, bool *colon);
/* The line without bullets, quotes and the code marks of a page. */
tv_str tv_env_bare(tv_str line);
/* Without one pair of quotes around it. */
tv_str tv_unquoted(tv_str s);

#endif
