/* The engine: runs a program's nodes in order, hands each to its dialect's rule, keeps the steps.
 * Knows bodies, local functions and branches; what an operator means is in the rules. */
#include "program_run.h"

#include <string.h>

#include "program_running.h"

tv_arena *tv_run_arena(const tv_running *r)
{
    return r->a;
}

const tv_program *tv_run_program(const tv_running *r)
{
    return r->p;
}

bool tv_run_training(const tv_running *r)
{
    return r->sizes->training;
}

int64_t tv_run_opset(const tv_running *r, const char *domain)
{
    for (size_t i = 0; i < r->p->n_opsets; i++)
        if (tv_str_is(r->p->opsets[i].domain, domain) ||
            (!*domain && tv_str_is(r->p->opsets[i].domain, "ai.onnx")))
            return r->p->opsets[i].version;
    return 0;
}

/* ---- errors and warnings ---- */

const tv_err *tv_run_fail(tv_running *r, const char *id, const char *msgid)
{
    return tv_fail(r->a, TV_INPUT, TV_TEXT0(id, msgid));
}

static tv_str shape_text(tv_arena *a, const tv_shape *s)
{
    tv_buf b = tv_buf_in(a);
    tv_putc(&b, '[');
    for (uint32_t i = 0; i < s->rank; i++) {
        if (i)
            tv_puts(&b, ", ");
        tv_put_double(&b, (double)s->d[i]);
    }
    tv_putc(&b, ']');
    return tv_buf_str(&b);
}

const tv_err *tv_run_fail_shapes(tv_running *r, const char *id, const char *msgid,
                                 const tv_shape *x, const tv_shape *y)
{
    tv_shape none = {0};
    return TV_FAIL(r->a, TV_INPUT, id, msgid, tv_arg_str("x", shape_text(r->a, x ? x : &none)),
                   tv_arg_str("y", shape_text(r->a, y ? y : &none)));
}

const tv_err *tv_run_need(tv_running *r, uint32_t v)
{
    if (v != TV_NO_VALUE)
        return NULL;
    return tv_run_fail(r, "program.operand", N_("an operand is missing"));
}

static bool same_text(const tv_text *x, const tv_text *y)
{
    if (strcmp(x->id, y->id) != 0 || x->n_args != y->n_args)
        return false;
    for (size_t i = 0; i < x->n_args; i++)
        if (!tv_str_eq(x->args[i].s, y->args[i].s))
            return false;
    return true;
}

void tv_run_warn(tv_running *r, tv_text warning)
{
    for (size_t i = 0; i < r->warnings.n; i++)
        if (same_text(&r->warnings.v[i], &warning))
            return;
    *tv_push(r->a, &r->warnings) = warning;
}

/* ---- steps ---- */

static bool all_constant(const tv_running *r, const uint32_t *v, size_t n)
{
    bool some = false;
    for (size_t i = 0; i < n; i++) {
        if (v[i] == TV_NO_VALUE)
            continue;
        if (!tv_running_at(r, v[i])->constant)
            return false;
        some = true;
    }
    return some;
}

static bool any_guessed(const tv_running *r, const uint32_t *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (v[i] != TV_NO_VALUE && tv_running_at(r, v[i])->guessed)
            return true;
    return false;
}

/* True where no GPU does the step, see program_run.h. */
static bool is_free(const tv_running *r, const tv_step *like, const uint32_t *out, size_t n_out)
{
    bool host = true;
    bool constant = true;
    bool weight = like->kind == TV_STEP_VIEW || like->kind == TV_STEP_COPY;
    for (size_t i = 0; i < n_out; i++) {
        if (out[i] == TV_NO_VALUE)
            continue;
        const tv_run_value *v = tv_running_at(r, out[i]);
        host = host && v->data;
        constant = constant && v->constant;
        weight = weight && v->weight != TV_NO_VALUE;
    }
    return n_out && (host || weight || (constant && r->folds));
}

