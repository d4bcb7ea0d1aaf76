/* SPDX-License-Identifier: Apache-2.0 */
#include "train/optim_inside.h"

enum { M };

static size_t state(const struct optim_group *gr, const struct params *p, struct optim_state *out)
{
    (void)p;
    out[M] = OPTIM_STATE(gr, "m", DTYPE_F32, .n = gr->n);
    return 1;
}

static int update(struct optim *o, struct gpu_stream *s, const struct optim_group *gr,
                  const struct optim_weights *to, struct cairn_error *err)
{
    struct adamw_args args = optim_adamw_args(o, to);
    struct gpu_grid grid = { .x = (unsigned)K_GROUPS(gr->n) };
    args.m = gr->state[M];
    return optim_launch(o, s, "lion", gr->storage, grid, &args, sizeof(args), err);
}

const struct optim_method optim_lion = { .state = state, .update = update };
