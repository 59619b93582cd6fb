/* What a reader found in a graph, one line a thing, for scripts that compare: program_dump PATH
 *   value NAME ROLE DTYPE [D0,D1,...]     weights and inputs
 *   temp NAME DTYPE [D0,D1,...]           values that nodes put out
 *   node OP OUTPUTS PATH                  of the main graph and, indented, of inner graphs
 *   output NAME
 *   tensor NAME DTYPE [D0,...] BYTES OFFSET */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "read/reader.h"

static void put_dims(const tv_value *v)
{
    (void)printf("[");
    for (uint32_t i = 0; i < v->rank; i++) {
        if (v->dims[i].size >= 0)
            (void)printf("%s%" PRId64, i ? "," : "", v->dims[i].size);
        else
            (void)printf("%s%.*s", i ? "," : "", TV_FMT(v->dims[i].symbol));
    }
    (void)printf("]");
}

static void put_value(const tv_value *v)
{
    static const char *const roles[] = {"temp", "input", "weight", "null"};
    const char *role = v->role == TV_VALUE_WEIGHT && v->buffer ? "buffer" : roles[v->role];
    if (v->role == TV_VALUE_TEMP)
        (void)printf("temp %.*s %s ", TV_FMT(v->name), tv_dtype_of(v->dtype)->name);
    else
        (void)printf("value %.*s %s %s ", TV_FMT(v->name), role, tv_dtype_of(v->dtype)->name);
    put_dims(v);
    (void)printf("%s%s\n", v->frozen ? " frozen" : "", v->data.n ? " kept" : "");
}

static void put_body(const tv_program *p, const tv_body *b, int depth)
{
    for (size_t i = 0; i < b->n_nodes; i++) {
        const tv_node *n = &b->nodes[i];
        (void)printf("%*snode %.*s", 2 * depth, "", TV_FMT(n->op));
        for (size_t k = 0; k < n->n_outputs; k++)
            if (n->outputs[k] != TV_NO_VALUE)
                (void)printf("%s%.*s", k ? "," : " ", TV_FMT(p->values[n->outputs[k]].name));
        (void)printf(" %.*s\n", TV_FMT(n->name));
        for (size_t k = 0; k < n->n_attrs; k++)
            if (n->attrs[k].kind == TV_ATTR_BODY && depth < TV_LIMIT_PROGRAM_DEPTH)
                put_body(p, n->attrs[k].u.body, depth + 1);
    }
    for (size_t i = 0; i < b->n_outputs; i++)
        if (b->outputs[i] != TV_NO_VALUE)
            (void)printf("%*soutput %.*s\n", 2 * depth, "", TV_FMT(p->values[b->outputs[i]].name));
}

static void put_tensor(const tv_tensor *t)
{
    (void)printf("tensor %.*s %s [", TV_FMT(t->name), tv_dtype_of(t->dtype)->name);
    for (uint32_t i = 0; i < t->rank; i++)
        (void)printf("%s%" PRIu64, i ? "," : "", t->dims[i]);
    (void)printf("] %" PRIu64 " %" PRIu64 "\n", t->bytes, t->offset);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    tv_arena *a = tv_arena_open(TV_LIMIT_ARENA_BYTES);
    if (!a)
        abort();
    const tv_source *s = NULL;
    const tv_err *e = tv_read_model(a, tv_str_of(argv[1]), &s);
    if (e) {
        tv_buf b = tv_buf_in(a);
        tv_put_err(&b, TV_EN, e);
        (void)fprintf(stderr, "%.*s\n", TV_FMT(tv_buf_str(&b)));
        return (int)e->code;
    }
    if (s->program) {
        for (size_t i = 0; i < s->program->n_values; i++)
            put_value(&s->program->values[i]);
        put_body(s->program, s->program->main, 0);
    }
    for (size_t i = 0; i < s->n_tensors; i++)
        put_tensor(&s->tensors[i]);
    tv_arena_close(a);
    return 0;
}
