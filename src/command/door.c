/* Opens the arena, reads the options, runs the command, prints its error. */
#include "door.h"

#include "base/json.h"
#include "base/limits.h"
#include "base/message.h"
#include "command.h"

struct trivet_reply {
    tv_arena *a;
    tv_buf out;
    tv_buf err;
    const char *last_words; /* said instead of err where there was no memory for more */
};

const char *trivet_version(void)
{
    return TV_VERSION;
}

void trivet_defaults(trivet_options *options)
{
    *options = (trivet_options){.size = sizeof *options};
}

/* ---- what a request is made of ---- */

typedef struct progress_bridge {
    int (*tell)(void *context, const char *what, double done);
    void *context;
    tv_arena *a;
    tv_lang lang;
} progress_bridge;

static bool tell_progress(void *ctx, tv_text what, double done)
{
    const progress_bridge *bridge = ctx;
    const tv_mark mark = tv_arena_mark(bridge->a);
    const char *words = tv_cstr(bridge->a, tv_text_in(bridge->a, bridge->lang, what));
    const bool go_on = bridge->tell(bridge->context, words, done) != 0;
    tv_arena_rewind(bridge->a, mark);
    return go_on;
}

static tv_request request_of(tv_arena *a, const trivet_options *options, trivet_reply *reply)
{
    return (tv_request){
        .a = a,
        .lang = tv_lang_of(tv_str_of(options->locale)),
        .colour = options->colour != 0,
        .width = options->width > 0 ? options->width : 80,
        .today = tv_str_of(options->today),
        .home = tv_str_of(options->home),
        .path = tv_str_of(options->path),
        .out = &reply->out,
        .err = &reply->err,
        .clock_s = options->clock,
        .clock_ctx = options->clock_context,
    };
}

static void apply_standing(tv_request *r, const tv_standing_options *standing,
                           const trivet_options *options)
{
    if (standing->lang)
        r->lang = (tv_lang)(standing->lang - 1);
    if (standing->today.n)
        r->today = standing->today;
    r->json = standing->json;
    if (!options->progress)
        return;
    progress_bridge *bridge = tv_new(r->a, progress_bridge, 1);
    *bridge = (progress_bridge){options->progress, options->progress_context, r->a, r->lang};
    r->progress = tell_progress;
    r->progress_ctx = bridge;
}

/* ---- one command ---- */

typedef struct call {
    const trivet_options *options;
    tv_standing_options standing;
    const tv_command *command;
    void *fields;
    tv_args args;
} call;

static const tv_err *parse(tv_request *r, call *c, int argc, const char *const *argv)
{
    const tv_command *command = c->command;
    tv_option_target *targets = tv_new(r->a, tv_option_target, command->n_groups + 1);
    c->fields = tv_new(r->a, char, command->options_size ? command->options_size : 1);
    if (command->defaults)
        command->defaults(c->fields);
    for (size_t i = 0; i < command->n_groups; i++) {
        const tv_option_group *g = &command->groups[i];
        targets[i] = (tv_option_target){g->rows, g->n, (char *)c->fields + g->offset};
    }
    targets[command->n_groups] =
        (tv_option_target){tv_standing_rows, tv_n_standing_rows, &c->standing};
    return tv_options_parse(r->a, targets, command->n_groups + 1, argc, argv, false, &c->args);
}

static const tv_err *check_words(tv_request *r, const call *c)
{
    const tv_command *command = c->command;
    if (c->args.n >= command->min_args && c->args.n <= command->max_args)
        return NULL;
    const tv_text hint = TV_TEXT(r->a, "usage.form", N_("Usage: trivet {form}"),
                                 tv_arg_str("form", tv_command_form(r->a, command)));
    if (c->args.n > command->max_args)
        return tv_hint(TV_FAIL(r->a, TV_USAGE, "usage.extra-word", N_("unexpected \"{word}\""),
                               tv_arg_str("word", c->args.v[command->max_args])),
                       hint);
    return tv_hint(TV_FAIL(r->a, TV_USAGE, "usage.missing-word", N_("{command} needs more words"),
                           tv_arg_str("command", tv_str_of(command->name))),
                   hint);
}

