/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/weights.h"
#include "gpu/kernels/quant.h"
#include "gpu/transfer.h"
#include <math.h>
#include <stdlib.h>

size_t storage_size(enum gpu_storage s)
{
    return s == GPU_F32 ? sizeof(float) : sizeof(uint16_t);
}

enum dtype storage_dtype(enum gpu_storage s)
{
    return s == GPU_F32 ? DTYPE_F32 : s == GPU_BF16 ? DTYPE_BF16 : DTYPE_F16;
}

static size_t largest_in_bytes(const struct params *p)
{
    size_t most = 0;
    for (size_t i = 0; i < p->n; i++) {
        size_t n = p->list[i].rows * p->list[i].columns;
        most = p->list[i].kind == PARAM_BYTES && n > most ? n : most;
    }
    return most;
}

/* The parts of a struct weights: where the pointer is, and how long. */
struct part {
    void **at;
    size_t bytes;
};
enum { PARTS = 5 };

static void list_parts(struct weights *w, const struct params *p, struct part parts[PARTS])
{
    size_t width = storage_size(w->storage);
    parts[0] = (struct part){ &w->matrices, p->numbers[PARAM_MATRIX] * width };
    parts[1] = (struct part){ (void **)&w->vectors, p->numbers[PARAM_VECTOR] * sizeof(float) };
    parts[2] = (struct part){ (void **)&w->bytes, p->numbers[PARAM_BYTES] };
    parts[3] = (struct part){ (void **)&w->scales, p->scales * sizeof(float) };
    parts[4] = (struct part){ &w->room, largest_in_bytes(p) * width };
}

int weights_open(struct weights *w, struct gpu *g, const struct params *p, enum gpu_storage storage,
                 enum weights_bytes format, struct cairn_error *err)
{
    *w = (struct weights){ .g = g, .storage = storage, .format = format };
    struct part parts[PARTS];
    list_parts(w, p, parts);
    for (int i = 0; i < PARTS; i++)
        if (parts[i].bytes && gpu_alloc(g, GPU_MEM_DEVICE, parts[i].bytes, parts[i].at, err)) {
            weights_close(w);
            return -1;
        }
    if (w->bytes && !(w->help = calloc(1, sizeof(*w->help)))) {
        weights_close(w);
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    }
    if (weights_clear(w, p, NULL, err)) {
        weights_close(w);
        return -1;
    }
    return 0;
}

void weights_close(struct weights *w)
{
    if (!w->g)
        return;
    void *all[PARTS] = { w->matrices, w->vectors, w->bytes, w->scales, w->room };
    for (int i = 0; i < PARTS; i++)
        if (all[i])
            gpu_free(w->g, GPU_MEM_DEVICE, all[i]);
    free(w->help);
    *w = (struct weights){ 0 };
}

size_t weights_size(const struct params *p, enum gpu_storage storage)
{
    struct weights w = { .storage = storage };
    struct part parts[PARTS];
    list_parts(&w, p, parts);
    size_t sum = 0;
    for (int i = 0; i < PARTS; i++)
        sum += parts[i].bytes;
    return sum;
}

int weights_clear(const struct weights *w, const struct params *p, struct gpu_stream *s,
                  struct cairn_error *err)
{
    struct weights copy = *w;
    struct part parts[PARTS];
    list_parts(&copy, p, parts);
    for (int i = 0; i < PARTS; i++)
        if (parts[i].bytes && gpu_clear(w->g, s, *parts[i].at, parts[i].bytes, err))
            return -1;
    return 0;
}

float *weights_vector(const struct weights *w, const struct param *p)
{
    return w->vectors + p->at;
}

static int widen_bytes(const struct weights *w, struct gpu_stream *s, const struct param *p,
                       struct cairn_error *err)
{
    const struct gpu_kernel *k;
    const char *kernel = w->format == WEIGHTS_INT8 ? "dequantise_int8" : "dequantise_e4m3";
    struct dequantise_args args = {
        .y = w->room,
        .x = w->bytes + p->at,
        .scale = w->scales + p->scale_at,
        .rows = (k_i64)p->rows,
        .columns = (k_i64)p->columns,
        .per_row = 1,
    };
    struct gpu_grid grid = { .x = (unsigned)K_ROW_GROUPS(p->rows, p->columns) };
    return gpu_kernel(w->g, kernel, w->storage, &k, err) ||
                   gpu_launch(w->g, s, k, grid, &args, sizeof(args), err)
               ? -1
               : 0;
}

