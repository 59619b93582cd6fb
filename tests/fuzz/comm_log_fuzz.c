/* Topologies, logs of NCCL and watchdogs, tables of bandwidth, dumps of the flight recorder: any
 * bytes end in notes that can be written, or in an error with words. */
#include "documents.h"

static void check(tv_arena *a, tv_str text)
{
    tv_scene scene = {0};
    fuzz_check(a, tv_trace_document(a, TV_S("nccl_trace_rank_3"), text, &scene));
    fuzz_sightings(a, &scene);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_guarded((tv_str){(const char *)data, size}, check);
}
