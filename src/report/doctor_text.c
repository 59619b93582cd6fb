/* A diagnosis as a page: the verdict first, each finding with its evidence, its cause and what to
 * do; then what would settle the doubts. Knows no rule. */
#include "doctor_out.h"

#include "base/message.h"

static tv_style style_of(tv_severity severity)
{
    static const tv_style styles[] = {
        [TV_INFO] = TV_DIM, [TV_WARNING] = TV_YELLOW, [TV_CRITICAL] = TV_RED};
    return styles[severity];
}

static tv_str say(const tv_page *page, const char *msgid)
{
    return tv_str_of(tv_message(page->lang, msgid));
}

/* "1. Allocator fragmentation (O01, warning, high confidence)" */
static void put_title(const tv_page *page, size_t number, const tv_finding *f)
{
    tv_arena *a = page->b->a;
    tv_buf b = tv_buf_in(a);
    tv_put_u64(&b, number);
    tv_puts(&b, ". ");
    tv_put(&b, say(page, f->rule->title));
    tv_page_wrap(page, TV_BOLD, 0, tv_buf_str(&b));
    tv_page_text(page, style_of(f->severity), 3,
                 TV_TEXT(a, "doctor.sure", N_("{id}, {severity}, confidence {sure}"),
                         tv_arg_str("id", tv_str_of(f->rule->id)),
                         tv_arg_word("severity", tv_severity_name(f->severity)),
                         tv_arg_word("sure", tv_confidence_name(f->sure))));
}

static void put_evidence(const tv_page *page, const tv_evidence *e)
{
    tv_buf b = tv_buf_in(page->b->a);
    tv_put(&b, e->file);
    if (e->line) {
        tv_putc(&b, ':');
        tv_put_u64(&b, e->line);
    }
    tv_puts(&b, ": ");
    tv_put(&b, e->text);
    tv_page_wrap(page, TV_DIM, 5, tv_buf_str(&b));
}

/* A command stands on a line of its own and is never wrapped: it is copied. */
static void put_command(const tv_page *page, int indent, const char *word, tv_str command)
{
    tv_put_repeat(page->b, TV_S(" "), (size_t)indent);
    if (word)
        tv_page_say(page, TV_DIM, word);
    tv_page_put(page, TV_PLAIN, command);
    tv_putc(page->b, '\n');
}

static void put_step(const tv_page *page, const tv_finding *f, const tv_step *step)
{
    tv_arena *a = page->b->a;
    if (step->why)
        tv_page_text(page, TV_PLAIN, 5, tv_finding_text(f, step->why));
    if (step->command)
        put_command(page, 7, "$ ", tv_step_command(a, step->command, f));
    if (step->undo && tv_step_holds(step->undo, f))
        put_command(page, 7, N_("undo: "), tv_step_command(a, step->undo, f));
}

static void put_finding(const tv_page *page, size_t number, const tv_finding *f)
{
    tv_putc(page->b, '\n');
    put_title(page, number, f);
    tv_page_text(page, TV_PLAIN, 3, tv_finding_text(f, f->cause));
    if (f->because)
        tv_page_text(page, TV_DIM, 3,
                     TV_TEXT(page->b->a, "doctor.because", N_("Follows from {id}: {title}."),
                             tv_arg_str("id", tv_str_of(f->because->id)),
                             tv_arg_word("title", f->because->title)));
    for (size_t i = 0; i < f->evidence.n; i++)
        put_evidence(page, &f->evidence.v[i]);
    bool some = false;
    for (size_t i = 0; i < TV_MOST_STEPS; i++) {
        const tv_step *step = &f->rule->steps[i];
        if (!tv_step_fits(step, f))
            continue;
        if (!some)
            tv_page_text(page, TV_BOLD, 3, TV_TEXT0("doctor.do", N_("What to do")));
        some = true;
        put_step(page, f, step);
    }
    if (f->remedy.msgid)
        tv_page_text(page, TV_GREEN, 5, f->remedy);
}

static void put_asks(const tv_page *page, const tv_asks *asks)
{
    if (!asks->n)
        return;
    tv_page_head(page, N_("What would settle it"));
    for (size_t i = 0; i < asks->n; i++) {
        tv_page_text(page, TV_PLAIN, 2, TV_TEXT0("doctor.ask", asks->v[i].why));
        put_command(page, 4, "$ ", tv_str_of(asks->v[i].command));
    }
}

/* What was looked at and says nothing to us is named: a file that was ignored in silence would be
 * taken for a file without trouble. */
static void put_files(const tv_page *page, const tv_scene *scene)
{
    tv_arena *a = page->b->a;
    size_t known = 0, unknown = 0;
    for (const tv_note *file = scene->files.first; file; file = file->next) {
        const bool is_known = tv_noted_n(file, "kinds") > 0;
        known += is_known;
        unknown += !is_known;
        if (!is_known && unknown <= 5 && !scene->live)
            tv_page_text(page, TV_DIM, 0,
                         TV_TEXT(a, "doctor.unknown-file",
                                 N_("{file}: nothing in it is known to the doctor"),
                                 tv_arg_str("file", tv_noted_str(file, "file"))));
    }
    tv_page_text(page, TV_DIM, 0,
                 TV_TEXT(a, "doctor.files", N_("{known} of {all} documents recognised"),
                         tv_arg_num("known", TV_ARG_COUNT, (double)known),
                         tv_arg_num("all", TV_ARG_COUNT, (double)(known + unknown))));
}

void tv_doctor_text(const tv_request *req, tv_buf *b, const tv_diagnosis *d)
{
    const tv_page page = tv_page_on(req, b);
    size_t shown = 0;
    for (size_t i = 0; i < d->findings.n; i++)
        shown += d->findings.v[i]->severity > TV_INFO;
    if (!d->scene->n)
        tv_page_text(&page, TV_YELLOW, 0,
                     TV_TEXT0("doctor.nothing-known", N_("Nothing here is of a kind that the "
                                                         "doctor knows: nothing was judged.")));
    else if (!shown)
        tv_page_text(&page, TV_GREEN, 0,
                     TV_TEXT0("doctor.healthy", N_("Nothing that needs action was found.")));
    else
        tv_page_text(&page, TV_BOLD, 0,
                     TV_TEXT(b->a, "doctor.found", N_("findings: {n}, root causes first"),
                             tv_arg_num("n", TV_ARG_COUNT, (double)shown)));
    for (size_t i = 0; i < d->findings.n; i++)
        put_finding(&page, i + 1, d->findings.v[i]);
    put_asks(&page, &d->asks);
    tv_putc(b, '\n');
    put_files(&page, d->scene);
}
