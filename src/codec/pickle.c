/* A machine with a stack, marks and a memo, as Python's own; an opcode that is not in the table is
 * an error. Opcodes and their arguments: Python's Lib/pickletools.py (3.13). Nothing is looked up,
 * imported or called: GLOBAL, REDUCE, NEWOBJ and BUILD make nodes that say so. */
#include "pickle.h"

#include "base/limits.h"
#include "pickle_text.h"

#include <math.h>
#include <string.h>

typedef const tv_pickle_node *node_ref;

typedef struct reader {
    tv_arena *a;
    tv_pickle *p;
    tv_pickle_node **stack;
    size_t n, cap;
    size_t *marks; /* heights of the stack */
    size_t n_marks, cap_marks;
    tv_pickle_node **memo;
    size_t n_memo; /* slots that exist; empty ones are NULL */
    size_t cap_memo;
    size_t put_next; /* MEMOIZE: how many were put */
    uint64_t op_at;  /* of the opcode in bytes */
    bool done;
} reader;

typedef const tv_err *op_fn(reader *r, int arg);

static const tv_err *broken_at(reader *r, const char *id, const char *msgid, uint64_t at)
{
    return tv_fail_at(r->a, TV_INPUT, TV_TEXT0(id, msgid), r->p->file, r->p->base + at);
}

static const tv_err *broken(reader *r, const char *id, const char *msgid)
{
    return broken_at(r, id, msgid, r->op_at);
}

/* ---- bytes ---- */

static const tv_err *cut(reader *r)
{
    return broken_at(r, "pickle.cut", N_("the pickle ends inside an instruction"), r->p->bytes.n);
}

static const tv_err *take(reader *r, uint64_t n, tv_str *s)
{
    tv_pickle *p = r->p;
    if (n > p->bytes.n - p->at)
        return cut(r);
    *s = (tv_str){(const char *)p->bytes.p + p->at, (size_t)n};
    p->at += (size_t)n;
    return NULL;
}

/* A little-endian count of `width` bytes. */
static const tv_err *take_count(reader *r, int width, uint64_t *v)
{
    tv_str s = {0};
    TV_TRY(take(r, (uint64_t)width, &s));
    *v = 0;
    for (size_t i = s.n; i-- > 0;)
        *v = *v << 8 | (unsigned char)s.p[i];
    return NULL;
}

/* Text up to the end of the line, which is passed over. */
static const tv_err *take_line(reader *r, tv_str *s)
{
    const tv_pickle *p = r->p;
    const size_t left = p->bytes.n - p->at;
    /* The longest line is a text of protocol 0. */
    const char *from = (const char *)p->bytes.p + p->at;
    const char *end = left ? memchr(from, '\n', left) : NULL;
    if (!end)
        return cut(r);
    TV_TRY(take(r, (uint64_t)(end - from), s));
    r->p->at++;
    return NULL;
}

/* ---- nodes, stack, marks ---- */

static const tv_err *node(reader *r, tv_pickle_kind kind, tv_pickle_node **x)
{
    if (r->p->n_nodes == TV_LIMIT_PICKLE_NODES)
        return tv_fail_at(r->a, TV_LIMIT,
                          TV_TEXT0("pickle.too-many", N_("the pickle holds too many objects")),
                          r->p->file, r->p->base + r->op_at);
    *x = tv_new(r->a, tv_pickle_node, 1);
    (*x)->kind = kind;
    (*x)->id = r->p->n_nodes++;
    (*x)->offset = r->p->base + r->op_at;
    return NULL;
}

static void push(reader *r, tv_pickle_node *x)
{
    if (r->n == r->cap)
        r->stack = tv_grow(r->a, r->stack, r->n, &r->cap, sizeof *r->stack);
    r->stack[r->n++] = x;
}

static const tv_err *push_new(reader *r, tv_pickle_kind kind, tv_pickle_node **x)
{
    TV_TRY(node(r, kind, x));
    push(r, *x);
    return NULL;
}

/* The lowest height that may be popped: what lies under a mark is out of reach. */
static size_t floor_of(const reader *r)
{
    return r->n_marks ? r->marks[r->n_marks - 1] : 0;
}

