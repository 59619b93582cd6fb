/* The window holds whole events: one that ends behind it is read again when more has come. Inside
 * an event only the names and numbers that are asked for are looked at; all else is passed over
 * 64 bytes at a time, by bit masks of quotes and brackets. */
#include "event_scan.h"

#include <math.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
    /* An event: stacks and shapes of the largest take 200 KB. A longer one is passed over. */
    window_bytes = 1 << 20,
    pad_bytes = 64, /* read past the end by whole blocks, never looked at */
};

typedef enum place { AT_START, IN_OBJECT, IN_EVENTS, AT_END } place;

struct tv_event_scan {
    tv_stream *stream;
    char *window;
    size_t at, n;
    bool over; /* the stream is */
    place place;
    bool list;
    bool lost; /* looks for the next event */
    bool cut;
    uint64_t damaged;
};

/* ---- blocks of 64 bytes ---- */

typedef struct masks {
    uint64_t quote, slash, open, close, line;
} masks;

#ifdef __SSE2__
static uint64_t equal64(const __m128i *v, char c)
{
    const __m128i w = _mm_set1_epi8(c);
    uint64_t m = 0;
    for (unsigned i = 0; i < 4; i++)
        m |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(v[i], w)) << (16 * i);
    return m;
}

static masks look(const char *p)
{
    __m128i v[4], low[4];
    for (unsigned i = 0; i < 4; i++) {
        v[i] = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i));
        low[i] = _mm_or_si128(v[i], _mm_set1_epi8(0x20)); /* [ and { alike, ] and } alike */
    }
    return (masks){equal64(v, '"'), equal64(v, '\\'), equal64(low, '{'), equal64(low, '}'),
                   equal64(v, '\n')};
}
#else
static masks look(const char *p)
{
    masks m = {0};
    for (unsigned i = 0; i < 64; i++) {
        const uint64_t bit = (uint64_t)1 << i;
        m.quote |= p[i] == '"' ? bit : 0;
        m.slash |= p[i] == '\\' ? bit : 0;
        m.open |= p[i] == '{' || p[i] == '[' ? bit : 0;
        m.close |= p[i] == '}' || p[i] == ']' ? bit : 0;
        m.line |= p[i] == '\n' ? bit : 0;
    }
    return m;
}
#endif

/* Bit i: the number of ones in bits 0 to i is odd. */
static uint64_t prefix_xor(uint64_t m)
{
    for (unsigned shift = 1; shift < 64; shift *= 2)
        m ^= m << shift;
    return m;
}

static uint64_t ones(uint64_t m)
{
    uint64_t n = 0;
    for (; m; m &= m - 1)
        n++;
    return n;
}

/* Inside a value: how deep, inside a text, behind a back-slash. */
typedef struct nest {
    uint64_t depth;
    uint64_t in_text; /* all ones: yes */
    bool escaped;
} nest;

static uint64_t escaped_by(uint64_t slash, nest *n)
{
    uint64_t escaped = n->escaped ? 1 : 0;
    n->escaped = false;
    slash &= ~escaped;
    while (slash) {
        const unsigned i = (unsigned)__builtin_ctzll(slash);
        slash &= slash - 1;
        if (i == 63) {
            n->escaped = true;
            break;
        }
        escaped |= (uint64_t)1 << (i + 1);
        slash &= ~((uint64_t)1 << (i + 1));
    }
    return escaped;
}

typedef enum passed { PASSED, PASS_MORE, PASS_BAD } passed;

/* Moves *p behind the bracket that closes the value, or to the end. A line end inside a text: the
 * text is broken, *p is there. */
static passed pass(const char **p, const char *end, nest *n)
{
    for (; *p < end; *p += 64) {
        masks m = look(*p);
        const size_t left = (size_t)(end - *p);
        const uint64_t valid = left < 64 ? ((uint64_t)1 << left) - 1 : UINT64_MAX;
        if (m.slash || n->escaped)
            m.quote &= ~escaped_by(m.slash & valid, n);
        const uint64_t in = prefix_xor(m.quote & valid) ^ n->in_text;
        const uint64_t bad = m.line & in & valid;
        if (bad) {
            *p += __builtin_ctzll(bad);
            return PASS_BAD;
        }
        uint64_t open = m.open & ~in & valid, close = m.close & ~in & valid;
        const uint64_t closes = ones(close);
        if (n->depth > closes) {
            n->depth = n->depth + ones(open) - closes;
        } else {
            for (uint64_t both = open | close; both; both &= both - 1) {
                const uint64_t bit = both & (~both + 1);
                n->depth += open & bit ? 1 : (uint64_t)-1;
                if (n->depth == 0) {
                    *p += __builtin_ctzll(bit) + 1;
                    return PASSED;
                }
            }
        }
        n->in_text = in >> 63 ? UINT64_MAX : 0;
    }
    *p = end;
    return PASS_MORE;
}

