/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/param_load.h"
#include "base/thread.h"
#include "gpu/transfer.h"
#include "nn/param_layout.h"
#include "nn/param_quantize.h"
#include "nn/param_scale.h"
#include "nn/quantize.h"
#include "tensor/fp8_scaled.h"
#include <stdlib.h>

enum { WHOLE_MOST = 64 << 20 }; /* bytes that one thread transposes by itself */

/* ---- values of the file ---- */

struct reading {
    const struct tensor_source *source;
    const struct param_tensor *tensor;
    const struct st_tensor *found;
    const struct param_scale *scale;
    float *numbers; /* of the whole parameter */
    size_t most;    /* rows of a piece */
    enum gpu_storage storage;
};

static bool is_within(const float *numbers, size_t n, float limit)
{
    return fp8_absmax(numbers, n) <= limit;
}

static bool is_multiplied(const struct param_tensor *t)
{
    return t->factor != 0;
}

static int refuse_tensor(const struct reading *r, struct cairn_error *err)
{
    return param_refuse(r->source, r->found, r->tensor->name, r->storage, err);
}

/* Numbers of one tensor in f32, in the order of the file. */
static int read_wide(const struct reading *r, uint64_t first, size_t n, float *into, struct cairn_error *err)
{
    if (source_read_as(r->source, r->found, first, n, DTYPE_F32, into, err) ||
        param_scale_apply(r->source, r->scale, first, n, into, err))
        return -1;
    for (size_t i = 0; is_multiplied(r->tensor) && i < n; i++)
        into[i] *= r->tensor->factor;
    return is_within(into, n, param_limit(r->tensor->param, r->storage)) ? 0 : refuse_tensor(r, err);
}

static int read_piece(void *context, size_t piece, struct cairn_error *err)
{
    const struct reading *r = context;
    const struct param_tensor *t = r->tensor;
    struct param_layout s = param_layout_of(t);
    size_t first = piece * r->most, rows = s.rows - first < r->most ? s.rows - first : r->most;
    size_t n = rows * s.columns;
    bool moved = t->transposed || t->taps;
    CLEANUP(mem_free) float *as_read = moved ? malloc(n * sizeof(float)) : NULL;
    if (moved && !as_read)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory for %zu values", t->name, n);
    float *to = r->numbers + param_layout_start(t) + (t->transposed ? first : first * t->param->columns);
    if (read_wide(r, first * s.columns, n, moved ? as_read : to, err))
        return -1;
    if (t->transposed)
        param_layout_transpose(to, t->param->columns, as_read, s.columns, rows, s.columns);
    else if (t->taps)
        param_layout_last_channels(t, to, as_read, rows);
    return 0;
}

static bool is_strided(const struct tensor_source *s, const struct st_tensor *found)
{
    int fd;
    uint64_t at;
    return !source_place(s, found, &fd, &at);
}

/* A parameter on its way to the device: its tensors, and its type on the device. */
struct loading {
    const struct tensor_source *source;
    const struct param_tensor *tensors;
    const struct st_tensor *const *found;
    const struct param_scale *scales; /* of each tensor */
    size_t n;
    enum gpu_storage storage; /* of the model */
    enum dtype to;
    enum weights_format format; /* of a quantized one */
    float *row_scales;          /* of a quantized one, to be filled */
};

static struct reading reading_of(const struct loading *l, size_t i, float *numbers)
{
    struct param_layout s = param_layout_of(&l->tensors[i]);
    /* A strided tensor is read at once: each piece of it might need all of its storage. */
    size_t most = is_strided(l->source, l->found[i]) ? s.rows : param_layout_piece_rows(s);
    return (
        struct reading){ l->source, &l->tensors[i], l->found[i], &l->scales[i], numbers, most, l->storage };
}

/* The same in the type of the device. */
static int read_numbers(const struct reading *r, size_t first, size_t n, enum dtype to, char *into,
                        struct cairn_error *err)
{
    enum { BLOCK = 1 << 16 };
    if (r->found->dtype == to && !r->scale->tensor && !is_multiplied(r->tensor)) {
        if (source_read(r->source, r->found, first, n, into, err))
            return -1;
        return param_layout_is_finite(into, to, n) ? 0 : refuse_tensor(r, err);
    }
    CLEANUP(mem_free) float *wide = malloc(BLOCK * sizeof(*wide));
    if (!wide)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory for %d values", r->tensor->name, BLOCK);
    for (size_t at = 0, k; at < n; at += k) {
        k = n - at < BLOCK ? n - at : BLOCK;
        if (read_wide(r, first + at, k, wide, err))
            return -1;
        dtype_convert(into + at * dtype_size(to), to, wide, DTYPE_F32, k, &(struct dtype_how){ 0 });
    }
    return 0;
}