/* ---- from and to the host ---- */

static void row_to_bytes(enum weights_bytes format, uint8_t *codes, float *scale, const float *x, size_t n)
{
    float most = 0, limit = format == WEIGHTS_INT8 ? 127 : 448;
    for (size_t i = 0; i < n; i++)
        most = fmaxf(most, fabsf(x[i]));
    *scale = most / limit;
    for (size_t i = 0; i < n; i++) {
        float v = most > 0 ? x[i] / *scale : 0;
        if (format == WEIGHTS_INT8)
            codes[i] = (uint8_t)(int8_t)rintf(v);
        else
            dtype_convert(&codes[i], DTYPE_F8_E4M3, &v, DTYPE_F32, 1,
                          &(struct dtype_how){ .saturate = true });
    }
}

static void row_from_bytes(enum weights_bytes format, float *y, const uint8_t *codes, float scale, size_t n)
{
    if (format == WEIGHTS_FP8)
        dtype_convert(y, DTYPE_F32, codes, DTYPE_F8_E4M3, n, &(struct dtype_how){ 0 });
    for (size_t i = 0; i < n; i++)
        y[i] = scale * (format == WEIGHTS_FP8 ? y[i] : (float)(int8_t)codes[i]);
}

/* The codes of a matrix in bytes and its factors, and where they are on the host. */
static void list_bytes(const struct weights *w, const struct param *p, struct transfer_part parts[2],
                       transfer_move *move, uint8_t *codes, float *scales)
{
    parts[0] = (struct transfer_part){
        .device = w->bytes + p->at, .bytes = p->rows * p->columns, .move = move, .context = codes
    };
    parts[1] = (struct transfer_part){
        .device = w->scales + p->scale_at, .bytes = p->rows * sizeof(*scales), .move = move, .context = scales
    };
}

static int put_bytes(const struct weights *w, const struct param *p, const float *from,
                     struct cairn_error *err)
{
    CLEANUP(mem_free) uint8_t *codes = malloc(p->rows * p->columns);
    CLEANUP(mem_free) float *scales = malloc(p->rows * sizeof(*scales));
    if (!codes || !scales)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory", p->name);
    for (size_t r = 0; r < p->rows; r++)
        row_to_bytes(w->format, codes + r * p->columns, &scales[r], from + r * p->columns, p->columns);
    struct transfer_part parts[2];
    list_bytes(w, p, parts, transfer_move_from, codes, scales);
    return transfer_up(gpu_transfer(w->g), parts, ARRAY_LEN(parts), NULL, NULL, err);
}

static int get_bytes(const struct weights *w, const struct param *p, float *into, struct cairn_error *err)
{
    CLEANUP(mem_free) uint8_t *codes = malloc(p->rows * p->columns);
    CLEANUP(mem_free) float *scales = malloc(p->rows * sizeof(*scales));
    if (!codes || !scales)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory", p->name);
    struct transfer_part parts[2];
    list_bytes(w, p, parts, transfer_move_into, codes, scales);
    if (transfer_down(gpu_transfer(w->g), parts, ARRAY_LEN(parts), NULL, NULL, err))
        return -1;
    for (size_t r = 0; r < p->rows; r++)
        row_from_bytes(w->format, into + r * p->columns, codes + r * p->columns, scales[r], p->columns);
    return 0;
}

