/* What a script does in its loops. A training loop is a loop with a backward pass in it; a
 * validation loop goes over a loader without one. */
#include <string.h>

#include "train_script.h"

typedef struct loop {
    size_t head, end;
} loop;

static bool is_loop(tv_str s)
{
    return tv_str_starts(s, TV_S("for ")) || tv_str_starts(s, TV_S("while ")) ||
           tv_str_starts(s, TV_S("async for "));
}

static bool over_data(tv_str s)
{
    static const char *const words[] = {"loader",  "Loader(", "enumerate(", "batch",
                                        "dataset", "tqdm(",   "prefetcher"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (tv_holds(s, words[i]))
            return true;
    return false;
}

/* The innermost loop around a line within its function. */
static size_t loop_around(const tv_listing *code, size_t i)
{
    for (i = code->v[i].parent; i != TV_NO_LINE; i = code->v[i].parent) {
        if (is_loop(code->v[i].s))
            return i;
        if (tv_str_starts(code->v[i].s, TV_S("def ")))
            return TV_NO_LINE;
    }
    return TV_NO_LINE;
}

/* ---- gradients ---- */

static bool is_engine(tv_str s)
{
    return tv_holds(s, "engine.backward(") || tv_holds(s, "accelerator.backward(") ||
           tv_holds(s, "manual_backward(") || tv_holds(s, "fabric.backward(");
}

static bool clears_gradients(const tv_listing *code)
{
    static const char *const ways[] = {"zero_grad(",       "clear_grad(", "clear_gradients(",
                                       ".grad = None",     ".grad=None",  ".grad.zero_(",
                                       ".grad.data.zero_("};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (tv_listing_holds(code, ways[i]))
            return true;
    return false;
}

static void gradients(tv_script *s, const loop *l)
{
    const tv_listing *code = &s->code;
    const size_t backward = tv_listing_find(code, l->head, l->end, ".backward(");
    const bool steps = tv_listing_find(code, l->head, l->end, ".step(") != TV_NO_LINE ||
                       tv_listing_find(code, l->head, l->end, ".minimize(") != TV_NO_LINE;
    if (!steps || is_engine(code->v[backward].s) || clears_gradients(code))
        return;
    (void)tv_script_note(s, "no-zero-grad", backward,
                         s->paddle ? "optimizer.clear_grad()"
                                   : "optimizer.zero_grad(set_to_none=True)");
}

static void retained(tv_script *s, size_t i)
{
    if (tv_holds(s->code.v[i].s, ".backward(") && tv_holds(s->code.v[i].s, "retain_graph=True"))
        (void)tv_script_note(s, "retain-graph", i, "loss.backward()");
}

/* ---- losses that keep their graphs ---- */

static bool is_name(tv_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        const char c = s.p[i];
        if (!((c | 32) >= 'a' && (c | 32) <= 'z') && !(c >= '0' && c <= '9') && c != '_' &&
            c != '.' && c != '[' && c != ']' && c != '\'' && c != '"')
            return false;
    }
    return s.n > 0;
}

/* "loss", "loss * n", "loss / len(x)", "out.loss", "(loss)": the tensor itself. */
static bool is_bare_loss(tv_str s)
{
    static const char *const freed[] = {".item(", ".detach(",     "float(",  ".cpu(", ".numpy(",
                                        ".data",  ".mean().item", "tolist(", "detach"};
    for (size_t i = 0; i < sizeof freed / sizeof *freed; i++)
        if (tv_holds(s, freed[i]))
            return false;
    s = tv_str_trim(s);
    size_t n = 0;
    while (n < s.n && !strchr(" */", s.p[n]))
        n++;
    const tv_str head = tv_str_take(s, n);
    const tv_str rest = tv_str_trim(tv_str_drop(s, n));
    return is_name(head) && tv_holds_nocase(head, "loss") &&
           (!rest.n || *rest.p == '*' || *rest.p == '/');
}

/* The loss itself is not what another loss is added to: "loss += aux_loss". */
static bool goes_backward(const tv_listing *code, const loop *l, tv_str name)
{
    for (size_t i = l->head; i < l->end; i++) {
        tv_str rest = code->v[i].s;
        if (!tv_holds(rest, "backward("))
            continue;
        while (tv_past(rest, "backward(", &rest))
            if (tv_str_starts(rest, name))
                return true;
        const tv_str before = tv_str_cut(code->v[i].s, '.').head;
        if (tv_str_eq(tv_str_trim(before), name) || tv_str_has(code->v[i].s, name))
            return true;
    }
    return false;
}

