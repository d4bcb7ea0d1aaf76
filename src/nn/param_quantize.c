/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/param_quantize.h"
#include "base/int.h"
#include "gpu/kernels/quant.h"
#include "gpu/transfer.h"
#include "nn/param_layout.h"
#include "tensor/fp8_scaled.h"

enum { ALIGNED = 256 };

/* ---- which parameters ---- */

static bool has_kernel(enum dtype t, enum gpu_storage *from)
{
    *from = t == DTYPE_F16 ? GPU_F16 : t == DTYPE_BF16 ? GPU_BF16 : GPU_F32;
    return t == DTYPE_F32 || t == DTYPE_F16 || t == DTYPE_BF16;
}

static size_t buffer_bytes(const struct weights *w, const struct param *p)
{
    return p->rows * p->columns * storage_size(w->storage);
}

/* While debugging, the host quantizes: the hash of what was loaded is that of every other device then. */
bool param_quantize_can(const struct weights *w, const struct param_quantize *q)
{
    const struct param *p = q->tensors->param;
    enum gpu_storage from;
    enum dtype unused;
    bool on_host;
    if (gpu_info(w->g)->api == GPU_API_HOST || gpu_is_debug(w->g) || w->host_quant->active)
        return false;
    if (!weights_place(w, p, &unused, &on_host) || on_host)
        return false;
    for (size_t i = 0; i < q->n; i++)
        if (!has_kernel(q->found[i]->dtype, &from) || q->scales[i].tensor ||
            p->columns * storage_size(from) > buffer_bytes(w, p))
            return false;
    return true;
}

/* ---- a batch: what the buffer holds at once ---- */

struct work {
    const struct weights *w;
    const struct tensor_source *source;
    const struct param_quantize *list;
    size_t n;
    size_t param, tensor, row; /* the next: of the list, of the parameter, of the tensor */
    uint64_t before, all;      /* bytes of earlier batches, and of all */
};

/* Rows of one tensor. */
struct piece {
    const struct tensor_source *source;
    const struct st_tensor *found;
    uint64_t first; /* number */
    enum gpu_storage from;
    struct quantise_args args;
};

struct batch {
    struct arena arena;
    struct piece **pieces;
    struct transfer_part *parts; /* one for each */
    size_t n, n_parts;
    size_t used; /* bytes of the buffer */
};

static void batch_release(struct batch *b)
{
    arena_release(&b->arena);
}

static int read_piece(void *piece, uint64_t at, size_t n, void *bytes, struct cairn_error *err)
{
    const struct piece *p = piece;
    size_t size = storage_size(p->from);
    return source_read(p->source, p->found, p->first + at / size, n / size, bytes, err);
}

static void add_rows(struct batch *b, const struct work *k, size_t rows, enum gpu_storage from)
{
    const struct param_quantize *q = &k->list[k->param];
    const struct param_tensor *t = &q->tensors[k->tensor];
    const struct param *p = t->param;
    struct piece *piece = ARENA_NEW(&b->arena, struct piece, 1);
    size_t row = t->first + k->row, bytes = rows * p->columns * storage_size(from);
    enum dtype unused;
    bool on_host;
    void *buffer = (char *)k->w->dequantized + b->used;
    uint8_t *codes = weights_place(k->w, p, &unused, &on_host);
    *piece = (struct piece){ .source = k->source,
                             .found = q->found[k->tensor],
                             .first = (uint64_t)k->row * p->columns,
                             .from = from,
                             .args = { .y = codes + row * p->columns,
                                       .scale = k->w->scales + p->scale_at + row,
                                       .x = buffer,
                                       .rows = (k_i64)rows,
                                       .columns = (k_i64)p->columns } };
    *ARENA_PUSH(&b->arena, b->pieces, b->n) = piece;
    *ARENA_PUSH(&b->arena, b->parts, b->n_parts) = (struct transfer_part){
        .device = buffer, .bytes = bytes, .unit = storage_size(from), .move = read_piece, .context = piece
    };
    b->used = align_up(b->used + bytes, ALIGNED);
}

