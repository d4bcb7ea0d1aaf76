/* SPDX-License-Identifier: Apache-2.0
 * AdamW with 8-bit state for the matrices; the vectors have AdamW's f32 state. */
#include "gpu/optim8.h"
#include "gpu/transfer.h"
#include "train/optim_inside.h"
#include <stdlib.h>
#include <string.h>

enum { M, V, M_MAX, V_MAX };
_Static_assert(OPTIM_PIECE_UNIT % OPTIM8_BLOCK == 0, "a piece is whole blocks of codes");

struct adamw8 {
    float *tables; /* of the codes */
};

static size_t blocks(size_t n)
{
    return (n + OPTIM8_BLOCK - 1) / OPTIM8_BLOCK;
}

static size_t state(const struct optim_group *gr, const struct params *p, struct optim_state *out)
{
    if (gr->vectors)
        return optim_adamw.state(gr, p, out);
    out[M] = OPTIM_STATE(gr, "m", DTYPE_U8, .n = gr->n);
    out[V] = OPTIM_STATE(gr, "v", DTYPE_U8, .n = gr->n);
    out[M_MAX] = OPTIM_STATE(gr, "m.max", DTYPE_F32, .n = blocks(gr->n), .block = OPTIM8_BLOCK);
    out[V_MAX] = OPTIM_STATE(gr, "v.max", DTYPE_F32, .n = blocks(gr->n), .block = OPTIM8_BLOCK);
    return 4;
}

static int open_tables(struct optim *o, struct cairn_error *err)
{
    float tables[OPTIM8_TABLES];
    if (optim_alloc_own(o, sizeof(struct adamw8), err))
        return -1;
    struct adamw8 *own = o->own;
    optim8_tables(tables);
    if (optim_workspace(o, sizeof(tables), (void **)&own->tables, err) ||
        gpu_upload(o->g, NULL, own->tables, tables, sizeof(tables), err))
        return -1;
    return gpu_wait(o->g, NULL, err);
}

/* In the codes of m, the value 0 is not code 0. */
static int start(struct optim *o, struct cairn_error *err)
{
    const struct optim_group *gr = &o->groups[0];
    if (!gr->n)
        return 0;
    if (o->offload) {
        memset(gr->state[M], OPTIM8_ZERO_M, gr->n);
        return 0;
    }
    CLEANUP(mem_free) uint8_t *zero = malloc(gr->n);
    if (!zero)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu codes", gr->n);
    memset(zero, OPTIM8_ZERO_M, gr->n);
    struct transfer_part part = {
        .device = gr->state[M], .bytes = gr->n, .move = transfer_move_from, .context = zero
    };
    return transfer_up(gpu_transfer(o->g), &part, 1, NULL, err);
}

static int update(struct optim *o, struct gpu_stream *s, const struct optim_group *gr,
                  const struct optim_weights *to, struct cairn_error *err)
{
    if (gr->vectors)
        return optim_adamw.update(o, s, gr, to, err);
    const struct adamw8 *own = o->own;
    struct adamw_args like = optim_adamw_args(o, to);
    struct adamw8_args args = {
        .to = *to,
        .m = gr->state[M],
        .v = gr->state[V],
        .m_max = gr->state[M_MAX],
        .v_max = gr->state[V_MAX],
        .tables = own->tables,
        .beta1 = like.beta1,
        .beta2 = like.beta2,
        .rest1 = like.rest1,
        .rest2 = like.rest2,
        .epsilon = like.epsilon,
        .correction1 = like.correction1,
        .correction2 = like.correction2,
    };
    struct gpu_grid grid = { .x = (unsigned)blocks(gr->n) };
    return optim_launch(o, s, "adamw8", gr->storage, grid, &args, sizeof(args), err);
}

const struct optim_method optim_adamw8 = {
    .state = state, .open = open_tables, .start = start, .update = update
};
