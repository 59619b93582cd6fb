/* Comma-separated values (RFC 4180) over a text: a cursor that yields one record at a time.
 * Quoted fields may hold commas, line breaks and doubled quotes; records end with LF, CR LF or the
 * end of the text. The first record names the columns. */
#ifndef TV_CSV_H
#define TV_CSV_H

#include "base/err.h"

typedef struct tv_csv {
    tv_arena *a;
    tv_str file; /* for messages */
    tv_str text;
    size_t at;
    uint64_t line; /* of the record just read, from 1 */
    uint64_t next_line;
    tv_str *names; /* the header */
    size_t n_names;
    tv_str *fields; /* of the current record; as many as there are names */
} tv_csv;

/* Reads the header. A byte order mark is skipped; an empty text, an empty or repeated name and
 * more than TV_LIMIT_CSV_COLUMNS columns are errors. */
const tv_err *tv_csv_open(tv_arena *a, tv_str file, tv_str text, tv_csv *csv) TV_CHECKED;

/* The next record; *more is false at the end. A record with another number of fields than the
 * header, and a stray or open quote, are errors with the byte offset. Fields are views of the text
 * (those with doubled quotes are copied) and valid until the next call. Blank lines are skipped. */
const tv_err *tv_csv_next(tv_csv *csv, bool *more) TV_CHECKED;

/* The number of a column, or n_names where there is none. */
size_t tv_csv_column(const tv_csv *csv, const char *name);
/* The current record's field of a column; empty where the column is absent. */
tv_str tv_csv_get(const tv_csv *csv, const char *name);

/* Writes one field, quoted where it must be. */
void tv_csv_put(tv_buf *b, tv_str field);

#endif
