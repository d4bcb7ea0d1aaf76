/* SPDX-License-Identifier: Apache-2.0 */
#include "train/optim.h"
#include "gpu/kernels/elementwise.h"
#include "gpu/optim8.h"
#include "gpu/transfer.h"
#include "train/optim_inside.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

static size_t blocks(size_t n)
{
    return (n + OPTIM8_BLOCK - 1) / OPTIM8_BLOCK;
}

static void set_group(struct group *gr, const struct params *p, enum param_kind kind,
                      enum gpu_storage storage, const struct optim_options *o)
{
    *gr = (struct group){ .n = p->numbers[kind], .storage = kind == PARAM_VECTOR ? GPU_F32 : storage };
    gr->eight = o->kind == OPTIM_ADAMW8 && kind == PARAM_MATRIX;
}

/* Its name begins with what it is of. */
#define WANT(what, type, numbers, field)                                              \
    (struct want)                                                                     \
    {                                                                                 \
        vectors ? "vector." what : "matrix." what, type, numbers, (void **)&gr->field \
    }

static size_t list_state(struct group *gr, const struct params *p, enum optim_kind kind, bool vectors,
                         struct want *w)
{
    size_t n = 0;
    if (gr->eight) {
        w[n++] = WANT("m", DTYPE_U8, gr->n, m8);
        w[n++] = WANT("v", DTYPE_U8, gr->n, v8);
        w[n++] = WANT("m.max", DTYPE_F32, blocks(gr->n), m_max);
        w[n++] = WANT("v.max", DTYPE_F32, blocks(gr->n), v_max);
        return n;
    }
    if (kind == OPTIM_ADAFACTOR && !vectors) {
        w[n++] = WANT("rows", DTYPE_F32, adafactor_rows(p), rows);
        w[n++] = WANT("columns", DTYPE_F32, adafactor_columns(p), columns);
        return n;
    }
    if (kind != OPTIM_ADAFACTOR)
        w[n++] = WANT("m", DTYPE_F32, gr->n, m);
    if (kind != OPTIM_LION)
        w[n++] = WANT("v", DTYPE_F32, gr->n, v);
    if (kind == OPTIM_PRODIGY) {
        w[n++] = WANT("s", DTYPE_F32, gr->n, s);
        w[n++] = WANT("start", DTYPE_F32, gr->n, start);
    }
    return n;
}

size_t optim_list_wants(struct group *gr, const struct params *p, const struct optim_options *o, bool vectors,
                        struct want w[WANTS])
{
    size_t n = 0;
    if (!gr->n)
        return 0;
    if (o->master && gr->storage != GPU_F32)
        w[n++] = (struct want){ "master", DTYPE_F32, gr->n, (void **)&gr->master };
    if (o->ema > 0)
        w[n++] = WANT("ema", DTYPE_F32, gr->n, average);
    return n + list_state(gr, p, o->kind, vectors, w + n);
}

static size_t sum_wants(const struct want *wants, size_t n)
{
    size_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += wants[i].n * dtype_size(wants[i].dtype);
    return sum;
}

struct optim_sizes optim_sizes(const struct params *p, enum gpu_storage storage,
                               const struct optim_options *o)
{
    struct optim_sizes sizes = { .grads = weights_size(p, GPU_F32) };
    for (int i = 0; i < GROUPS; i++) {
        struct group gr;
        struct want wants[WANTS];
        set_group(&gr, p, i ? PARAM_VECTOR : PARAM_MATRIX, storage, o);
        size_t n = optim_list_wants(&gr, p, o, i, wants);
        if (n && !i && o->on_host && optim_can_move(o->kind)) {
            struct offload_array arrays[OFFLOAD_ARRAYS];
            optim_offload_arrays(&gr, p, o, arrays);
            sizes.state += offload_device_bytes(arrays, n);
            sizes.host = offload_host_bytes(arrays, n);
        } else
            sizes.state += sum_wants(wants, n);
    }
    return sizes;
}

static int take(struct optim *o, size_t bytes, void **out, struct cairn_error *err)
{
    if (gpu_alloc(o->g, GPU_MEM_DEVICE, bytes, out, err))
        return -1;
    if (!gpu_clear(o->g, NULL, *out, bytes, err))
        return 0;
    gpu_free(o->g, GPU_MEM_DEVICE, *out);
    return -1;
}

int optim_workspace(struct optim *o, size_t bytes, void **out, struct cairn_error *err)
{
    if (take(o, bytes, out, err))
        return -1;
    o->rooms[o->n_rooms++] = *out;
    return 0;
}

int optim_add_array(struct optim *o, const char *name, enum dtype dtype, size_t n, void **out,
                    struct cairn_error *err)
{
    if (take(o, n * dtype_size(dtype), out, err))
        return -1;
    o->arrays[o->n_arrays++] = (struct optim_array){ name, dtype, n, *out, false };
    return 0;
}