static tv_str step_name(tv_running *r)
{
    if (!r->node || r->node->name.n)
        return r->node ? r->node->name : (tv_str){0};
    tv_buf b = tv_buf_in(r->a);
    tv_put(&b, r->node->op);
    tv_putc(&b, '_');
    tv_put_u64(&b, r->node_index);
    return tv_buf_str(&b);
}

static const uint32_t *copy_of(tv_arena *a, const uint32_t *v, size_t n)
{
    uint32_t *copy = tv_new(a, uint32_t, n ? n : 1);
    if (n)
        memcpy(copy, v, n * sizeof *copy);
    return copy;
}

void tv_run_push(tv_running *r, const tv_step *like, const uint32_t *in, size_t n_in,
                 const uint32_t *out, size_t n_out)
{
    bool constant = all_constant(r, in, n_in);
    bool guessed = any_guessed(r, in, n_in);
    for (size_t i = 0; i < n_out; i++) {
        if (out[i] == TV_NO_VALUE)
            continue;
        tv_run_value *v = tv_running_at(r, out[i]);
        v->constant = v->constant || constant;
        v->guessed = v->guessed || guessed;
    }
    if (is_free(r, like, out, n_out))
        return;
    tv_step *s = tv_push(r->a, &r->steps);
    *s = *like;
    s->node = r->node;
    s->name = step_name(r);
    s->times = r->times;
    s->guessed = like->guessed || guessed || any_guessed(r, out, n_out);
    s->in = copy_of(r->a, in, n_in);
    s->n_in = n_in;
    s->out = copy_of(r->a, out, n_out);
    s->n_out = n_out;
}

/* ---- operators without a rule ---- */

static bool stated_shape(tv_running *r, const tv_value *v, tv_shape *s)
{
    if (!v->shaped || v->rank > TV_LIMIT_RANK)
        return false;
    tv_shape shape = {.rank = v->rank};
    for (uint32_t i = 0; i < v->rank; i++) {
        shape.d[i] = tv_run_dim(r, &v->dims[i]);
        if (shape.d[i] < 0)
            return false;
    }
    *s = shape;
    return true;
}

bool tv_run_stated(tv_running *r, const tv_node *n, size_t i, tv_shape *shape)
{
    uint32_t v = tv_node_out(n, i);
    return v < r->p->n_values && stated_shape(r, &r->p->values[v], shape);
}

uint32_t tv_run_make_guess(tv_running *r, const tv_node *n, size_t i, tv_dtype dtype,
                           const tv_shape *most)
{
    tv_shape shape = *most;
    tv_run_stated(r, n, i, &shape);
    uint32_t v = tv_run_make(r, dtype, &shape);
    tv_run_guess(r, v);
    return v;
}

static void note_unknown(tv_running *r, const tv_node *n)
{
    tv_str op = n->op;
    if (n->domain.n)
        op = tv_str_join(r->a, tv_str_join(r->a, n->domain, TV_S(".")), op);
    for (size_t i = 0; i < r->unknown.n; i++)
        if (tv_str_eq(r->unknown.v[i].op, op)) {
            r->unknown.v[i].n++;
            return;
        }
    *tv_push(r->a, &r->unknown) = (tv_unknown_op){op, 1};
}

