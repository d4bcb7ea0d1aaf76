/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/weights.h"
#include "gpu/kernels/quant.h"
#include "gpu/transfer.h"
#include "nn/quantize.h"
#include "nn/weights_inside.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t storage_size(enum gpu_storage s)
{
    return s == GPU_F32 ? sizeof(float) : sizeof(uint16_t);
}

enum dtype storage_dtype(enum gpu_storage s)
{
    return s == GPU_F32 ? DTYPE_F32 : s == GPU_BF16 ? DTYPE_BF16 : DTYPE_F16;
}

static size_t largest_quantized(const struct params *p)
{
    size_t most = 0;
    for (size_t i = 0; i < p->n; i++) {
        size_t n = p->list[i].rows * p->list[i].columns;
        most = p->list[i].kind == PARAM_QUANTIZED && n > most ? n : most;
    }
    return most;
}

size_t weights_kind_size(enum gpu_storage storage, enum param_kind kind)
{
    return kind == PARAM_QUANTIZED ? 1 : kind == PARAM_VECTOR ? sizeof(float) : storage_size(storage);
}

/* The parts of a struct weights: where the pointer is, and how long. */
struct part {
    void **at;
    size_t bytes;
};
enum { PARTS = 5 };

static void list_parts(struct weights *w, const struct params *p, struct part parts[PARTS])
{
    const struct weights_blocks *b = &w->blocks;
    size_t elem_bytes = storage_size(w->storage), numbers[PARAM_KINDS];
    for (int i = 0; i < PARAM_KINDS; i++)
        numbers[i] = p->numbers[i] - (b->pieces && (int)b->kind == i ? b->pieces * b->numbers : 0);
    parts[0] = (struct part){ &w->matrices, numbers[PARAM_MATRIX] * elem_bytes };
    parts[1] = (struct part){ (void **)&w->vectors, numbers[PARAM_VECTOR] * sizeof(float) };
    parts[2] = (struct part){ (void **)&w->quantized, numbers[PARAM_QUANTIZED] };
    parts[3] = (struct part){ (void **)&w->scales, p->scales * sizeof(float) };
    parts[4] = (struct part){ &w->dequantized, largest_quantized(p) * elem_bytes };
}

static int open_all(struct weights *w, const struct params *p, const struct weights_options *o,
                    struct cairn_error *err)
{
    struct part parts[PARTS];
    if (weights_open_memory(w, o, err))
        return -1;
    list_parts(w, p, parts);
    for (int i = 0; i < PARTS; i++)
        if (parts[i].bytes && gpu_alloc(w->g, GPU_MEM_DEVICE, parts[i].bytes, parts[i].at, err))
            return -1;
    if (p->numbers[PARAM_QUANTIZED]) {
        if (!(w->host_dequant = calloc(2, sizeof(*w->host_dequant))))
            return cairn_fail(err, CAIRN_ENOMEM, "no memory");
        w->host_quant = w->host_dequant + 1;
    }
    return weights_clear(w, p, NULL, err);
}

int weights_open_blocks(struct weights *w, struct gpu *g, const struct params *p,
                        const struct weights_options *o, struct cairn_error *err)
{
    *w = (struct weights){ .g = g, .storage = o->storage, .format = o->format, .blocks = *o->blocks };
    if (!open_all(w, p, o, err))
        return 0;
    weights_close(w);
    return -1;
}

int weights_open(struct weights *w, struct gpu *g, const struct params *p, enum gpu_storage storage,
                 enum weights_format format, struct cairn_error *err)
{
    struct weights_options o = { .storage = storage,
                                 .format = format,
                                 .blocks = &(struct weights_blocks){ 0 } };
    return weights_open_blocks(w, g, p, &o, err);
}

void weights_close(struct weights *w)
{
    if (!w->g)
        return;
    void *all[PARTS] = { w->matrices, w->vectors, w->quantized, w->scales, w->dequantized };
    for (int i = 0; i < PARTS; i++)
        if (all[i])
            gpu_free(w->g, GPU_MEM_DEVICE, all[i]);
    weights_close_memory(w);
    free(w->host_dequant);
    *w = (struct weights){ 0 };
}

size_t weights_size(const struct params *p, enum gpu_storage storage)
{
    struct weights w = { .storage = storage };
    struct part parts[PARTS];
    size_t sum = 0;
    list_parts(&w, p, parts);
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
    for (size_t i = 0; i < w->blocks.pieces; i++)
        if (w->block_memory[i] &&
            gpu_clear(w->g, s, w->block_memory[i], weights_block_size(&w->blocks, w->storage), err))
            return -1;
    return 0;
}

