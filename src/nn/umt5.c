/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/umt5.h"
#include "base/int.h"
#include "base/thread.h"
#include "gpu/kernels/elementwise.h"
#include "gpu/transfer.h"
#include "nn/nn_inside.h"
#include "nn/op_trace.h"
#include "nn/umt5_inside.h"
#include <stdlib.h>
#include <string.h>

size_t umt5_bucket(long distance)
{
    static const long large[] = { 8, 12, 16, 23, 32, 46, 64, 91 };
    long n = distance < 0 ? -distance : distance;
    size_t bucket = n < 8 ? (size_t)n : 7;
    for (size_t i = 0; i < ARRAY_LEN(large) && n >= large[i]; i++)
        bucket++;
    return bucket + (distance > 0 ? UMT5_BUCKETS / 2 : 0);
}

/* ---- opening ---- */

/* nn computes in the encoder's format until the caller puts back what this returns. */
static enum gpu_storage enter(struct nn *nn)
{
    enum gpu_storage before = nn->storage;
    nn->storage = before == GPU_F32 ? GPU_F32 : GPU_F16;
    return before;
}

int umt5_open(struct umt5 **out, struct nn *nn, const char *path, uint64_t budget, struct cairn_error *err)
{
    struct umt5 *u = calloc(1, sizeof(*u));
    if (!u)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    u->nn = nn;
    enum gpu_storage before = enter(nn);
    int r = umt5_file_open(&u->file, path, err) || umt5_plan(&u->file.info, nn, budget, &u->layout, err) ||
                    umt5_weights_open(u, err)
                ? -1
                : 0;
    nn->storage = before;
    if (r) {
        umt5_close(u);
        return -1;
    }
    *out = u;
    return 0;
}

void umt5_close(struct umt5 *u)
{
    if (!u)
        return;
    umt5_weights_close(u);
    umt5_file_close(&u->file);
    free(u);
}

const struct umt5_info *umt5_info(const struct umt5 *u)
{
    return &u->file.info;
}

const struct umt5_layout *umt5_layout(const struct umt5 *u)
{
    return &u->layout;
}

/* ---- which prompts go together ---- */

/* A pass: prompts whose rows are packed, in runs of one length. */
struct pass {
    size_t first, n; /* of the order */
    size_t row, rows;
    struct umt5_run *runs;
    size_t n_runs;
};

struct job {
    struct umt5 *u;
    const struct umt5_prompt *prompts;
    const struct umt5_sink *sink; /* NULL: nobody wants the rows */
    const struct umt5_hooks *hooks;
    struct arena arena;
    size_t *order; /* of prompts, by length */
    size_t n;
    struct pass *passes; /* of a group */
    size_t n_passes;
    float *host; /* rows of the group, where it has several passes; else of the pass */
    uint64_t done, total;
};

static void job_release(struct job *j)
{
    umt5_weights_rest(j->u);
    free(j->host);
    arena_release(&j->arena);
}

/* For qsort, which passes nothing on: an index with what it is sorted by. */
struct keyed {
    uint64_t key;
    size_t index;
};

