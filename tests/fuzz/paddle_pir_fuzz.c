/* Paddle 3 programs (PIR JSON): any bytes end in a program whose every index is inside its lists,
 * or in an error with its place. */
#include "programs.h"

#include "read/paddle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tv_arena *a = fuzz_arena();
    jmp_buf landing;
    if (setjmp(landing) == 0) {
        tv_arena_guard(a, &landing);
        fuzz_read_program(a, tv_read_paddle_model, data, size);
    }
    tv_arena_close(a);
    return 0;
}
