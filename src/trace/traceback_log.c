/* How a Python program ended: the last line of a traceback, and whose it is. */
#include "glean.h"
#include "trace.h"

#include <string.h>

/* A capture holds a few; what a loop prints a thousand times is one. */
enum { MOST_TRACEBACKS = 64 };

static size_t seen_in(const tv_scene *scene)
{
    size_t n = 0;
    for (const tv_sighting *s = tv_scene_first(scene, "traceback"); s;
         s = tv_scene_next(s, "traceback"))
        n++;
    return n;
}

/* "[rank3]: OSError: ..." */
static tv_double_read rank_of(tv_str line)
{
    return tv_str_starts(tv_str_trim(line), TV_S("[rank")) ? tv_number_past(line, "[rank")
                                                           : (tv_double_read){0};
}

/* "OSError: text", "torch.cuda.OutOfMemoryError: text", "KeyboardInterrupt" */
static bool is_exception(tv_str line)
{
    const tv_str name = tv_str_trim(tv_str_cut(line, ':').head);
    if (name.n < 5 || name.n > 120 || tv_holds(name, " "))
        return false;
    static const char *const ends[] = {"Error",   "Exception", "Interrupt",    "Exit",
                                       "Warning", "Timeout",   "StopIteration"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (tv_str_ends(name, tv_str_of(ends[i])))
            return true;
    return false;
}

/* The exception below a traceback's frames; frames are indented, other ranks' lines may stand
 * between. */
static void read_one(tv_reading *r, size_t begin)
{
    const tv_sheet *sheet = r->sheet;
    const tv_double_read rank = rank_of(sheet->v[begin].s);
    tv_str frame = {0};
    for (size_t i = begin + 1; i < sheet->n && i < begin + 400; i++) {
        const tv_str s = tv_bare(sheet->v[i].s);
        const tv_double_read other = rank_of(sheet->v[i].s);
        if (other.ok != rank.ok || (other.ok && (other.v > rank.v || other.v < rank.v)))
            continue;
        if (tv_str_starts(s, TV_S("File \"")))
            frame = s;
        if (tv_str_starts(s, TV_S("Traceback (most")))
            return; /* the next one is the outcome */
        if (!is_exception(s))
            continue;
        tv_note *facts = &tv_see(r, "traceback", i)->facts;
        (void)tv_note_str(r->a, facts, "exception", tv_str_trim(tv_str_cut(s, ':').head));
        const tv_str text = tv_str_trim(tv_str_cut(s, ':').tail);
        if (text.n)
            (void)tv_note_str(r->a, facts, "exception_text", tv_str_take(text, 400));
        if (frame.n)
            (void)tv_note_str(r->a, facts, "exception_frame", tv_str_take(frame, 200));
        if (rank.ok)
            (void)tv_note_num(r->a, facts, "exception_rank", rank.v);
        return;
    }
}

static void read(tv_reading *r)
{
    size_t seen = seen_in(r->scene);
    for (size_t i = 0; i < r->sheet->n && seen < MOST_TRACEBACKS; i++)
        if (tv_holds(r->sheet->v[i].s, "Traceback (most recent call last)")) {
            read_one(r, i);
            seen++;
        }
}

static const char *const needles[] = {"Traceback (most recent call last)", NULL};

extern const tv_log_format tv_log_format_traceback_log;
const tv_log_format tv_log_format_traceback_log = {"traceback", needles, read};
