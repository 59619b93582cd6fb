/* The trie is filled into a table of moves per state and byte class, so that a byte costs one
 * load. Letters keep their case; bytes that no needle holds share one class. */
#include "needles.h"

#include <string.h>

typedef struct ending {
    uint16_t format;
    uint32_t next; /* another ending of the same state; 0: none */
} ending;

struct tv_needles {
    const tv_log_format *const *formats;
    size_t n_formats;
    unsigned char class_of[256];
    unsigned n_classes;
    uint16_t *moves; /* state · n_classes + class */
    uint32_t *ends;  /* first ending of a state; 0: none */
    uint16_t *fail;
    size_t n_states;
    ending *endings; /* from 1 */
    size_t n_endings;
};

static bool in_name(const char *needle)
{
    return needle[0] == '/';
}

typedef struct sizes {
    size_t formats, needles, bytes;
} sizes;

static sizes measure(const tv_log_format *const *formats)
{
    sizes s = {0};
    for (; formats[s.formats]; s.formats++)
        for (const char *const *needle = formats[s.formats]->needles; *needle; needle++)
            if (!in_name(*needle)) {
                s.needles++;
                s.bytes += strlen(*needle);
            }
    return s;
}

static void name_classes(tv_needles *m)
{
    m->n_classes = 1;
    for (size_t f = 0; f < m->n_formats; f++)
        for (const char *const *needle = m->formats[f]->needles; *needle; needle++)
            for (const char *p = in_name(*needle) ? "" : *needle; *p; p++)
                if (!m->class_of[(unsigned char)*p])
                    m->class_of[(unsigned char)*p] = (unsigned char)m->n_classes++;
}

static void add_ending(tv_needles *m, size_t state, size_t format)
{
    m->n_endings++;
    m->endings[m->n_endings] = (ending){(uint16_t)format, m->ends[state]};
    m->ends[state] = (uint32_t)m->n_endings;
}

static void add(tv_needles *m, const char *needle, size_t format)
{
    size_t state = 0;
    for (const char *p = needle; *p; p++) {
        uint16_t *move = &m->moves[state * m->n_classes + m->class_of[(unsigned char)*p]];
        if (!*move)
            *move = (uint16_t)m->n_states++;
        state = *move;
    }
    add_ending(m, state, format);
}

/* Breadth first: where a state has no move it takes that of its longest proper suffix. */
static void close_moves(tv_arena *a, tv_needles *m)
{
    uint16_t *queue = tv_new(a, uint16_t, m->n_states);
    size_t head = 0, tail = 0;
    for (unsigned c = 0; c < m->n_classes; c++)
        if (m->moves[c])
            queue[tail++] = m->moves[c];
    while (head < tail) {
        const uint16_t state = queue[head++];
        for (unsigned c = 0; c < m->n_classes; c++) {
            uint16_t *move = &m->moves[(size_t)state * m->n_classes + c];
            const uint16_t other = m->moves[(size_t)m->fail[state] * m->n_classes + c];
            if (!*move) {
                *move = other;
                continue;
            }
            m->fail[*move] = other;
            queue[tail++] = *move;
        }
    }
}

const tv_needles *tv_needles_of(tv_arena *a, const tv_log_format *const *formats)
{
    const sizes s = measure(formats);
    tv_needles *m = tv_new(a, tv_needles, 1);
    m->formats = formats;
    m->n_formats = s.formats;
    m->n_states = 1;
    name_classes(m);
    m->moves = tv_new(a, uint16_t, (s.bytes + 1) * m->n_classes);
    m->ends = tv_new(a, uint32_t, s.bytes + 1);
    m->fail = tv_new(a, uint16_t, s.bytes + 1);
    m->endings = tv_new(a, ending, s.needles + 1);
    for (size_t f = 0; f < s.formats; f++)
        for (const char *const *needle = formats[f]->needles; *needle; needle++)
            if (!in_name(*needle))
                add(m, *needle, f);
    close_moves(a, m);
    return m;
}

static void names(const tv_needles *m, tv_str name, bool *hit)
{
    for (size_t f = 0; f < m->n_formats; f++)
        for (const char *const *needle = m->formats[f]->needles; *needle; needle++)
            if (in_name(*needle) &&
                (tv_str_ends(name, tv_str_of(*needle)) || tv_str_is(name, *needle + 1)))
                hit[f] = true;
}

static void end_at(const tv_needles *m, size_t state, bool *hit)
{
    for (; state; state = m->fail[state])
        for (uint32_t k = m->ends[state]; k; k = m->endings[k].next)
            hit[m->endings[k].format] = true;
}

void tv_needles_in(const tv_needles *m, tv_str name, tv_str text, bool *hit)
{
    names(m, name, hit);
    /* Only a state that ends a needle, itself or by a suffix, is looked into. */
    size_t state = 0;
    for (size_t i = 0; i < text.n; i++) {
        state = m->moves[state * m->n_classes + m->class_of[(unsigned char)text.p[i]]];
        if (state && (m->ends[state] || m->ends[m->fail[state]]))
            end_at(m, state, hit);
    }
}

size_t tv_needles_formats(const tv_needles *m)
{
    return m->n_formats;
}