static int open_group(struct optim *o, int which, struct cairn_error *err)
{
    struct group *gr = &o->groups[which];
    struct want wants[WANTS];
    set_group(gr, o->params, which ? PARAM_VECTOR : PARAM_MATRIX, o->weights->storage, &o->o);
    gr->w = which ? (void *)o->weights->vectors : o->weights->matrices;
    gr->g = which ? o->grads.vectors : o->grads.matrices;
    if (!which && o->o.on_host && gr->n)
        return optim_offload_open(o, err);
    size_t n = optim_list_wants(gr, o->params, &o->o, which, wants);
    for (size_t i = 0; i < n; i++)
        if (optim_add_array(o, wants[i].name, wants[i].dtype, wants[i].n, wants[i].at, err))
            return -1;
    return 0;
}

/* The file of a 16-bit model rounds its vectors, too; these are what moves, and lie here as they are. */
static void list_vectors(struct optim *o)
{
    if (o->weights->storage != GPU_F32 && o->groups[1].n)
        o->arrays[o->n_arrays++] =
            (struct optim_array){ "vector.w", DTYPE_F32, o->groups[1].n, o->weights->vectors, false };
}

static size_t norm_parts(const struct optim *o)
{
    return K_GROUPS(o->groups[0].n) + K_GROUPS(o->groups[1].n);
}

static int open_tables(struct optim *o, struct cairn_error *err)
{
    float tables[OPTIM8_TABLES];
    optim8_tables(tables);
    if (optim_workspace(o, sizeof(tables), (void **)&o->tables, err) ||
        gpu_upload(o->g, NULL, o->tables, tables, sizeof(tables), err))
        return -1;
    return gpu_wait(o->g, NULL, err);
}

static int open_rest(struct optim *o, struct cairn_error *err)
{
    if (optim_workspace(o, norm_parts(o) * sizeof(float), (void **)&o->parts, err) ||
        optim_workspace(o, 2 * sizeof(float), (void **)&o->result, err) ||
        gpu_staging_open(o->g, 3 * sizeof(float), &o->staging, err))
        return -1;
    o->back = o->staging.at;
    o->back[2] = 1;
    switch (o->o.kind) {
    case OPTIM_ADAMW8:
        return open_tables(o, err);
    case OPTIM_ADAFACTOR:
        return adafactor_open(o, err);
    case OPTIM_PRODIGY:
        return prodigy_open(o, err);
    default:
        return 0;
    }
}

/* ---- launching ---- */

int optim_launch(struct optim *o, struct gpu_stream *s, const char *name, enum gpu_storage storage,
                 struct gpu_grid grid, const void *args, size_t size, struct cairn_error *err)
{
    const struct gpu_kernel *k;
    if (gpu_kernel(o->g, name, storage, &k, err))
        return -1;
    return gpu_launch(o->g, s, k, grid, args, size, err);
}

static int launch(struct optim *o, struct gpu_stream *s, const char *name, enum gpu_storage storage,
                  size_t groups, const void *args, size_t size, struct cairn_error *err)
{
    return optim_launch(o, s, name, storage, (struct gpu_grid){ .x = (unsigned)groups }, args, size, err);
}

static int widen(struct optim *o, float *to, const struct group *gr, struct cairn_error *err)
{
    struct widen_args args = { .y = to, .x = gr->w, .n = (k_i64)gr->n };
    return launch(o, NULL, "widen", gr->storage, K_GROUPS(gr->n), &args, sizeof(args), err);
}

/* What is in the weights already, and what is put into them from now on. */
static int open_master(struct optim *o, struct cairn_error *err)
{
    const struct group *matrices = &o->groups[0];
    if (!matrices->master)
        return 0;
    o->weights->master = matrices->master;
    o->weights->master_on_host = o->offload;
    if (o->offload)
        return optim_offload_weights(
            o, &(struct group){ .n = matrices->n, .w = matrices->w, .storage = matrices->storage },
            matrices->master, err);
    return widen(o, matrices->master, matrices, err);
}

/* Of the 8-bit codes of m, zero is not 0. */
static int clear_codes(struct optim *o, const struct group *gr, struct cairn_error *err)
{
    if (o->offload) {
        memset(gr->m8, OPTIM8_ZERO_M, gr->n);
        return 0;
    }
    CLEANUP(mem_free) uint8_t *zero = malloc(gr->n);
    if (!zero)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu codes", gr->n);
    memset(zero, OPTIM8_ZERO_M, gr->n);
    struct transfer_part part = {
        .device = gr->m8, .bytes = gr->n, .move = transfer_move_from, .context = zero
    };
    return transfer_up(gpu_transfer(o->g), &part, 1, NULL, err);
}