static const tv_err *nothing_there(reader *r)
{
    return broken(r, "pickle.empty-stack", N_("an instruction finds nothing on the stack"));
}

static const tv_err *pop(reader *r, tv_pickle_node **x)
{
    if (r->n <= floor_of(r))
        return nothing_there(r);
    *x = r->stack[--r->n];
    return NULL;
}

static const tv_err *top(reader *r, tv_pickle_node **x)
{
    TV_TRY(pop(r, x));
    r->n++;
    return NULL;
}

/* The height at the last mark, which is taken away. */
static const tv_err *pop_mark(reader *r, size_t *from)
{
    if (r->n_marks == 0)
        return broken(r, "pickle.no-mark", N_("an instruction finds no mark on the stack"));
    *from = r->marks[--r->n_marks];
    return NULL;
}

static void add(reader *r, tv_pickle_node *list, node_ref x)
{
    size_t cap = list->cap;
    if (list->n == list->cap)
        list->items = tv_grow(r->a, list->items, list->n, &cap, sizeof *list->items);
    list->cap = (uint32_t)cap;
    list->items[list->n++] = x;
}

/* Moves what lies above a height into a node. */
static void gather(reader *r, tv_pickle_node *into, size_t from)
{
    const size_t n = r->n - from;
    if (into->n == 0 && n) {
        into->items = tv_new(r->a, node_ref, n);
        into->cap = (uint32_t)n;
    }
    for (size_t i = from; i < r->n; i++)
        add(r, into, r->stack[i]);
    r->n = from;
}

/* ---- plain values ---- */

static const tv_err *push_int(reader *r, int64_t v)
{
    tv_pickle_node *x = NULL;
    TV_TRY(push_new(r, TV_PICKLE_INT, &x));
    x->i = v;
    return NULL;
}

static const tv_err *push_bool(reader *r, int v)
{
    tv_pickle_node *x = NULL;
    TV_TRY(push_new(r, TV_PICKLE_BOOL, &x));
    x->b = v != 0;
    return NULL;
}

static const tv_err *push_text(reader *r, tv_pickle_kind kind, tv_str s)
{
    tv_pickle_node *x = NULL;
    TV_TRY(push_new(r, kind, &x));
    x->s = s;
    return NULL;
}

static const tv_err *op_none(reader *r, int arg)
{
    tv_pickle_node *x = NULL;
    (void)arg;
    return push_new(r, TV_PICKLE_NONE, &x);
}

/* BININT is signed, BININT1 and BININT2 are not. */
static const tv_err *op_binint(reader *r, int width)
{
    uint64_t v = 0;
    TV_TRY(take_count(r, width, &v));
    return push_int(r, width == 4 ? (int64_t)(int32_t)(uint32_t)v : (int64_t)v);
}

/* Two's complement, little-endian, of any length. */
static const tv_err *op_long(reader *r, int width)
{
    uint64_t n = 0;
    tv_str s = {0};
    TV_TRY(take_count(r, width, &n));
    TV_TRY(take(r, n, &s));
    if (n > 8)
        return push_text(r, TV_PICKLE_BIG_INT, s);
    uint64_t v = n && s.p[n - 1] < 0 ? UINT64_MAX : 0;
    for (size_t i = s.n; i-- > 0;)
        v = v << 8 | (unsigned char)s.p[i];
    return push_int(r, (int64_t)v);
}

static const tv_err *no_number(reader *r)
{
    return broken(r, "pickle.number", N_("the text of a number is none"));
}

