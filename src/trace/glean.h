/* Small steps through a line of somebody else's text. Everything works on views, nothing fails
 * loudly: what is not there is empty or not ok. */
#ifndef TV_GLEAN_H
#define TV_GLEAN_H

#include "base/str.h"

/* The place behind the first occurrence of a text; *rest is set only where it is found. */
bool tv_past(tv_str s, const char *needle, tv_str *rest);
/* What stands between two texts (the first `from`, then the next `to`); empty: not both there.
 * to NULL or "": up to the end of the line. */
tv_str tv_enclosed(tv_str s, const char *from, const char *to);
bool tv_holds(tv_str s, const char *needle);
bool tv_holds_nocase(tv_str s, const char *needle);

/* Numbers at the front of *s (blanks before them are passed); *s moves only on success. Thousands
 * commas (1,234,567), a decimal comma (1900,00) and exponents are understood. */
tv_double_read tv_take_number(tv_str *s);
/* A whole number in decimal, or with 0x in hexadecimal; no sign. */
tv_u64_read tv_take_u64(tv_str *s);
/* "1.50 GiB", "512 bytes", "23.70MB", "50.00M": bytes. All units are powers of 1024 (frameworks
 * print MB and mean MiB); a bare number is bytes. */
tv_double_read tv_take_bytes(tv_str *s);
/* "12.3us", "4 ms", "1.2s", "3 min", "2h": seconds; a bare number is not ok. */
tv_double_read tv_take_seconds(tv_str *s);
/* The number behind a text, with what the functions above understand. */
tv_double_read tv_number_past(tv_str s, const char *needle);
tv_double_read tv_bytes_past(tv_str s, const char *needle);
/* A word: letters, digits and "_-./:+@" at the front of *s, blanks before it passed. */
tv_str tv_take_word(tv_str *s);

/* Splits at runs of blanks and tabs; yields how many words there are, at most cap are written. */
size_t tv_words(tv_str s, tv_str *v, size_t cap);
/* The same at a separator; every field is trimmed. */
size_t tv_fields(tv_str s, char separator, tv_str *v, size_t cap);

/* The line without what loggers put before it: "[rank3]:", "ollama  | ", "(Worker pid=90) ",
 * "ERROR 10-11 12:27:29 engine.py:157] ", container time stamps, "1: " of mpirun, indentation. */
tv_str tv_bare(tv_str line);

#endif
