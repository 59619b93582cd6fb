/* The tables of rules, and finding an operator's rule. */
#include "program_aten.h"
#include "program_onnx.h"
#include "program_paddle.h"
#include "program_running.h"

/* The last row of each dialect's files, and its line here. */
const tv_rule_table *const tv_rule_tables[] = {
    /* clang-format off: one a line */
    &tv_rules_aten_index,     &tv_rules_aten_kernel,
    &tv_rules_aten_layout,    &tv_rules_aten_make,
    &tv_rules_aten_math,      &tv_rules_aten_order,
    &tv_rules_onnx_flow,      &tv_rules_onnx_index,
    &tv_rules_onnx_layout,    &tv_rules_onnx_math,
    &tv_rules_onnx_ml,        &tv_rules_onnx_net,
    &tv_rules_onnx_ort,       &tv_rules_onnx_ort_attention,
    &tv_rules_onnx_ort_quant, &tv_rules_onnx_quant,
    &tv_rules_onnx_signal,    &tv_rules_onnx_text,
    &tv_rules_onnx_training,  &tv_rules_onnx_window,
    &tv_rules_paddle_flow,    &tv_rules_paddle_fused,
    &tv_rules_paddle_index,   &tv_rules_paddle_layout,
    &tv_rules_paddle_make,    &tv_rules_paddle_math,
    &tv_rules_paddle_net,     &tv_rules_paddle_sequence,
    &tv_rules_paddle_vision,  NULL,
    /* clang-format on */
};

/* Open addressing; a key is a domain and a name. */
typedef struct place {
    uint64_t hash;
    const char *domain;
    const tv_rule *rule;
    const tv_function *function;
} place;

struct tv_rule_map {
    tv_dialect dialect;
    place *v;
    size_t mask;
};

static uint64_t key_hash(tv_str domain, tv_str op)
{
    uint64_t h = tv_str_hash(op) ^ (domain.n ? tv_str_hash(domain) * 31 : 0);
    return h ? h : 1;
}

static bool holds(const place *at, tv_str domain, tv_str op)
{
    if (at->rule)
        return tv_str_is(op, at->rule->op) && tv_str_is(domain, at->domain);
    return tv_str_eq(op, at->function->name) && tv_str_eq(domain, at->function->domain);
}

/* The place of the key, or the empty one where it would be. */
static place *find(const tv_rule_map *m, tv_str domain, tv_str op, bool function)
{
    uint64_t h = key_hash(domain, op);
    for (size_t i = (size_t)h & m->mask;; i = (i + 1) & m->mask) {
        place *at = &m->v[i];
        bool of_kind = function ? at->function != NULL : at->rule != NULL;
        if (!at->hash || (at->hash == h && of_kind && holds(at, domain, op)))
            return at;
    }
}

static tv_str plain_domain(tv_str domain)
{
    return tv_str_is(domain, "ai.onnx") ? (tv_str){0} : domain;
}

const tv_rule_map *tv_rule_map_make(tv_arena *a, const tv_program *p)
{
    size_t n = p->n_functions;
    for (size_t t = 0; tv_rule_tables[t]; t++)
        if (tv_rule_tables[t]->dialect == p->dialect)
            n += tv_rule_tables[t]->n;
    size_t size = 64;
    while (size < 2 * n)
        size *= 2;
    tv_rule_map *m = tv_new(a, tv_rule_map, 1);
    *m = (tv_rule_map){.dialect = p->dialect, .v = tv_new(a, place, size), .mask = size - 1};
    for (size_t t = 0; tv_rule_tables[t]; t++)
        for (size_t i = 0; tv_rule_tables[t]->dialect == p->dialect && i < tv_rule_tables[t]->n;
             i++) {
            const tv_rule *rule = &tv_rule_tables[t]->rules[i];
            tv_str domain = tv_str_of(tv_rule_tables[t]->domain);
            place *at = find(m, domain, tv_str_of(rule->op), false);
            *at = (place){key_hash(domain, tv_str_of(rule->op)), tv_rule_tables[t]->domain, rule,
                          NULL};
        }
    for (size_t i = 0; i < p->n_functions; i++) {
        const tv_function *f = &p->functions[i];
        place *at = find(m, plain_domain(f->domain), f->name, true);
        *at = (place){key_hash(plain_domain(f->domain), f->name), NULL, NULL, f};
    }
    return m;
}

static const tv_rule *rule_named(const tv_rule_map *m, tv_str domain, tv_str op)
{
    return find(m, domain, op, false)->rule;
}

static tv_str without_overload(tv_str op)
{
    size_t dots = 0;
    size_t last = 0;
    for (size_t i = 0; i < op.n; i++)
        if (op.p[i] == '.') {
            dots++;
            last = i;
        }
    return dots > 1 ? tv_str_take(op, last) : op;
}

/* Exporters are not of one mind about where contributed operators live: the standard's own name
 * counts in both domains. */
static const tv_rule *onnx_rule(const tv_rule_map *m, tv_str domain, tv_str op)
{
    const tv_rule *rule = rule_named(m, domain, op);
    if (!rule && !domain.n)
        rule = rule_named(m, TV_S("com.microsoft"), op);
    if (!rule && tv_str_is(domain, "com.microsoft"))
        rule = rule_named(m, (tv_str){0}, op);
    return rule;
}

const tv_rule *tv_rule_find(const tv_rule_map *m, const tv_node *n)
{
    if (m->dialect == TV_DIALECT_ONNX)
        return onnx_rule(m, plain_domain(n->domain), n->op);
    tv_str op = n->op;
    const tv_rule *rule = rule_named(m, (tv_str){0}, op);
    if (!rule && m->dialect == TV_DIALECT_ATEN) {
        op = without_overload(op);
        rule = rule_named(m, (tv_str){0}, op);
    }
    if (!rule && tv_str_ends(op, TV_S("_")))
        rule = rule_named(m, (tv_str){0}, tv_str_take(op, op.n - 1));
    /* Gradients of a program that was saved with them, whatever they belong to. */
    const bool gradient = tv_str_ends(op, TV_S("_grad")) || tv_str_ends(op, TV_S("_grad_"));
    if (!rule && gradient && m->dialect == TV_DIALECT_PADDLE)
        rule = rule_named(m, (tv_str){0}, TV_S("*_grad"));
    return rule;
}

const tv_function *tv_rule_function(const tv_rule_map *m, const tv_node *n)
{
    return find(m, plain_domain(n->domain), n->op, true)->function;
}
