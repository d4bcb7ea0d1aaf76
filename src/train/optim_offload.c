/* SPDX-License-Identifier: Apache-2.0
 * Optimizer state of the matrices in host memory, streamed through the device piece by piece. */
#include "gpu/transfer.h"
#include "train/optim_inside.h"
#include <stdlib.h>
#include <string.h>

enum { PIECE_MOST = 1 << 22, PIECES = 16 };
_Static_assert(PIECE_MOST % OPTIM_PIECE_UNIT == 0, "a piece is whole units");

bool optim_can_move(enum optim_kind kind)
{
    return optim_methods[kind]->update;
}

bool optim_is_on_host(const struct optim *o)
{
    return o->offload;
}

static size_t piece_of(size_t n)
{
    size_t piece = (n / PIECES + OPTIM_PIECE_UNIT) / OPTIM_PIECE_UNIT * OPTIM_PIECE_UNIT;
    return piece < PIECE_MOST ? piece : PIECE_MOST;
}

size_t optim_offload_arrays(struct optim_group *gr, const struct params *p, const struct optim_options *o,
                            struct offload_array out[OFFLOAD_ARRAYS])
{
    struct optim_state list[GROUP_ARRAYS];
    size_t n = optim_list_arrays(gr, p, o, list), piece = piece_of(gr->n);
    for (size_t i = 0; i < n; i++) {
        size_t size = dtype_size(list[i].dtype);
        size_t per = piece / (list[i].block ? list[i].block : 1);
        out[i] = (struct offload_array){ list[i].n * size, per * size };
    }
    return n;
}

/* From now on the matrices' arrays, which come first, live in the offload. */
static void settle_in(struct optim *o, struct offload *b)
{
    struct optim_group *gr = &o->groups[0];
    struct optim_state list[GROUP_ARRAYS];
    size_t n = optim_list_arrays(gr, o->params, &o->o, list);
    for (size_t i = 0; i < n; i++) {
        *list[i].at = offload_host(b, i);
        o->arrays[i] =
            (struct optim_array){ list[i].name, list[i].dtype, list[i].n, offload_host(b, i), true };
    }
    o->n_arrays = o->n_arrays < n ? n : o->n_arrays;
    o->offload = b;
    o->piece = piece_of(gr->n);
}

static void tell_master(struct optim *o)
{
    if (!o->groups[0].master)
        return;
    o->weights->master = o->groups[0].master;
    o->weights->master_on_host = o->offload;
}

int optim_offload_open(struct optim *o, struct cairn_error *err)
{
    struct offload_array arrays[OFFLOAD_ARRAYS];
    struct offload *b;
    size_t n = optim_offload_arrays(&o->groups[0], o->params, &o->o, arrays);
    if (offload_open(o->g, arrays, n, &b, err))
        return -1;
    settle_in(o, b);
    return offload_ready(b, err);
}

int optim_settle(struct optim *o, struct cairn_error *err)
{
    return offload_rest(o->offload, err);
}

/* ---- moving ---- */

static size_t array_bytes(const struct optim_array *a)
{
    return a->n * dtype_size(a->dtype);
}

static int to_host(struct optim *o, struct cairn_error *err)
{
    struct offload_array arrays[OFFLOAD_ARRAYS];
    struct offload *b;
    void *before[OFFLOAD_ARRAYS];
    size_t n = optim_offload_arrays(&o->groups[0], o->params, &o->o, arrays);
    if (offload_open(o->g, arrays, n, &b, err))
        return -1;
    struct transfer_part parts[OFFLOAD_ARRAYS];
    for (size_t i = 0; i < n; i++) {
        before[i] = o->arrays[i].at;
        parts[i] = (struct transfer_part){
            .device = before[i],
            .bytes = array_bytes(&o->arrays[i]),
            .move = transfer_move_into,
            .context = offload_host(b, i),
        };
    }
    if (transfer_down(gpu_transfer(o->g), parts, n, NULL, err)) {
        offload_close(b);
        return -1;
    }
    settle_in(o, b);
    tell_master(o);
    for (size_t i = 0; i < n; i++)
        gpu_free(o->g, GPU_MEM_DEVICE, before[i]);
    return offload_ready(b, err); /* there is memory for its windows now */
}