int optim_copy_weights(struct optim *o, const struct group *gr, float *to, struct cairn_error *err)
{
    if (gr->master)
        return gpu_copy(o->g, NULL, to, gr->master, gr->n * sizeof(float), err);
    return widen(o, to, gr, err);
}

static int start_average(struct optim *o, int which, struct cairn_error *err)
{
    struct group *gr = &o->groups[which];
    if (!gr->average)
        return 0;
    return o->offload && !which ? optim_offload_weights(o, gr, gr->average, err)
                                : optim_copy_weights(o, gr, gr->average, err);
}

int optim_start(struct optim *o, struct cairn_error *err)
{
    if (optim_settle(o, err))
        return -1;
    for (int i = 0; i < GROUPS; i++) {
        struct group *gr = &o->groups[i];
        if (start_average(o, i, err) || (gr->eight && clear_codes(o, gr, err)))
            return -1;
    }
    if (o->o.kind == OPTIM_PRODIGY && prodigy_start(o, err))
        return -1;
    return gpu_wait(o->g, NULL, err);
}

int optim_open(struct gpu *g, const struct params *p, struct weights *w, const struct optim_options *options,
               struct optim **out, struct cairn_error *err)
{
    struct optim *o = calloc(1, sizeof(*o));
    if (!o)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    *o = (struct optim){ .g = g, .params = p, .weights = w, .o = *options };
    o->o.on_host = options->on_host && optim_can_move(options->kind);
    if (weights_open(&o->grads, g, p, GPU_F32, WEIGHTS_INT8, err) || open_group(o, 0, err) ||
        open_group(o, 1, err) || open_rest(o, err) || open_master(o, err) || optim_start(o, err)) {
        optim_close(o);
        return -1;
    }
    list_vectors(o);
    *out = o;
    return 0;
}

void optim_close(struct optim *o)
{
    if (!o)
        return;
    weights_close(&o->grads);
    o->weights->master = NULL;
    for (size_t i = 0; i < o->n_arrays; i++)
        if (o->arrays[i].at != o->weights->vectors && !o->arrays[i].on_host)
            gpu_free(o->g, GPU_MEM_DEVICE, o->arrays[i].at);
    for (size_t i = 0; i < o->n_rooms; i++)
        gpu_free(o->g, GPU_MEM_DEVICE, o->rooms[i]);
    gpu_staging_close(o->g, &o->staging);
    offload_close(o->offload);
    free(o);
}

const struct weights *optim_grads(const struct optim *o)
{
    return &o->grads;
}

bool optim_is_half_done(const struct optim *o)
{
    return o->moving;
}

int optim_clear_grads(struct optim *o, struct gpu_stream *s, struct cairn_error *err)
{
    o->moving = false;
    return optim_offload_begin(o, err) || weights_clear(&o->grads, o->params, s, err) ? -1 : 0;
}

/* ---- a step ---- */

static int measure(struct optim *o, struct gpu_stream *s, double unscale, struct cairn_error *err)
{
    size_t first = 0;
    for (int i = 0; i < GROUPS; i++) {
        const struct group *gr = &o->groups[i];
        struct square_sum_args args = { .parts = o->parts + first, .x = gr->g, .n = (k_i64)gr->n };
        if (gr->n && launch(o, s, "square_sum", GPU_F32, K_GROUPS(gr->n), &args, sizeof(args), err))
            return -1;
        first += K_GROUPS(gr->n);
    }
    struct clip_args clip = { .y = o->result,
                              .parts = o->parts,
                              .n = (k_i64)first,
                              .max_norm = (float)o->o.clip,
                              .unscale = (float)unscale };
    return launch(o, s, "clip", GPU_F32, 1, &clip, sizeof(clip), err);
}

struct optim_weights optim_moved(const struct optim *o, int which, double rate)
{
    const struct group *gr = &o->groups[which];
    return (struct optim_weights){
        .w = gr->w,
        .master = gr->master,
        .g_f32 = gr->g,
        .by = o->result + 1,
        .n = (k_i64)gr->n,
        .seed = o->o.seed,
        .stream = o->tries,
        .stochastic = o->o.stochastic && gr->storage != GPU_F32 && !gr->master,
        .rate = (float)rate,
        .decay = which ? 0 : (float)o->o.decay,
    };
}