/* Assigned anew in the loop before it is added to: it lives for one step. */
static bool lives_one_step(const tv_listing *code, const loop *l, size_t i, tv_str name)
{
    for (size_t k = l->head + 1; k < i; k++) {
        const tv_str s = code->v[k].s;
        if (tv_str_starts(s, name)) {
            const tv_str rest = tv_str_trim(tv_str_drop(s, name.n));
            if (tv_str_starts(rest, TV_S("=")) && !tv_str_starts(rest, TV_S("==")))
                return true;
        }
    }
    return false;
}

/* "loss * n" -> "loss.detach() * n" */
static void put_detached(tv_buf *b, tv_str s)
{
    size_t n = 0;
    while (n < s.n && !strchr(" */", s.p[n]))
        n++;
    tv_put(b, tv_str_take(s, n));
    tv_puts(b, ".detach()");
    tv_put(b, tv_str_drop(s, n));
}

static void kept_loss(tv_script *s, const loop *l, size_t i)
{
    const tv_listing *code = &s->code;
    const tv_str line = code->v[i].s;
    tv_str rest, name = {0};
    if (tv_past(line, " += ", &rest) || tv_past(line, "+=", &rest)) {
        name = tv_str_trim(tv_str_cut(line, '+').head);
    } else if (tv_past(line, ".append(", &rest)) {
        name = tv_str_cut(line, '.').head;
        rest = tv_listing_call(line, "append");
    } else {
        return;
    }
    if (!is_name(name) || !is_bare_loss(rest) || goes_backward(code, l, name) ||
        lives_one_step(code, l, i, name))
        return;
    tv_note *note = tv_script_note(s, "loss-kept", i, NULL);
    tv_buf b = tv_buf_in(s->r->a);
    const bool append = tv_holds(line, ".append(");
    tv_put(&b, name);
    tv_puts(&b, append ? ".append(" : " += ");
    put_detached(&b, tv_str_trim(rest));
    tv_puts(&b, append ? ")" : "");
    (void)tv_note_str(s->r->a, note, "fix", tv_buf_str(&b));
}

/* ---- waits for the device ---- */

/* Under an if that is not taken each step: logging. */
static bool is_rare(const tv_listing *code, size_t i, size_t head)
{
    for (i = code->v[i].parent; i != TV_NO_LINE && i != head; i = code->v[i].parent)
        if (tv_str_starts(code->v[i].s, TV_S("if ")) &&
            (tv_holds(code->v[i].s, "%") || tv_holds(code->v[i].s, "log") ||
             tv_holds(code->v[i].s, "print") || tv_holds(code->v[i].s, "verbose") ||
             tv_holds(code->v[i].s, "debug")))
            return true;
    return false;
}

static size_t syncs_of(tv_str s)
{
    static const char *const calls[] = {".item()",  ".cpu()",     ".tolist()",
                                        ".numpy()", ".nonzero()", "print(loss"};
    size_t n = 0;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        tv_str rest = s;
        while (tv_past(rest, calls[i], &rest))
            n++;
    }
    return n;
}

static void waits(tv_script *s, const loop *l)
{
    const tv_listing *code = &s->code;
    size_t n = 0, first = TV_NO_LINE;
    for (size_t i = l->head + 1; i < l->end; i++) {
        const tv_str line = code->v[i].s;
        if (is_rare(code, i, l->head))
            continue;
        const size_t here = syncs_of(line);
        if (here && first == TV_NO_LINE)
            first = i;
        n += here;
        if (tv_holds(line, "cuda.synchronize(") || tv_holds(line, "device.synchronize("))
            (void)tv_script_note(s, "synchronize-each-step", i,
                                 "# remove torch.cuda.synchronize()");
        if (tv_holds(line, "empty_cache("))
            (void)tv_script_note(s, "empty-cache-each-step", i,
                                 "# remove torch.cuda.empty_cache()");
    }
    if (first == TV_NO_LINE)
        return;
    tv_note *note = tv_script_note(s, "sync-each-step", first, "running_loss += loss.detach()");
    (void)tv_note_num(s->r->a, note, "calls", (double)n);
}

/* ---- validation ---- */