const tv_err *tv_run_unknown(tv_running *r, const tv_node *n)
{
    uint32_t *in = tv_new(r->a, uint32_t, n->n_inputs + 1);
    uint32_t *out = tv_new(r->a, uint32_t, n->n_outputs + 1);
    uint32_t first = TV_NO_VALUE;
    for (size_t i = 0; i < n->n_inputs; i++) {
        in[i] = tv_run_in(r, n, i);
        if (first == TV_NO_VALUE)
            first = in[i];
    }
    for (size_t i = 0; i < n->n_outputs; i++) {
        out[i] = TV_NO_VALUE;
        if (n->outputs[i] >= r->p->n_values)
            continue;
        const tv_value *v = &r->p->values[n->outputs[i]];
        tv_shape s = {0};
        bool stated = stated_shape(r, v, &s);
        if (!stated && first != TV_NO_VALUE)
            s = *tv_run_shape(r, first);
        tv_dtype dtype = v->dtype;
        if (!dtype && first != TV_NO_VALUE)
            dtype = tv_run_at(r, first)->dtype;
        out[i] = tv_run_make(r, dtype, &s);
        if (!stated)
            tv_run_guess(r, out[i]);
        tv_run_bind(r, n->outputs[i], out[i]);
    }
    note_unknown(r, n);
    tv_run_push(r, &(tv_step){.kind = TV_STEP_UNKNOWN, .guessed = true}, in, n->n_inputs, out,
                n->n_outputs);
    return NULL;
}

/* ---- nodes ---- */

static const tv_err *at_node(tv_running *r, const tv_node *n, const tv_err *e)
{
    if (n->name.n)
        return tv_while(r->a, e,
                        TV_TEXT(r->a, "program.node", N_("{op} {name}"), tv_arg_str("op", n->op),
                                tv_arg_str("name", n->name)));
    return tv_while(r->a, e,
                    TV_TEXT(r->a, "program.unnamed", N_("{op}, node {i}"), tv_arg_str("op", n->op),
                            tv_arg_num("i", TV_ARG_COUNT, (double)r->node_index)));
}

static const tv_err *nobody_wrote(tv_running *r, uint32_t value)
{
    tv_str name = value < r->p->n_values ? r->p->values[value].name : (tv_str){0};
    return TV_FAIL(r->a, TV_INPUT, "program.unwritten", N_("reads {name}, which nothing writes"),
                   tv_arg_str("name", name));
}

/* Operands exist before a rule asks for them; stored tensors become values here. */
static const tv_err *open_operands(tv_running *r, const tv_node *n)
{
    for (size_t i = 0; i < n->n_inputs; i++) {
        uint32_t v = n->inputs[i];
        if (v == TV_NO_VALUE)
            continue;
        if (v >= r->p->n_values)
            return nobody_wrote(r, v);
        bool written = r->now[v] != TV_NO_VALUE || tv_run_of(r, v) != TV_NO_VALUE;
        if (!written && r->p->values[v].role != TV_VALUE_NULL)
            return nobody_wrote(r, v);
    }
    return NULL;
}

static const tv_attr *attr_named(const tv_attr *v, size_t n, tv_str name)
{
    for (size_t i = 0; i < n; i++)
        if (tv_str_eq(v[i].name, name))
            return &v[i];
    return NULL;
}

/* What the call gives for a parameter of the function, or what the function says itself. */
static const tv_attr *parameter(const tv_running *r, tv_str name)
{
    const tv_attr *a = r->call ? attr_named(r->call->attrs, r->call->n_attrs, name) : NULL;
    if (!a && r->function)
        a = attr_named(r->function->defaults, r->function->n_defaults, name);
    return a;
}

/* The node with the call's attributes in place of what refers to them. */
static const tv_node *resolved(tv_running *r, const tv_node *n)
{
    bool refers = false;
    for (size_t i = 0; i < n->n_attrs; i++)
        refers = refers || n->attrs[i].kind == TV_ATTR_REF;
    if (!refers)
        return n;
    tv_node *copy = tv_new(r->a, tv_node, 1);
    tv_attr *attrs = tv_new(r->a, tv_attr, n->n_attrs);
    *copy = *n;
    copy->attrs = attrs;
    copy->n_attrs = 0;
    for (size_t i = 0; i < n->n_attrs; i++) {
        bool reference = n->attrs[i].kind == TV_ATTR_REF;
        const tv_attr *a = reference ? parameter(r, n->attrs[i].u.s) : &n->attrs[i];
        if (!a)
            continue;
        attrs[copy->n_attrs] = *a;
        attrs[copy->n_attrs++].name = n->attrs[i].name;
    }
    return copy;
}