static int to_device(struct optim *o, struct cairn_error *err)
{
    struct optim_state list[GROUP_ARRAYS];
    struct transfer_part parts[GROUP_ARRAYS];
    void *after[GROUP_ARRAYS] = { 0 };
    size_t n = optim_list_arrays(&o->groups[0], o->params, &o->o, list);
    int r = offload_rest(o->offload, err);
    for (size_t i = 0; i < n && !r; i++) {
        size_t bytes = array_bytes(&o->arrays[i]);
        r = gpu_alloc(o->g, GPU_MEM_DEVICE, bytes, &after[i], err);
        parts[i] = (struct transfer_part){
            .device = after[i], .bytes = bytes, .move = transfer_move_from, .context = o->arrays[i].at
        };
    }
    if (r || transfer_up(gpu_transfer(o->g), parts, n, NULL, err)) {
        for (size_t i = 0; i < n; i++)
            gpu_free(o->g, GPU_MEM_DEVICE, after[i]);
        return -1;
    }
    for (size_t i = 0; i < n; i++) {
        o->arrays[i].at = *list[i].at = after[i];
        o->arrays[i].on_host = false;
    }
    offload_close(o->offload);
    o->offload = NULL;
    tell_master(o);
    return 0;
}

int optim_move_state(struct optim *o, bool host, struct cairn_error *err)
{
    if (!o->method->update || !o->groups[0].n || host == (o->offload != NULL))
        return 0;
    return host ? to_host(o, err) : to_device(o, err);
}

/* ---- in a step ---- */

int optim_offload_begin(struct optim *o, struct cairn_error *err)
{
    for (size_t i = 0; o->offload && i < OFFLOAD_WINDOWS && i < offload_pieces(o->offload); i++)
        if (offload_send(o->offload, i, err))
            return -1;
    return 0;
}

int optim_offload_pass(struct optim *o, struct gpu_stream *s, optim_visit *fn, double rate,
                       struct cairn_error *err)
{
    const struct optim_group *all = &o->groups[0];
    size_t pieces = offload_pieces(o->offload);
    for (size_t i = 0; i < pieces; i++) {
        void *at[OFFLOAD_ARRAYS];
        struct optim_group piece = *all;
        struct optim_state list[GROUP_ARRAYS];
        size_t first = i * o->piece;
        piece.n = all->n - first < o->piece ? all->n - first : o->piece;
        piece.w = (char *)all->w + first * storage_size(all->storage);
        piece.g = all->g + first;
        size_t n = optim_list_arrays(&piece, o->params, &o->o, list);
        if (offload_get(o->offload, i, s, at, err))
            return -1;
        for (size_t k = 0; k < n; k++)
            *list[k].at = at[k];
        if (fn(o, s, &piece, i, rate, err) || offload_done(o->offload, i, s, true, err))
            return -1;
        if (i + OFFLOAD_WINDOWS < pieces && offload_send(o->offload, i + OFFLOAD_WINDOWS, err))
            return -1;
    }
    return 0;
}

int optim_offload_weights(struct optim *o, const struct optim_group *gr, float *to, struct cairn_error *err)
{
    if (gr->master) {
        memcpy(to, gr->master, gr->n * sizeof(*to));
        return 0;
    }
    size_t bytes = gr->n * storage_size(gr->storage);
    CLEANUP(mem_free) void *narrow = malloc(bytes);
    if (!narrow)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu weights", gr->n);
    struct transfer_part part = {
        .device = gr->w, .bytes = bytes, .move = transfer_move_into, .context = narrow
    };
    if (transfer_down(gpu_transfer(o->g), &part, 1, NULL, err))
        return -1;
    dtype_convert(to, DTYPE_F32, narrow, storage_dtype(gr->storage), gr->n, &(struct dtype_how){ 0 });
    return 0;
}
