/* A backtracking matcher: each construct is tried with a continuation that matches what follows
 * it. Steps are counted, so that no pattern runs long. */
#include "pattern.h"

enum { most_steps = 200000, most_depth = 400, open_end = 1 << 20 };

typedef struct matcher {
    tv_str text;
    unsigned steps, depth;
    bool bad;
} matcher;

/* What must match behind a piece. */
typedef struct next next;
struct next {
    bool (*run)(matcher *m, const next *k, size_t at);
    tv_str rest;      /* the pattern behind the piece */
    const next *then; /* and behind that */
    tv_str piece;     /* repetitions: */
    unsigned low, high;
    size_t from; /* where the last repetition began */
    bool whole;
};

static bool sequence(matcher *m, tv_str p, size_t at, const next *k);

static bool tired(matcher *m)
{
    if (m->steps++ < most_steps && m->depth < most_depth)
        return m->bad;
    m->bad = true;
    return true;
}

/* ---- the shape of a pattern ---- */

/* Length of the atom that a pattern begins with; 0: not understood. */
static size_t class_length(tv_str p)
{
    size_t i = 1;
    if (i < p.n && p.p[i] == '^')
        i++;
    if (i < p.n && p.p[i] == ']')
        i++;
    while (i < p.n && p.p[i] != ']')
        i += p.p[i] == '\\' ? 2 : 1;
    return i < p.n ? i + 1 : 0;
}

static size_t atom_length(tv_str p);

static size_t group_length(tv_str p)
{
    size_t i = 1;
    while (i < p.n && p.p[i] != ')') {
        const size_t n = p.p[i] == '|' || p.p[i] == '?' || p.p[i] == '*' || p.p[i] == '+' ||
                                 p.p[i] == '^' || p.p[i] == '$'
                             ? 1
                             : atom_length(tv_str_drop(p, i));
        if (n == 0)
            return 0;
        i += n;
    }
    return i < p.n ? i + 1 : 0;
}

static size_t atom_length(tv_str p)
{
    if (p.p[0] == '\\')
        return p.n >= 2 ? 2 : 0;
    if (p.p[0] == '[')
        return class_length(p);
    if (p.p[0] == '(')
        return group_length(p);
    return 1;
}

/* The first '|' outside of groups and classes; p.n where there is none. */
static size_t branch_length(matcher *m, tv_str p)
{
    size_t i = 0;
    while (i < p.n && p.p[i] != '|') {
        const size_t n = atom_length(tv_str_drop(p, i));
        if (n == 0) {
            m->bad = true;
            return p.n;
        }
        i += n;
    }
    return i;
}

/* ---- one character ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
    const char lower = (char)(c | 0x20);
    return is_digit(c) || c == '_' || (lower >= 'a' && lower <= 'z');
}

static bool escape_is(matcher *m, char letter, char c)
{
    if (letter == 'd')
        return is_digit(c);
    if (letter == 'w')
        return is_word(c);
    if (letter == 'D')
        return !is_digit(c);
    if (letter == 'W')
        return !is_word(c);
    if (letter == 's' || letter == 'S')
        return (c == ' ' || c == '\t') == (letter == 's');
    if (is_word(letter)) /* \b, \A, back references */
        m->bad = true;
    return letter == c;
}

static bool class_is(matcher *m, tv_str set, char c)
{
    bool found = false;
    size_t i = 1;
    const bool inverted = set.p[i] == '^';
    i += inverted;
    for (bool first = true; i + 1 < set.n; first = false) {
        if (set.p[i] == ']' && !first)
            break;
        if (set.p[i] == '\\') {
            found = escape_is(m, set.p[i + 1], c) || found;
            i += 2;
        } else if (i + 3 < set.n && set.p[i + 1] == '-' && set.p[i + 2] != ']') {
            found = (c >= set.p[i] && c <= set.p[i + 2]) || found;
            i += 3;
        } else {
            found = set.p[i++] == c || found;
        }
    }
    return found != inverted;
}

/* ---- matching ---- */

static bool run_rest(matcher *m, const next *k, size_t at)
{
    return sequence(m, k->rest, at, k->then);
}

static bool run_end(matcher *m, const next *k, size_t at)
{
    return !k->whole || at == m->text.n;
}

static bool branches(matcher *m, tv_str p, size_t at, const next *k)
{
    for (;;) {
        const size_t n = branch_length(m, p);
        if (m->bad)
            return false;
        if (sequence(m, tv_str_take(p, n), at, k))
            return true;
        if (n == p.n)
            return false;
        p = tv_str_drop(p, n + 1);
    }
}

