/* SPDX-License-Identifier: Apache-2.0 */
#include "train/optim_inside.h"
#include <math.h>

int prodigy_open(struct optim *o, struct cairn_error *err)
{
    size_t parts = K_GROUPS(o->groups[0].n) + K_GROUPS(o->groups[1].n);
    return optim_workspace(o, 2 * parts * sizeof(float), (void **)&o->prodigy_parts, err) ||
                   optim_add_array(o, "d", DTYPE_F32, PRODIGY_NUMBERS, (void **)&o->prodigy_d, err)
               ? -1
               : 0;
}

int prodigy_start(struct optim *o, struct cairn_error *err)
{
    float first = (float)o->o.d0;
    float d[PRODIGY_NUMBERS] = { [PRODIGY_D] = first, [PRODIGY_MOST] = first, [PRODIGY_WAS] = first };
    for (int i = 0; i < GROUPS; i++)
        if (o->groups[i].n && optim_copy_weights(o, &o->groups[i], o->groups[i].start, err))
            return -1;
    return gpu_upload(o->g, NULL, o->prodigy_d, d, sizeof(d), err) || gpu_wait(o->g, NULL, err) ? -1 : 0;
}

static struct prodigy_args args_of(const struct optim *o, int which, double rate)
{
    const struct group *gr = &o->groups[which];
    double b1 = o->o.beta1, b2 = o->o.beta2;
    return (struct prodigy_args){
        .to = optim_moved(o, which, rate),
        .m = gr->m,
        .v = gr->v,
        .s = gr->s,
        .start = gr->start,
        .parts = o->prodigy_parts + (which ? 2 * K_GROUPS(o->groups[0].n) : 0),
        .d = o->prodigy_d,
        .beta1 = (float)b1,
        .beta2 = (float)b2,
        .rest1 = (float)(1 - b1),
        .rest2 = (float)(1 - b2),
        .beta3 = (float)sqrt(b2),
        .epsilon = (float)o->o.epsilon,
        .first = (float)o->o.d0,
        .warm = o->o.warm,
    };
}

static int each_group(struct optim *o, struct gpu_stream *s, const char *kernel, double rate,
                      struct cairn_error *err)
{
    for (int i = 0; i < GROUPS; i++) {
        const struct group *gr = &o->groups[i];
        struct prodigy_args args = args_of(o, i, rate);
        struct gpu_grid grid = { .x = (unsigned)K_GROUPS(gr->n) };
        if (gr->n && optim_launch(o, s, kernel, gr->storage, grid, &args, sizeof(args), err))
            return -1;
    }
    return 0;
}

int prodigy_step(struct optim *o, struct gpu_stream *s, double rate, struct cairn_error *err)
{
    double step = (double)o->steps + 1;
    if (o->o.corrected)
        rate *= sqrt(1 - pow(o->o.beta2, step)) / (1 - pow(o->o.beta1, step));
    o->rate = rate;
    struct prodigy_grow_args grow = {
        .parts = o->prodigy_parts,
        .by = o->result + 1,
        .d = o->prodigy_d,
        .n = (k_i64)(K_GROUPS(o->groups[0].n) + K_GROUPS(o->groups[1].n)),
        .beta3 = (float)sqrt(o->o.beta2),
        .rate = (float)rate,
        .first = (float)o->o.d0,
        .by_hand = (float)o->o.d_coef,
        .growth = o->o.growth > 0 ? (float)o->o.growth : INFINITY,
    };
    if (each_group(o, s, "prodigy_look", rate, err) ||
        optim_launch(o, s, "prodigy_grow", GPU_F32, (struct gpu_grid){ .x = 1 }, &grow, sizeof(grow), err) ||
        each_group(o, s, "prodigy", rate, err))
        return -1;
    return gpu_download(o->g, s, o->back + 2, o->prodigy_d + PRODIGY_WAS, sizeof(float), err);
}