/* ---- texts ---- */

/* The next quote or back-slash, or end. */
static const char *find_quote(const char *p, const char *end)
{
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\');
    for (; p < end; p += 16) {
        const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        const int hit =
            _mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)));
        if (hit) {
            p += __builtin_ctz((unsigned)hit);
            return p < end ? p : end;
        }
    }
    return end;
#else
    while (p < end && *p != '"' && *p != '\\')
        p++;
    return p;
#endif
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static const char *skip_space(const char *p, const char *end)
{
    while (p < end && is_space(*p))
        p++;
    return p;
}

/* The quote that ends the text; p is behind its opening quote. NULL: not in the window. A quote
 * that neither a comma, a colon nor a bracket follows was written without its back-slash. */
static const char *text_end(const char *p, const char *end, bool *bare)
{
    for (;;) {
        p = find_quote(p, end);
        if (p >= end)
            return NULL;
        if (*p == '\\') {
            if (end - p < 2)
                return NULL;
            p += 2;
            continue;
        }
        const char *after = skip_space(p + 1, end);
        if (after >= end)
            return NULL;
        if (*after == ',' || *after == ':' || *after == '}' || *after == ']')
            return p;
        *bare = true;
        p++;
    }
}

/* ---- numbers ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool tv_read_stamp(tv_str s, int64_t *ns, bool *fraction)
{
    const char *p = s.p, *end = s.p + s.n;
    const bool minus = p < end && *p == '-';
    p += minus;
    const char *first = p;
    uint64_t v = 0;
    while (p < end && is_digit(*p) && v < UINT64_MAX / 20)
        v = v * 10 + (uint64_t)(*p++ - '0');
    if (p == first || v > (uint64_t)INT64_MAX / 1001)
        return false;
    v *= 1000;
    *fraction = p < end && *p == '.';
    if (*fraction) {
        static const unsigned weight[] = {100, 10, 1};
        unsigned i = 0;
        for (p++; p < end && is_digit(*p); p++, i++) {
            if (i < 3)
                v += weight[i] * (unsigned)(*p - '0');
            else if (i == 3 && *p >= '5')
                v++;
        }
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        const double d = tv_read_number(s) * 1e3;
        if (!(d > -9e18 && d < 9e18))
            return false;
        *ns = (int64_t)llround(d);
        return true;
    }
    *ns = minus ? -(int64_t)v : (int64_t)v;
    return true;
}

double tv_read_number(tv_str s)
{
    const char *p = s.p, *end = s.p + s.n;
    uint64_t v = 0;
    const char *first = p;
    while (p < end && is_digit(*p) && p - first < 18)
        v = v * 10 + (uint64_t)(*p++ - '0');
    if (p > first && (p == end || *p == ',' || *p == '}'))
        return (double)v;
    const tv_double_read d = tv_str_double(s);
    return d.ok && isfinite(d.v) ? d.v : (double)NAN;
}

/* ---- args ---- */

tv_arg_scan tv_args_of(tv_str args)
{
    if (args.n < 2 || *args.p != '{')
        return (tv_arg_scan){args.p, args.p};
    return (tv_arg_scan){args.p + 1, args.p + args.n - 1};
}

static const char *literal_end(const char *p, const char *end)
{
    while (p < end && *p != ',' && *p != '}' && *p != ']' && !is_space(*p))
        p++;
    return p;
}

/* A value that lies whole in [p, end): args were passed over once, so their brackets match. */
static const char *value_of(const char *p, const char *end, tv_str *value)
{
    if (*p == '"') {
        bool bare = false;
        const char *quote = text_end(p + 1, end, &bare);
        if (!quote) { /* the last text: nothing follows it */
            quote = end;
            while (quote > p + 1 && quote[-1] != '"')
                quote--;
            *value = tv_str_span(p + 1, quote > p + 1 ? quote - 1 : quote);
            return end;
        }
        *value = tv_str_span(p + 1, quote);
        return quote + 1;
    }
    if (*p == '{' || *p == '[') {
        nest n = {0};
        const char *q = p;
        /* The bytes behind args belong to the window or its padding: whole blocks may be read. */
        (void)pass(&q, end, &n);
        *value = tv_str_span(p, q);
        return q;
    }
    const char *q = literal_end(p, end);
    *value = tv_str_span(p, q);
    return q;
}

