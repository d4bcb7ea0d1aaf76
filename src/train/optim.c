/* SPDX-License-Identifier: Apache-2.0 */
#include "train/optim.h"
#include "gpu/kernels/elementwise.h"
#include "train/optim_inside.h"
#include <math.h>
#include <stdlib.h>

/* ---- memory ---- */

static void set_group(struct optim_group *gr, const struct params *p, bool vectors, enum gpu_storage storage)
{
    *gr = (struct optim_group){ .n = p->numbers[vectors ? PARAM_VECTOR : PARAM_MATRIX],
                                .vectors = vectors,
                                .storage = vectors ? GPU_F32 : storage };
}

size_t optim_list_arrays(struct optim_group *gr, const struct params *p, const struct optim_options *o,
                         struct optim_state out[GROUP_ARRAYS])
{
    size_t n = 0;
    if (!gr->n)
        return 0;
    if (o->master && gr->storage != GPU_F32)
        out[n++] = (struct optim_state){ "master", DTYPE_F32, .n = gr->n, .at = (void **)&gr->master };
    if (o->ema > 0)
        out[n++] = OPTIM_STATE(gr, "ema", DTYPE_F32, .n = gr->n, .at = (void **)&gr->average);
    size_t n_state = optim_methods[o->kind]->state(gr, p, out + n);
    for (size_t i = 0; i < n_state; i++)
        out[n + i].at = &gr->state[i];
    return n + n_state;
}

static size_t sum_bytes(const struct optim_state *list, size_t n)
{
    size_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += list[i].n * dtype_size(list[i].dtype);
    return sum;
}

struct optim_sizes optim_sizes(const struct params *p, enum gpu_storage storage,
                               const struct optim_options *o)
{
    struct optim_sizes sizes = { .grads = weights_size(p, GPU_F32) };
    for (int i = 0; i < GROUPS; i++) {
        struct optim_group gr;
        struct optim_state list[GROUP_ARRAYS];
        set_group(&gr, p, i, storage);
        size_t n = optim_list_arrays(&gr, p, o, list);
        if (n && !i && o->on_host && optim_can_move(o->kind)) {
            struct offload_array arrays[OFFLOAD_ARRAYS];
            optim_offload_arrays(&gr, p, o, arrays);
            sizes.state += offload_device_bytes(arrays, n);
            sizes.host = offload_host_bytes(arrays, n);
        } else
            sizes.state += sum_bytes(list, n);
    }
    return sizes;
}

static int alloc_zeroed(struct optim *o, size_t bytes, void **out, struct cairn_error *err)
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
    if (alloc_zeroed(o, bytes, out, err))
        return -1;
    o->workspaces[o->n_workspaces++] = *out;
    return 0;
}

int optim_alloc_own(struct optim *o, size_t bytes, struct cairn_error *err)
{
    o->own = calloc(1, bytes);
    return o->own ? 0 : cairn_fail(err, CAIRN_ENOMEM, "no memory");
}

int optim_add_array(struct optim *o, const char *name, enum dtype dtype, size_t n, void **out,
                    struct cairn_error *err)
{
    if (alloc_zeroed(o, n * dtype_size(dtype), out, err))
        return -1;
    o->arrays[o->n_arrays++] = (struct optim_array){ name, dtype, n, *out, false };
    return 0;
}

static int open_group(struct optim *o, int which, struct cairn_error *err)
{
    struct optim_group *gr = &o->groups[which];
    struct optim_state list[GROUP_ARRAYS];
    set_group(gr, o->params, which, o->weights->storage);
    gr->w = which ? (void *)o->weights->vectors : o->weights->matrices;
    gr->g = which ? o->grads.vectors : o->grads.matrices;
    if (!which && o->o.on_host && gr->n)
        return optim_offload_open(o, err);
    size_t n = optim_list_arrays(gr, o->params, &o->o, list);
    for (size_t i = 0; i < n; i++)
        if (optim_add_array(o, list[i].name, list[i].dtype, list[i].n, list[i].at, err))
            return -1;
    return 0;
}