/* INT and LONG in protocol 0: "I42", "I01" is True, "L42L". */
static const tv_err *op_int_text(reader *r, int is_long)
{
    tv_str s = {0};
    TV_TRY(take_line(r, &s));
    if (!is_long && (tv_str_is(s, "00") || tv_str_is(s, "01")))
        return push_bool(r, s.p[1] == '1');
    if (is_long && tv_str_ends(s, TV_S("L")))
        s.n--;
    const bool minus = tv_str_starts(s, TV_S("-"));
    const tv_str digits = tv_str_drop(s, minus);
    const tv_u64_read v = tv_str_u64(digits);
    if (v.ok && v.v <= (uint64_t)INT64_MAX + minus)
        return push_int(r, (int64_t)(minus ? -v.v : v.v));
    for (size_t i = 0; i < digits.n; i++)
        if (digits.p[i] < '0' || digits.p[i] > '9')
            return no_number(r);
    return digits.n ? push_text(r, TV_PICKLE_BIG_INT, s) : no_number(r);
}

static const struct {
    const char *text;
    float v;
} odd_floats[] = {{"nan", NAN}, {"inf", INFINITY}, {"-inf", -INFINITY}};

static const tv_err *op_float_text(reader *r, int arg)
{
    tv_str s = {0};
    tv_pickle_node *x = NULL;
    (void)arg;
    TV_TRY(take_line(r, &s));
    tv_double_read v = tv_str_double(s);
    for (size_t i = 0; !v.ok && i < sizeof odd_floats / sizeof *odd_floats; i++)
        if (tv_str_is(s, odd_floats[i].text))
            v = (tv_double_read){(double)odd_floats[i].v, true};
    if (!v.ok)
        return no_number(r);
    TV_TRY(push_new(r, TV_PICKLE_FLOAT, &x));
    x->f = v.v;
    return NULL;
}

static const tv_err *op_binfloat(reader *r, int arg)
{
    tv_str s = {0};
    tv_pickle_node *x = NULL;
    uint64_t bits = 0;
    (void)arg;
    TV_TRY(take(r, 8, &s));
    for (size_t i = 0; i < 8; i++)
        bits = bits << 8 | (unsigned char)s.p[i];
    TV_TRY(push_new(r, TV_PICKLE_FLOAT, &x));
    memcpy(&x->f, &bits, sizeof bits);
    return NULL;
}

/* Texts with their length before them. */
static const tv_err *op_text(reader *r, int width)
{
    uint64_t n = 0;
    tv_str s = {0};
    TV_TRY(take_count(r, width, &n));
    TV_TRY(take(r, n, &s));
    return push_text(r, TV_PICKLE_STR, s);
}

static const tv_err *op_bytes(reader *r, int width)
{
    uint64_t n = 0;
    tv_str s = {0};
    TV_TRY(take_count(r, width, &n));
    TV_TRY(take(r, n, &s));
    return push_text(r, TV_PICKLE_BYTES, s);
}

/* ---- the texts of protocol 0 ---- */

static const tv_err *op_string(reader *r, int arg)
{
    tv_str s = {0};
    (void)arg;
    TV_TRY(take_line(r, &s));
    s = tv_str_trim(s);
    if (s.n < 2 || s.p[0] != s.p[s.n - 1] || (s.p[0] != '\'' && s.p[0] != '"'))
        return broken(r, "pickle.quotes", N_("a text lacks its quotes"));
    s = tv_str_take(tv_str_drop(s, 1), s.n - 2);
    const bool plain = !tv_str_cut(s, '\\').found;
    return push_text(r, TV_PICKLE_STR, plain ? s : tv_pickle_unescape_bytes(r->a, s));
}

static const tv_err *op_unicode(reader *r, int arg)
{
    tv_str s = {0};
    bool plain = true;
    (void)arg;
    TV_TRY(take_line(r, &s));
    for (size_t i = 0; plain && i < s.n; i++)
        plain = s.p[i] != '\\' && (unsigned char)s.p[i] < 0x80;
    return push_text(r, TV_PICKLE_STR, plain ? s : tv_pickle_unescape_unicode(r->a, s));
}

/* ---- collections ---- */

static const tv_err *op_mark(reader *r, int arg)
{
    (void)arg;
    if (r->n_marks == r->cap_marks)
        r->marks = tv_grow(r->a, r->marks, r->n_marks, &r->cap_marks, sizeof *r->marks);
    r->marks[r->n_marks++] = r->n;
    return NULL;
}

