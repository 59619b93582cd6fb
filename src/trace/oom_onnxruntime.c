/* ONNX Runtime's memory errors: its arena, and CUDA's refusal, with the node that asked. */
#include "glean.h"
#include "oom_parts.h"
#include "trace.h"

/* "…/bfc_arena.cc:376 " -> "bfc_arena.cc:376"; paths of Windows have back-slashes. */
static tv_str source_of(tv_str text)
{
    tv_str rest;
    if (!tv_past(text, "bfc_arena.cc:", &rest))
        return (tv_str){0};
    size_t n = 0;
    while (n < rest.n && rest.p[n] >= '0' && rest.p[n] <= '9')
        n++;
    const char *begin = rest.p - sizeof "bfc_arena.cc:" + 1;
    return tv_str_span(begin, rest.p + n);
}

static void read_node(tv_reading *r, tv_note *facts, tv_str text)
{
    const tv_str op = tv_enclosed(text, "while running ", " node");
    const tv_str node = tv_enclosed(text, "Name:'", "'");
    if (op.n)
        (void)tv_note_str(r->a, facts, "op", op);
    if (node.n)
        (void)tv_note_str(r->a, facts, "node", node);
}

/* Above a pebibyte no device has memory. */
#define IMPOSSIBLE_BYTES (1000.0 * 1024 * 1024 * 1024)

/* The error's text: the node's name stands on the line before, where it was broken. */
static tv_str error_text(tv_reading *r, size_t i)
{
    tv_buf b = tv_buf_in(r->a);
    size_t from = i;
    for (size_t back = 1; back <= 3 && back <= i; back++)
        if (tv_holds(r->sheet->v[i - back].s, "while running "))
            from = i - back;
    for (size_t k = from; k <= i; k++) {
        tv_put(&b, tv_str_take(r->sheet->v[k].s, 8192));
        tv_putc(&b, ' ');
    }
    for (size_t k = i + 1; k < r->sheet->n && k <= i + 2; k++) {
        if (tv_holds(tv_buf_str(&b), "buffer of size ") ||
            tv_holds(tv_buf_str(&b), "CUDA failure 2"))
            break;
        tv_put(&b, tv_str_take(r->sheet->v[k].s, 8192));
        tv_putc(&b, ' ');
    }
    return tv_buf_str(&b);
}

static void read_error(tv_reading *r, size_t i, tv_oom_seen *seen)
{
    const tv_str text = error_text(r, i);
    tv_sighting *s = tv_oom_new(r, seen, i, text);
    if (!s)
        return;
    tv_note *facts = &s->facts;
    tv_oom_word(r, facts, "framework", "onnxruntime");
    const tv_double_read tried = tv_number_past(text, "requested buffer of size ");
    tv_oom_put(r, facts, "tried_bytes", tried);
    read_node(r, facts, text);
    const tv_str source = source_of(text);
    if (source.n)
        (void)tv_note_str(r->a, facts, "source_file", source);
    tv_oom_put(r, facts, "gpu", tv_number_past(text, "; GPU="));
    const tv_str host = tv_enclosed(text, "; hostname=", " ");
    if (host.n)
        (void)tv_note_str(r->a, facts, "hostname", host);
    if (tried.ok && tried.v > IMPOSSIBLE_BYTES)
        tv_oom_word(r, facts, "layer", "program bug: impossible request");
}

static bool is_refusal(tv_str line)
{
    return tv_holds(line, "Failed to allocate memory for requested buffer") ||
           (tv_holds(line, "CUDA failure 2") && tv_holds(line, "out of memory")) ||
           (tv_holds(line, "HIP failure 2") && tv_holds(line, "out of memory"));
}

static void read(tv_reading *r)
{
    tv_oom_seen *seen = tv_new(r->a, tv_oom_seen, 1);
    for (size_t i = 0; i < r->sheet->n; i++)
        if (is_refusal(r->sheet->v[i].s))
            read_error(r, i, seen);
}

static const char *const needles[] = {"Failed to allocate memory for requested buffer",
                                      "CUDA failure 2", "HIP failure 2", NULL};

extern const tv_log_format tv_log_format_oom_onnxruntime;
const tv_log_format tv_log_format_oom_onnxruntime = {"oom-onnxruntime", needles, read};