static const tv_err *run_function(tv_running *r, const tv_node *n, const tv_function *f)
{
    const tv_body *b = f->body;
    uint32_t *given = tv_new(r->a, uint32_t, b->n_inputs + 1);
    for (size_t i = 0; i < b->n_inputs; i++)
        given[i] = tv_run_in(r, n, i);
    for (size_t i = 0; i < b->n_inputs; i++)
        tv_run_bind(r, b->inputs[i], given[i]);
    const tv_node *outer = r->call;
    const tv_function *outer_function = r->function;
    r->call = n;
    r->function = f;
    const tv_err *e = tv_run_body(r, b, 1);
    r->call = outer;
    r->function = outer_function;
    r->node = n;
    if (e)
        return e;
    for (size_t i = 0; i < n->n_outputs && i < b->n_outputs; i++)
        tv_run_out(r, n, i, tv_run_of(r, b->outputs[i]));
    return NULL;
}

static const tv_err *run_node(tv_running *r, const tv_node *n)
{
    TV_TRY(open_operands(r, n));
    const tv_function *f = r->p->n_functions ? tv_rule_function(r->rules, n) : NULL;
    if (f && f->body)
        return run_function(r, n, f);
    const tv_rule *rule = tv_rule_find(r->rules, n);
    return rule ? rule->run(r, n, rule) : tv_run_unknown(r, n);
}

const tv_err *tv_run_body(tv_running *r, const tv_body *b, double times)
{
    if (r->depth >= TV_LIMIT_PROGRAM_DEPTH)
        return tv_run_fail(r, "program.depth", N_("subgraphs or functions are nested too deeply"));
    const uint32_t *order = NULL;
    if (r->p->dialect == TV_DIALECT_ONNX)
        TV_TRY(tv_run_order(r, b, &order));
    const tv_node *outer = r->node;
    r->depth++;
    r->times *= times;
    const tv_err *e = NULL;
    for (size_t i = 0; i < b->n_nodes && !e; i++) {
        const tv_node *n = resolved(r, &b->nodes[order ? order[i] : i]);
        r->node = n;
        r->node_index++;
        e = run_node(r, n);
        if (e)
            e = at_node(r, n, e);
    }
    r->times /= times;
    r->depth--;
    r->node = outer;
    return e;
}

/* ---- branches and loops ---- */

/* A yardstick for which branch costs more; nothing else rests on it. */
static double weight_of_step(const tv_running *r, const tv_step *s)
{
    double elements = 0;
    for (size_t i = 0; i < s->n_out; i++)
        if (s->out[i] != TV_NO_VALUE)
            elements += tv_shape_elements(tv_run_shape(r, s->out[i]));
    double work = elements;
    if (s->kind == TV_STEP_MATMUL)
        work += s->u.matmul.groups * s->u.matmul.m * s->u.matmul.n * s->u.matmul.k;
    if (s->kind == TV_STEP_CONV)
        work += s->u.conv.positions * s->u.conv.kernel * s->u.conv.in_channels *
                s->u.conv.out_channels / s->u.conv.groups;
    return work * s->times;
}

static double weight_of_steps(const tv_running *r, size_t first, size_t end)
{
    double work = 0;
    for (size_t i = first; i < end; i++)
        work += weight_of_step(r, &r->steps.v[i]);
    return work;
}