static const tv_err *op_empty(reader *r, int kind)
{
    tv_pickle_node *x = NULL;
    return push_new(r, (tv_pickle_kind)kind, &x);
}

/* TUPLE, LIST, DICT and FROZENSET: everything above the mark. */
static const tv_err *op_gather(reader *r, int kind)
{
    size_t from = 0;
    tv_pickle_node *x = NULL;
    TV_TRY(pop_mark(r, &from));
    if (kind == TV_PICKLE_DICT && (r->n - from) % 2)
        return broken(r, "pickle.odd", N_("a key has no value"));
    TV_TRY(node(r, (tv_pickle_kind)kind, &x));
    gather(r, x, from);
    push(r, x);
    return NULL;
}

static const tv_err *op_tuple(reader *r, int n)
{
    tv_pickle_node *x = NULL;
    const size_t count = (size_t)n;
    if (r->n - floor_of(r) < count)
        return nothing_there(r);
    TV_TRY(node(r, TV_PICKLE_TUPLE, &x));
    gather(r, x, r->n - count);
    push(r, x);
    return NULL;
}

/* The collection that a kind of items goes into: the node itself, or an object's list of them. */
static const tv_err *target(reader *r, tv_pickle_node *x, tv_pickle_kind kind,
                            tv_pickle_node **into)
{
    *into = x;
    if (x->kind == kind)
        return NULL;
    if (x->kind != TV_PICKLE_OBJECT)
        return broken(r, "pickle.target", N_("items go to something that takes none"));
    const bool pairs = kind == TV_PICKLE_DICT;
    tv_pickle_node **slot = pairs ? &x->object->pairs : &x->object->items;
    if (!*slot)
        TV_TRY(node(r, pairs ? TV_PICKLE_DICT : TV_PICKLE_LIST, slot));
    *into = *slot;
    return NULL;
}

/* APPEND and SETITEM: one item, or one pair. */
static const tv_err *op_add(reader *r, int kind)
{
    const size_t count = kind == TV_PICKLE_DICT ? 2 : 1;
    tv_pickle_node *x = NULL, *into = NULL;
    if (r->n - floor_of(r) < count + 1)
        return nothing_there(r);
    x = r->stack[r->n - count - 1];
    TV_TRY(target(r, x, (tv_pickle_kind)kind, &into));
    gather(r, into, r->n - count);
    return NULL;
}

/* APPENDS, ADDITEMS and SETITEMS: everything above the mark. */
static const tv_err *op_add_all(reader *r, int kind)
{
    size_t from = 0;
    tv_pickle_node *into = NULL;
    TV_TRY(pop_mark(r, &from));
    if (kind == TV_PICKLE_DICT && (r->n - from) % 2)
        return broken(r, "pickle.odd", N_("a key has no value"));
    if (from <= floor_of(r))
        return nothing_there(r);
    TV_TRY(target(r, r->stack[from - 1], (tv_pickle_kind)kind, &into));
    gather(r, into, from);
    return NULL;
}

static const tv_err *op_pop(reader *r, int arg)
{
    tv_pickle_node *x = NULL;
    (void)arg;
    /* Python's POP takes a mark where one lies on top. */
    if (r->n_marks && r->n == floor_of(r)) {
        r->n_marks--;
        return NULL;
    }
    return pop(r, &x);
}

static const tv_err *op_pop_mark(reader *r, int arg)
{
    (void)arg;
    return pop_mark(r, &r->n);
}

static const tv_err *op_dup(reader *r, int arg)
{
    tv_pickle_node *x = NULL;
    (void)arg;
    TV_TRY(top(r, &x));
    push(r, x);
    return NULL;
}

/* ---- memo ---- */

/* Each put takes two bytes at least: a number beyond the file's length was not counted up. */
static const tv_err *put(reader *r, uint64_t i)
{
    tv_pickle_node *x = NULL;
    TV_TRY(top(r, &x));
    if (i > r->p->bytes.n)
        return broken(r, "pickle.memo-far", N_("a memo number is larger than the pickle is long"));
    if (i >= r->cap_memo) {
        r->cap_memo = r->cap_memo > i ? r->cap_memo : (size_t)i;
        r->memo = tv_grow(r->a, r->memo, r->n_memo, &r->cap_memo, sizeof *r->memo);
    }
    r->n_memo = r->n_memo > i ? r->n_memo : (size_t)i + 1;
    r->put_next += r->memo[i] == NULL;
    r->memo[i] = x;
    return NULL;
}

