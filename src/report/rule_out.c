/* One rule of the doctor in full: what it says, how it decides, what speaks against it, what to
 * do, and where it comes from. The pages of docs/rules/ are made of it. */
#include "doctor_out.h"

#include "base/message.h"

static void section(const tv_page *page, const char *heading, const char *msgid)
{
    if (!msgid)
        return;
    tv_page_head(page, heading);
    tv_page_wrap(page, TV_PLAIN, 2, tv_str_of(tv_message(page->lang, msgid)));
}

static void put_steps(const tv_page *page, const tv_rule *rule)
{
    tv_page_head(page, N_("What to do"));
    for (size_t i = 0; i < TV_MOST_STEPS; i++) {
        const tv_step *step = &rule->steps[i];
        if (step->why)
            tv_page_wrap(page, TV_PLAIN, 2, tv_str_of(tv_message(page->lang, step->why)));
        if (step->command) {
            tv_puts(page->b, "    $ ");
            tv_puts(page->b, step->command);
            tv_putc(page->b, '\n');
        }
        if (step->undo) {
            tv_puts(page->b, "    ");
            tv_page_say(page, TV_DIM, N_("undo: "));
            tv_puts(page->b, step->undo);
            tv_putc(page->b, '\n');
        }
    }
}

void tv_rule_text(const tv_request *req, tv_buf *b, const tv_rule *rule, const char *group)
{
    const tv_page page = tv_page_on(req, b);
    tv_page_text(&page, TV_BOLD, 0,
                 TV_TEXT(b->a, "rule.title", N_("{id}: {title}"),
                         tv_arg_str("id", tv_str_of(rule->id)), tv_arg_word("title", rule->title)));
    tv_page_text(&page, TV_DIM, 0,
                 TV_TEXT(b->a, "rule.sure", N_("{group}; {severity}; confidence {sure}"),
                         tv_arg_word("group", group),
                         tv_arg_word("severity", tv_severity_name(rule->severity)),
                         tv_arg_word("sure", tv_confidence_name(rule->sure))));
    section(&page, N_("What happens"), rule->cause);
    section(&page, N_("How it is decided"), rule->decided);
    section(&page, N_("What speaks against it"), rule->unless);
    put_steps(&page, rule);
    tv_page_head(&page, N_("Source"));
    tv_page_wrap(&page, TV_PLAIN, 2, tv_str_of(rule->source));
}

static void put_message(tv_json_out *w, tv_lang lang, const char *key, const char *msgid)
{
    tv_json_key(w, key);
    if (msgid)
        tv_json_put_str(w, tv_str_of(tv_message(lang, msgid)));
    else
        tv_json_put_null(w);
}

static void put_plain(tv_json_out *w, const char *key, const char *text)
{
    tv_json_key(w, key);
    if (text)
        tv_json_put_str(w, tv_str_of(text));
    else
        tv_json_put_null(w);
}

void tv_rule_json(const tv_request *req, tv_json_out *w, const tv_rule *rule, const char *group)
{
    tv_json_begin(w, '{');
    put_plain(w, "id", rule->id);
    put_plain(w, "group", group);
    put_plain(w, "severity", tv_severity_name(rule->severity));
    put_plain(w, "confidence", tv_confidence_name(rule->sure));
    put_message(w, req->lang, "title", rule->title);
    put_message(w, req->lang, "cause", rule->cause);
    put_message(w, req->lang, "decided", rule->decided);
    put_message(w, req->lang, "unless", rule->unless);
    tv_json_key(w, "steps");
    tv_json_begin(w, '[');
    for (size_t i = 0; i < TV_MOST_STEPS; i++) {
        const tv_step *step = &rule->steps[i];
        if (!step->why && !step->command)
            continue;
        tv_json_begin(w, '{');
        put_message(w, req->lang, "why", step->why);
        put_plain(w, "command", step->command);
        put_plain(w, "undo", step->undo);
        tv_json_end(w, '}');
    }
    tv_json_end(w, ']');
    put_plain(w, "outranks", rule->outranks);
    put_plain(w, "source", rule->source);
    tv_json_end(w, '}');
}
