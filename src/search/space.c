/* Cards of one class (compute capability, vendor, known rates, kind of link) resolve a job alike
 * and need the same memory, so each class is resolved and walked once. */
#include "space.h"

static uint32_t rate_mask(const tv_device *d)
{
    uint32_t mask = 0;
    for (int r = 0; r < TV_RATE_COUNT; r++)
        mask |= tv_known(d->rate_flops[r]) ? 1u << r : 0;
    return mask;
}

static bool same_class(const tv_device *x, const tv_device *y)
{
    return x->compute_capability == y->compute_capability && tv_str_eq(x->vendor, y->vendor) &&
           tv_str_eq(x->arch, y->arch) && rate_mask(x) == rate_mask(y);
}

const tv_class_case *tv_space_case(tv_space *space, const tv_machine *machine)
{
    for (size_t i = 0; i < space->cases.n; i++) {
        const tv_class_case *k = space->cases.v[i];
        if (same_class(k->like, machine->device))
            return k;
    }
    tv_class_case *made = tv_new(space->a, tv_class_case, 1);
    tv_machine *kept = tv_new(space->a, tv_machine, 1);
    *kept = *machine;
    made->like = machine->device;
    made->e =
        tv_predict_case(space->a, space->s->model, &space->job, kept, space->s->dataset, &made->c);
    if (!made->e)
        made->states_bytes = tv_search_states(space->scratch, &made->c);
    *tv_push(space->a, &space->cases) = made;
    return made;
}

tv_case tv_space_bind(const tv_class_case *of, const tv_shape *shape, const tv_machine *machine)
{
    tv_case c = of->c;
    c.machine = machine;
    c.job.strategy = shape->strategy;
    c.job.parallel.tp = shape->tp;
    c.job.batch = shape->batch;
    c.job.accum = shape->accum;
    return c;
}

static bool same_shape(const tv_shape *x, const tv_shape *y)
{
    return x->strategy == y->strategy && x->tp == y->tp && x->batch == y->batch &&
           x->accum == y->accum;
}

/* The card reaches memory through the resolved policy, the attention kernel and the library's
 * workspace alone. */
static bool same_need(const tv_case *x, const tv_case *y)
{
    const tv_policy *p = &x->policy, *q = &y->policy;
    const bool large_workspace = x->machine->device->compute_capability == 90;
    return p->param == q->param && p->base == q->base && p->compute == q->compute &&
           p->stream == q->stream && p->state == q->state && p->kv == q->kv &&
           p->autocast == q->autocast && x->setting.kernel == y->setting.kernel &&
           large_workspace == (y->machine->device->compute_capability == 90);
}

static const tv_class_memory *class_memory(tv_space *space, const tv_class_case *of,
                                           const tv_shape *shape, const tv_machine *machine)
{
    for (size_t i = 0; i < space->memories.n; i++) {
        const tv_class_memory *k = space->memories.v[i];
        if (k->gpus == machine->gpus && k->nodes == machine->nodes &&
            same_shape(&k->shape, shape) && (k->of == of || same_need(&k->of->c, &of->c)))
            return k;
    }
    tv_class_memory *made = tv_new(space->a, tv_class_memory, 1);
    const tv_case c = tv_space_bind(of, shape, machine);
    made->of = of;
    made->gpus = machine->gpus;
    made->nodes = machine->nodes;
    made->shape = *shape;
    made->walk = tv_memory_quick_walk(space->scratch, &c);
    *tv_push(space->a, &space->memories) = made;
    return made;
}

tv_memory tv_space_memory(tv_space *space, const tv_class_case *of, const tv_shape *shape,
                          const tv_machine *machine)
{
    const tv_class_memory *known = class_memory(space, of, shape, machine);
    const tv_case c = tv_space_bind(of, shape, machine);
    tv_memory m;
    tv_memory_from_walk(space->a, &c, &known->walk, &m);
    return m;
}