/* Some values of a parameter whose tensors lie in the file as they do on the device. */
static int load_some(void *loading, uint64_t at, size_t n, void *bytes, struct cairn_error *err)
{
    const struct loading *l = loading;
    size_t size = dtype_size(l->to), first = at / size, end = (at + n) / size;
    for (size_t i = 0; i < l->n; i++) {
        struct param_layout s = param_layout_of(&l->tensors[i]);
        struct reading r = reading_of(l, i, NULL);
        size_t begin = param_layout_start(&l->tensors[i]), stop = begin + s.rows * s.columns;
        size_t from = first > begin ? first : begin, to = end < stop ? end : stop;
        if (from < to &&
            read_numbers(&r, from - begin, to - from, l->to, (char *)bytes + (from - first) * size, err))
            return -1;
    }
    return 0;
}

/* Rows of a tensor, and where their codes and scales go. */
struct rows {
    uint64_t first;
    size_t n;
    uint8_t *codes;
    float *scales;
};

/* The tensor has the codes of the model: they stay as they are. */
static int copy_rows(const struct reading *r, const struct rows *rows, struct cairn_error *err)
{
    size_t columns = r->tensor->param->columns, n = rows->n * columns;
    float limit = param_limit(r->tensor->param, r->storage) / (float)dtype_max(DTYPE_F8_E4M3);
    if (source_read(r->source, r->found, rows->first * columns, n, rows->codes, err) ||
        param_scale_of_rows(r->source, r->scale, columns, rows->first, rows->n, rows->scales, err))
        return -1;
    bool fine =
        param_layout_is_finite(rows->codes, DTYPE_F8_E4M3, n) && is_within(rows->scales, rows->n, limit);
    return fine ? 0 : refuse_tensor(r, err);
}

static int make_rows(const struct reading *r, enum weights_format format, const struct rows *rows,
                     struct cairn_error *err)
{
    enum { BLOCK = 1 << 16 };
    size_t columns = r->tensor->param->columns, most = columns < BLOCK ? BLOCK / columns : 1;
    CLEANUP(mem_free) float *wide = malloc(most * columns * sizeof(*wide));
    if (!wide)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory for %zu values", r->tensor->name, most * columns);
    for (size_t at = 0, k; at < rows->n; at += k) {
        k = rows->n - at < most ? rows->n - at : most;
        if (read_wide(r, (rows->first + at) * columns, k * columns, wide, err))
            return -1;
        for (size_t i = 0; i < k; i++)
            quantize_row(format, rows->codes + (at + i) * columns, &rows->scales[at + i], wide + i * columns,
                         columns);
    }
    return 0;
}

/* Some rows of a parameter in 8 bits.  Their scales are for later. */
static int load_rows(void *loading, uint64_t at, size_t n, void *bytes, struct cairn_error *err)
{
    const struct loading *l = loading;
    size_t columns = l->tensors->param->columns, first = at / columns, end = (at + n) / columns;
    for (size_t i = 0; i < l->n; i++) {
        struct reading r = reading_of(l, i, NULL);
        size_t begin = l->tensors[i].first, stop = begin + l->tensors[i].rows;
        size_t from = first > begin ? first : begin, to = end < stop ? end : stop;
        if (from >= to)
            continue;
        struct rows rows = { from - begin, to - from, (uint8_t *)bytes + (from - first) * columns,
                             l->row_scales + from };
        bool same = l->format == WEIGHTS_FP8 && r.found->dtype == DTYPE_F8_E4M3 &&
                    param_scale_is_by_row(r.scale, columns);
        if (same ? copy_rows(&r, &rows, err) : make_rows(&r, l->format, &rows, err))
            return -1;
    }
    return 0;
}

