/* The trie is filled into a table of moves per state and byte class, so that a byte costs one
 * load. Letters keep their case; bytes that no needle holds share one class. */
#include "needles.h"

#include <assert.h>
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
    size_t longest;  /* needle */
    uint32_t *moves; /* row + class; a row is a state's number times n_classes. The top bit: a
                        needle ends there, itself or as the end of a longer one's beginning */
    uint32_t *ends;  /* first ending of a state; 0: none */
    uint16_t *fail;
    size_t n_states;
    ending *endings; /* from 1 */
    size_t n_endings;
};

static const uint32_t tells = UINT32_C(1) << 31;

static bool in_name(const char *needle)
{
    return needle[0] == '/';
}

typedef struct sizes {
    size_t formats, needles, bytes, longest;
} sizes;

static sizes measure(const tv_log_format *const *formats)
{
    sizes s = {0};
    for (; formats[s.formats]; s.formats++)
        for (const char *const *needle = formats[s.formats]->needles; *needle; needle++)
            if (!in_name(*needle)) {
                s.needles++;
                const size_t n = strlen(*needle);
                s.bytes += n;
                s.longest = n > s.longest ? n : s.longest;
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

static uint32_t *move_of(const tv_needles *m, size_t state, unsigned class)
{
    return &m->moves[state * m->n_classes + class];
}

static void add(tv_needles *m, const char *needle, size_t format)
{
    size_t state = 0;
    for (const char *p = needle; *p; p++) {
        uint32_t *move = move_of(m, state, m->class_of[(unsigned char)*p]);
        if (!*move)
            *move = (uint32_t)m->n_states++;
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
            queue[tail++] = (uint16_t)m->moves[c];
    while (head < tail) {
        const uint16_t state = queue[head++];
        for (unsigned c = 0; c < m->n_classes; c++) {
            uint32_t *move = move_of(m, state, c);
            const uint32_t other = *move_of(m, m->fail[state], c);
            if (!*move) {
                *move = other;
                continue;
            }
            m->fail[*move] = (uint16_t)other;
            queue[tail++] = (uint16_t)*move;
        }
    }
}

/* From numbers of states to rows, with the mark of those that tell something. */
static void number_rows(tv_arena *a, tv_needles *m)
{
    bool *telling = tv_new(a, bool, m->n_states);
    for (size_t s = 1; s < m->n_states; s++)
        for (size_t at = s; at && !telling[s]; at = m->fail[at])
            telling[s] = m->ends[at] != 0;
    for (size_t i = 0; i < m->n_states * m->n_classes; i++) {
        const uint32_t state = m->moves[i];
        m->moves[i] = state * m->n_classes | (telling[state] ? tells : 0);
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
    m->longest = s.longest;
    m->moves = tv_new(a, uint32_t, (s.bytes + 1) * m->n_classes);
    m->ends = tv_new(a, uint32_t, s.bytes + 1);
    m->fail = tv_new(a, uint16_t, s.bytes + 1);
    m->endings = tv_new(a, ending, s.needles + 1);
    for (size_t f = 0; f < s.formats; f++)
        for (const char *const *needle = formats[f]->needles; *needle; needle++)
            if (!in_name(*needle))
                add(m, *needle, f);
    assert(m->n_states <= UINT16_MAX);
    close_moves(a, m);
    number_rows(a, m);
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

static void end_at(const tv_needles *m, uint32_t row, bool *hit)
{
    for (size_t state = row / m->n_classes; state; state = m->fail[state])
        for (uint32_t k = m->ends[state]; k; k = m->endings[k].next)
            hit[m->endings[k].format] = true;
}

/* One byte further. */
static inline uint32_t step(const tv_needles *m, uint32_t row, char c, bool *hit)
{
    const uint32_t to = m->moves[row + m->class_of[(unsigned char)c]];
    if (to & tells)
        end_at(m, to & ~tells, hit);
    return to & ~tells;
}

static void look(const tv_needles *m, tv_str text, bool *hit)
{
    uint32_t row = 0;
    for (size_t i = 0; i < text.n; i++)
        row = step(m, row, text.p[i], hit);
}

enum { lanes = 4 };

/* A step waits for the one before it: four places of the text are looked at in turns, each up to
 * where a needle that begins in its part may end. */
static void look_in_lanes(const tv_needles *m, tv_str text, bool *hit)
{
    const size_t part = text.n / lanes;
    if (part <= m->longest) {
        look(m, text, hit);
        return;
    }
    const char *p = text.p;
    uint32_t r0 = 0, r1 = 0, r2 = 0, r3 = 0;
    for (size_t i = 0; i < part; i++) {
        r0 = step(m, r0, p[i], hit);
        r1 = step(m, r1, p[part + i], hit);
        r2 = step(m, r2, p[2 * part + i], hit);
        r3 = step(m, r3, p[3 * part + i], hit);
    }
    for (size_t i = 1; i < lanes; i++) { /* over the seams, and what is left at the end */
        const size_t from = i * part - m->longest;
        look(m, tv_str_take(tv_str_drop(text, from), 2 * m->longest), hit);
    }
    look(m, tv_str_drop(text, lanes * part - m->longest), hit);
}

/* Zeros fill the holes of files; a few of them stand within text. */
static size_t zeros_at(tv_str s)
{
    size_t n = 0;
    static const char none[4096];
    while (s.n - n >= sizeof none && memcmp(s.p + n, none, sizeof none) == 0)
        n += sizeof none;
    return n;
}

void tv_needles_in(const tv_needles *m, tv_str name, tv_str text, bool *hit)
{
    names(m, name, hit);
    while (text.n) {
        text = tv_str_drop(text, zeros_at(text));
        const tv_str piece = tv_str_take(text, (size_t)1 << 20);
        look_in_lanes(m, piece, hit);
        if (piece.n == text.n)
            return;
        const size_t overlap = m->longest; /* a needle over the end of the piece */
        text = tv_str_drop(text, piece.n - (overlap < piece.n ? overlap : 0));
    }
}

size_t tv_needles_formats(const tv_needles *m)
{
    return m->n_formats;
}
