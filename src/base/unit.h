/* The only place that knows factors between units. Inside everything is SI base units. */
#ifndef TV_UNIT_H
#define TV_UNIT_H

#include "buf.h"

#define TV_KIB 1024.0
#define TV_MIB 1048576.0
#define TV_GIB 1073741824.0
#define TV_GB 1e9

/* "7e9", "7B", "110M", "350k": a count (decimal factors). */
tv_double_read tv_read_count(tv_str s);
/* "3.2GB" is 3.2e9, "80GiB" is 80·2^30, "512" is bytes; case of the letters does not matter. */
tv_double_read tv_read_bytes(tv_str s);
/* "90", "90s", "3ms", "2h", "5min": seconds. */
tv_double_read tv_read_seconds(tv_str s);

void tv_put_count(tv_buf *b, double v);   /* 671,026,419,200 */
void tv_put_params(tv_buf *b, double v);  /* 671.0 B */
void tv_put_memory(tv_buf *b, double v);  /* 10.43 GiB */
void tv_put_disk(tv_buf *b, double v);    /* 11.2 GB */
void tv_put_seconds(tv_buf *b, double v); /* 12.3 ms, 4.2 h */
void tv_put_percent(tv_buf *b, double v); /* 0.376 -> 37.6 % */
void tv_put_flops(tv_buf *b, double v);   /* 312 TFLOP/s */
/* For columns whose head names the unit. */
void tv_put_tera(tv_buf *b, double v); /* 165.2e12 -> 165.2; 1979e12 -> 1,979; 0.17e12 -> 0.17 */
void tv_put_giga(tv_buf *b, double v); /* 1008e9 -> 1,008; 31.5e9 -> 31.5 */

#endif
