/* SPDX-License-Identifier: Apache-2.0 */
#include "train/optim_inside.h"
#include <math.h>

enum { M, V };

static size_t state(const struct optim_group *gr, const struct params *p, struct optim_state *out)
{
    (void)p;
    out[M] = OPTIM_STATE(gr, "m", DTYPE_F32, .n = gr->n);
    out[V] = OPTIM_STATE(gr, "v", DTYPE_F32, .n = gr->n);
    return 2;
}

struct adamw_args optim_adamw_args(const struct optim *o, const struct optim_weights *to)
{
    double step = (double)o->applied + 1, b1 = o->o.beta1, b2 = o->o.beta2;
    return (struct adamw_args){
        .to = *to,
        .beta1 = (float)b1,
        .beta2 = (float)b2,
        .rest1 = (float)(1 - b1),
        .rest2 = (float)(1 - b2),
        .epsilon = (float)o->o.epsilon,
        .correction1 = (float)(1 - pow(b1, step)),
        .correction2 = (float)(1 - pow(b2, step)),
    };
}

static int update(struct optim *o, struct gpu_stream *s, const struct optim_group *gr,
                  const struct optim_weights *to, struct cairn_error *err)
{
    struct adamw_args args = optim_adamw_args(o, to);
    struct gpu_grid grid = { .x = (unsigned)K_GROUPS(gr->n) };
    args.m = gr->state[M];
    args.v = gr->state[V];
    return optim_launch(o, s, "adamw", gr->storage, grid, &args, sizeof(args), err);
}

const struct optim_method optim_adamw = { .state = state, .update = update };