bool tv_args_next(tv_arg_scan *s, tv_str *key, tv_str *value)
{
    const char *p = s->p;
    while (p < s->end && *p != '"')
        p++;
    if (p >= s->end)
        return false;
    bool bare = false;
    const char *quote = text_end(p + 1, s->end, &bare);
    if (!quote)
        return false;
    *key = tv_str_span(p + 1, quote);
    p = skip_space(quote + 1, s->end);
    if (p >= s->end || *p != ':')
        return false;
    p = skip_space(p + 1, s->end);
    if (p >= s->end)
        return false;
    s->p = value_of(p, s->end, value);
    if (s->p == p)
        s->p++; /* a stray bracket */
    return true;
}

/* ---- one event ---- */

typedef enum reading { READ, READ_MORE, READ_BAD } reading;

/* A value in the window; *p moves behind it. */
static reading take_value(const char **p, const char *end, tv_str *value, bool *bare)
{
    const char *q = *p;
    if (*q == '"') {
        const char *quote = text_end(q + 1, end, bare);
        if (!quote)
            return READ_MORE;
        *value = tv_str_span(q + 1, quote);
        *p = quote + 1;
        return READ;
    }
    if (*q == '{' || *q == '[') {
        nest n = {0};
        const passed done = pass(p, end, &n);
        *value = tv_str_span(q, *p);
        return done == PASSED ? READ : done == PASS_MORE ? READ_MORE : READ_BAD;
    }
    *p = literal_end(q, end);
    if (*p >= end)
        return READ_MORE;
    *value = tv_str_span(q, *p);
    return *p > q ? READ : READ_BAD;
}

static void set_member(tv_event *e, tv_str key, tv_str value)
{
    bool fraction = false;
    const char *k = key.p;
    if (key.n == 2 && k[0] == 'p' && k[1] == 'h') {
        e->ph = value.n ? *value.p : 0;
    } else if (key.n == 2 && k[0] == 't' && k[1] == 's') {
        e->has_ts = tv_read_stamp(value, &e->ts_ns, &fraction);
        e->ts_fraction = fraction;
    } else if (key.n == 3 && memcmp(k, "dur", 3) == 0) {
        e->has_dur = tv_read_stamp(value, &e->dur_ns, &fraction);
    } else if (key.n == 3 && memcmp(k, "cat", 3) == 0) {
        e->cat = value;
    } else if (key.n == 3 && memcmp(k, "pid", 3) == 0) {
        e->pid = value;
    } else if (key.n == 3 && memcmp(k, "tid", 3) == 0) {
        e->tid = value;
    } else if (key.n == 4 && memcmp(k, "name", 4) == 0) {
        e->name = value;
    } else if (key.n == 4 && memcmp(k, "args", 4) == 0) {
        e->args = value;
    }
}

/* *p is at the brace that opens the event, and moves behind it. READ_BAD: *p is where the text
 * broke; what was read before stands in e. */
static reading read_event(const char **p, const char *end, tv_event *e, bool *bare)
{
    const char *q = *p + 1;
    for (;;) {
        while (q < end && (is_space(*q) || *q == ','))
            q++;
        if (q >= end)
            return READ_MORE;
        if (*q == '}') {
            *p = q + 1;
            return READ;
        }
        const char *quote = *q == '"' ? text_end(q + 1, end, bare) : q;
        if (!quote)
            return READ_MORE;
        const tv_str key = tv_str_span(q + 1, quote);
        const char *colon = *q == '"' ? skip_space(quote + 1, end) : q;
        if (colon >= end)
            return READ_MORE;
        if (*q != '"' || *colon != ':') {
            *p = q + 1;
            return READ_BAD;
        }
        q = skip_space(colon + 1, end);
        if (q >= end)
            return READ_MORE;
        tv_str value;
        const reading r = take_value(&q, end, &value, bare);
        if (r == READ_MORE)
            return r;
        if (r == READ_BAD) {
            *p = q;
            return r;
        }
        set_member(e, key, value);
    }
}

/* ---- the window ---- */

