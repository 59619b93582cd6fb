/* Reads shapes, one a line, and prints what the predictor says an operator takes there, so that
 * op_accuracy.py judges the code itself and not a copy of it.
 * line: table width cc arch peak_flops bytes_per_s board_w flop bytes x y z   ("-": no arch) */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "predict/efficiency.h"

int main(void)
{
    int table, width, cc;
    char arch[64];
    double peak, rate, watts, flop, bytes, shape[3];
    while (scanf("%d %d %d %63s %lf %lf %lf %lf %lf %lf %lf %lf", &table, &width, &cc, arch, &peak,
                 &rate, &watts, &flop, &bytes, &shape[0], &shape[1], &shape[2]) == 12) {
        tv_device d = {.compute_capability = cc};
        if (strcmp(arch, "-") != 0)
            d.arch = (tv_str){arch, strlen(arch)};
        if (watts > 0)
            d.board_w = (tv_fact){.v = watts, .origin = TV_CATALOG};
        const tv_util u = tv_efficiency((tv_table_kind)table, (tv_width)width, &d, shape);
        const double fed = tv_efficiency_sustained(&d, (tv_width)width, peak);
        const double ideal = fmax(flop / (peak * fed), bytes / rate);
        printf("%.9g %d %.4g\n", u.floor_s + ideal / u.u, (int)u.tier, u.spread);
    }
    return 0;
}
