/* SPDX-License-Identifier: Apache-2.0 */
#include "train/optim_inside.h"
#include <math.h>

enum { M, V, S, START };

struct prodigy {
    float *parts, *d;
};

static size_t state(const struct optim_group *gr, const struct params *p, struct optim_state *out)
{
    (void)p;
    out[M] = OPTIM_STATE(gr, "m", DTYPE_F32, .n = gr->n);
    out[V] = OPTIM_STATE(gr, "v", DTYPE_F32, .n = gr->n);
    out[S] = OPTIM_STATE(gr, "s", DTYPE_F32, .n = gr->n);
    out[START] = OPTIM_STATE(gr, "start", DTYPE_F32, .n = gr->n);
    return 4;
}

static size_t parts(const struct optim *o)
{
    return K_GROUPS(o->groups[0].n) + K_GROUPS(o->groups[1].n);
}

static int open_estimate(struct optim *o, struct cairn_error *err)
{
    if (optim_alloc_own(o, sizeof(struct prodigy), err))
        return -1;
    struct prodigy *own = o->own;
    return optim_workspace(o, 2 * parts(o) * sizeof(float), (void **)&own->parts, err) ||
                   optim_add_array(o, "d", DTYPE_F32, PRODIGY_NUMBERS, (void **)&own->d, err)
               ? -1
               : 0;
}

static int start(struct optim *o, struct cairn_error *err)
{
    const struct prodigy *own = o->own;
    float first = (float)o->o.d0;
    float d[PRODIGY_NUMBERS] = { [PRODIGY_D] = first, [PRODIGY_MOST] = first, [PRODIGY_WAS] = first };
    for (int i = 0; i < GROUPS; i++)
        if (o->groups[i].n && optim_copy_weights(o, &o->groups[i], o->groups[i].state[START], err))
            return -1;
    return gpu_upload(o->g, NULL, own->d, d, sizeof(d), err) || gpu_wait(o->g, NULL, err) ? -1 : 0;
}

static struct prodigy_args args_of(const struct optim *o, const struct optim_group *gr,
                                   const struct optim_weights *to)
{
    const struct prodigy *own = o->own;
    double b1 = o->o.beta1, b2 = o->o.beta2;
    return (struct prodigy_args){
        .to = *to,
        .m = gr->state[M],
        .v = gr->state[V],
        .s = gr->state[S],
        .start = gr->state[START],
        .parts = own->parts + (gr->vectors ? 2 * K_GROUPS(o->groups[0].n) : 0),
        .d = own->d,
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

static int launch(struct optim *o, struct gpu_stream *s, const char *kernel, const struct optim_group *gr,
                  const struct optim_weights *to, struct cairn_error *err)
{
    struct prodigy_args args = args_of(o, gr, to);
    struct gpu_grid grid = { .x = (unsigned)K_GROUPS(gr->n) };
    return optim_launch(o, s, kernel, gr->storage, grid, &args, sizeof(args), err);
}

/* The estimate is one for all parameters, and goes by the rate of A matrices. */
static int measure(struct optim *o, struct gpu_stream *s, const struct optim_group *gr,
                   const struct optim_weights *to, struct cairn_error *err)
{
    return launch(o, s, "prodigy_look", gr, to, err);
}

static int move_part(struct optim *o, struct gpu_stream *s, const struct optim_group *gr,
                     const struct optim_weights *to, struct cairn_error *err)
{
    return launch(o, s, "prodigy", gr, to, err);
}

static int move(struct optim *o, struct gpu_stream *s, const struct optim_group *gr,
                const struct optim_weights *to, struct cairn_error *err)
{
    return optim_each_rate(o, s, gr, to, move_part, err);
}

static int each_group(struct optim *o, struct gpu_stream *s, optim_update *fn, double rate,
                      struct cairn_error *err)
{
    for (int i = 0; i < GROUPS; i++) {
        struct optim_weights to = optim_kernel_args(o, i, rate);
        if (o->groups[i].n && fn(o, s, &o->groups[i], &to, err))
            return -1;
    }
    return 0;
}

static int step(struct optim *o, struct gpu_stream *s, double rate, struct cairn_error *err)
{
    const struct prodigy *own = o->own;
    double t = (double)o->applied + 1;
    if (o->o.corrected)
        rate *= sqrt(1 - pow(o->o.beta2, t)) / (1 - pow(o->o.beta1, t));
    o->rate = rate;
    struct prodigy_grow_args grow = {
        .parts = own->parts,
        .by = o->result + 1,
        .d = own->d,
        .n = (k_i64)parts(o),
        .beta3 = (float)sqrt(o->o.beta2),
        .rate = (float)rate,
        .first = (float)o->o.d0,
        .by_hand = (float)o->o.d_coef,
        .growth = o->o.growth > 0 ? (float)o->o.growth : INFINITY,
    };
    if (each_group(o, s, measure, rate, err) ||
        optim_launch(o, s, "prodigy_grow", GPU_F32, (struct gpu_grid){ .x = 1 }, &grow, sizeof(grow), err) ||
        each_group(o, s, move, rate, err))
        return -1;
    return gpu_download(o->g, s, o->back + 2, own->d + PRODIGY_WAS, sizeof(float), err);
}

const struct optim_method optim_prodigy = {
    .state = state,
    .open = open_estimate,
    .start = start,
    .step = step,
    .default_lr = 1,
    .low_lr = 0.1,
    .lr_remark = "prodigy scales its own rate by train.lr",
};
