/* A topology matrix between its reader (topo_log.c) and its facts (topo_facts.c). */
#ifndef TV_TOPO_TABLE_H
#define TV_TOPO_TABLE_H

#include "glean.h"
#include "trace.h"

/* Cards and adapters of one host: the largest real ones have 16 cards and 20 adapters. */
enum { TV_TOPO_MOST = 96 };

typedef struct tv_topo_row {
    tv_str label;
    tv_str cells[TV_TOPO_MOST];
    size_t n;
    tv_str cpu, numa, gpu_numa; /* empty: not there */
    size_t line;
} tv_topo_row;

typedef struct tv_topo_nic {
    tv_str label, name; /* NIC0, mlx5_0 */
} tv_topo_nic;

typedef struct tv_topo {
    size_t line;
    tv_str columns[TV_TOPO_MOST];
    size_t n_columns;
    tv_topo_row rows[TV_TOPO_MOST];
    size_t n_rows;
    tv_topo_nic legend[TV_TOPO_MOST];
    size_t n_legend;
    bool has_cpu, has_numa, has_gpu_numa; /* titles */
    bool headless;                        /* the header was cut off */
    bool tabs;
    bool pcie_only; /* -mp */
    tv_str p2p_of;  /* the letter behind -p2p; empty: none seen */
    size_t indent;
} tv_topo;

bool tv_topo_is_gpu(tv_str word);
/* Adds the sighting. */
void tv_topo_note(tv_reading *r, const tv_topo *t);

#endif
