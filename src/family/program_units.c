/* Cuts the items into the units that recompute and sharding work on: the deepest numbered
 * container whose members hold layers ("/encoder/layer.3/..."), else stretches between places
 * where a single value is alive. Says what each stretch hands on. */
#include "program_lower.h"

#include <stdlib.h>
#include <string.h>

/* ---- module paths ---- */

static bool has_slash(tv_str s)
{
    return memchr(s.p, '/', s.n) != NULL && s.n > 0;
}

static tv_str up_to_last(tv_str s, char separator)
{
    for (size_t i = s.n; i-- > 0;)
        if (s.p[i] == separator)
            return tv_str_take(s, i);
    return (tv_str){0};
}

/* The module that a parameter's name says. */
static tv_str path_of_param(const tv_lower *l, const tv_item *t)
{
    for (size_t i = 0; i < t->n_in + 2; i++) {
        const uint32_t v = i < t->n_in ? t->in[i] : i == t->n_in ? t->weight : t->bias;
        if (v == TV_NO_VALUE || l->param_of[v] == TV_NO_VALUE)
            continue;
        const tv_lowered_param *p = &l->param[l->param_of[v]];
        const tv_str path = p->parameter ? up_to_last(p->name, '.') : (tv_str){0};
        if (path.n && !tv_str_has(p->name, TV_S("::")) && !has_slash(path))
            return path;
    }
    return (tv_str){0};
}

/* "layer1.0.conv1", "avgpool": scopes; not "Conv_0", "node_3", "op_17", nor Paddle's counted names.
 */
static bool is_scope(const tv_lower *l, const tv_step *step)
{
    tv_str s = step->name;
    if (!s.n || memchr(s.p, ':', s.n) || memchr(s.p, ' ', s.n) ||
        (step->node && tv_str_starts(s, step->node->op)))
        return false;
    if (memchr(s.p, '.', s.n))
        return true;
    if (l->program->dialect == TV_DIALECT_PADDLE || tv_str_starts(s, TV_S("node_")) ||
        tv_str_starts(s, TV_S("op_")))
        return false;
    while (s.n && s.p[s.n - 1] >= '0' && s.p[s.n - 1] <= '9')
        s.n--;
    if (s.n && s.p[s.n - 1] == '_')
        s.n--;
    return s.n && !(step->node && tv_str_eq_nocase(s, step->node->op));
}

static void name_paths(tv_lower *l)
{
    tv_str before = {0};
    for (size_t i = 0; i < l->items.n; i++) {
        tv_item *t = &l->items.v[i];
        const tv_step *step = tv_lower_step(l, t->step);
        const tv_str name = step->name;
        if (has_slash(name))
            t->path = up_to_last(name, '/'); /* the last part is the operator */
        else if (is_scope(l, step))
            t->path = name;
        else
            t->path = path_of_param(l, t);
        if (!t->path.n && !has_slash(name))
            t->path = before;
        before = t->path;
    }
}

/* ---- numbered containers ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The next prefix that ends with a number (".3", "_3", "layer3"), behind `from`. */
static size_t next_key(tv_str path, size_t from, size_t *stem)
{
    for (size_t i = from; i < path.n; i++) {
        if (i == 0 || is_digit(path.p[i - 1]) || path.p[i - 1] == '/')
            continue;
        size_t end = i;
        while (end < path.n && is_digit(path.p[end]))
            end++;
        if (end == i || (end < path.n && path.p[end] != '.' && path.p[end] != '/'))
            continue;
        *stem = i;
        return end;
    }
    return 0;
}

typedef struct key {
    tv_str key, stem;
    uint32_t heavy;
    bool unit;
} key;

typedef struct keys {
    key *v;
    size_t n, cap;
} keys;

static int by_key(const void *x, const void *y)
{
    return tv_str_cmp(((const key *)x)->key, ((const key *)y)->key);
}

static bool is_heavy(const tv_lower *l, const tv_item *t)
{
    const tv_step *s = tv_lower_step(l, t->step);
    if (t->kind != TV_ITEM_STEP)
        return false;
    return s->kind == TV_STEP_CONV || s->kind == TV_STEP_RNN ||
           (s->kind == TV_STEP_MATMUL &&
            (tv_lower_is_weight(l, t->in[0]) || (t->n_in > 1 && tv_lower_is_weight(l, t->in[1]))));
}

