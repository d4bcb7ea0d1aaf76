/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/model.h"

/* ---- what is trained ---- */

size_t model_sets(const struct model *m)
{
    return m->n_loras ? m->n_loras : m->n_bases;
}

const struct params *model_trained(const struct model *m, size_t set)
{
    return m->n_loras ? &m->loras[set]->params : m->bases[set].params;
}

struct weights *model_trained_weights(const struct model *m, size_t set)
{
    return m->n_loras ? &m->loras[set]->weights : m->bases[set].weights;
}

uint64_t model_parameters(const struct model *m)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < m->n_bases; i++)
        sum += params_count(m->bases[i].params);
    return sum;
}

uint64_t model_trained_parameters(const struct model *m)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < model_sets(m); i++)
        sum += params_count(model_trained(m, i));
    return sum;
}

/* ---- memory ---- */

size_t model_bytes(const struct model *m, bool blocks_on_host, size_t *host)
{
    size_t sum = m->ops->tables_bytes ? m->ops->tables_bytes(m) : 0;
    *host = 0;
    for (size_t i = 0; i < m->n_loras; i++)
        sum += weights_size(&m->loras[i]->params, m->nn->storage);
    for (size_t i = 0; i < m->n_bases; i++) {
        const struct model_base *b = &m->bases[i];
        size_t on_host = 0;
        if (blocks_on_host && b->blocks->pieces)
            sum += weights_size_offloaded(b->params, m->nn->storage, b->blocks, &on_host);
        else
            sum += weights_size(b->params, m->nn->storage);
        *host += on_host;
    }
    return sum;
}

int model_alloc(struct model *m, bool blocks_on_host, struct cairn_error *err)
{
    struct gpu *g = m->nn->g;
    enum gpu_storage storage = m->nn->storage;
    for (size_t i = 0; i < m->n_bases; i++) {
        const struct model_base *b = &m->bases[i];
        struct weights_options o = {
            .storage = storage, .format = b->format, .blocks = b->blocks, .offload = blocks_on_host
        };
        if (weights_open_blocks(b->weights, g, b->params, &o, err))
            return -1;
    }
    for (size_t i = 0; i < m->n_loras; i++)
        if (weights_open(&m->loras[i]->weights, g, &m->loras[i]->params, storage, m->bases[0].format, err))
            return -1;
    return m->ops->tables_alloc ? m->ops->tables_alloc(m, err) : 0;
}

void model_release(struct model *m)
{
    for (size_t i = 0; i < m->n_bases; i++)
        weights_close(m->bases[i].weights);
    for (size_t i = 0; i < m->n_loras; i++)
        weights_close(&m->loras[i]->weights);
    if (m->ops->tables_release)
        m->ops->tables_release(m);
}

void model_close(struct model *m)
{
    if (!m)
        return;
    model_release(m);
    m->ops->close(m);
}

bool model_is_allocated(const struct model *m)
{
    return m->bases[0].weights->g != NULL;
}

bool model_can_offload(const struct model *m)
{
    for (size_t i = 0; i < m->n_bases; i++)
        if (m->bases[i].blocks->pieces)
            return true;
    return false;
}

bool model_is_offloaded(const struct model *m)
{
    for (size_t i = 0; i < m->n_bases; i++)
        if (m->bases[i].weights->offloaded)
            return true;
    return false;
}

int model_move_blocks(struct model *m, bool to_host, struct cairn_error *err)
{
    struct cairn_error ignored;
    int r = 0;
    for (size_t i = 0; i < m->n_bases; i++) {
        const struct weights *w = m->bases[i].weights;
        if (!weights_move_blocks(m->bases[i].weights, to_host, err))
            continue;
        r = -1;
        if ((w->offloaded != NULL) == to_host) /* moved; its windows do not fit on the device yet */
            continue;
        while (i-- > 0)
            weights_move_blocks(m->bases[i].weights, !to_host, &ignored);
        return -1;
    }
    return r;
}

const struct cairn_error *model_host_dequant(const struct model *m)
{
    for (size_t i = 0; i < m->n_bases; i++) {
        const struct weights_host_dequant *h = m->bases[i].weights->host_dequant;
        if (h && h->active)
            return &h->why;
    }
    return NULL;
}
