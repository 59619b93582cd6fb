/* docker run and its kin: how much of the machine the container gets. */
#include <string.h>

#include "commands.h"

static bool is_docker(tv_str word)
{
    return tv_str_is(word, "docker") || tv_str_is(word, "podman") ||
           tv_str_is(word, "nvidia-docker") || tv_str_is(word, "nerdctl");
}

/* Options without a value. */
static bool is_flag(tv_str word)
{
    static const char *const flags[] = {
        "--rm",          "--init",           "--privileged",      "--detach",
        "--tty",         "--interactive",    "--read-only",       "--quiet",
        "--publish-all", "--no-healthcheck", "--oom-kill-disable"};
    if (word.n >= 2 && word.p[0] == '-' && word.p[1] != '-') {
        for (size_t i = 1; i < word.n; i++)
            if (!strchr("ditPq", word.p[i]))
                return false;
        return true;
    }
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (tv_str_is(word, flags[i]))
            return true;
    return false;
}

typedef struct option {
    tv_str name;
    tv_str value;
    size_t words; /* that it takes */
} option;

/* "--name=value", "--name value", "-e value", "-eNAME=value" */
static option take_option(const tv_str *v, size_t n)
{
    const tv_cut cut = tv_str_cut(v[0], '=');
    if (is_flag(v[0]))
        return (option){v[0], {0}, 1};
    if (v[0].n > 2 && v[0].p[1] != '-')
        return (option){tv_str_take(v[0], 2), tv_str_drop(v[0], 2), 1};
    if (v[0].n > 2 && cut.found)
        return (option){cut.head, cut.tail, 1};
    return (option){v[0], n > 1 ? v[1] : (tv_str){0}, n > 1 ? 2 : 1};
}

static void put_str(const tv_command_line *c, const char *key, tv_str value)
{
    (void)tv_at(c->r, tv_note_str(c->r->a, c->facts, key, value), c->line);
}

static void put_bytes(const tv_command_line *c, const char *key, tv_str value)
{
    const tv_double_read bytes = tv_take_bytes(&value);
    if (bytes.ok)
        (void)tv_at(c->r, tv_note_num(c->r->a, c->facts, key, bytes.v), c->line);
}

static void put_number(const tv_command_line *c, const char *key, tv_str value)
{
    const tv_double_read v = tv_take_number(&value);
    if (v.ok)
        (void)tv_at(c->r, tv_note_num(c->r->a, c->facts, key, v.v), c->line);
}

static void put_ulimit(const tv_command_line *c, tv_str value)
{
    const tv_cut cut = tv_str_cut(value, '=');
    const tv_str soft = tv_str_cut(cut.tail, ':').head;
    if (tv_str_is(cut.head, "memlock"))
        put_str(c, "memlock", soft);
    else if (tv_str_is(cut.head, "nofile"))
        put_str(c, "nofile", soft);
    else if (tv_str_is(cut.head, "stack"))
        put_str(c, "stack", soft);
}

static void put_mount(const tv_command_line *c, tv_str value)
{
    if (tv_holds(value, "/dev/shm"))
        put_str(c, "shm_mount", value);
    if (tv_str_starts(value, TV_S("/dev/infiniband")))
        put_str(c, "infiniband", TV_S("mapped"));
}

static void put_device(const tv_command_line *c, tv_str value)
{
    if (tv_holds(value, "infiniband"))
        put_str(c, "infiniband", TV_S("mapped"));
    else if (tv_holds(value, "nvidia"))
        put_str(c, "gpus_asked", value);
    else if (tv_holds(value, "/dev/kfd") || tv_holds(value, "/dev/dri"))
        put_str(c, "gpus_asked", value);
}

static void note_option(const tv_command_line *c, option o)
{
    static const struct {
        const char *name;
        const char *key;
        void (*put)(const tv_command_line *, const char *, tv_str);
    } rows[] = {
        {"--gpus", "gpus_asked", put_str},       {"--runtime", "runtime", put_str},
        {"--shm-size", "shm_bytes", put_bytes},  {"--ipc", "ipc", put_str},
        {"--network", "network", put_str},       {"--net", "network", put_str},
        {"--memory", "memory_bytes", put_bytes}, {"-m", "memory_bytes", put_bytes},
        {"--cpus", "cpus", put_number},          {"--cpuset-cpus", "cpuset", put_str},
        {"--pid", "pid_namespace", put_str},     {"--cap-add", "cap_add", put_str},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (tv_str_is(o.name, rows[i].name))
            rows[i].put(c, rows[i].key, o.value);
    const tv_assignment set = tv_shell_assignment(o.value);
    if ((tv_str_is(o.name, "-e") || tv_str_is(o.name, "--env")) && set.name.n)
        tv_env_note(c, set.name, set.value);
    else if (tv_str_is(o.name, "--ulimit"))
        put_ulimit(c, o.value);
    else if (tv_str_is(o.name, "--device"))
        put_device(c, o.value);
    else if (tv_str_is(o.name, "-v") || tv_str_is(o.name, "--volume") ||
             tv_str_is(o.name, "--mount") || tv_str_is(o.name, "--tmpfs"))
        put_mount(c, o.value);
    else if (tv_str_is(o.name, "--privileged"))
        (void)tv_note_bool(c->r->a, c->facts, "privileged", true);
}

static bool is_image(tv_str word)
{
    if (!word.n || word.n > 300)
        return false;
    for (size_t i = 0; i < word.n; i++) {
        const char ch = word.p[i];
        if (!((ch | 32) >= 'a' && (ch | 32) <= 'z') && !(ch >= '0' && ch <= '9') &&
            !(ch && strchr("./:_-@${}<>", ch)))
            return false;
    }
    return true;
}

static void put_program(const tv_command_line *c, const tv_str *v, size_t n)
{
    tv_buf b = tv_buf_in(c->scratch);
    for (size_t i = 0; i < n; i++) {
        if (i)
            tv_putc(&b, ' ');
        tv_put(&b, v[i]);
    }
    if (n)
        put_str(c, "program", tv_buf_str(&b));
}

bool tv_docker_note(const tv_command_line *c, const tv_str *v, size_t n)
{
    size_t i = 1;
    if (n < 3 || !is_docker(v[0]))
        return false;
    if (tv_str_is(v[1], "container"))
        i++;
    if (i >= n || !(tv_str_is(v[i], "run") || tv_str_is(v[i], "create")))
        return false;
    put_str(c, "tool", TV_S("docker"));
    if (tv_str_is(v[0], "nvidia-docker"))
        put_str(c, "runtime", TV_S("nvidia"));
    for (i++; i < n && v[i].n > 1 && *v[i].p == '-';) {
        const option o = take_option(v + i, n - i);
        note_option(c, o);
        i += o.words;
    }
    if (i >= n || !is_image(v[i]))
        return i < n;
    put_str(c, "image", v[i]);
    put_program(c, v + i + 1, n - i - 1);
    (void)tv_launch_note(c, v + i + 1, n - i - 1);
    return true;
}