static keys collect(const tv_lower *l)
{
    keys all = {0};
    for (size_t i = 0; i < l->items.n; i++) {
        const tv_item *t = &l->items.v[i];
        size_t stem = 0;
        for (size_t end = next_key(t->path, 0, &stem); end; end = next_key(t->path, end, &stem))
            *tv_push(l->a, &all) =
                (key){tv_str_take(t->path, end), tv_str_take(t->path, stem), is_heavy(l, t), false};
    }
    if (all.n)
        qsort(all.v, all.n, sizeof *all.v, by_key);
    size_t n = 0;
    for (size_t i = 0; i < all.n; i++)
        if (n && tv_str_eq(all.v[n - 1].key, all.v[i].key))
            all.v[n - 1].heavy += all.v[i].heavy;
        else
            all.v[n++] = all.v[i];
    all.n = n;
    return all;
}

static int by_stem(const void *x, const void *y)
{
    return tv_str_cmp(((const key *)x)->stem, ((const key *)y)->stem);
}

/* A container's members are units where at least half of those with layers hold two or more.
 * "attn1" and "attn2" are no container's members but two parts of a block: numbers without a
 * separator need a third. */
static void choose_units(keys *all)
{
    if (all->n)
        qsort(all->v, all->n, sizeof *all->v, by_stem);
    for (size_t i = 0, end; i < all->n; i = end) {
        size_t one = 0, two = 0;
        for (end = i; end < all->n && tv_str_eq(all->v[end].stem, all->v[i].stem); end++) {
            one += all->v[end].heavy >= 1;
            two += all->v[end].heavy >= 2;
        }
        const tv_str stem = all->v[i].stem;
        const char last = stem.n ? stem.p[stem.n - 1] : '.';
        const bool separated = last == '.' || last == '_';
        for (size_t k = i; k < end; k++)
            all->v[k].unit = two > 0 && 2 * two >= one && (separated || end - i >= 3);
    }
    if (all->n)
        qsort(all->v, all->n, sizeof *all->v, by_key);
}

static const key *find_key(const keys *all, tv_str k)
{
    const key want = {.key = k};
    return all->n ? bsearch(&want, all->v, all->n, sizeof want, by_key) : NULL;
}

static tv_str unit_of(const keys *all, tv_str path)
{
    tv_str unit = {0};
    size_t stem = 0;
    for (size_t end = next_key(path, 0, &stem); end; end = next_key(path, end, &stem)) {
        const key *k = find_key(all, tv_str_take(path, end));
        if (k && k->unit)
            unit = k->key;
    }
    return unit;
}

/* ---- segments ---- */

static void open_segment(tv_lower *l, uint32_t first, tv_str unit)
{
    *tv_push(l->a, &l->segments) =
        (tv_segment){.first = first, .unit = unit, .in = TV_NO_VALUE, .out = TV_NO_VALUE};
}

/* Views belong to whoever reads them: to the unit that is open, or to the next that is not. */
static tv_str *units_of_items(const tv_lower *l, const keys *all)
{
    tv_str *unit = tv_new(l->a, tv_str, l->items.n + 1);
    for (size_t i = 0; i < l->items.n; i++)
        unit[i] = unit_of(all, l->items.v[i].path);
    for (size_t i = l->items.n; i-- > 0;)
        if (l->items.v[i].kind == TV_ITEM_ALIAS && i + 1 < l->items.n &&
            (i == 0 || !tv_str_eq(unit[i], unit[i - 1])))
            unit[i] = unit[i + 1];
    return unit;
}

static void by_units(tv_lower *l, const keys *all)
{
    const tv_str *unit = units_of_items(l, all);
    for (uint32_t i = 0; i < l->items.n; i++) {
        if (!l->segments.n || !tv_str_eq(l->segments.v[l->segments.n - 1].unit, unit[i]))
            open_segment(l, i, unit[i]);
        l->segments.v[l->segments.n - 1].n++;
    }
}