/* The same on the host.  What was queued before may still read the room, and the upload comes behind it. */
static int widen_by_host(const struct weights *w, struct gpu_stream *s, const struct param *p,
                         struct cairn_error *err)
{
    size_t n = p->rows * p->columns, bytes = n * storage_size(w->storage);
    CLEANUP(mem_free) float *wide = malloc(n * sizeof(*wide));
    CLEANUP(mem_free) void *narrow = malloc(bytes);
    if (!wide || !narrow)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory", p->name);
    if (get_bytes(w, p, wide, err))
        return -1;
    dtype_convert(narrow, storage_dtype(w->storage), wide, DTYPE_F32, n, &(struct dtype_how){ 0 });
    return gpu_upload(w->g, s, w->room, narrow, bytes, err) || gpu_wait(w->g, s, err) ? -1 : 0;
}

int weights_matrix(const struct weights *w, struct gpu_stream *s, const struct param *p, void **out,
                   struct cairn_error *err)
{
    if (p->kind == PARAM_MATRIX) {
        *out = (char *)w->matrices + p->at * storage_size(w->storage);
        return 0;
    }
    *out = w->room;
    if (!w->help->by_host) {
        struct cairn_error why = { 0 };
        if (!widen_bytes(w, s, p, &why))
            return 0;
        if (why.code == CAIRN_ENOMEM || gpu_lost(w->g)) {
            *err = why;
            return -1;
        }
        *w->help = (struct weights_help){ true, why };
    }
    return widen_by_host(w, s, p, err);
}

void *weights_place(const struct weights *w, const struct param *p, enum dtype *t)
{
    *t = p->kind == PARAM_VECTOR ? DTYPE_F32 : storage_dtype(w->storage);
    return p->kind == PARAM_VECTOR ? (char *)(w->vectors + p->at)
                                   : (char *)w->matrices + p->at * storage_size(w->storage);
}

/* Numbers of the host in f32, and their kind on the device. */
struct numbers {
    float *at;
    enum dtype dtype;
};

static int narrow(void *numbers, uint64_t at, size_t n, void *bytes, struct cairn_error *err)
{
    const struct numbers *x = numbers;
    size_t size = dtype_size(x->dtype);
    (void)err;
    dtype_convert(bytes, x->dtype, x->at + at / size, DTYPE_F32, n / size, &(struct dtype_how){ 0 });
    return 0;
}

static int widen(void *numbers, uint64_t at, size_t n, void *bytes, struct cairn_error *err)
{
    const struct numbers *x = numbers;
    size_t size = dtype_size(x->dtype);
    (void)err;
    dtype_convert(x->at + at / size, DTYPE_F32, bytes, x->dtype, n / size, &(struct dtype_how){ 0 });
    return 0;
}

static struct transfer_part part_of(const struct param *p, void *device, struct numbers *x,
                                    transfer_move *move)
{
    size_t size = dtype_size(x->dtype);
    return (struct transfer_part){
        .device = device, .bytes = p->rows * p->columns * size, .unit = size, .move = move, .context = x
    };
}

int weights_put(const struct weights *w, const struct param *p, const float *from, struct cairn_error *err)
{
    if (p->kind == PARAM_BYTES)
        return put_bytes(w, p, from, err);
    struct numbers x = { .at = (float *)from }, same = { (float *)from, DTYPE_F32 };
    void *device = weights_place(w, p, &x.dtype);
    size_t n = w->master && p->kind == PARAM_MATRIX ? 2 : 1;
    struct transfer_part parts[2] = { part_of(p, device, &x, narrow) };
    if (n == 2)
        parts[1] = part_of(p, w->master + p->at, &same, narrow);
    return transfer_up(gpu_transfer(w->g), parts, n, NULL, NULL, err);
}

int weights_get(const struct weights *w, const struct param *p, float *into, struct cairn_error *err)
{
    if (p->kind == PARAM_BYTES)
        return get_bytes(w, p, into, err);
    struct numbers x = { .at = into };
    const void *device = weights_place(w, p, &x.dtype);
    struct transfer_part part = part_of(p, (void *)device, &x, widen);
    return transfer_down(gpu_transfer(w->g), &part, 1, NULL, NULL, err);
}

void weights_read(const struct weights *copy, const struct param *p, float *into)
{
    enum dtype from;
    const void *at = weights_place(copy, p, &from);
    dtype_convert(into, DTYPE_F32, at, from, p->rows * p->columns, &(struct dtype_how){ 0 });
}