/* ---- where a parameter is ---- */

/* Which piece a parameter is in, and where there; false: in none. */
static bool find_block(const struct weights *w, const struct param *p, size_t *piece, size_t *number)
{
    const struct weights_blocks *b = &w->blocks;
    if (!b->pieces || p->kind != b->kind || p->at < b->first || p->at >= b->first + b->pieces * b->numbers)
        return false;
    *piece = (p->at - b->first) / b->numbers;
    *number = (p->at - b->first) % b->numbers;
    return true;
}

/* Where a parameter is stored: on the device, or on the host where it is offloaded.  NULL: nowhere. */
static void *stored_at(const struct weights *w, const struct param *p, bool *on_host)
{
    const struct weights_blocks *b = &w->blocks;
    size_t piece, number, size = weights_kind_size(w->storage, p->kind), at = p->at;
    *on_host = false;
    if (find_block(w, p, &piece, &number)) {
        char *home = weights_block_host(w, piece);
        char *base = home ? home : w->block_memory[piece];
        *on_host = home != NULL;
        return base ? base + number * size : NULL;
    }
    if (b->pieces && p->kind == b->kind && at >= b->first)
        at -= b->pieces * b->numbers;
    char *base = p->kind == PARAM_VECTOR      ? (char *)w->vectors
                 : p->kind == PARAM_QUANTIZED ? (char *)w->quantized
                                              : w->matrices;
    return base + at * size;
}

/* Where a parameter is on the device; of a streamed one, in the block that is there. */
static void *device_at(const struct weights *w, const struct param *p)
{
    size_t piece, number;
    bool on_host;
    if (!find_block(w, p, &piece, &number))
        return stored_at(w, p, &on_host);
    return (char *)weights_block_device(w, piece) + number * weights_kind_size(w->storage, p->kind);
}

float *weights_vector(const struct weights *w, const struct param *p)
{
    return w->vectors + p->at;
}