/* Functions, batch norms and views belong to what stands before them. */
static bool can_begin(const tv_lower *l, const tv_item *t)
{
    const tv_step *s = tv_lower_step(l, t->step);
    if (t->kind == TV_ITEM_ACT || t->kind == TV_ITEM_ALIAS)
        return false;
    if (t->kind != TV_ITEM_STEP)
        return true;
    return s->kind != TV_STEP_UNARY && s->kind != TV_STEP_DROPOUT && s->kind != TV_STEP_SOFTMAX &&
           !(s->kind == TV_STEP_NORM && s->u.norm.kind == TV_NORM_BATCH);
}

/* Places where one value crosses; a stretch holds at least two layers. */
static void by_cuts(tv_lower *l)
{
    uint32_t *last = tv_new(l->a, uint32_t, l->run->n_values + 1);
    int *change = tv_new(l->a, int, l->items.n + 2);
    for (uint32_t i = 0; i < l->items.n; i++)
        for (size_t k = 0; k < l->items.v[i].n_in; k++)
            if (l->items.v[i].in[k] != TV_NO_VALUE)
                last[l->root[l->items.v[i].in[k]]] = i;
    for (uint32_t i = 0; i < l->items.n; i++)
        for (size_t k = 0; k < l->items.v[i].n_out; k++) {
            const uint32_t v = l->items.v[i].out[k];
            if (v == TV_NO_VALUE || l->root[v] != v || last[v] <= i)
                continue;
            change[i + 1]++;
            change[last[v] + 1]--;
        }
    int alive = 0;
    size_t heavy = 0;
    for (uint32_t i = 0; i < l->items.n; i++) {
        alive += change[i];
        if (!l->segments.n || (alive <= 1 && heavy >= 2 && can_begin(l, &l->items.v[i]))) {
            open_segment(l, i, (tv_str){0});
            heavy = 0;
        }
        heavy += is_heavy(l, &l->items.v[i]);
        l->segments.v[l->segments.n - 1].n++;
    }
}

static void set_stages(tv_lower *l, bool units)
{
    size_t first = l->segments.n, last = 0;
    for (size_t i = 0; i < l->segments.n; i++)
        if (!units || l->segments.v[i].unit.n) {
            first = i < first ? i : first;
            last = i;
        }
    if (!units && l->segments.n > 1)
        last--; /* what is left behind the last cut is the head */
    for (size_t i = 0; i < l->segments.n; i++)
        l->segments.v[i].stage = i < first  ? TV_STAGE_EMBED
                                 : i > last ? TV_STAGE_HEAD
                                            : TV_STAGE_BODY;
}

/* ---- what crosses ---- */

static void find_makers(tv_lower *l)
{
    for (uint32_t v = 0; v < l->run->n_values; v++)
        l->made_in[v] = TV_NO_VALUE;
    for (uint32_t s = 0; s < l->segments.n; s++)
        for (uint32_t i = 0; i < l->segments.v[s].n; i++) {
            tv_item *t = &l->items.v[l->segments.v[s].first + i];
            t->segment = s;
            for (size_t k = 0; k < t->n_out; k++)
                if (t->out[k] != TV_NO_VALUE && l->root[t->out[k]] == t->out[k])
                    l->made_in[t->out[k]] = s;
        }
}

static double size_of(const tv_lower *l, uint32_t v)
{
    return tv_shape_elements(&l->run->values[v].shape);
}

static void crossing(tv_lower *l, uint32_t v, uint32_t s)
{
    const uint32_t root = v == TV_NO_VALUE ? TV_NO_VALUE : l->root[v];
    if (root == TV_NO_VALUE || l->made_in[root] == TV_NO_VALUE || l->made_in[root] == s)
        return;
    tv_segment *from = &l->segments.v[l->made_in[root]];
    if (l->made_in[root] + 1 != s)
        l->global[root] = true;
    else if (from->out == TV_NO_VALUE || size_of(l, root) > size_of(l, from->out))
        from->out = root;
}

