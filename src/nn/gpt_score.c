/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/gpt_inside.h"
#include <stdlib.h>

void *gpt_row_at(const struct gpt_work *r, void *p, size_t row, size_t columns)
{
    return (char *)p + row * columns * storage_size(r->m->nn->storage);
}

void *gpt_table(const struct gpt *m, size_t index)
{
    struct cairn_error none;
    void *p = NULL;
    weights_matrix(&m->weights, NULL, &m->params.list[index], &p, &none);
    return p;
}

int gpt_score(const struct gpt_work *r, size_t first, size_t rows, struct cairn_error *err)
{
    struct nn_linear args = {
        .x = gpt_row_at(r, r->last, first, r->m->shape.width),
        .w = gpt_table(r->m, r->m->head),
        .y = r->scores,
        .rows = rows,
        .in = r->m->shape.width,
        .out = r->m->vocab_padded,
    };
    nn_at(r->m->nn, "head");
    return nn_linear(r->m->nn, &args, err);
}

int gpt_loss(struct gpt_work *r, size_t slot, double *sum, size_t *targets, struct cairn_error *err)
{
    float *losses = r->losses + slot * r->rows;
    struct nn *nn = r->m->nn;
    if (gpu_download(nn->g, nn->stream, losses, r->slots[slot].loss, r->rows * sizeof(float), err) ||
        gpu_wait(nn->g, nn->stream, err))
        return -1;
    *sum = 0;
    for (size_t i = 0; i < r->rows; i++)
        *sum += (double)losses[i];
    *targets = r->slots[slot].n_targets;
    return 0;
}

int gpt_fetch(const struct gpt_work *r, struct gpt_result m, float *into, struct cairn_error *err)
{
    struct nn *nn = r->m->nn;
    size_t row = m.stride * storage_size(nn->storage);
    enum dtype t = storage_dtype(nn->storage);
    CLEANUP(mem_free) char *bytes = malloc(m.rows * row);
    if (!bytes)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu scores", m.rows * m.stride);
    if (gpu_download(nn->g, nn->stream, bytes, m.at, m.rows * row, err) || gpu_wait(nn->g, nn->stream, err))
        return -1;
    for (size_t i = 0; i < m.rows; i++)
        dtype_convert(into + i * m.columns, DTYPE_F32, bytes + i * row, t, m.columns,
                      &(struct dtype_how){ 0 });
    return 0;
}

int gpt_scores(struct gpt_work *r, float *scores, struct cairn_error *err)
{
    size_t vocab = r->m->shape.vocab;
    for (size_t first = 0; first < r->rows; first += r->at_once) {
        size_t rows = r->rows - first < r->at_once ? r->rows - first : r->at_once;
        struct gpt_result all = { r->scores, rows, vocab, r->m->vocab_padded };
        if (gpt_score(r, first, rows, err) || gpt_fetch(r, all, scores + first * vocab, err))
            return -1;
    }
    return 0;
}

int gpt_between(struct gpt_work *r, size_t block, bool before_mlp, float *out, struct cairn_error *err)
{
    size_t width = r->m->shape.width;
    const void *from = before_mlp ? r->saved[block].middle : r->x[block];
    return gpt_fetch(r, (struct gpt_result){ from, r->rows, width, width }, out, err);
}
