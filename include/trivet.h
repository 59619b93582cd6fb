/* trivet: which GPU a model needs, how many, set how, at what cost, and why it is slow.
 *
 * The whole public interface: one request in the words of the command line, one reply as text.
 * Everything that a request may know about its surroundings (language, terminal, date, home) is
 * in the options; the library itself reads no environment, clock or locale.
 *
 *     trivet_options options;
 *     trivet_defaults(&options);
 *     const char *words[] = {"trivet", "gpus", "show", "rtx-4090", "--json"};
 *     trivet_reply *reply;
 *     int status = trivet_run(&options, 5, words, &reply);
 *     fwrite(trivet_reply_out(reply), 1, trivet_reply_out_size(reply), stdout);
 *     trivet_reply_free(reply);
 */
#ifndef TRIVET_H
#define TRIVET_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a request knows of its surroundings. Fill it with trivet_defaults() and change what you
 * need: fields may be added at the end in later versions. Texts are borrowed until trivet_run
 * returns; NULL means "not known". */
typedef struct trivet_options {
    size_t size;         /* sizeof(trivet_options) of the caller; set by trivet_defaults() */
    const char *locale;  /* "zh_CN.UTF-8": language of the answer unless --lang says otherwise */
    int colour;          /* nonzero: escape codes for colour are wanted */
    int width;           /* columns of the terminal; 0: 80 */
    const char *today;   /* "2026-11-30": prices are judged by it; NULL: their age is not judged */
    const char *home;    /* where .config/trivet is looked for; NULL: no overrides are read */
    size_t budget_bytes; /* most memory that the request may take; 0: the program's own limit */

    /* Called now and then during long work: what is done, and how much of it, 0 to 1. A return of
     * 0 asks the request to stop early with what it has. May be NULL. */
    int (*progress)(void *context, const char *what, double done);
    void *progress_context;

    /* Seconds from any fixed start, never backwards: bounds the time of scans. NULL: scans are
     * bounded by counts alone. */
    double (*clock)(void *context);
    void *clock_context;

    /* Folders where programs lie, parted by ':': nvidia-smi is looked for there where NVIDIA's
     * library cannot be loaded. NULL: no program is run. */
    const char *path;
} trivet_options;

/* The version that trivet_defaults() was compiled for. Never fails. */
void trivet_defaults(trivet_options *options);

/* A reply owns its texts; free it with trivet_reply_free(). */
typedef struct trivet_reply trivet_reply;

/* Answers one request. argv[0] is skipped, argv[1] is a command, as on a command line; the words
 * are borrowed until it returns. Returns the exit status: 0 answered, 1 answered "no", 2 usage,
 * 3 bad input or a limit exceeded, 4 unsupported, 5 unavailable, 6 infeasible, 70 bug, 71 the
 * system failed. *reply is the caller's; it is NULL only where there was no memory for it (71).
 * Not for two threads at once: the words are parsed with getopt_long, which keeps its place in
 * one variable of the process. */
int trivet_run(const trivet_options *options, int argc, const char *const *argv,
               trivet_reply **reply);

/* The answer (for standard output) and the remarks (for standard error): UTF-8, with a NUL behind
 * them that the size does not count. A NULL reply has empty texts. */
const char *trivet_reply_out(const trivet_reply *reply);
size_t trivet_reply_out_size(const trivet_reply *reply);
const char *trivet_reply_err(const trivet_reply *reply);
size_t trivet_reply_err_size(const trivet_reply *reply);

/* Frees the reply with everything in it; NULL is allowed. */
void trivet_reply_free(trivet_reply *reply);

/* "0.1.0": the version of the library that runs. */
const char *trivet_version(void);

#ifdef __cplusplus
}
#endif

#endif