static int by_key(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static void sort_prompts(struct job *j)
{
    struct keyed *all = ARENA_NEW(&j->arena, struct keyed, j->n + 1);
    j->order = ARENA_NEW(&j->arena, size_t, j->n + 1);
    for (size_t i = 0; i < j->n; i++)
        all[i] = (struct keyed){ j->prompts[i].n, i };
    qsort(all, j->n, sizeof(*all), by_key);
    for (size_t i = 0; i < j->n; i++)
        j->order[i] = all[i].index;
}

static int check_prompts(const struct job *j, struct cairn_error *err)
{
    const struct umt5 *u = j->u;
    for (size_t i = 0; i < j->n; i++) {
        const struct umt5_prompt *p = &j->prompts[i];
        if (!p->n)
            return cairn_fail(err, CAIRN_EUSAGE, "prompt %zu has no tokens", i);
        if (p->n > u->layout.rows)
            return cairn_fail(err, CAIRN_EUSAGE,
                              "prompt %zu has %zu tokens, more than the %zu that fit into memory", i, p->n,
                              u->layout.rows);
        for (size_t k = 0; k < p->n; k++)
            if (p->ids[k] >= u->file.info.vocab)
                return cairn_fail(err, CAIRN_EUSAGE, "prompt %zu: token %zu is %u, but the encoder knows %zu",
                                  i, k, (unsigned)p->ids[k], u->file.info.vocab);
    }
    return 0;
}

static size_t length_of(const struct job *j, size_t place)
{
    return j->prompts[j->order[place]].n;
}

static void add_to_pass(struct job *j, struct pass *p, size_t place)
{
    size_t n = length_of(j, place);
    struct umt5_run *last = p->n_runs ? &p->runs[p->n_runs - 1] : NULL;
    if (last && last->tokens == n)
        last->samples++;
    else
        *ARENA_PUSH(&j->arena, p->runs, p->n_runs) = (struct umt5_run){ p->rows, n, 1 };
    p->rows += n;
    p->n++;
}

/* From prompt `place` of the order on; returns the first of the next group. */
static size_t make_group(struct job *j, size_t place)
{
    const struct umt5 *u = j->u;
    bool streamed = u->layout.resident < u->file.info.layers;
    size_t most = streamed ? at_least(UMT5_HOST_BYTES / (u->file.info.dim * sizeof(float)), u->layout.rows)
                           : u->layout.rows;
    size_t row = 0;
    j->passes = NULL;
    j->n_passes = 0;
    while (place < j->n && row + length_of(j, place) <= most) {
        struct pass *p = ARENA_PUSH(&j->arena, j->passes, j->n_passes);
        *p = (struct pass){ .first = place, .row = row };
        while (place < j->n && p->rows + length_of(j, place) <= u->layout.rows &&
               row + length_of(j, place) <= most) {
            row += length_of(j, place);
            add_to_pass(j, p, place++);
        }
    }
    return place;
}

/* ---- the embedding ---- */

struct gather {
    const struct umt5 *u;
    const struct keyed *sorted; /* ids, and the rows that they are for */
    const size_t *starts;       /* of each different id */
    float *rows;
};

/* One id, and all rows that have it. */
static int gather_id(void *context, size_t which, struct cairn_error *err)
{
    const struct gather *g = context;
    const struct umt5_file *f = &g->u->file;
    size_t dim = f->info.dim, begin = g->starts[which], end = g->starts[which + 1];
    uint64_t first = g->sorted[begin].key * dim;
    float *row = g->rows + g->sorted[begin].index * dim;
    if (source_read_as(&f->source, f->embedding, first, dim, DTYPE_F32, row, err) ||
        param_scale_apply(&f->source, &f->embedding_scale, first, dim, row, err))
        return -1;
    for (size_t i = begin + 1; i < end; i++)
        memcpy(g->rows + g->sorted[i].index * dim, row, dim * sizeof(*row));
    return 0;
}

static int gather_rows(struct job *j, const struct pass *p, float *rows, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct keyed *sorted = ARENA_NEW(&a, struct keyed, p->rows);
    size_t *starts = ARENA_NEW(&a, size_t, p->rows + 1), n = 0, row = 0;
    for (size_t i = p->first; i < p->first + p->n; i++)
        for (size_t k = 0; k < length_of(j, i); k++, row++)
            sorted[row] = (struct keyed){ j->prompts[j->order[i]].ids[k], row };
    qsort(sorted, row, sizeof(*sorted), by_key);
    for (size_t i = 0; i < row; i++)
        if (!i || sorted[i].key != sorted[i - 1].key)
            starts[n++] = i;
    starts[n] = row;
    struct gather g = { j->u, sorted, starts, rows };
    return parallel_for(n, 0, gather_id, &g, err);
}

/* By the table on the device, into the residual stream. */
static int embed(struct job *j, const struct pass *p, struct cairn_error *err)
{
    struct umt5 *u = j->u;
    struct nn *nn = u->nn;
    size_t dim = u->file.info.dim, row = 0;
    CLEANUP(mem_free) int *ids = malloc(p->rows * sizeof(*ids));
    void *table, *y = nn->storage == GPU_F32 ? (void *)u->work.x : u->work.norm;
    if (!ids)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu tokens", p->rows);
    for (size_t i = p->first; i < p->first + p->n; i++)
        for (size_t k = 0; k < length_of(j, i); k++)
            ids[row++] = (int)j->prompts[j->order[i]].ids[k];
    struct transfer_part part = {
        .device = u->work.ids, .bytes = p->rows * sizeof(*ids), .move = transfer_move_from, .context = ids
    };
    nn_at(nn, "embedding");
    if (transfer_up(gpu_transfer(nn->g), &part, 1, &(struct transfer_options){ .after = nn->stream }, err) ||
        weights_matrix(&u->weights, nn->stream, &u->params.list[u->embedding], &table, err))
        return -1;
    struct nn_embedding e = { .y = y,
                              .table = table,
                              .ids = u->work.ids,
                              .rows = p->rows,
                              .columns = dim,
                              .limit = u->file.info.vocab };
    if (nn_embedding(nn, &e, err))
        return -1;
    if (nn->storage == GPU_F32)
        return 0;
    size_t n = p->rows * dim;
    struct widen_args args = { .y = u->work.x, .x = y, .n = (k_i64)n };
    struct nn_launch launch = { .kernel = "widen",
                                .storage = nn->storage,
                                .grid = nn_grid_over(n),
                                .args = &args,
                                .args_size = sizeof(args),
                                .f32_out = true,
                                NN_OUT(u->work.x, n, 3) };
    return nn_launch(nn, &launch, err);
}

/* ---- rows between host and device ---- */

static int move_stream(struct umt5 *u, float *host, size_t rows, bool up, struct cairn_error *err)
{
    struct transfer_part part = {
        .device = u->work.x,
        .bytes = rows * u->file.info.dim * sizeof(float),
        .unit = sizeof(float),
        .move = up ? transfer_move_from : transfer_move_into,
        .context = host,
    };
    struct transfer_options o = { .after = u->nn->stream };
    struct transfer *t = gpu_transfer(u->nn->g);
    return up ? transfer_up(t, &part, 1, &o, err) : transfer_down(t, &part, 1, &o, err);
}

struct widening {
    float *to;
    enum dtype from;
};

static int widen(void *context, uint64_t at, size_t n, void *bytes, struct cairn_error *err)
{
    const struct widening *w = context;
    size_t size = dtype_size(w->from);
    (void)err;
    dtype_convert(w->to + at / size, DTYPE_F32, bytes, w->from, n / size, &(struct dtype_how){ 0 });
    return 0;
}

static int read_output(struct umt5 *u, float *rows, size_t n, struct cairn_error *err)
{
    struct widening w = { rows, storage_dtype(u->nn->storage) };
    struct transfer_part part = {
        .device = u->work.norm,
        .bytes = n * u->file.info.dim * dtype_size(w.from),
        .unit = dtype_size(w.from),
        .move = widen,
        .context = &w,
    };
    struct transfer_options o = { .after = u->nn->stream };
    return transfer_down(gpu_transfer(u->nn->g), &part, 1, &o, err);
}

/* ---- layers ---- */

static int tell(struct job *j, size_t rows, struct cairn_error *err)
{
    const struct umt5_hooks *h = j->hooks;
    j->done += rows;
    if (h && h->progress)
        h->progress(h->ctx, j->done, j->total);
    if (h && h->stop && h->stop(h->ctx))
        return cairn_fail(err, CAIRN_EIO, "the text encoder was stopped");
    return 0;
}

static int start_pass(struct job *j, struct pass *p, struct cairn_error *err)
{
    struct umt5 *u = j->u;
    if (u->layout.embedding)
        return embed(j, p, err);
    float *rows = j->host + p->row * u->file.info.dim;
    return gather_rows(j, p, rows, err) || (j->n_passes == 1 && move_stream(u, rows, p->rows, true, err)) ? -1
                                                                                                          : 0;
}

/* One layer over all passes of the group. */
static int run_layer(struct job *j, size_t layer, struct cairn_error *err)
{
    struct umt5 *u = j->u;
    size_t slot;
    if (umt5_weights_get(u, layer, &slot, err) ||
        (layer + 1 < u->file.info.layers && umt5_weights_send(u, layer + 1, err)))
        return -1;
    for (size_t i = 0; i < j->n_passes; i++) {
        const struct pass *p = &j->passes[i];
        float *rows = j->host + p->row * u->file.info.dim;
        bool by_host = j->n_passes > 1;
        if ((by_host && move_stream(u, rows, p->rows, true, err)) ||
            umt5_layer(u, layer, slot, p->runs, p->n_runs, p->rows, err) ||
            (by_host && move_stream(u, rows, p->rows, false, err)) || tell(j, p->rows, err))
            return -1;
    }
    return umt5_weights_done(u, layer, err);
}

/* ---- what comes out ---- */

static int encode_all(struct job *j, struct cairn_error *err);

static int encode_watched(struct job *j, size_t prompt, struct nn_watcher *w, struct cairn_error *err)
{
    CLEANUP(job_release) struct job again = { .u = j->u, .prompts = &j->prompts[prompt], .n = 1 };
    struct nn *nn = j->u->nn;
    struct nn_watcher *before = nn->watcher;
    umt5_weights_rest(j->u);
    nn->watcher = w;
    int r = encode_all(&again, err);
    nn->watcher = before;
    return r;
}

/* Encodes the prompt once more, to find which layer it is. */
static int refuse_row(struct job *j, size_t prompt, size_t row, enum umt5_row how, struct cairn_error *err)
{
    const char *what = how == UMT5_ROW_ODD ? "has NaN or Inf" : "is constant: all of its values are the same";
    /* Values beyond 65504 may be the reason, which are fine in f32. */
    enum cairn_code code =
        how == UMT5_ROW_ODD && j->u->nn->storage == GPU_F16 ? CAIRN_EDEVICE : CAIRN_EFORMAT;
    struct nan_finder nan;
    struct umt5_constant_finder same = { .row = row,
                                         .rows = j->prompts[prompt].n,
                                         .dim = j->u->file.info.dim };
    umt5_constant_finder_init(&same);
    nan_finder_init(&nan);
    int r = encode_watched(j, prompt, how == UMT5_ROW_ODD ? &nan.watcher : &same.watcher, err);
    nan_finder_release(&nan, j->u->nn->g);
    if (r)
        return -1;
    if (how == UMT5_ROW_ODD ? nan.found : same.found)
        cairn_fail(err, code, "prompt %zu: row %zu %s; the first such values came from %s (%s)", prompt, row,
                   what, how == UMT5_ROW_ODD ? nan.where : same.where,
                   how == UMT5_ROW_ODD ? nan.op : same.op);
    else
        cairn_fail(err, code, "prompt %zu: row %zu %s, but not when it was computed again", prompt, row,
                   what);
    return cairn_hint(err, "the file may be damaged, or the device computes wrongly: try the CPU");
}

static int end_pass(struct job *j, const struct pass *p, struct cairn_error *err)
{
    struct umt5 *u = j->u;
    size_t dim = u->file.info.dim;
    float *rows = j->host + p->row * dim;
    if ((j->n_passes > 1 && move_stream(u, rows, p->rows, true, err)) || umt5_last_norm(u, p->rows, err) ||
        read_output(u, rows, p->rows, err))
        return -1;
    if (!j->sink)
        return 0;
    CLEANUP(mem_free) uint8_t *bad = malloc(p->rows);
    if (!bad)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    if (umt5_check_rows(rows, p->rows, dim, bad, err))
        return -1;
    for (size_t i = p->first, row = 0; i < p->first + p->n; i++) {
        size_t n = length_of(j, i);
        for (size_t k = 0; k < n; k++)
            if (bad[row + k])
                return refuse_row(j, j->order[i], k, bad[row + k], err);
        if (j->sink->write(j->sink->ctx, j->order[i], rows + row * dim, err))
            return -1;
        row += n;
    }
    return 0;
}

static int run_group(struct job *j, struct cairn_error *err)
{
    struct umt5 *u = j->u;
    const struct pass *last = &j->passes[j->n_passes - 1];
    size_t bytes = (last->row + last->rows) * u->file.info.dim * sizeof(float);
    free(j->host);
    j->host = malloc(bytes);
    if (!j->host)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu bytes of hidden states", bytes);
    if (u->layout.resident < u->file.info.layers && umt5_weights_send(u, u->layout.resident, err))
        return -1;
    for (size_t i = 0; i < j->n_passes; i++)
        if (start_pass(j, &j->passes[i], err))
            return -1;
    for (size_t i = 0; i < u->file.info.layers; i++)
        if (run_layer(j, i, err))
            return -1;
    for (size_t i = 0; i < j->n_passes; i++)
        if (end_pass(j, &j->passes[i], err))
            return -1;
    return 0;
}

static int encode_all(struct job *j, struct cairn_error *err)
{
    sort_prompts(j);
    for (size_t i = 0; i < j->n; i++)
        j->total += (uint64_t)j->prompts[i].n * j->u->file.info.layers;
    for (size_t place = 0; place < j->n;) {
        place = make_group(j, place);
        if (run_group(j, err))
            return -1;
    }
    return 0;
}

int umt5_encode(struct umt5 *u, const struct umt5_prompt *prompts, size_t n, const struct umt5_sink *sink,
                const struct umt5_hooks *h, struct cairn_error *err)
{
    CLEANUP(job_release) struct job j = { .u = u, .prompts = prompts, .n = n, .sink = sink, .hooks = h };
    if (check_prompts(&j, err))
        return -1;
    enum gpu_storage before = enter(u->nn);
    int r = encode_all(&j, err);
    umt5_weights_rest(u); /* its thread reads into the encoder's format */
    u->nn->storage = before;
    return r;
}