static bool is_free_of_gradients(const tv_listing *code, size_t i)
{
    for (size_t k = i; k != TV_NO_LINE; k = code->v[k].parent) {
        const tv_str s = code->v[k].s;
        if (tv_holds(s, "no_grad") || tv_holds(s, "inference_mode") ||
            tv_holds(s, "set_grad_enabled"))
            return true;
        if (tv_str_starts(s, TV_S("def ")))
            for (size_t up = k; up && tv_str_starts(code->v[up - 1].s, TV_S("@")); up--)
                if (tv_holds(code->v[up - 1].s, "no_grad") ||
                    tv_holds(code->v[up - 1].s, "inference_mode"))
                    return true;
    }
    return false;
}

static tv_str function_of(const tv_listing *code, size_t i)
{
    const size_t at = tv_listing_within(code, i, "def ");
    return at == TV_NO_LINE ? (tv_str){0} : tv_str_drop(code->v[at].s, 4);
}

static bool says_validation(tv_str s)
{
    static const char *const words[] = {"valid", "eval", "test", "infer", "predict"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (tv_holds_nocase(s, words[i]))
            return true;
    return tv_listing_names(s, "val_loader") || tv_holds(s, "val_dataloader") ||
           tv_holds(s, "val_dl");
}

/* ".eval()" stands close above the loop. */
static bool follows_eval(const tv_listing *code, size_t head)
{
    for (size_t k = head; k-- > 0 && head - k < 12;) {
        if (tv_holds(code->v[k].s, ".eval()"))
            return true;
        if (tv_holds(code->v[k].s, ".train()") || tv_str_starts(code->v[k].s, TV_S("def ")))
            return false;
    }
    return false;
}

static bool runs_a_model(const tv_listing *code, const loop *l)
{
    static const char *const calls[] = {"model(",   "net(",     "criterion(",    "model.forward(",
                                        "network(", "loss_fn(", "model.module(", "self.model("};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (tv_listing_find(code, l->head, l->end, calls[i]) != TV_NO_LINE)
            return true;
    return false;
}

static void validation(tv_script *s, const loop *l)
{
    const tv_listing *code = &s->code;
    const tv_str head = code->v[l->head].s;
    if (!over_data(head) || !runs_a_model(code, l) || is_free_of_gradients(code, l->head) ||
        tv_listing_find(code, l->head, l->end, "no_grad") != TV_NO_LINE ||
        tv_listing_find(code, l->head, l->end, "inference_mode") != TV_NO_LINE ||
        tv_listing_find(code, l->head, l->end, "set_grad_enabled") != TV_NO_LINE ||
        tv_listing_find(code, l->head, l->end, "volatile=True") != TV_NO_LINE ||
        tv_listing_holds(code, "set_grad_enabled(False)"))
        return;
    if (follows_eval(code, l->head) || says_validation(head) ||
        says_validation(tv_str_cut(function_of(code, l->head), '(').head))
        (void)tv_script_note(s, "no-no-grad", l->head,
                             s->paddle ? "with paddle.no_grad():" : "with torch.no_grad():");
}

/* ---- all loops ---- */

static void training(tv_script *s, const loop *l)
{
    gradients(s, l);
    for (size_t i = l->head + 1; i < l->end; i++) {
        kept_loss(s, l, i);
        retained(s, i);
    }
    waits(s, l);
}

/* Loops of loops: only the innermost one around a backward pass is a step. */
static bool is_step_loop(const tv_listing *code, const loop *l)
{
    for (size_t i = l->head + 1; i < l->end; i++)
        if (tv_holds(code->v[i].s, ".backward(") && loop_around(code, i) == l->head)
            return true;
    return false;
}

static bool has_backward(const tv_listing *code, const loop *l)
{
    return tv_listing_find(code, l->head, l->end, ".backward(") != TV_NO_LINE;
}

/* Scripts have a handful of loops; what has more is not looked at further. */
enum { MOST_LOOPS = 100 };

void tv_script_loops(tv_script *s)
{
    const tv_listing *code = &s->code;
    size_t n = 0;
    for (size_t i = 0; i < code->n && n < MOST_LOOPS; i++) {
        if (!is_loop(code->v[i].s))
            continue;
        const loop l = {i, code->v[i].end};
        n++;
        if (is_step_loop(code, &l))
            training(s, &l);
        else if (!has_backward(code, &l))
            validation(s, &l);
    }
}