static void left_behind(tv_lower *l, uint32_t v, uint32_t s)
{
    const uint32_t root = v == TV_NO_VALUE ? TV_NO_VALUE : l->root[v];
    if (root != TV_NO_VALUE && l->made_in[root] != TV_NO_VALUE && l->made_in[root] != s &&
        l->segments.v[s].in != root)
        l->global[root] = true;
}

static void hand_on(tv_lower *l)
{
    if (!l->segments.n)
        return;
    for (size_t i = 0; i < l->items.n; i++) {
        const tv_item *t = &l->items.v[i];
        for (size_t k = 0; k < t->n_in; k++)
            crossing(l, t->in[k], t->segment);
        if (t->kv_source != TV_NO_VALUE)
            crossing(l, t->kv_source, t->segment);
        const tv_node *n = tv_lower_step(l, t->step)->node;
        for (size_t k = 0; l->recorded && n && k < n->n_saved; k++)
            if (n->saved[k] != TV_NO_VALUE)
                crossing(l, l->run_of[n->saved[k]], t->segment);
    }
    const uint32_t main_output = tv_lower_main_output(l);
    crossing(l, main_output, (uint32_t)l->segments.n - 1);
    for (size_t i = 0; i + 1 < l->segments.n; i++)
        l->segments.v[i + 1].in = l->segments.v[i].out;
    /* the largest is handed on, the others are there for everybody */
    for (size_t i = 0; i < l->items.n; i++) {
        const tv_item *t = &l->items.v[i];
        for (size_t k = 0; k < t->n_in; k++)
            left_behind(l, t->in[k], t->segment);
        const tv_node *n = tv_lower_step(l, t->step)->node;
        for (size_t k = 0; l->recorded && n && k < n->n_saved; k++)
            if (n->saved[k] != TV_NO_VALUE)
                left_behind(l, l->run_of[n->saved[k]], t->segment);
    }
    left_behind(l, main_output, (uint32_t)l->segments.n - 1);
}

/* ---- names inside a block ---- */

static void name_items(tv_lower *l)
{
    for (size_t i = 0; i < l->items.n; i++) {
        tv_item *t = &l->items.v[i];
        const tv_str unit = l->segments.v[t->segment].unit;
        tv_str rest = tv_str_starts(t->path, unit) ? tv_str_drop(t->path, unit.n) : t->path;
        while (rest.n && (rest.p[0] == '/' || rest.p[0] == '.'))
            rest = tv_str_drop(rest, 1);
        char *copy = tv_new(l->keep, char, rest.n + 1);
        for (size_t k = 0; k < rest.n; k++)
            copy[k] = rest.p[k] == '/' ? '.' : rest.p[k];
        const tv_step *s = tv_lower_step(l, t->step);
        t->name = rest.n ? copy : tv_cstr(l->keep, s->node ? s->node->op : s->name);
    }
}

void tv_lower_units(tv_lower *l)
{
    name_paths(l);
    keys all = collect(l);
    choose_units(&all);
    bool any = false;
    for (size_t i = 0; i < all.n; i++)
        any = any || all.v[i].unit;
    if (any)
        by_units(l, &all);
    else
        by_cuts(l);
    set_stages(l, any);
    find_makers(l);
    hand_on(l);
    name_items(l);
}

/* ---- equal segments ---- */

typedef struct tokens {
    double *v;
    size_t n, cap;
} tokens;

static void say(tv_lower *l, tokens *t, double x)
{
    *tv_push(l->a, t) = x;
}

enum {
    SAYS_NOTHING,
    SAYS_FRESH,
    SAYS_SHARED,
    SAYS_CONSTANT,
    SAYS_INNER,
    SAYS_HANDED,
    SAYS_GLOBAL,
    SAYS_CACHE, /* earlier tokens' keys or values: each layer has its own */
};

static bool is_cache(const tv_lower *l, uint32_t root)
{
    for (size_t i = 0; l->kv_width && i < l->run->n_inputs; i++)
        if (l->run->inputs[i] == root && l->kv_width[i] > 0)
            return true;
    return false;
}

