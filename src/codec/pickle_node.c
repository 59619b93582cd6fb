/* Look-ups in what a pickle became. */
#include "pickle.h"

static bool has_items(const tv_pickle_node *x)
{
    return x &&
           (x->kind == TV_PICKLE_TUPLE || x->kind == TV_PICKLE_LIST || x->kind == TV_PICKLE_DICT ||
            x->kind == TV_PICKLE_SET || x->kind == TV_PICKLE_PERSISTENT);
}

const tv_pickle_node *tv_pickle_at(const tv_pickle_node *node, size_t i)
{
    return has_items(node) && i < node->n ? node->items[i] : NULL;
}

const tv_pickle_node *tv_pickle_pairs(const tv_pickle_node *node)
{
    if (node && node->kind == TV_PICKLE_OBJECT)
        return node->object->pairs;
    return node && node->kind == TV_PICKLE_DICT ? node : NULL;
}

const tv_pickle_node *tv_pickle_get(const tv_pickle_node *node, const char *key)
{
    const tv_pickle_node *pairs = tv_pickle_pairs(node);
    for (size_t i = pairs ? pairs->n : 0; i >= 2; i -= 2)
        if (tv_str_is(tv_pickle_str(pairs->items[i - 2]), key))
            return pairs->items[i - 1];
    return NULL;
}

tv_str tv_pickle_class(const tv_pickle_node *node)
{
    const bool object = node && node->kind == TV_PICKLE_OBJECT;
    return object && node->object->callee->kind == TV_PICKLE_GLOBAL ? node->object->callee->s
                                                                    : (tv_str){0};
}

const tv_pickle_node *tv_pickle_args(const tv_pickle_node *node, const char *callee)
{
    return tv_str_is(tv_pickle_class(node), callee) ? node->object->args : NULL;
}

tv_str tv_pickle_str(const tv_pickle_node *node)
{
    return node && node->kind == TV_PICKLE_STR ? node->s : (tv_str){0};
}

int64_t tv_pickle_int(const tv_pickle_node *node, int64_t fallback)
{
    return node && node->kind == TV_PICKLE_INT ? node->i : fallback;
}