static const tv_err *get(reader *r, uint64_t i)
{
    if (i >= r->n_memo || !r->memo[i])
        return broken(r, "pickle.memo", N_("a memo number was never put"));
    push(r, r->memo[i]);
    return NULL;
}

static const tv_err *text_index(reader *r, uint64_t *i)
{
    tv_str s = {0};
    TV_TRY(take_line(r, &s));
    const tv_u64_read v = tv_str_u64(s);
    *i = v.v;
    return v.ok ? NULL : no_number(r);
}

/* width 0: the number is text. */
static const tv_err *op_put(reader *r, int width)
{
    uint64_t i = 0;
    TV_TRY(width ? take_count(r, width, &i) : text_index(r, &i));
    return put(r, i);
}

static const tv_err *op_get(reader *r, int width)
{
    uint64_t i = 0;
    TV_TRY(width ? take_count(r, width, &i) : text_index(r, &i));
    return get(r, i);
}

static const tv_err *op_memoize(reader *r, int arg)
{
    (void)arg;
    return put(r, r->put_next);
}

/* ---- names and calls ---- */

static tv_str dotted(reader *r, tv_str module, tv_str name)
{
    tv_buf b = tv_buf_in(r->a);
    tv_put(&b, module);
    tv_putc(&b, '.');
    tv_put(&b, name);
    return tv_buf_str(&b);
}

static void note_global(reader *r, tv_str name)
{
    tv_pickle_names *list = &r->p->globals;
    for (size_t i = list->n; i-- > 0;)
        if (tv_str_eq(list->v[i], name))
            return;
    if (list->n < TV_LIMIT_PICKLE_GLOBALS)
        *tv_push(r->a, list) = name;
}

static const tv_err *take_global(reader *r, tv_pickle_node **x)
{
    tv_str module = {0}, name = {0};
    TV_TRY(take_line(r, &module));
    TV_TRY(take_line(r, &name));
    TV_TRY(node(r, TV_PICKLE_GLOBAL, x));
    (*x)->s = dotted(r, module, name);
    note_global(r, (*x)->s);
    return NULL;
}

static const tv_err *op_global(reader *r, int arg)
{
    tv_pickle_node *x = NULL;
    (void)arg;
    TV_TRY(take_global(r, &x));
    push(r, x);
    return NULL;
}

static const tv_err *op_stack_global(reader *r, int arg)
{
    tv_pickle_node *name = NULL, *module = NULL, *x = NULL;
    (void)arg;
    TV_TRY(pop(r, &name));
    TV_TRY(pop(r, &module));
    if (name->kind != TV_PICKLE_STR || module->kind != TV_PICKLE_STR)
        return broken(r, "pickle.name", N_("the name of a class is no text"));
    TV_TRY(push_new(r, TV_PICKLE_GLOBAL, &x));
    x->s = dotted(r, module->s, name->s);
    note_global(r, x->s);
    return NULL;
}

/* Numbers of a registry that a process fills: which class one means is not known. */
static const tv_err *op_extension(reader *r, int width)
{
    uint64_t v = 0;
    tv_pickle_node *x = NULL;
    tv_buf b = tv_buf_in(r->a);
    TV_TRY(take_count(r, width, &v));
    tv_puts(&b, "copyreg.extension.");
    tv_put_u64(&b, v);
    TV_TRY(push_new(r, TV_PICKLE_GLOBAL, &x));
    x->s = tv_buf_str(&b);
    note_global(r, x->s);
    return NULL;
}

static const tv_err *push_object(reader *r, node_ref callee, node_ref args)
{
    tv_pickle_node *x = NULL;
    TV_TRY(push_new(r, TV_PICKLE_OBJECT, &x));
    x->object = tv_new(r->a, tv_pickle_object, 1);
    x->object->callee = callee;
    x->object->args = args;
    return NULL;
}

