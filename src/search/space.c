/* Cards of one class (compute capability, vendor, known rates, kind of link) resolve a job alike
 * and need the same memory, so each class is resolved and walked once. */
#include "space.h"

static void tv_predict_verdict(tv_memory *m, double capacity)
{
    m->capacity_bytes = capacity;
    m->verdict = !(capacity > 0) ? TV_VERDICT_UNKNOWN : m->high_bytes <= capacity ? TV_FITS : m->total_bytes <= capacity ? TV_TIGHT : TV_NO_FIT;
}

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
        if (k->gpus == machine->gpus && k->link == machine->intra.kind &&
            same_class(k->like, machine->device))
            return k;
    }
    tv_class_case *made = tv_new(space->a, tv_class_case, 1);
    tv_machine *kept = tv_new(space->a, tv_machine, 1);
    *kept = *machine;
    made->like = machine->device;
    made->gpus = machine->gpus;
    made->link = machine->intra.kind;
    made->e = tv_predict_case(space->a, space->s->model, &space->job, kept, space->s->dataset,
                              &made->c);
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

static const tv_class_memory *class_memory(tv_space *space, const tv_class_case *of,
                                           const tv_shape *shape)
{
    for (size_t i = 0; i < space->memories.n; i++) {
        const tv_class_memory *k = space->memories.v[i];
        if (k->of == of && same_shape(&k->shape, shape))
            return k;
    }
    tv_class_memory *made = tv_new(space->a, tv_class_memory, 1);
    const tv_case c = tv_space_bind(of, shape, of->c.machine);
    made->of = of;
    made->shape = *shape;
    tv_predict_memory(space->a, space->scratch, &c, &made->memory);
    *tv_push(space->a, &space->memories) = made;
    return made;
}

tv_memory tv_space_memory(tv_space *space, const tv_class_case *of, const tv_shape *shape,
                          const tv_device *device)
{
    tv_memory m = class_memory(space, of, shape)->memory;
    tv_predict_verdict(&m, tv_device_memory(device));
    return m;
}