/* All of a parameter that must be transposed or made contiguous. */
static int load_whole(void *loading, uint64_t at, size_t n, void *bytes, struct cairn_error *err)
{
    const struct loading *l = loading;
    (void)at;
    CLEANUP(mem_free) float *numbers = param_alloc(l->tensors->param, err);
    if (!numbers)
        return -1;
    for (size_t i = 0; i < l->n; i++) {
        struct reading r = reading_of(l, i, numbers);
        for (size_t piece = 0; piece * r.most < param_layout_of(r.tensor).rows; piece++)
            if (read_piece(&r, piece, err))
                return -1;
    }
    dtype_convert(bytes, l->to, numbers, DTYPE_F32, n / dtype_size(l->to), &(struct dtype_how){ 0 });
    return 0;
}

/* Through memory of the host: what is too large to be transposed in a piece. */
static int load_by_host(const struct loading *l, const struct weights *w, struct cairn_error *err)
{
    const struct param *p = l->tensors->param;
    CLEANUP(mem_free) float *numbers = param_alloc(p, err);
    if (!numbers)
        return -1;
    for (size_t i = 0; i < l->n; i++) {
        struct reading r = reading_of(l, i, numbers);
        size_t rows = param_layout_of(r.tensor).rows;
        if (parallel_for((rows + r.most - 1) / r.most, 0, read_piece, &r, err))
            return -1;
    }
    return weights_put(w, p, numbers, err);
}

/* ---- to the device ---- */

struct loads {
    struct arena arena;
    struct transfer_part *parts, *scales; /* scales are known when the parts have been read */
    size_t n, n_scales;
    size_t unit_most;
    struct loading *quantized; /* on the device */
    size_t n_quantized;
};

static void loads_release(struct loads *all)
{
    arena_release(&all->arena);
}

static bool is_in_order(const struct loading *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->tensors[i].transposed || l->tensors[i].taps || is_strided(l->source, l->found[i]))
            return false;
    return true;
}

static void add_part(struct loads *all, struct loading l, void *at, bool on_host, enum dtype to)
{
    const struct param *p = l.tensors->param;
    struct loading *copy = ARENA_NEW(&all->arena, struct loading, 1);
    size_t bytes = p->rows * p->columns * dtype_size(to);
    bool in_order = is_in_order(&l);
    *copy = l;
    copy->to = to;
    *ARENA_PUSH(&all->arena, all->parts, all->n) =
        (struct transfer_part){ .device = at,
                                .bytes = bytes,
                                .unit = in_order ? dtype_size(to) : bytes,
                                .move = in_order ? load_some : load_whole,
                                .context = copy,
                                .on_host = on_host };
}

static void add_quantized(struct loads *all, struct loading l, const struct weights *w)
{
    const struct param *p = l.tensors->param;
    struct loading *copy = ARENA_NEW(&all->arena, struct loading, 1);
    enum dtype unused;
    bool on_host;
    void *at = weights_place(w, p, &unused, &on_host);
    *copy = l;
    copy->format = w->format;
    copy->row_scales = ARENA_NEW(&all->arena, float, p->rows);
    *ARENA_PUSH(&all->arena, all->parts, all->n) = (struct transfer_part){ .device = at,
                                                                           .bytes = p->rows * p->columns,
                                                                           .unit = p->columns,
                                                                           .move = load_rows,
                                                                           .context = copy,
                                                                           .on_host = on_host };
    *ARENA_PUSH(&all->arena, all->scales, all->n_scales) =
        (struct transfer_part){ .device = w->scales + p->scale_at,
                                .bytes = p->rows * sizeof(float),
                                .move = transfer_move_from,
                                .context = copy->row_scales };
}

static int add_param(struct loads *all, const struct loading *l, const struct weights *w,
                     struct cairn_error *err)
{
    const struct param *p = l->tensors->param;
    bool quantized = p->kind == PARAM_QUANTIZED, in_order = is_in_order(l);
    if (quantized && in_order && p->columns <= all->unit_most) {
        add_quantized(all, *l, w);
        return 0;
    }
    if (quantized || (!in_order && p->rows * p->columns * sizeof(float) > all->unit_most))
        return load_by_host(l, w, err);
    enum dtype to;
    bool on_host;
    void *at = weights_place(w, p, &to, &on_host);
    add_part(all, *l, at, on_host, to);
    if (w->master && p->kind == PARAM_MATRIX)
        add_part(all, *l, w->master + p->at, w->master_on_host, DTYPE_F32);
    return 0;
}

static struct param_quantize quantize_of(const struct loading *l)
{
    return (struct param_quantize){ l->tensors, l->found, l->scales, l->n };
}

