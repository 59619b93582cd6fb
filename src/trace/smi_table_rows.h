/* The rows of nvidia-smi's table, split into cells. */
#ifndef TV_SMI_TABLE_ROWS_H
#define TV_SMI_TABLE_ROWS_H

#include "smi_parts.h"

enum { TV_SMI_CELLS = 8 };

typedef enum tv_smi_part { TV_SMI_CARDS, TV_SMI_MIG, TV_SMI_PROCESSES } tv_smi_part;

/* The table that is being read; s is NULL between tables. */
typedef struct tv_smi_table {
    tv_reading *r;
    tv_sighting *s;
    tv_smi_part part;
    tv_note *gpus;
    tv_note *card;  /* the row's */
    tv_note *slice; /* the MIG row's */
    size_t card_line;
    size_t bus_cell;
    size_t last_row;
    unsigned rows_of_card; /* 1 after the name's row, 2 after the power's */
    bool titled, plus_below_title, mig_header, windows, heads;
    size_t title_line, first_width, second_width;
    unsigned lines_per_gpu;
} tv_smi_table;

/* Splits at bars, full-width ones too; yields how many cells, 0 where there is no bar. */
size_t tv_smi_cells(tv_str s, tv_str cells[TV_SMI_CELLS]);
void tv_smi_table_begin(tv_smi_table *t, size_t i);
void tv_smi_table_row(tv_smi_table *t, const tv_str *cells, size_t n, size_t i);
/* Writes what follows from the whole table, and closes it. */
void tv_smi_table_end(tv_smi_table *t);

#endif