static int dequantize(const struct weights *w, struct gpu_stream *s, const struct param *p,
                      struct cairn_error *err)
{
    const struct gpu_kernel *k;
    const char *kernel = w->format == WEIGHTS_INT8 ? "dequantise_int8" : "dequantise_e4m3";
    struct dequantise_args args = {
        .y = w->dequantized,
        .x = device_at(w, p),
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

/* The codes and scales of a quantized matrix, from or to these arrays of the host. */
static void list_quantized(const struct weights *w, const struct param *p, struct transfer_part parts[2],
                           transfer_move *move, uint8_t *codes, float *scales)
{
    enum dtype unused;
    bool on_host;
    void *at = weights_place(w, p, &unused, &on_host);
    parts[0] = (struct transfer_part){
        .device = at, .bytes = p->rows * p->columns, .move = move, .context = codes, .on_host = on_host
    };
    parts[1] = (struct transfer_part){
        .device = w->scales + p->scale_at, .bytes = p->rows * sizeof(*scales), .move = move, .context = scales
    };
}

static int put_quantized(const struct weights *w, const struct param *p, const float *from,
                         struct cairn_error *err)
{
    CLEANUP(mem_free) uint8_t *codes = malloc(p->rows * p->columns);
    CLEANUP(mem_free) float *scales = malloc(p->rows * sizeof(*scales));
    if (!codes || !scales)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory", p->name);
    quantize_rows(&(struct quantize_rows){ w->format, p->rows, p->columns, (float *)from, codes, scales });
    struct transfer_part parts[2];
    list_quantized(w, p, parts, transfer_move_from, codes, scales);
    return transfer_up(gpu_transfer(w->g), parts, ARRAY_LEN(parts), NULL, err);
}

static int get_quantized(const struct weights *w, const struct param *p, float *into, struct cairn_error *err)
{
    CLEANUP(mem_free) uint8_t *codes = malloc(p->rows * p->columns);
    CLEANUP(mem_free) float *scales = malloc(p->rows * sizeof(*scales));
    if (!codes || !scales)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory", p->name);
    struct transfer_part parts[2];
    list_quantized(w, p, parts, transfer_move_into, codes, scales);
    if (transfer_down(gpu_transfer(w->g), parts, ARRAY_LEN(parts), NULL, err))
        return -1;
    dequantize_rows(&(struct quantize_rows){ w->format, p->rows, p->columns, into, codes, scales });
    return 0;
}

/* The same on the host.  What was queued before may still read the buffer; the upload is queued behind it. */
static int dequantize_on_host(const struct weights *w, struct gpu_stream *s, const struct param *p,
                              struct cairn_error *err)
{
    size_t n = p->rows * p->columns, bytes = n * storage_size(w->storage);
    CLEANUP(mem_free) float *wide = malloc(n * sizeof(*wide));
    CLEANUP(mem_free) void *narrow = malloc(bytes);
    if (!wide || !narrow)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory", p->name);
    if (get_quantized(w, p, wide, err))
        return -1;
    dtype_convert(narrow, storage_dtype(w->storage), wide, DTYPE_F32, n, &(struct dtype_how){ 0 });
    return gpu_upload(w->g, s, w->dequantized, narrow, bytes, err) || gpu_wait(w->g, s, err) ? -1 : 0;
}

int weights_matrix(const struct weights *w, struct gpu_stream *s, const struct param *p, void **out,
                   struct cairn_error *err)
{
    if (p->kind == PARAM_MATRIX) {
        *out = device_at(w, p);
        return 0;
    }
    *out = w->dequantized;
    if (!w->host_dequant->active) {
        struct cairn_error why = { 0 };
        if (!dequantize(w, s, p, &why))
            return 0;
        if (why.code == CAIRN_ENOMEM || gpu_lost(w->g)) {
            *err = why;
            return -1;
        }
        *w->host_dequant = (struct weights_by_host){ true, why };
    }
    return dequantize_on_host(w, s, p, err);
}

int weights_change(const struct weights *w, struct cairn_error *err)
{
    return w->offloaded ? offload_rest(w->offloaded->offload, err) : 0;
}

bool weights_has(const struct weights *w, const struct param *p)
{
    bool on_host;
    return stored_at(w, p, &on_host) != NULL;
}

void *weights_place(const struct weights *w, const struct param *p, enum dtype *t, bool *on_host)
{
    *t = p->kind == PARAM_VECTOR ? DTYPE_F32 : storage_dtype(w->storage);
    return stored_at(w, p, on_host);
}

/* Numbers of the host in f32, and their type on the device. */
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

static struct transfer_part part_of(const struct param *p, void *at, bool on_host, struct numbers *x,
                                    transfer_move *move)
{
    size_t size = dtype_size(x->dtype);
    return (struct transfer_part){
        .device = at,
        .bytes = p->rows * p->columns * size,
        .unit = size,
        .move = move,
        .context = x,
        .on_host = on_host,
    };
}

int weights_put(const struct weights *w, const struct param *p, const float *from, struct cairn_error *err)
{
    if (!weights_has(w, p))
        return 0;
    if (weights_change(w, err))
        return -1;
    if (p->kind == PARAM_QUANTIZED)
        return put_quantized(w, p, from, err);
    struct numbers x = { .at = (float *)from }, same = { (float *)from, DTYPE_F32 };
    bool on_host, has_master = w->master && p->kind == PARAM_MATRIX;
    void *at = weights_place(w, p, &x.dtype, &on_host);
    struct transfer_part parts[2] = { part_of(p, at, on_host, &x, narrow) };
    if (has_master)
        parts[1] = part_of(p, w->master + p->at, w->master_on_host, &same, narrow);
    return transfer_up(gpu_transfer(w->g), parts, has_master ? 2 : 1, NULL, err);
}

int weights_get(const struct weights *w, const struct param *p, float *into, struct cairn_error *err)
{
    if (!weights_has(w, p))
        return cairn_fail(err, CAIRN_ELACK, "%s: its weights are not in memory", p->name);
    if (p->kind == PARAM_QUANTIZED)
        return get_quantized(w, p, into, err);
    struct numbers x = { .at = into };
    bool on_host;
    void *at = weights_place(w, p, &x.dtype, &on_host);
    struct transfer_part part = part_of(p, at, on_host, &x, widen);
    return transfer_down(gpu_transfer(w->g), &part, 1, NULL, err);
}

void weights_read(const struct weights *copy, const struct param *p, float *into)
{
    enum dtype from;
    bool on_host;
    const void *at = weights_place(copy, p, &from, &on_host);
    dtype_convert(into, DTYPE_F32, at, from, p->rows * p->columns, &(struct dtype_how){ 0 });
}