/* All of a group, or a piece of the matrices. */
static int move(struct optim *o, struct gpu_stream *s, const struct group *gr, struct optim_weights to,
                struct cairn_error *err)
{
    double step = (double)o->steps + 1, b1 = o->o.beta1, b2 = o->o.beta2;
    struct adamw_args plain = {
        .to = to,
        .m = gr->m,
        .v = gr->v,
        .beta1 = (float)b1,
        .beta2 = (float)b2,
        .rest1 = (float)(1 - b1),
        .rest2 = (float)(1 - b2),
        .epsilon = (float)o->o.epsilon,
        .correction1 = (float)(1 - pow(b1, step)),
        .correction2 = (float)(1 - pow(b2, step)),
    };
    struct adamw8_args eight = {
        .to = to,
        .m = gr->m8,
        .v = gr->v8,
        .m_max = gr->m_max,
        .v_max = gr->v_max,
        .tables = o->tables,
        .beta1 = plain.beta1,
        .beta2 = plain.beta2,
        .rest1 = plain.rest1,
        .rest2 = plain.rest2,
        .epsilon = plain.epsilon,
        .correction1 = plain.correction1,
        .correction2 = plain.correction2,
    };
    if (!gr->n)
        return 0;
    int r = gr->eight ? launch(o, s, "adamw8", gr->storage, blocks(gr->n), &eight, sizeof(eight), err)
                      : launch(o, s, o->o.kind == OPTIM_LION ? "lion" : "adamw", gr->storage, K_GROUPS(gr->n),
                               &plain, sizeof(plain), err);
    o->moving = o->moving || !r;
    return r;
}

static int move_group(struct optim *o, struct gpu_stream *s, int which, double rate, struct cairn_error *err)
{
    return move(o, s, &o->groups[which], optim_moved(o, which, rate), err);
}

/* Every piece has chances of its own. */
static int move_piece(struct optim *o, struct gpu_stream *s, const struct group *piece, uint64_t nth,
                      double rate, struct cairn_error *err)
{
    struct optim_weights to = optim_moved(o, 0, rate);
    to.w = piece->w;
    to.master = piece->master;
    to.g_f32 = piece->g;
    to.n = (k_i64)piece->n;
    to.stream = o->tries * offload_pieces(o->offload) + nth;
    return move(o, s, piece, to, err);
}

static int average(struct optim *o, struct gpu_stream *s, const struct group *gr, uint64_t nth, double rate,
                   struct cairn_error *err)
{
    (void)nth, (void)rate;
    struct ema_args args = { .average = gr->average,
                             .w = gr->master ? (void *)gr->master : gr->w,
                             .n = (k_i64)gr->n,
                             .decay = (float)o->o.ema };
    return launch(o, s, "ema", gr->master ? GPU_F32 : gr->storage, K_GROUPS(gr->n), &args, sizeof(args), err);
}

static int average_group(struct optim *o, struct gpu_stream *s, int which, struct cairn_error *err)
{
    const struct group *gr = &o->groups[which];
    if (!gr->average)
        return 0;
    return o->offload && !which ? optim_offload_pass(o, s, average, 0, err) : average(o, s, gr, 0, 0, err);
}

static int move_all(struct optim *o, struct gpu_stream *s, double rate, struct cairn_error *err)
{
    o->moving = !optim_can_move(o->o.kind); /* these have several launches */
    if (o->o.kind == OPTIM_ADAFACTOR)
        return adafactor_step(o, s, rate, err);
    if (o->o.kind == OPTIM_PRODIGY)
        return prodigy_step(o, s, rate, err);
    int r = o->offload ? optim_offload_pass(o, s, move_piece, rate, err) : move_group(o, s, 0, rate, err);
    return r ? r : move_group(o, s, 1, rate, err);
}

int optim_step(struct optim *o, struct gpu_stream *s, double rate, double unscale, struct cairn_error *err)
{
    o->rate = rate;
    if (measure(o, s, unscale, err) || move_all(o, s, rate, err))
        return -1;
    return gpu_download(o->g, s, o->back, o->result, 2 * sizeof(float), err);
}

int optim_finish(struct optim *o, struct gpu_stream *s, struct optim_result *out, struct cairn_error *err)
{
    if (gpu_wait(o->g, s, err))
        return -1;
    *out = (struct optim_result){ .norm = (double)o->back[0],
                                  .rate = o->rate * (double)o->back[2],
                                  .moved = isfinite(o->back[1]) };
    o->steps += out->moved;
    o->tries++;
    for (int i = 0; i < GROUPS && out->moved; i++) /* weights that stayed do not count twice */
        if (average_group(o, s, i, err))
            return -1;
    o->moving = false;
    return 0;
}

uint64_t optim_steps(const struct optim *o)
{
    return o->steps;
}

uint64_t optim_tries(const struct optim *o)
{
    return o->tries;
}

const struct optim_array *optim_arrays(const struct optim *o, size_t *n)
{
    *n = o->n_arrays;
    return o->arrays;
}

void optim_resume(struct optim *o, uint64_t steps, uint64_t tries)
{
    o->steps = steps;
    o->tries = tries;
}