static bool atom(matcher *m, tv_str piece, size_t at, const next *k)
{
    if (piece.p[0] == '(') {
        tv_str inner = tv_str_take(tv_str_drop(piece, 1), piece.n - 2);
        if (tv_str_starts(inner, TV_S("?:")))
            inner = tv_str_drop(inner, 2);
        else if (tv_str_starts(inner, TV_S("?")))
            m->bad = true; /* look-around, names, flags */
        return !m->bad && branches(m, inner, at, k);
    }
    if (at == m->text.n)
        return false;
    const char c = m->text.p[at];
    bool same = piece.p[0] == c;
    if (piece.p[0] == '.')
        same = c != '\n';
    else if (piece.p[0] == '\\')
        same = escape_is(m, piece.p[1], c);
    else if (piece.p[0] == '[')
        same = class_is(m, piece, c);
    return same && !m->bad && k->run(m, k, at + 1);
}

/* One repetition is matched; as many more as there may be, then the rest. */
static bool run_again(matcher *m, const next *k, size_t at)
{
    if (tired(m))
        return false;
    const bool moved = at != k->from;
    if (k->high > 0 && (moved || k->low > 0)) {
        next more = *k;
        more.low -= k->low > 0;
        more.high--;
        more.from = at;
        m->depth++;
        const bool found = atom(m, k->piece, at, &more);
        m->depth--;
        if (found)
            return true;
    }
    return k->low == 0 && !m->bad && sequence(m, k->rest, at, k->then);
}

/* {n}, {n,}, {n,m} behind an atom; its length, 0: none. */
static size_t counted(tv_str p, unsigned *low, unsigned *high)
{
    const tv_cut end = tv_str_cut(tv_str_drop(p, 1), '}');
    const tv_cut pair = tv_str_cut(end.head, ',');
    const tv_u64_read a = tv_str_u64(pair.head), b = tv_str_u64(pair.tail);
    if (!end.found || !a.ok || a.v > 1000 || (b.ok && b.v > 1000))
        return 0;
    *low = (unsigned)a.v;
    *high = !pair.found ? *low : b.ok ? (unsigned)b.v : open_end;
    return end.head.n + 2;
}

static size_t quantifier(tv_str p, unsigned *low, unsigned *high)
{
    *low = *high = 1;
    if (p.n == 0)
        return 0;
    if (p.p[0] == '{')
        return counted(p, low, high);
    if (p.p[0] != '*' && p.p[0] != '+' && p.p[0] != '?')
        return 0;
    *low = p.p[0] == '+';
    *high = p.p[0] == '?' ? 1 : open_end;
    /* Lazy and greedy find the same when only the answer counts. */
    return p.n > 1 && p.p[1] == '?' ? 2 : 1;
}

static bool sequence(matcher *m, tv_str p, size_t at, const next *k)
{
    unsigned low = 0, high = 0;
    if (tired(m))
        return false;
    if (p.n == 0)
        return k->run(m, k, at);
    if (p.p[0] == '^' || p.p[0] == '$')
        return at == (p.p[0] == '^' ? 0 : m->text.n) && sequence(m, tv_str_drop(p, 1), at, k);
    const size_t n = atom_length(p);
    if (n == 0 || p.p[0] == '*' || p.p[0] == '+' || p.p[0] == '?') {
        m->bad = true;
        return false;
    }
    const tv_str piece = tv_str_take(p, n);
    const size_t q = quantifier(tv_str_drop(p, n), &low, &high);
    next behind = {.run = run_rest, .rest = tv_str_drop(p, n + q), .then = k};
    m->depth++;
    bool found = false;
    if (low == 1 && high == 1) {
        found = atom(m, piece, at, &behind);
    } else {
        behind.run = run_again;
        behind.piece = piece;
        behind.low = low;
        behind.high = high;
        behind.from = SIZE_MAX;
        found = run_again(m, &behind, at);
    }
    m->depth--;
    return found;
}

static tv_match match(tv_str pattern, tv_str text, bool whole)
{
    matcher m = {.text = text};
    const next end = {.run = run_end, .whole = whole};
    const bool found = branches(&m, pattern, 0, &end);
    return (tv_match){found && !m.bad, !m.bad};
}

tv_match tv_pattern_match(tv_str pattern, tv_str text)
{
    return match(pattern, text, true);
}

tv_match tv_pattern_match_start(tv_str pattern, tv_str text)
{
    return match(pattern, text, false);
}