const tv_err *tv_run_branch(tv_running *r, const tv_body *yes, const tv_body *no, int known,
                            const tv_body **chosen)
{
    if (known >= 0) {
        *chosen = known ? yes : no;
        return tv_run_body(r, *chosen, 1);
    }
    size_t start = r->steps.n;
    const tv_err *first = tv_run_body(r, yes, 1);
    if (first)
        r->steps.n = start;
    size_t middle = r->steps.n;
    const tv_err *second = tv_run_body(r, no, 1);
    if (first && second)
        return first;
    tv_run_warn(r, TV_TEXT0("program.branch", N_("which branch a condition takes is not known: the "
                                                 "one that costs more counts")));
    if (!first &&
        (second || weight_of_steps(r, start, middle) >= weight_of_steps(r, middle, r->steps.n))) {
        r->steps.n = middle;
        *chosen = yes;
        return NULL;
    }
    if (r->steps.n > middle)
        memmove(&r->steps.v[start], &r->steps.v[middle],
                (r->steps.n - middle) * sizeof *r->steps.v);
    r->steps.n -= middle - start;
    *chosen = no;
    return NULL;
}

double tv_run_trips(tv_running *r, double stated)
{
    if (stated >= 0)
        return stated;
    if (r->sizes->trips > 0)
        return r->sizes->trips;
    tv_run_warn(r, TV_TEXT0("program.trips", N_("how often a loop runs is not stated: its body "
                                                "counts once")));
    return 1;
}

/* ---- the whole run ---- */

static tv_running open_run(tv_arena *a, const tv_program *p, const tv_run_sizes *sizes,
                           tv_run_plan plan)
{
    tv_running r = {.a = a,
                    .p = p,
                    .sizes = sizes,
                    .plan = plan,
                    .out = tv_new(a, tv_run, 1),
                    .now = tv_new(a, uint32_t, p->n_values ? p->n_values : 1),
                    .maker = tv_new(a, tv_maker, p->n_values ? p->n_values : 1),
                    .rules = tv_rule_map_make(a, p),
                    .times = 1,
                    .folds = p->dialect != TV_DIALECT_ATEN};
    memset(r.now, 0xff, p->n_values * sizeof *r.now);
    return r;
}

static void close_run(tv_running *r)
{
    tv_run *out = r->out;
    out->values = tv_new(r->a, tv_run_value, r->n_values ? r->n_values : 1);
    for (size_t i = 0; i < r->n_values; i += TV_RUN_PIECE) {
        size_t n = r->n_values - i < TV_RUN_PIECE ? r->n_values - i : TV_RUN_PIECE;
        memcpy(&out->values[i], r->pieces.v[i / TV_RUN_PIECE], n * sizeof *out->values);
    }
    out->n_values = r->n_values;
    out->of = r->now;
    out->steps = r->steps.v;
    out->n_steps = r->steps.n;
    out->unknown = r->unknown.v;
    out->n_unknown = r->unknown.n;
    out->warnings = r->warnings.v;
    out->n_warnings = r->warnings.n;
}

static const tv_err *close_outputs(tv_running *r)
{
    const tv_body *b = r->p->main;
    uint32_t *out = tv_new(r->a, uint32_t, b->n_outputs ? b->n_outputs : 1);
    for (size_t i = 0; i < b->n_outputs; i++) {
        out[i] = tv_run_of(r, b->outputs[i]);
        if (out[i] == TV_NO_VALUE)
            return TV_FAIL(r->a, TV_INPUT, "program.output", N_("nothing writes the output {name}"),
                           tv_arg_str("name", b->outputs[i] < r->p->n_values
                                                  ? r->p->values[b->outputs[i]].name
                                                  : (tv_str){0}));
    }
    r->out->outputs = out;
    r->out->n_outputs = b->n_outputs;
    return NULL;
}

static const tv_err *run_all(tv_running *r)
{
    TV_TRY(tv_run_body(r, r->p->main, 1));
    return close_outputs(r);
}

static const tv_err *attempt(tv_arena *a, const tv_program *p, const tv_run_sizes *sizes,
                             tv_run_plan plan, tv_running *r)
{
    *r = open_run(a, p, sizes, plan);
    TV_TRY(tv_run_open_inputs(r));
    const tv_err *e = run_all(r);
    if (e && r->unshaped)
        return TV_FAIL(a, TV_INPUT, "program.shapeless",
                       N_("the input {name} states no shape, and the program needs one"),
                       tv_arg_str("name", r->unshaped->name));
    if (e)
        return e;
    close_run(r);
    return NULL;
}