static const tv_err *more(tv_event_scan *s)
{
    if (s->at) {
        memmove(s->window, s->window + s->at, s->n - s->at);
        s->n -= s->at;
        s->at = 0;
    }
    size_t got = 0;
    const size_t room = window_bytes - s->n;
    if (!s->over && room)
        TV_TRY(tv_stream_read(s->stream, s->window + s->n, room, &got));
    s->n += got;
    s->over = s->over || got < room;
    memset(s->window + s->n, 0, pad_bytes);
    return NULL;
}

static bool is_full(const tv_event_scan *s)
{
    return s->at == 0 && s->n == window_bytes;
}

/* An event that is larger than the window is passed over. */
static const tv_err *drop_value(tv_event_scan *s)
{
    nest n = {0};
    s->damaged++;
    for (;;) {
        const char *p = s->window + s->at;
        const passed done = pass(&p, s->window + s->n, &n);
        s->at = (size_t)(p - s->window);
        if (done != PASS_MORE || s->over)
            return NULL;
        TV_TRY(more(s));
    }
}

/* An event begins with a brace behind a comma or a bracket, and a name follows it. */
static const char *find_event(const char *p, const char *begin, const char *end)
{
    for (; (p = p < end ? memchr(p, '{', (size_t)(end - p)) : NULL); p++) {
        const char *before = p;
        while (before > begin && is_space(before[-1]))
            before--;
        const bool fits = before == begin || before[-1] == ',' || before[-1] == '[';
        const char *after = skip_space(p + 1, end);
        if (fits && (after >= end || *after == '"'))
            return p;
    }
    return NULL;
}

static const tv_err *find_next(tv_event_scan *s)
{
    for (;;) {
        const char *begin = s->window + s->at;
        const char *p = find_event(begin, begin, s->window + s->n);
        if (p) {
            s->at = (size_t)(p - s->window);
            s->lost = false;
            return NULL;
        }
        /* The comma before the brace is kept. */
        s->at = s->n > s->at + 64 ? s->n - 64 : s->at;
        if (s->over) {
            s->at = s->n;
            return NULL;
        }
        const size_t had = s->n - s->at;
        TV_TRY(more(s));
        if (s->n <= had && s->over)
            s->at = s->n;
    }
}

/* The next byte that is no blank and no comma, in *c; 0 at the end. */
static const tv_err *next_byte(tv_event_scan *s, char *c)
{
    for (;;) {
        const char *end = s->window + s->n;
        const char *p = s->window + s->at;
        while (p < end && (is_space(*p) || *p == ','))
            p++;
        s->at = (size_t)(p - s->window);
        *c = p < end ? *p : 0;
        if (p < end || s->over)
            return NULL;
        TV_TRY(more(s));
    }
}

/* ---- events ---- */

static const tv_err *deliver(tv_event_scan *s, tv_scanned *out, bool *done)
{
    for (;;) {
        const char *p = s->window + s->at;
        bool bare = false;
        out->event = (tv_event){0};
        const reading r = read_event(&p, s->window + s->n, &out->event, &bare);
        if (r == READ_MORE && !s->over && !is_full(s)) {
            TV_TRY(more(s));
            continue;
        }
        if (r == READ_MORE) {
            if (!s->over)
                return drop_value(s);
            s->cut = true;
            s->at = s->n;
            s->place = AT_END;
            return NULL;
        }
        s->at = (size_t)(p - s->window);
        s->damaged += bare || r == READ_BAD;
        s->lost = r == READ_BAD;
        *done = out->event.ph != 0;
        out->what = TV_SCAN_EVENT;
        return NULL;
    }
}

static const tv_err *next_event(tv_event_scan *s, tv_scanned *out, bool *done)
{
    if (s->lost)
        TV_TRY(find_next(s));
    char c;
    TV_TRY(next_byte(s, &c));
    if (c == '{')
        return deliver(s, out, done);
    if (c == ']') {
        s->at++;
        s->place = s->list ? AT_END : IN_OBJECT;
    } else if (c == 0 && s->at >= s->n) {
        s->cut = true;
        s->place = AT_END;
    } else {
        s->damaged++;
        s->lost = true;
        s->at++;
    }
    return NULL;
}

/* ---- the outer object ---- */