/* The file of a 16-bit model rounds its vectors, too; the optimizer updates them in f32, so they are saved as
 * they are. */
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

static int open_rest(struct optim *o, struct cairn_error *err)
{
    if (optim_workspace(o, norm_parts(o) * sizeof(float), (void **)&o->parts, err) ||
        optim_workspace(o, 2 * sizeof(float), (void **)&o->result, err) ||
        gpu_staging_open(o->g, 3 * sizeof(float), &o->staging, err))
        return -1;
    o->back = o->staging.at;
    o->back[2] = 1;
    return o->method->open ? o->method->open(o, err) : 0;
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

static int widen(struct optim *o, float *to, const struct optim_group *gr, struct cairn_error *err)
{
    struct widen_args args = { .y = to, .x = gr->w, .n = (k_i64)gr->n };
    return launch(o, NULL, "widen", gr->storage, K_GROUPS(gr->n), &args, sizeof(args), err);
}

/* Copies the current weights to the master copy, and registers it for weights loaded later. */
static int open_master(struct optim *o, struct cairn_error *err)
{
    const struct optim_group *matrices = &o->groups[0];
    if (!matrices->master)
        return 0;
    o->weights->master = matrices->master;
    o->weights->master_on_host = o->offload;
    if (o->offload)
        return optim_offload_weights(
            o, &(struct optim_group){ .n = matrices->n, .w = matrices->w, .storage = matrices->storage },
            matrices->master, err);
    return widen(o, matrices->master, matrices, err);
}

int optim_copy_weights(struct optim *o, const struct optim_group *gr, float *to, struct cairn_error *err)
{
    if (gr->master)
        return gpu_copy(o->g, NULL, to, gr->master, gr->n * sizeof(float), err);
    return widen(o, to, gr, err);
}

static int start_average(struct optim *o, int which, struct cairn_error *err)
{
    struct optim_group *gr = &o->groups[which];
    if (!gr->average)
        return 0;
    return o->offload && !which ? optim_offload_weights(o, gr, gr->average, err)
                                : optim_copy_weights(o, gr, gr->average, err);
}

int optim_start(struct optim *o, struct cairn_error *err)
{
    if (optim_settle(o, err))
        return -1;
    for (int i = 0; i < GROUPS; i++)
        if (start_average(o, i, err))
            return -1;
    if (o->method->start && o->method->start(o, err))
        return -1;
    return gpu_wait(o->g, NULL, err);
}

int optim_open(struct gpu *g, const struct params *p, struct weights *w, const struct optim_options *options,
               struct optim **out, struct cairn_error *err)
{
    struct optim *o = calloc(1, sizeof(*o));
    if (!o)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    *o = (struct optim){
        .g = g, .params = p, .weights = w, .o = *options, .method = optim_methods[options->kind]
    };
    o->o.on_host = options->on_host && o->method->update;
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
    for (size_t i = 0; i < o->n_workspaces; i++)
        gpu_free(o->g, GPU_MEM_DEVICE, o->workspaces[i]);
    gpu_staging_close(o->g, &o->staging);
    offload_close(o->offload);
    free(o->own);
    free(o);
}

const struct weights *optim_grads(const struct optim *o)
{
    return &o->grads;
}

bool optim_is_half_done(const struct optim *o)
{
    return o->dirty;
}

int optim_clear_grads(struct optim *o, struct gpu_stream *s, struct cairn_error *err)
{
    o->dirty = false;
    return optim_offload_begin(o, err) || weights_clear(&o->grads, o->params, s, err) ? -1 : 0;
}

/* ---- a step ---- */

static int measure(struct optim *o, struct gpu_stream *s, double unscale, struct cairn_error *err)
{
    size_t first = 0;
    for (int i = 0; i < GROUPS; i++) {
        const struct optim_group *gr = &o->groups[i];
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

struct optim_weights optim_kernel_args(const struct optim *o, int which, double rate)
{
    const struct optim_group *gr = &o->groups[which];
    return (struct optim_weights){
        .w = gr->w,
        .master = gr->master,
        .g_f32 = gr->g,
        .by = o->result + 1,
        .n = (k_i64)gr->n,
        .seed = o->o.seed,
        .stream = o->attempted,
        .stochastic = o->o.stochastic && gr->storage != GPU_F32 && !gr->master,
        .rate = (float)rate,
        .decay = which ? 0 : (float)o->o.decay,
    };
}

static int launch_update(struct optim *o, struct gpu_stream *s, const struct optim_group *gr,
                         const struct optim_weights *to, struct cairn_error *err)
{
    int r = o->method->update(o, s, gr, to, err);
    o->dirty = o->dirty || !r;
    return r;
}

/* All of a group, or a piece of the matrices. */
static int update(struct optim *o, struct gpu_stream *s, const struct optim_group *gr,
                  const struct optim_weights *to, struct cairn_error *err)
{
    return gr->n ? optim_each_rate(o, s, gr, to, launch_update, err) : 0;
}

static int update_group(struct optim *o, struct gpu_stream *s, int which, double rate,
                        struct cairn_error *err)
{
    struct optim_weights to = optim_kernel_args(o, which, rate);
    return update(o, s, &o->groups[which], &to, err);
}

/* Every piece has random numbers of its own. */
static int update_piece(struct optim *o, struct gpu_stream *s, const struct optim_group *piece, uint64_t nth,
                        double rate, struct cairn_error *err)
{
    struct optim_weights to = optim_kernel_args(o, 0, rate);
    to.w = piece->w;
    to.master = piece->master;
    to.g_f32 = piece->g;
    to.n = (k_i64)piece->n;
    to.stream = o->attempted * offload_pieces(o->offload) + nth;
    return update(o, s, piece, &to, err);
}

static int average(struct optim *o, struct gpu_stream *s, const struct optim_group *gr, uint64_t nth,
                   double rate, struct cairn_error *err)
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
    const struct optim_group *gr = &o->groups[which];
    if (!gr->average)
        return 0;
    return o->offload && !which ? optim_offload_pass(o, s, average, 0, err) : average(o, s, gr, 0, 0, err);
}

static int update_all(struct optim *o, struct gpu_stream *s, double rate, struct cairn_error *err)
{
    o->dirty = o->method->step; /* which has several launches */
    if (o->method->step)
        return o->method->step(o, s, rate, err);
    int r = o->offload ? optim_offload_pass(o, s, update_piece, rate, err) : update_group(o, s, 0, rate, err);
    return r ? r : update_group(o, s, 1, rate, err);
}

int optim_step(struct optim *o, struct gpu_stream *s, double rate, double unscale, struct cairn_error *err)
{
    o->rate = rate;
    if (measure(o, s, unscale, err) || update_all(o, s, rate, err))
        return -1;
    return gpu_download(o->g, s, o->back, o->result, 2 * sizeof(float), err);
}

int optim_finish(struct optim *o, struct gpu_stream *s, struct optim_result *out, struct cairn_error *err)
{
    if (gpu_wait(o->g, s, err))
        return -1;
    *out = (struct optim_result){ .norm = (double)o->back[0],
                                  .rate = o->rate * (double)o->back[2],
                                  .applied = isfinite(o->back[1]) };
    o->applied += out->applied;
    o->attempted++;
    for (int i = 0; i < GROUPS && out->applied; i++) /* weights that stayed do not count twice */
        if (average_group(o, s, i, err))
            return -1;
    o->dirty = false;
    return 0;
}

uint64_t optim_applied(const struct optim *o)
{
    return o->applied;
}

uint64_t optim_attempted(const struct optim *o)
{
    return o->attempted;
}

const struct optim_array *optim_arrays(const struct optim *o, size_t *n)
{
    *n = o->n_arrays;
    return o->arrays;
}

void optim_resume(struct optim *o, uint64_t applied, uint64_t attempted)
{
    o->applied = applied;
    o->attempted = attempted;
}
