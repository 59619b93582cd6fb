/* The terminal's door: reads the environment, the clock and the window, hands the words to the
 * library and prints the reply. Knows nothing but trivet.h. */
#include "trivet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { status_system = 71 };

/* The first variable that is set and not empty decides, as for every program. */
static const char *locale_of_messages(void)
{
    static const char *const names[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return value;
    }
    return NULL;
}

static int columns(void)
{
    const char *stated = getenv("COLUMNS");
    if (stated && *stated) {
        char *end = NULL;
        const unsigned long n = strtoul(stated, &end, 10);
        if (*end == '\0' && n >= 20 && n <= 1000)
            return (int)n;
    }
    struct winsize window = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col >= 20)
        return window.ws_col;
    return 80;
}

static int wants_colour(void)
{
    const char *never = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    return isatty(STDOUT_FILENO) && !(never && *never) && terminal && strcmp(terminal, "dumb") != 0;
}

static double seconds(void *context)
{
    (void)context;
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int show_progress(void *context, const char *what, double done)
{
    (void)context;
    (void)fprintf(stderr, "\r\033[K%s %3.0f %%", what, done * 100);
    if (done >= 1)
        (void)fputs("\r\033[K", stderr);
    return 1;
}

static const char *date_today(char text[11])
{
    const time_t now = time(NULL);
    struct tm parts = {0};
    if (now == (time_t)-1 || !gmtime_r(&now, &parts) || strftime(text, 11, "%Y-%m-%d", &parts) == 0)
        return NULL;
    return text;
}

static int put(FILE *to, const char *text, size_t n)
{
    return fwrite(text, 1, n, to) == n && fflush(to) == 0;
}

int main(int argc, char **argv)
{
    char date[11] = "";
    trivet_options options;
    trivet_defaults(&options);
    options.locale = locale_of_messages();
    options.colour = wants_colour();
    options.width = columns();
    options.today = date_today(date);
    options.home = getenv("HOME");
    options.path = getenv("PATH");
    options.progress = isatty(STDERR_FILENO) ? show_progress : NULL;
    options.clock = seconds;

    trivet_reply *reply = NULL;
    int status = trivet_run(&options, argc, (const char *const *)argv, &reply);
    if (!reply)
        (void)fputs("trivet: no memory\n", stderr);
    (void)put(stderr, trivet_reply_err(reply), trivet_reply_err_size(reply));
    if (!put(stdout, trivet_reply_out(reply), trivet_reply_out_size(reply))) {
        perror("trivet: standard output");
        status = status_system;
    }
    trivet_reply_free(reply);
    return status;
}