/* REDUCE and NEWOBJ: a callee and a tuple; NEWOBJ_EX: named arguments too, which are left out. */
static const tv_err *op_call(reader *r, int named)
{
    tv_pickle_node *names = NULL, *args = NULL, *callee = NULL;
    if (named)
        TV_TRY(pop(r, &names));
    TV_TRY(pop(r, &args));
    TV_TRY(pop(r, &callee));
    if (args->kind != TV_PICKLE_TUPLE)
        return broken(r, "pickle.args", N_("the arguments of a call are no tuple"));
    return push_object(r, callee, args);
}

/* INST and OBJ of protocols 0 and 1: arguments above the mark. */
static const tv_err *op_instance(reader *r, int on_stack)
{
    size_t from = 0;
    tv_pickle_node *callee = NULL, *args = NULL;
    if (!on_stack)
        TV_TRY(take_global(r, &callee));
    TV_TRY(pop_mark(r, &from));
    if (on_stack && from == r->n)
        return nothing_there(r);
    TV_TRY(node(r, TV_PICKLE_TUPLE, &args));
    gather(r, args, from + (on_stack ? 1 : 0));
    if (on_stack)
        TV_TRY(pop(r, &callee));
    return push_object(r, callee, args);
}

static const tv_err *op_build(reader *r, int arg)
{
    tv_pickle_node *state = NULL, *x = NULL;
    (void)arg;
    TV_TRY(pop(r, &state));
    TV_TRY(top(r, &x));
    if (x->kind == TV_PICKLE_OBJECT)
        x->object->state = state;
    else if (x->kind != TV_PICKLE_PERSISTENT && x->kind != TV_PICKLE_GLOBAL)
        return broken(r, "pickle.build", N_("a state goes to something that has none"));
    return NULL;
}

static const tv_err *push_persistent(reader *r, node_ref id)
{
    tv_pickle_node *x = NULL;
    TV_TRY(push_new(r, TV_PICKLE_PERSISTENT, &x));
    add(r, x, id);
    return NULL;
}

static const tv_err *op_persistent(reader *r, int arg)
{
    tv_pickle_node *id = NULL;
    (void)arg;
    TV_TRY(pop(r, &id));
    return push_persistent(r, id);
}

static const tv_err *op_persistent_text(reader *r, int arg)
{
    tv_pickle_node *id = NULL;
    tv_str s = {0};
    (void)arg;
    TV_TRY(take_line(r, &s));
    TV_TRY(node(r, TV_PICKLE_STR, &id));
    id->s = s;
    return push_persistent(r, id);
}

/* ---- the frame around it ---- */

static const tv_err *op_protocol(reader *r, int arg)
{
    uint64_t v = 0;
    (void)arg;
    TV_TRY(take_count(r, 1, &v));
    if (v <= 5)
        return NULL;
    return tv_fail_at(r->a, TV_UNSUPPORTED,
                      TV_TEXT(r->a, "pickle.protocol",
                              N_("pickle protocol {v} is not known: 0 to 5 are"),
                              tv_arg_num("v", TV_ARG_COUNT, (double)v)),
                      r->p->file, r->p->base + r->op_at);
}

static const tv_err *op_frame(reader *r, int arg)
{
    uint64_t n = 0;
    (void)arg;
    TV_TRY(take_count(r, 8, &n));
    return n > r->p->bytes.n - r->p->at ? cut(r) : NULL;
}

static const tv_err *op_same(reader *r, int arg)
{
    (void)r;
    (void)arg;
    return NULL;
}

static const tv_err *op_stop(reader *r, int arg)
{
    (void)arg;
    r->done = true;
    return NULL;
}

typedef struct op_row {
    op_fn *run;
    int arg;
} op_row;

