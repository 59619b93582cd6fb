/* Pieces of the readers of memory errors; the account is in oom_account.c. */
#include "oom_parts.h"

#include <string.h>

#include "glean.h"

/* ---- a message over several lines ---- */

enum { MOST_WRAPPED = 8 };

static bool ends_here(tv_str text, const char *const *ends)
{
    for (; *ends; ends++)
        if (tv_holds(text, *ends))
            return true;
    return false;
}

/* What cannot be the rest of a wrapped message. */
static bool begins_other(tv_str line)
{
    return !line.n || tv_str_starts(line, TV_S("Traceback")) ||
           tv_str_starts(line, TV_S("File ")) || tv_holds(line, "out of memory");
}

tv_str tv_oom_joined(const tv_reading *r, size_t i, const char *const *ends)
{
    const tv_sheet *sheet = r->sheet;
    const tv_str first = tv_bare(sheet->v[i].s);
    if (ends_here(first, ends) || i + 1 >= sheet->n)
        return first;
    tv_buf b = tv_buf_in(r->a);
    tv_put(&b, first);
    for (size_t k = i + 1; k < sheet->n && k <= i + MOST_WRAPPED; k++) {
        const tv_str line = tv_bare(sheet->v[k].s);
        if (begins_other(line))
            break;
        tv_putc(&b, ' ');
        tv_put(&b, tv_str_take(line, 4096));
        if (ends_here(tv_buf_str(&b), ends))
            break;
    }
    return tv_buf_str(&b);
}

/* ---- repetitions ---- */

tv_sighting *tv_oom_again(tv_reading *r, tv_oom_seen *seen, tv_str message)
{
    const uint64_t hash = tv_str_hash(message);
    const size_t n = seen->n < TV_OOM_REMEMBERED ? seen->n : TV_OOM_REMEMBERED;
    for (size_t i = 0; i < n; i++) {
        if (seen->hash[i] != hash)
            continue;
        tv_note *facts = &seen->sighting[i]->facts;
        const double times = tv_noted_num(facts, "times");
        (void)tv_note_num(r->a, facts, "times", times > 0 ? times + 1 : 2);
        return seen->sighting[i];
    }
    return NULL;
}

void tv_oom_remember(tv_oom_seen *seen, tv_str message, tv_sighting *s)
{
    const size_t i = seen->n++ % TV_OOM_REMEMBERED;
    seen->hash[i] = tv_str_hash(message);
    seen->sighting[i] = s;
}

tv_sighting *tv_oom_new(tv_reading *r, tv_oom_seen *seen, size_t i, tv_str message)
{
    if (tv_oom_again(r, seen, message))
        return NULL;
    tv_sighting *s = tv_see(r, "oom", i);
    tv_oom_remember(seen, message, s);
    return s;
}

/* ---- figures ---- */

void tv_oom_put(tv_reading *r, tv_note *facts, const char *key, tv_double_read v)
{
    if (v.ok)
        (void)tv_note_num(r->a, facts, key, v.v);
}

void tv_oom_word(tv_reading *r, tv_note *facts, const char *key, const char *word)
{
    if (word)
        (void)tv_note_str(r->a, facts, key, tv_str_of(word));
}

/* ---- where it happened ---- */

typedef struct telling_row {
    const char *text;
    const char *word;
} telling_row;

enum { LINES_BACK = 80 };

/* The word of the nearest line above that holds one of the texts. */
static const char *told_above(const tv_sheet *sheet, size_t i, const telling_row *rows, size_t n)
{
    for (size_t back = 0; back < LINES_BACK && back <= i; back++) {
        const tv_str line = sheet->v[i - back].s;
        for (size_t k = 0; k < n; k++)
            if (tv_holds(line, rows[k].text))
                return rows[k].word;
        if (back && tv_holds(line, "Traceback (most recent call last)"))
            break;
    }
    return NULL;
}

/* "ERROR 10-11 12:27:29 engine.py:157]", "INFO 05-18 19:02:39 [core.py:58]": month-day and no year
 * is how vLLM's logger writes. */
static bool is_vllm_log(tv_str line)
{
    static const char *const levels[] = {"ERROR ", "WARNING ", "INFO ", "CRITICAL "};
    tv_str rest;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        if (!tv_past(tv_str_take(line, 160), levels[i], &rest) || rest.n < 20)
            continue;
        const char *p = rest.p;
        if (p[2] == '-' && p[5] == ' ' && p[8] == ':' && p[11] == ':' &&
            tv_holds(tv_str_take(rest, 80), ".py:"))
            return true;
    }
    return false;
}

const char *tv_oom_server(const tv_sheet *sheet, size_t i)
{
    static const telling_row rows[] = {
        {"sglang", "sglang"},
        {"vllm", "vllm"},
        {"EngineCore", "vllm"},
        {"lmdeploy", "lmdeploy"},
        {"text_generation_server", "tgi"},
    };
    const char *told = told_above(sheet, i, rows, sizeof rows / sizeof *rows);
    return told ? told : is_vllm_log(sheet->v[i].s) ? "vllm" : NULL;
}

const char *tv_oom_during(const tv_sheet *sheet, size_t i)
{
    static const telling_row rows[] = {
        {"graph_capture", "graph capture"},
        {"capture_model", "graph capture"},
        {"torch/cuda/graphs.py", "graph capture"},
        {"cuda_graph_runner", "graph capture"},
        {"torch/optim/", "optimizer step"},
        {"optimizer.step(", "optimizer step"},
        {"optim.step(", "optimizer step"},
        {"opt.step(", "optimizer step"},
        {"exp_avg_sq", "optimizer step"},
        {"loss.backward(", "backward"},
        {".backward(", "backward"},
        {"torch/autograd/", "backward"},
        {"in validation_step", "validation"},
        {"in validate", "validation"},
        {"in evaluate", "validation"},
        {"in evaluation_loop", "validation"},
        {"in eval_epoch", "validation"},
        {"in run_eval", "validation"},
        {"in prediction_step", "validation"},
        {"in validation", "validation"},
        {"in from_pretrained", "model load"},
        {"load_state_dict(", "model load"},
        {"torch.load(", "model load"},
        {"model.to(", "model load"},
        {"model.cuda(", "model load"},
        {"in load_model", "model load"},
        {"in _load_from_state_dict", "model load"},
    };
    return told_above(sheet, i, rows, sizeof rows / sizeof *rows);
}

tv_u64_read tv_oom_rank(tv_str raw)
{
    static const char *const marks[] = {"[rank", "[RANK", "Worker_TP", "TP", "Rank "};
    const tv_str head = tv_str_take(raw, 80);
    tv_str rest;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (tv_past(head, marks[i], &rest) && rest.n && rest.p[0] >= '0' && rest.p[0] <= '9')
            return tv_take_u64(&rest);
    return (tv_u64_read){0};
}