/* Where an operand comes from, seen from inside the segment. */
static void say_operand(tv_lower *l, tokens *t, const tv_segment *s, uint32_t v)
{
    if (v == TV_NO_VALUE) {
        say(l, t, SAYS_NOTHING);
        return;
    }
    const uint32_t param = l->param_of[v];
    say(l, t, size_of(l, v));
    if (param != TV_NO_VALUE && l->param[param].parameter) {
        const bool shared = l->param[param].declared;
        say(l, t, shared ? SAYS_SHARED : SAYS_FRESH);
        say(l, t, shared ? param : l->param[param].elements);
        say(l, t, l->param[param].stored_bytes);
        return;
    }
    const uint32_t item = l->item_of[v];
    const uint32_t root = l->root[v];
    if (item != TV_NO_VALUE && item >= s->first && item < s->first + s->n) {
        say(l, t, SAYS_INNER);
        say(l, t, item - s->first);
    } else if (l->made_in[root] == TV_NO_VALUE &&
               !(l->run->values[root].from && l->run->values[root].from->role == TV_VALUE_INPUT)) {
        say(l, t, SAYS_CONSTANT);
    } else if (is_cache(l, root)) {
        say(l, t, SAYS_CACHE);
    } else {
        say(l, t, s->in == root ? SAYS_HANDED : SAYS_GLOBAL);
        say(l, t, s->in == root ? 0 : root);
    }
}

static void say_step(tv_lower *l, tokens *t, const tv_step *s)
{
    say(l, t, s->kind);
    say(l, t, s->times);
    say(l, t, s->node && s->node->region);
    switch ((int)s->kind) {
    case TV_STEP_MATMUL:
        say(l, t, s->u.matmul.m);
        say(l, t, s->u.matmul.n);
        say(l, t, s->u.matmul.k);
        say(l, t, s->u.matmul.groups);
        break;
    case TV_STEP_CONV:
        say(l, t, s->u.conv.kernel);
        say(l, t, s->u.conv.groups);
        say(l, t, s->u.conv.transposed);
        break;
    case TV_STEP_POOL:
        say(l, t, s->u.pool.window);
        say(l, t, s->u.pool.max);
        break;
    case TV_STEP_UNARY:
        say(l, t, s->u.unary.fn);
        break;
    case TV_STEP_BINARY:
        say(l, t, s->u.binary.fn);
        break;
    case TV_STEP_NORM:
        say(l, t, s->u.norm.kind);
        say(l, t, s->u.norm.rows);
        say(l, t, s->u.norm.width);
        break;
    case TV_STEP_ATTENTION:
        say(l, t, s->u.attention.heads);
        say(l, t, s->u.attention.kv_heads);
        say(l, t, s->u.attention.head_dim);
        say(l, t, s->u.attention.causal);
        break;
    case TV_STEP_RNN:
        say(l, t, s->u.rnn.hidden);
        say(l, t, s->u.rnn.gates);
        break;
    }
}

void tv_lower_tokens(tv_lower *l, tv_segment *s)
{
    tokens t = {0};
    say(l, &t, s->stage);
    for (uint32_t i = 0; i < s->n; i++) {
        const tv_item *item = &l->items.v[s->first + i];
        say(l, &t, item->kind);
        say(l, &t, item->in_place);
        say(l, &t, item->folded_norm);
        say_step(l, &t, tv_lower_step(l, item->step));
        for (size_t k = 0; k < item->n_in; k++)
            say_operand(l, &t, s, item->in[k]);
        say_operand(l, &t, s, item->weight);
        say_operand(l, &t, s, item->bias);
        for (size_t k = 0; k < item->n_out; k++) {
            const uint32_t v = item->out[k];
            const uint32_t root = v == TV_NO_VALUE ? v : l->root[v];
            if (v == TV_NO_VALUE)
                continue;
            const tv_shape *shape = &l->run->values[v].shape;
            for (uint32_t d = 0; d < shape->rank; d++)
                say(l, &t, (double)shape->d[d]);
            say(l, &t, root == s->out);
            say(l, &t, l->global[root] ? root : 0); /* a global has one maker */
        }
    }
    s->tokens = t.v;
    s->n_tokens = t.n;
}
