/* SPDX-License-Identifier: Apache-2.0
 * LoRA+ (Hayou and others, 2024, https://arxiv.org/abs/2402.12354): the B matrices of a LoRA have a larger
 * learning rate than the A matrices. */
#include "base/str.h"
#include "train/optim_inside.h"

static bool has_plus(const struct optim *o)
{
    return o->o.plus > 0 && o->o.plus != 1;
}

double optim_rate_of(const struct optim *o, const struct param *p)
{
    return has_plus(o) && str_ends(p->name, ".lora_B.weight") ? o->o.plus : 1;
}

/* n elements of a group from `first`. */
static struct optim_group slice(const struct optim *o, const struct optim_group *gr, size_t first, size_t n)
{
    struct optim_group part = *gr;
    struct optim_state list[GROUP_ARRAYS];
    part.w = (char *)gr->w + first * storage_size(gr->storage);
    part.g = gr->g + first;
    size_t arrays = optim_list_arrays(&part, o->params, &o->o, list);
    for (size_t i = 0; i < arrays; i++) {
        size_t block = list[i].block ? list[i].block : 1;
        *list[i].at = (char *)*list[i].at + first / block * dtype_size(list[i].dtype);
    }
    part.n = n;
    return part;
}

/* Where the next matrix begins: a parameter ends with its padding. */
static size_t end_of(const struct params *p, size_t i)
{
    for (size_t k = i + 1; k < p->n; k++)
        if (p->list[k].kind == PARAM_MATRIX)
            return p->list[k].at;
    return p->numbers[PARAM_MATRIX];
}

/* The arguments for some elements; each parameter has random numbers of its own. */
static struct optim_weights args_of(const struct optim *o, const struct optim_group *part,
                                    const struct optim_weights *to, double ratio)
{
    const struct optim_group *all = &o->groups[0];
    struct optim_weights args = *to;
    args.w = part->w;
    args.master = part->master;
    args.g_f32 = part->g;
    args.n = (k_i64)part->n;
    args.rate = (float)((double)to->rate * ratio);
    args.stream = o->attempted * (all->n / PARAMS_ALIGN + 1) + (size_t)(part->g - all->g) / PARAMS_ALIGN;
    return args;
}

int optim_each_rate(struct optim *o, struct gpu_stream *s, const struct optim_group *gr,
                    const struct optim_weights *to, optim_update *fn, struct cairn_error *err)
{
    if (gr->vectors || !has_plus(o))
        return fn(o, s, gr, to, err);
    size_t begin = (size_t)(gr->g - o->groups[0].g), end = begin + gr->n, at = begin;
    for (size_t i = 0; i < o->params->n && at < end; i++) {
        const struct param *p = &o->params->list[i];
        size_t stop = end_of(o->params, i);
        stop = stop < end ? stop : end;
        if (p->kind != PARAM_MATRIX || stop <= at)
            continue;
        struct optim_group part = slice(o, gr, at - begin, stop - at);
        struct optim_weights args = args_of(o, &part, to, optim_rate_of(o, p));
        if (fn(o, s, &part, &args, err))
            return -1;
        at = stop;
    }
    return 0;
}