static reading read_member(const char **p, const char *end, tv_scanned *out)
{
    const char *q = *p;
    bool bare = false;
    const char *quote = text_end(q + 1, end, &bare);
    if (!quote)
        return READ_MORE;
    out->key = tv_str_span(q + 1, quote);
    q = skip_space(quote + 1, end);
    if (q >= end)
        return READ_MORE;
    if (*q != ':') {
        *p = q;
        return READ_BAD;
    }
    q = skip_space(q + 1, end);
    if (q >= end)
        return READ_MORE;
    const char *value = q;
    if (tv_str_is(out->key, "traceEvents") && *q == '[') {
        out->value = (tv_str){0};
        *p = q + 1;
        return READ;
    }
    tv_str unquoted;
    const reading r = take_value(&q, end, &unquoted, &bare);
    out->value = tv_str_span(value, q);
    if (r != READ_MORE)
        *p = q;
    return r;
}

static const tv_err *next_member(tv_event_scan *s, tv_scanned *out, bool *done)
{
    char c;
    TV_TRY(next_byte(s, &c));
    if (c != '"') {
        s->cut = c != '}';
        s->place = AT_END;
        return NULL;
    }
    for (;;) {
        const char *p = s->window + s->at;
        const reading r = read_member(&p, s->window + s->n, out);
        if (r == READ_MORE && !s->over && !is_full(s)) {
            TV_TRY(more(s));
            continue;
        }
        if (r == READ_MORE && !s->over) {
            s->at = (size_t)(out->key.p + out->key.n + 1 - s->window);
            return drop_value(s);
        }
        if (r == READ_MORE) {
            s->cut = true;
            s->place = AT_END;
            return NULL;
        }
        s->at = (size_t)(p - s->window);
        s->damaged += r == READ_BAD;
        if (r == READ && !out->value.n) {
            s->place = IN_EVENTS;
            return NULL;
        }
        *done = r == READ;
        out->what = TV_SCAN_MEMBER;
        return NULL;
    }
}

static const tv_err *begin(tv_event_scan *s)
{
    char c;
    if (s->n - s->at >= 3 && memcmp(s->window + s->at, "\xef\xbb\xbf", 3) == 0)
        s->at += 3;
    TV_TRY(next_byte(s, &c));
    s->list = c == '[';
    s->place = c == '[' ? IN_EVENTS : c == '{' ? IN_OBJECT : AT_END;
    s->at += s->place != AT_END;
    return NULL;
}

/* ---- the face ---- */

tv_event_scan *tv_event_scan_open(tv_arena *a, tv_stream *stream)
{
    tv_event_scan *s = tv_new(a, tv_event_scan, 1);
    s->stream = stream;
    s->window = tv_new(a, char, window_bytes + pad_bytes);
    return s;
}

const tv_err *tv_event_scan_next(tv_event_scan *s, tv_scanned *out)
{
    for (bool done = false; !done;) {
        switch (s->place) {
        case AT_START:
            TV_TRY(more(s));
            TV_TRY(begin(s));
            break;
        case IN_OBJECT:
            TV_TRY(next_member(s, out, &done));
            break;
        case IN_EVENTS:
            TV_TRY(next_event(s, out, &done));
            break;
        case AT_END:
            out->what = TV_SCAN_END;
            return NULL;
        }
    }
    return NULL;
}

uint64_t tv_event_scan_damaged(const tv_event_scan *s)
{
    return s->damaged;
}

bool tv_event_scan_is_cut(const tv_event_scan *s)
{
    return s->cut;
}

bool tv_event_scan_is_list(const tv_event_scan *s)
{
    return s->list;
}

bool tv_event_scan_is(tv_str head)
{
    tv_str s = tv_str_starts(head, TV_S("\xef\xbb\xbf")) ? tv_str_drop(head, 3) : head;
    while (s.n && is_space(*s.p))
        s = tv_str_drop(s, 1);
    if (!s.n || (*s.p != '{' && *s.p != '['))
        return false;
    if (*s.p == '{')
        return tv_str_has(s, TV_S("\"traceEvents\"")) ||
               (tv_str_has(s, TV_S("\"schemaVersion\"")) &&
                (tv_str_has(s, TV_S("\"deviceProperties\"")) ||
                 tv_str_has(s, TV_S("\"distributedInfo\"")) ||
                 tv_str_has(s, TV_S("\"computeProperties\""))));
    const char *p = skip_space(s.p + 1, s.p + s.n);
    return p < s.p + s.n && *p == '{' && tv_str_has(tv_str_take(s, 4096), TV_S("\"ph\""));
}