/* On the device what it can quantize; the rest, with everything else, by the host. */
static int quantize_all(struct loads *all, const struct tensor_source *s, const struct weights *w,
                        struct cairn_error *err)
{
    struct param_quantize *list = ARENA_NEW(&all->arena, struct param_quantize, all->n_quantized + 1);
    size_t done;
    for (size_t i = 0; i < all->n_quantized; i++)
        list[i] = quantize_of(&all->quantized[i]);
    if (param_quantize(w, s, list, all->n_quantized, &done, err))
        return -1;
    for (size_t i = done; i < all->n_quantized; i++)
        if (add_param(all, &all->quantized[i], w, err))
            return -1;
    return 0;
}

/* The scales of tensors. */
static const struct param_scale *find_scales(struct loads *all, const struct tensor_source *s,
                                             const struct st_tensor *const *found, size_t n,
                                             struct cairn_error *err)
{
    struct param_scale *scales = ARENA_NEW(&all->arena, struct param_scale, n + 1);
    bool is_scaled = param_scale_is_in(s);
    for (size_t i = 0; i < n; i++)
        if (param_scale_find(s, found[i], is_scaled, &scales[i], err))
            return NULL;
    return scales;
}

static void count_tensors(struct param_report *report, const struct loading *l)
{
    report->tensors += l->n;
    for (size_t i = 0; i < l->n; i++)
        report->strided += is_strided(l->source, l->found[i]);
}

/* The parameter whose tensors begin at i; whole: of all of them. */
static struct loading loading_at(const struct loading *whole, const struct param_tensors *t, size_t i)
{
    struct loading l = *whole;
    l.tensors = &t->list[i];
    l.found += i;
    l.scales += i;
    l.n = param_tensors_of(t, i);
    return l;
}

int param_load(const struct param_tensors *t, const struct weights *w, const struct tensor_source *s,
               const struct st_tensor *const *found, struct param_report *report, struct cairn_error *err)
{
    CLEANUP(loads_release) struct loads all = { 0 };
    struct transfer *way = gpu_transfer(w->g);
    if (weights_change(w, err))
        return -1;
    size_t most = transfer_unit_most(way);
    all.unit_most = most < WHOLE_MOST ? most : WHOLE_MOST;
    const struct param_scale *scales = find_scales(&all, s, found, t->n, err);
    if (!scales)
        return -1;
    const struct loading whole = {
        .source = s, .found = found, .scales = scales, .storage = w->storage, .to = DTYPE_F32
    };
    for (size_t i = 0, n; i < t->n; i += n) {
        struct loading l = loading_at(&whole, t, i);
        n = l.n;
        count_tensors(report, &l);
        if (!weights_has(w, l.tensors->param))
            continue;
        struct param_quantize q = quantize_of(&l);
        if (l.tensors->param->kind == PARAM_QUANTIZED && is_in_order(&l) && param_quantize_can(w, &q))
            *ARENA_PUSH(&all.arena, all.quantized, all.n_quantized) = l;
        else if (add_param(&all, &l, w, err))
            return -1;
    }
    if (all.n_quantized && quantize_all(&all, s, w, err))
        return -1;
    if (transfer_up(way, all.parts, all.n, NULL, err))
        return -1;
    return all.n_scales ? transfer_up(way, all.scales, all.n_scales, NULL, err) : 0;
}

int param_load_parts(const struct param_tensors *t, const struct weights *w, const struct tensor_source *s,
                     const struct st_tensor *const *found, struct param_parts *out, struct cairn_error *err)
{
    CLEANUP(loads_release) struct loads all = { .unit_most = WHOLE_MOST };
    const struct param_scale *scales = find_scales(&all, s, found, t->n, err);
    if (!scales)
        return -1;
    const struct loading whole = {
        .source = s, .found = found, .scales = scales, .storage = w->storage, .to = DTYPE_F32
    };
    for (size_t i = 0, n; i < t->n; i += n) {
        struct loading l = loading_at(&whole, t, i);
        n = l.n;
        if (!is_in_order(&l))
            return 1;
        if (add_param(&all, &l, w, err))
            return -1;
    }
    *out = (struct param_parts){ all.arena, all.parts, all.scales, all.n, all.n_scales };
    all.arena = (struct arena){ 0 };
    return 0;
}

void param_parts_release(struct param_parts *p)
{
    arena_release(&p->arena);
    *p = (struct param_parts){ 0 };
}