static void put_version(tv_request *r)
{
    tv_puts(r->out, "trivet " TV_VERSION "\n");
}

static const tv_err *run_command(tv_request *r, call *c, int argc, const char *const *argv)
{
    const tv_err *e = parse(r, c, argc, argv);
    apply_standing(r, &c->standing, c->options);
    if (e)
        return e;
    if (c->standing.help) {
        tv_put_help(r, r->out, c->command);
        return NULL;
    }
    if (c->standing.version) {
        put_version(r);
        return NULL;
    }
    TV_TRY(check_words(r, c));
    return c->command->run(r, c->fields, &c->args);
}

/* Options before the command's name, the name, and then the command's own. */
static const tv_err *serve(tv_request *r, call *c, int argc, const char *const *argv)
{
    const tv_option_target standing = {tv_standing_rows, tv_n_standing_rows, &c->standing};
    const tv_err *e = tv_options_parse(r->a, &standing, 1, argc, argv, true, &c->args);
    apply_standing(r, &c->standing, c->options);
    if (e)
        return e;
    const int used = (int)c->args.used;
    if (c->standing.version) {
        put_version(r);
        return NULL;
    }
    if (used >= argc) {
        const bool asked = c->standing.help;
        tv_put_help(r, asked ? r->out : r->err, NULL);
        return asked ? NULL
                     : TV_FAIL0(r->a, TV_USAGE, "usage.no-command", N_("no command was named"));
    }
    const tv_str name = tv_str_of(argv[used]);
    c->command = tv_command_find(name);
    if (!c->command)
        return tv_command_unknown(r->a, name);
    return run_command(r, c, argc - used - 1, argv + used + 1);
}

/* ---- the error and the reply ---- */

static const char *code_name(tv_code code)
{
    switch ((int)code) { /* TV_INPUT and TV_LIMIT share a number */
    case TV_NO:
        return "no";
    case TV_USAGE:
        return "usage";
    case TV_INPUT:
        return "input";
    case TV_UNSUPPORTED:
        return "unsupported";
    case TV_UNAVAILABLE:
        return "unavailable";
    case TV_INFEASIBLE:
        return "infeasible";
    case TV_SYSTEM:
        return "system";
    }
    return "bug";
}

/* {"error": {code, what: {id, args, text}, hints: [...], file, offset, message}} */
static void put_json_error(tv_request *r, const tv_err *e)
{
    tv_json_out w = tv_json_write(r->out);
    tv_json_begin(&w, '{');
    tv_json_key(&w, "error");
    tv_json_begin(&w, '{');
    tv_json_key(&w, "code");
    tv_json_put_str(&w, tv_str_of(code_name(e->code)));
    tv_json_key(&w, "reasons");
    tv_json_begin(&w, '[');
    for (const tv_err *at = e; at; at = at->cause)
        tv_json_put_text(&w, r->lang, at->what);
    tv_json_end(&w, ']');
    tv_json_key(&w, "hints");
    tv_json_begin(&w, '[');
    for (const tv_err *at = e; at; at = at->cause)
        if (at->hint.msgid)
            tv_json_put_text(&w, r->lang, at->hint);
    tv_json_end(&w, ']');
    const tv_err *root = e;
    while (root->cause)
        root = root->cause;
    tv_json_key(&w, "file");
    if (root->file.n)
        tv_json_put_str(&w, root->file);
    else
        tv_json_put_null(&w);
    tv_json_key(&w, "offset");
    if (root->has_offset)
        tv_json_put_num(&w, (double)root->offset);
    else
        tv_json_put_null(&w);
    tv_json_end(&w, '}');
    tv_json_end(&w, '}');
}

static int conclude(tv_request *r, const tv_err *e)
{
    if (!e)
        return TV_OK;
    tv_puts(r->err, "trivet: ");
    tv_put_err(r->err, r->lang, e);
    if (r->json && r->out->n == 0)
        put_json_error(r, e);
    return (int)e->code;
}