/* NEXT_BUFFER (0x97) is not here: its data lies outside of the file. */
static const op_row ops[256] = {
    ['('] = {op_mark, 0},
    ['.'] = {op_stop, 0},
    ['0'] = {op_pop, 0},
    ['1'] = {op_pop_mark, 0},
    ['2'] = {op_dup, 0},
    ['F'] = {op_float_text, 0},
    ['I'] = {op_int_text, 0},
    ['J'] = {op_binint, 4},
    ['K'] = {op_binint, 1},
    ['L'] = {op_int_text, 1},
    ['M'] = {op_binint, 2},
    ['N'] = {op_none, 0},
    ['P'] = {op_persistent_text, 0},
    ['Q'] = {op_persistent, 0},
    ['R'] = {op_call, 0},
    ['S'] = {op_string, 0},
    ['T'] = {op_text, 4},
    ['U'] = {op_text, 1},
    ['V'] = {op_unicode, 0},
    ['X'] = {op_text, 4},
    ['a'] = {op_add, TV_PICKLE_LIST},
    ['b'] = {op_build, 0},
    ['c'] = {op_global, 0},
    ['d'] = {op_gather, TV_PICKLE_DICT},
    ['}'] = {op_empty, TV_PICKLE_DICT},
    ['e'] = {op_add_all, TV_PICKLE_LIST},
    ['g'] = {op_get, 0},
    ['h'] = {op_get, 1},
    ['i'] = {op_instance, 0},
    ['j'] = {op_get, 4},
    ['l'] = {op_gather, TV_PICKLE_LIST},
    [']'] = {op_empty, TV_PICKLE_LIST},
    ['o'] = {op_instance, 1},
    ['p'] = {op_put, 0},
    ['q'] = {op_put, 1},
    ['r'] = {op_put, 4},
    ['s'] = {op_add, TV_PICKLE_DICT},
    ['t'] = {op_gather, TV_PICKLE_TUPLE},
    [')'] = {op_empty, TV_PICKLE_TUPLE},
    ['u'] = {op_add_all, TV_PICKLE_DICT},
    ['B'] = {op_bytes, 4},
    ['C'] = {op_bytes, 1},
    ['G'] = {op_binfloat, 0},
    [0x80] = {op_protocol, 0},
    [0x81] = {op_call, 0},
    [0x82] = {op_extension, 1},
    [0x83] = {op_extension, 2},
    [0x84] = {op_extension, 4},
    [0x85] = {op_tuple, 1},
    [0x86] = {op_tuple, 2},
    [0x87] = {op_tuple, 3},
    [0x88] = {push_bool, 1},
    [0x89] = {push_bool, 0},
    [0x8a] = {op_long, 1},
    [0x8b] = {op_long, 4},
    [0x8c] = {op_text, 1},
    [0x8d] = {op_text, 8},
    [0x8e] = {op_bytes, 8},
    [0x8f] = {op_empty, TV_PICKLE_SET},
    [0x90] = {op_add_all, TV_PICKLE_SET},
    [0x91] = {op_gather, TV_PICKLE_SET},
    [0x92] = {op_call, 1},
    [0x93] = {op_stack_global, 0},
    [0x94] = {op_memoize, 0},
    [0x95] = {op_frame, 0},
    [0x96] = {op_bytes, 8},
    [0x98] = {op_same, 0},
};

static const tv_err *step(reader *r)
{
    tv_pickle *p = r->p;
    r->op_at = p->at;
    if (p->at == p->bytes.n)
        return cut(r);
    const op_row *op = &ops[p->bytes.p[p->at++]];
    if (!op->run)
        return broken(r, "pickle.opcode", N_("no pickle instruction has this number"));
    return op->run(r, op->arg);
}

bool tv_pickle_is(tv_bytes_view bytes)
{
    return bytes.n >= 3 && bytes.p[0] == 0x80 && bytes.p[1] >= 2 && bytes.p[1] <= 5 &&
           ops[bytes.p[2]].run;
}

const tv_err *tv_pickle_next(tv_arena *a, tv_pickle *p, const tv_pickle_node **root)
{
    reader r = {.a = a, .p = p};
    tv_pickle_node *x = NULL;
    while (!r.done)
        TV_TRY(step(&r));
    TV_TRY(pop(&r, &x));
    *root = x;
    return NULL;
}