/* As many whole rows as fit. */
static void fill(struct batch *b, struct work *k, size_t most)
{
    while (k->param < k->n) {
        const struct param_quantize *q = &k->list[k->param];
        const struct param_tensor *t = &q->tensors[k->tensor];
        enum gpu_storage from;
        (void)has_kernel(q->found[k->tensor]->dtype, &from);
        size_t row_bytes = t->param->columns * storage_size(from), left = t->rows - k->row;
        size_t fit = b->used < most ? (most - b->used) / row_bytes : 0;
        size_t rows = fit < left ? fit : left;
        if (rows)
            add_rows(b, k, rows, from);
        k->row += rows;
        if (k->row < t->rows)
            return;
        k->row = 0;
        if (++k->tensor == q->n) {
            k->tensor = 0;
            k->param++;
        }
    }
}

static int launch(const struct weights *w, const struct batch *b, struct cairn_error *err)
{
    const char *name = w->format == WEIGHTS_INT8 ? "quantise_int8" : "quantise_e4m3";
    for (size_t i = 0; i < b->n; i++) {
        const struct piece *p = b->pieces[i];
        const struct gpu_kernel *k;
        struct gpu_grid grid = { .x = (unsigned)p->args.rows };
        if (gpu_kernel(w->g, name, p->from, &k, err) ||
            gpu_launch(w->g, NULL, k, grid, &p->args, sizeof(p->args), err))
            return -1;
    }
    return gpu_wait(w->g, NULL, err);
}

/* 1: the device cannot. */
static int do_batch(struct work *k, size_t most, struct cairn_error *err)
{
    CLEANUP(batch_release) struct batch b = { 0 };
    struct cairn_error why = { 0 };
    fill(&b, k, most);
    struct transfer_options o = { .before = k->before, .all = k->all };
    if (transfer_up(gpu_transfer(k->w->g), b.parts, b.n_parts, &o, err))
        return -1;
    for (size_t i = 0; i < b.n_parts; i++)
        k->before += b.parts[i].bytes;
    if (!launch(k->w, &b, &why))
        return 0;
    if (gpu_lost(k->w->g)) {
        *err = why;
        return -1;
    }
    *k->w->host_quant = (struct weights_by_host){ true, why };
    return 1;
}

/* ---- what came of it ---- */

/* A row with NaN or Inf has an infinite scale. */
static int check_scales(const struct work *k, const struct param_quantize *q, const float *scales,
                        struct cairn_error *err)
{
    float largest = k->w->format == WEIGHTS_INT8 ? 127 : 448;
    for (size_t i = 0; i < q->n; i++) {
        const struct param_tensor *t = &q->tensors[i];
        if (!(fp8_absmax(scales + t->first, t->rows) <= param_limit(t->param, k->w->storage) / largest))
            return param_refuse(k->source, q->found[i], t->name, k->w->storage, err);
    }
    return 0;
}

static int check_all(const struct work *k, size_t n, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena arena = { 0 };
    struct transfer_part *parts = ARENA_NEW(&arena, struct transfer_part, n + 1);
    for (size_t i = 0; i < n; i++) {
        const struct param *p = k->list[i].tensors->param;
        parts[i] = (struct transfer_part){ .device = k->w->scales + p->scale_at,
                                           .bytes = p->rows * sizeof(float),
                                           .unit = sizeof(float),
                                           .move = transfer_move_into,
                                           .context = ARENA_NEW(&arena, float, p->rows) };
    }
    if (n && transfer_down(gpu_transfer(k->w->g), parts, n, NULL, err))
        return -1;
    for (size_t i = 0; i < n; i++)
        if (check_scales(k, &k->list[i], parts[i].context, err))
            return -1;
    return 0;
}

int param_quantize(const struct weights *w, const struct tensor_source *s, const struct param_quantize *list,
                   size_t n, size_t *done, struct cairn_error *err)
{
    struct work k = { .w = w, .source = s, .list = list, .n = n };
    size_t most = 0;
    int r = 0;
    for (size_t i = 0; i < n; i++) {
        size_t bytes = buffer_bytes(w, list[i].tensors->param);
        most = bytes > most ? bytes : most;
        for (size_t t = 0; t < list[i].n; t++)
            k.all += list[i].found[t]->bytes;
    }
    *done = 0;
    while (k.param < n && !r) {
        if ((r = do_batch(&k, most, err)) < 0)
            return -1;
        *done = r ? *done : k.param;
    }
    return check_all(&k, *done, err);
}
