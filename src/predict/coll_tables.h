/* Measured shares of a link's rate, for collective.c alone. */
#ifndef TV_COLL_TABLES_H
#define TV_COLL_TABLES_H

#include "desc/device.h"
#include "desc/graph.h"

enum { TV_COLL_SIZES = 12, TV_COLL_CARDS = 3 }; /* 2^10 ... 2^32 bytes; 2, 4, 8 cards */

typedef struct tv_coll_table {
    tv_link_kind link;
    tv_collective_kind kind;
    double link_bytes_per_s; /* one way, of the cards it was fitted on */
    const short *log_share;  /* [size][cards] */
    unsigned rows;
} tv_coll_table;

extern const tv_coll_table tv_coll_tables[];
extern const size_t tv_coll_table_count;

#endif
