/* nvidia-smi where NVML cannot be loaded (a container may hold the program without its library in
 * the loader's way): run by its absolute path, without a shell, for a bounded time and output. */
#include "host_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

/* A healthy 8-GPU host answers in 2 s, one without persistence in 20 s: 30 s, in turns of poll's
 * milliseconds. */
enum { turn = 50, most_turns = 600 };
#define MOST_OUTPUT_BYTES ((size_t)8 << 20)

static const char *program(const tv_host *h)
{
    tv_str rest = h->place->path;
    while (rest.n) {
        const tv_cut folder = tv_str_cut(rest, ':');
        struct stat st;
        const char *path = tv_cstr(h->a, tv_path_join(h->a, folder.head, TV_S("nvidia-smi")));
        if (tv_str_starts(folder.head, TV_S("/")) && stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
            access(path, X_OK) == 0)
            return path;
        rest = folder.tail;
    }
    return NULL;
}

/* Starts it with its output on a pipe; yields the process, or -1. */
static pid_t start(const char *path, int pipe_ends[2])
{
    static char name[] = "nvidia-smi", query[] = "-q", xml[] = "-x", locale[] = "LC_ALL=C";
    char *const words[] = {name, query, xml, NULL};
    char *const environment[] = {locale, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid = -1;
    if (pipe2(pipe_ends, O_CLOEXEC) != 0)
        return -1;
    if (posix_spawn_file_actions_init(&actions) != 0)
        return -1;
    (void)posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDERR_FILENO);
    if (posix_spawn(&pid, path, &actions, NULL, words, environment) != 0)
        pid = -1;
    (void)posix_spawn_file_actions_destroy(&actions);
    return pid;
}

/* Reads until the end, the bound or the time; poll's own waiting is the clock. */
static bool collect(int fd, tv_buf *b)
{
    unsigned turns = 0;
    while (turns < most_turns && b->n < MOST_OUTPUT_BYTES) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        const int ready = poll(&p, 1, turn);
        if (ready == 0)
            turns++;
        if (ready <= 0)
            continue;
        char piece[16384];
        const ssize_t n = read(fd, piece, sizeof piece);
        if (n == 0 || (n < 0 && errno != EINTR))
            return true;
        if (n > 0)
            tv_put(b, (tv_str){piece, (size_t)n});
    }
    return false;
}

void tv_host_smi(tv_host *h)
{
    const char *path = program(h);
    if (!path) {
        tv_host_fact(h, "nvidia_smi", TV_S("not found"));
        tv_host_unseen(h, "nvidia-smi", TV_S("in no folder of PATH"));
        return;
    }
    int ends[2] = {-1, -1};
    const pid_t pid = start(path, ends);
    if (ends[1] >= 0)
        (void)close(ends[1]);
    tv_buf b = tv_buf_in(h->a);
    const bool done = pid > 0 && collect(ends[0], &b);
    if (ends[0] >= 0)
        (void)close(ends[0]);
    int status = 0;
    if (pid > 0 && !done)
        (void)kill(pid, SIGKILL);
    if (pid > 0)
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    tv_host_fact(h, "nvidia_smi", tv_str_of(path));
    if (!done)
        tv_host_unseen(h, "nvidia-smi",
                       pid > 0 ? TV_S("no answer within 30 s") : TV_S("could not be started"));
    const bool is_xml = tv_str_has(tv_buf_str(&b), TV_S("<nvidia_smi_log"));
    tv_host_document(h, is_xml ? "nvml.xml" : "nvidia-smi.txt", tv_buf_str(&b));
}
