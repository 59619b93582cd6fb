/* A shell's command line into words: quotes and line ends are understood, nothing is expanded. */
#ifndef TV_SHELL_WORDS_H
#define TV_SHELL_WORDS_H

#include "env_words.h"

enum { TV_SHELL_WORDS = 512 };

typedef struct tv_words_of {
    tv_str v[TV_SHELL_WORDS];
    size_t n;
} tv_words_of;

/* The words of the first command in s, up to an unquoted ; | & > or a comment; *rest is what
 * follows behind "&&", ";" or "|". Empty at the end. */
void tv_shell_words(tv_arena *a, tv_str s, tv_words_of *out, tv_str *rest);
/* One line of a capture without what a terminal puts before a command: "user@host:~$ ", "$ ",
 * "(base) ", "+ ", "PS C:\> ", "RUN ". */
tv_str tv_shell_bare(tv_str line);
/* Line i with the lines that continue it ('\', '`' or '^' at the end); *last is the last of them.
 */
tv_str tv_shell_line(tv_arena *a, const tv_sheet *sheet, size_t i, size_t *last);
/* "NAME=value": name is empty where the word is no assignment. */
typedef struct tv_assignment {
    tv_str name;
    tv_str value;
} tv_assignment;
tv_assignment tv_shell_assignment(tv_str word);
/* A variable that GPUs, frameworks or libraries read: NCCL_DEBUG, CUDA_..., OMP_..., MASTER_PORT.
 */
bool tv_is_known_variable(tv_str name);

#endif