static int answer(tv_arena *a, trivet_reply *reply, const trivet_options *options, int argc,
                  const char *const *argv)
{
    tv_request r = request_of(a, options, reply);
    call c = {.options = options};
    const int skip = argc > 0 ? 1 : 0;
    const tv_err *e = serve(&r, &c, argc - skip, argv + skip);
    const int status = conclude(&r, e);
    if (r.json && reply->out.n && reply->out.p[reply->out.n - 1] != '\n')
        tv_putc(&reply->out, '\n');
    tv_putc(&reply->out, '\0');
    tv_putc(&reply->err, '\0');
    reply->out.n--;
    reply->err.n--;
    return status;
}

/* Lives outside the arena: it must be there when the arena is spent. */
static int spent(trivet_reply *reply, int why)
{
    const bool system = why == TV_SPENT_SYSTEM;
    reply->out = (tv_buf){0};
    reply->err = (tv_buf){0};
    reply->last_words = system ? "trivet: the system has no memory left\n"
                               : "trivet: the request needs more memory than it may take\n";
    return system ? TV_SYSTEM : TV_LIMIT;
}

int tv_door_run(tv_arena *a, const trivet_options *options, int argc, const char *const *argv,
                trivet_reply **reply)
{
    jmp_buf landing;
    trivet_reply *volatile r = NULL;
    *reply = NULL;
    tv_arena_guard(a, &landing);
    const int why = setjmp(landing);
    if (why == 0) {
        r = tv_new(a, trivet_reply, 1);
        *r = (trivet_reply){.a = a, .out = tv_buf_in(a), .err = tv_buf_in(a)};
        const int status = answer(a, r, options, argc, argv);
        tv_arena_guard(a, NULL);
        *reply = r;
        return status;
    }
    tv_arena_guard(a, NULL);
    if (!r) {
        tv_arena_close(a);
        return TV_SYSTEM;
    }
    *reply = r;
    return spent(r, why);
}

/* A caller that was compiled for an older version knows fewer fields. */
static trivet_options known_options(const trivet_options *given)
{
    trivet_options all;
    trivet_defaults(&all);
    const size_t n = given->size < sizeof all ? given->size : sizeof all;
    for (size_t i = sizeof all.size; i < n; i++)
        ((unsigned char *)&all)[i] = ((const unsigned char *)given)[i];
    return all;
}

int trivet_run(const trivet_options *options, int argc, const char *const *argv,
               trivet_reply **reply)
{
    const trivet_options all = known_options(options);
    tv_arena *a = tv_arena_open(all.budget_bytes ? all.budget_bytes : TV_LIMIT_ARENA_BYTES);
    *reply = NULL;
    if (!a)
        return TV_SYSTEM;
    return tv_door_run(a, &all, argc, argv, reply);
}

static size_t reply_size(const trivet_reply *reply, const tv_buf *part)
{
    if (!reply)
        return 0;
    if (reply->last_words)
        return part == &reply->err ? tv_str_of(reply->last_words).n : 0;
    return part->n;
}

static const char *reply_text(const trivet_reply *reply, const tv_buf *part)
{
    if (!reply)
        return "";
    if (reply->last_words)
        return part == &reply->err ? reply->last_words : "";
    return part->p;
}

const char *trivet_reply_out(const trivet_reply *reply)
{
    return reply ? reply_text(reply, &reply->out) : "";
}

size_t trivet_reply_out_size(const trivet_reply *reply)
{
    return reply ? reply_size(reply, &reply->out) : 0;
}

const char *trivet_reply_err(const trivet_reply *reply)
{
    return reply ? reply_text(reply, &reply->err) : "";
}

size_t trivet_reply_err_size(const trivet_reply *reply)
{
    return reply ? reply_size(reply, &reply->err) : 0;
}

void trivet_reply_free(trivet_reply *reply)
{
    if (reply)
        tv_arena_close(reply->a);
}
