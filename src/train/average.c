/* SPDX-License-Identifier: Apache-2.0 */
#include "train/average.h"
#include "gpu/transfer.h"
#include <stdlib.h>
#include <string.h>

enum { KINDS = 2 }; /* matrices and vectors */

/* The weights of one kind of a set, which lie together on the device. */
struct kind {
    void *at;
    enum dtype dtype;
    size_t n;
    struct optim_array average;
    void *trained; /* a copy on the host */
    float *mean;   /* the same of the average, while it is brought */
};

struct average {
    struct transfer *transfer;
    struct gpu_stream *stream;
    struct kind kinds[MODEL_SETS * KINDS];
    size_t n;
};

size_t average_bytes(const struct params *p, enum gpu_storage storage)
{
    size_t matrices = p->numbers[PARAM_MATRIX], vectors = p->numbers[PARAM_VECTOR];
    return matrices * (storage_size(storage) + sizeof(float)) + vectors * 2 * sizeof(float);
}

static const struct optim_array *find(const struct optim *o, const char *name)
{
    size_t n;
    const struct optim_array *arrays = optim_arrays(o, &n);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(arrays[i].name, name))
            return &arrays[i];
    return NULL;
}

static int add_kind(struct average *a, const struct optim *o, const char *name, struct kind k,
                    struct cairn_error *err)
{
    const struct optim_array *average = find(o, name);
    if (!k.n)
        return 0;
    if (!average || average->n != k.n || average->dtype != DTYPE_F32)
        return cairn_fail(err, CAIRN_EIO, "the optimizer has no moving average %s[%zu]", name, k.n);
    k.average = *average;
    k.trained = malloc(k.n * dtype_size(k.dtype));
    k.mean = malloc(k.n * sizeof(float));
    a->kinds[a->n++] = k;
    return k.trained && k.mean
               ? 0
               : cairn_fail(err, CAIRN_EIO, "no memory of the host for the moving average, %zu numbers", k.n);
}

static int add_set(struct average *a, const struct model *m, size_t set, struct optim *o,
                   struct cairn_error *err)
{
    const struct params *p = model_trained(m, set);
    const struct weights *w = model_trained_weights(m, set);
    struct kind matrices = { .at = w->matrices,
                             .dtype = storage_dtype(w->storage),
                             .n = p->numbers[PARAM_MATRIX] };
    struct kind vectors = { .at = w->vectors, .dtype = DTYPE_F32, .n = p->numbers[PARAM_VECTOR] };
    return optim_settle(o, err) || add_kind(a, o, "matrix.ema", matrices, err) ||
                   add_kind(a, o, "vector.ema", vectors, err)
               ? -1
               : 0;
}

static void release(struct average *a)
{
    for (size_t i = 0; i < a->n; i++) {
        free(a->kinds[i].trained);
        free(a->kinds[i].mean);
    }
    free(a);
}

static int bring(const struct average *a, struct cairn_error *err)
{
    struct transfer_part parts[2 * MODEL_SETS * KINDS];
    size_t n = 0;
    for (size_t i = 0; i < a->n; i++) {
        const struct kind *k = &a->kinds[i];
        parts[n++] = (struct transfer_part){ .device = k->at,
                                             .bytes = k->n * dtype_size(k->dtype),
                                             .move = transfer_move_into,
                                             .context = k->trained };
        parts[n++] = (struct transfer_part){ .device = k->average.at,
                                             .bytes = k->n * sizeof(float),
                                             .move = transfer_move_into,
                                             .context = k->mean,
                                             .on_host = k->average.on_host };
    }
    return transfer_down(a->transfer, parts, n, &(struct transfer_options){ .after = a->stream }, err);
}

static int put_mean(void *context, uint64_t at, size_t n, void *bytes, struct cairn_error *err)
{
    const struct kind *k = context;
    size_t size = dtype_size(k->dtype);
    (void)err;
    dtype_convert(bytes, k->dtype, k->mean + at / size, DTYPE_F32, n / size, &(struct dtype_how){ 0 });
    return 0;
}

/* Into the device: the average, or the trained weights. */
static int put(struct average *a, bool average, struct cairn_error *err)
{
    struct transfer_part parts[MODEL_SETS * KINDS];
    for (size_t i = 0; i < a->n; i++) {
        struct kind *k = &a->kinds[i];
        parts[i] = (struct transfer_part){ .device = k->at,
                                           .bytes = k->n * dtype_size(k->dtype),
                                           .unit = dtype_size(k->dtype),
                                           .move = average ? put_mean : transfer_move_from,
                                           .context = average ? (void *)k : k->trained };
    }
    return transfer_up(a->transfer, parts, a->n, &(struct transfer_options){ .after = a->stream }, err);
}

static void free_means(struct average *a)
{
    for (size_t i = 0; i < a->n; i++) {
        free(a->kinds[i].mean);
        a->kinds[i].mean = NULL;
    }
}

int average_use(const struct model *m, struct optim *const optim[MODEL_SETS], struct average **out,
                struct cairn_error *err)
{
    struct average *a = calloc(1, sizeof(*a));
    *out = NULL;
    if (!a)
        return cairn_fail(err, CAIRN_EIO, "no memory");
    a->transfer = gpu_transfer(m->nn->g);
    a->stream = m->nn->stream;
    int r = 0;
    for (size_t i = 0; i < model_sets(m) && !r; i++)
        r = add_set(a, m, i, optim[i], err);
    if (r || bring(a, err)) {
        release(a);
        return -1;
    }
    *out = a;
    r = put(a, true, err);
    free_means(a);
    return r;
}

int average_drop(struct average *a, struct cairn_error *err)
{
    if (!a)
        return 0;
    int r = put(a, false, err);
    release(a);
    return r;
}
