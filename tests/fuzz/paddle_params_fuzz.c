/* Paddle parameters without their program: any bytes end in tensors that lie inside the file, or in
 * an error with its place. */
#include "reading.h"

#include "read/paddle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tv_arena *a = fuzz_arena();
    jmp_buf landing;
    if (setjmp(landing) == 0) {
        tv_arena_guard(a, &landing);
        fuzz_read(a, tv_read_paddle_parameters, data, size);
    }
    tv_arena_close(a);
    return 0;
}