/* Where the program leaves a size open and the usual one does not fit: tokens of CLIP's text
 * tower, a second of sound, images of detectors and of networks with larger steps. */
static const tv_err *attempt_usual(tv_arena *a, const tv_program *p, const tv_run_sizes *sizes,
                                   tv_run_plan plan, tv_running *r)
{
    static const double seq[] = {77, 16000, 64, 512, 1500};
    static const double image[] = {640, 256, 512, 1024, 64};
    const tv_err *first = attempt(a, p, sizes, plan, r);
    bool assumed_seq = r->assumed_seq;
    bool assumed_image = r->assumed_image;
    const tv_err *e = first;
    for (size_t i = 0; e && assumed_seq && i < sizeof seq / sizeof *seq; i++) {
        plan.seq = seq[i];
        e = attempt(a, p, sizes, plan, r);
    }
    plan.seq = e ? 0 : plan.seq;
    for (size_t i = 0; e && assumed_image && i < sizeof image / sizeof *image; i++) {
        plan.image = image[i];
        e = attempt(a, p, sizes, plan, r);
    }
    return e ? first : NULL;
}

/* Asked sizes give way one after the other where the program does not take them. */
static const tv_run_plan plans[] = {
    {.ask_batch = true, .ask_seq = true, .ask_image = true},
    {.ask_seq = true, .ask_image = true},
    {.ask_batch = true, .ask_seq = true},
    {.ask_batch = true, .ask_image = true},
    {.ask_batch = true},
    {.ask_seq = true},
    {.ask_image = true},
    {0},
};

static void warn_sizes(tv_arena *a, tv_run *out, tv_run_plan plan, tv_run_plan asked)
{
    static const tv_text lost[] = {
        {.id = "program.batch-fixed",
         .msgid = N_("the program is written for one batch size and does not take another: every "
                     "sample costs its share of that batch")},
        {.id = "program.seq-fixed",
         .msgid = N_("the program is written for one sequence length: the asked one was not "
                     "used")},
        {.id = "program.image-fixed",
         .msgid = N_("the program is written for one image size: the asked one was not used")},
    };
    bool is_lost[] = {asked.ask_batch && !plan.ask_batch, asked.ask_seq && !plan.ask_seq,
                      asked.ask_image && !plan.ask_image};
    tv_text *all = tv_new(a, tv_text, out->n_warnings + 3);
    if (out->n_warnings)
        memcpy(all, out->warnings, out->n_warnings * sizeof *all);
    for (size_t i = 0; i < 3; i++)
        if (is_lost[i])
            all[out->n_warnings++] = lost[i];
    out->warnings = all;
    out->batch_fixed = is_lost[0];
}

const tv_err *tv_program_run(tv_arena *a, const tv_program *p, const tv_run_sizes *sizes,
                             const tv_run **result)
{
    if (!p->main)
        return TV_FAIL0(a, TV_INPUT, "program.empty", N_("the program has no graph"));
    tv_run_plan asked = {
        .ask_batch = sizes->batch > 0, .ask_seq = sizes->seq > 0, .ask_image = sizes->image_h > 0};
    const tv_err *first = NULL;
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        tv_run_plan plan = plans[i];
        bool tried =
            i && ((plan.ask_batch && !asked.ask_batch) || (plan.ask_seq && !asked.ask_seq) ||
                  (plan.ask_image && !asked.ask_image));
        if (tried || (i && !asked.ask_batch && !asked.ask_seq && !asked.ask_image))
            continue;
        tv_running r;
        const tv_err *e = attempt_usual(a, p, sizes, plan, &r);
        if (!e) {
            warn_sizes(a, r.out, plan, asked);
            *result = r.out;
            return NULL;
        }
        first = first ? first : e;
    }
    return first;
}
