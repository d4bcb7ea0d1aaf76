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

static bool have_same_blocks(const struct model_base *a, const struct model_base *b)
{
    return a->blocks->kind == b->blocks->kind && a->blocks->numbers == b->blocks->numbers &&
           a->blocks->pieces == b->blocks->pieces;
}

struct model_parts model_parts(const struct model *m, const struct model_layout *l)
{
    enum gpu_storage storage = m->nn->storage;
    struct model_parts out = { .tables = m->ops->tables_bytes ? m->ops->tables_bytes(m) : 0 };
    for (size_t i = 0; i < m->n_loras; i++)
        out.loras[i] = weights_size(&m->loras[i]->params, storage);
    for (size_t i = 0; i < m->n_bases; i++) {
        const struct model_base *b = &m->bases[i];
        size_t pieces = b->blocks->pieces, streamed = l->streamed < pieces ? (size_t)l->streamed : pieces;
        size_t block = pieces ? weights_block_size(b->blocks, storage) : 0;
        bool leaves = i && l->idle != MODEL_IDLE_DEVICE;
        out.bases[i] = weights_size(b->params, storage) - (leaves ? pieces : streamed) * block;
        out.host[i] = (l->idle == MODEL_IDLE_HOST ? pieces : streamed) * block;
        if (!i || !have_same_blocks(b, &m->bases[0])) /* else it shares the windows */
            out.windows += weights_windows_size(b->blocks, storage, streamed);
    }
    return out;
}

size_t model_bytes(const struct model *m, const struct model_layout *l, size_t *host)
{
    struct model_parts p = model_parts(m, l);
    size_t sum = p.tables + p.windows;
    *host = 0;
    for (size_t i = 0; i < m->n_loras; i++)
        sum += p.loras[i];
    for (size_t i = 0; i < m->n_bases; i++) {
        sum += p.bases[i];
        *host += p.host[i];
    }
    return sum;
}

int model_alloc(struct model *m, const struct model_layout *l, struct cairn_error *err)
{
    struct gpu *g = m->nn->g;
    enum gpu_storage storage = m->nn->storage;
    m->layout = l ? *l : (struct model_layout){ 0 };
    m->used = 0;
    m->used_is_loaded = m->layout.idle != MODEL_IDLE_HOST;
    for (size_t i = 0; i < m->n_bases; i++) {
        const struct model_base *b = &m->bases[i];
        struct weights_options o = {
            .storage = storage,
            .format = b->format,
            .blocks = b->blocks,
            .streamed =
                m->layout.streamed < b->blocks->pieces ? (size_t)m->layout.streamed : b->blocks->pieces,
            .copies = m->layout.idle == MODEL_IDLE_HOST,
            .idle = i && m->layout.idle != MODEL_IDLE_DEVICE,
            .beside = i && have_same_blocks(b, &m->bases[0]) ? m->bases[0].weights : NULL,
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

uint64_t model_blocks(const struct model *m)
{
    uint64_t most = 0;
    for (size_t i = 0; i < m->n_bases; i++)
        most = m->bases[i].blocks->pieces > most ? m->bases[i].blocks->pieces : most;
    return most;
}

bool model_is_offloaded(const struct model *m)
{
    for (size_t i = 0; i < m->n_bases; i++)
        if (m->bases[i].weights->offloaded)
            return true;
    return false;
}

static const struct weights *beside(const struct model *m, size_t base)
{
    for (size_t i = 0; i < m->n_bases; i++)
        if (i != base && m->bases[i].weights->offloaded && have_same_blocks(&m->bases[i], &m->bases[base]))
            return m->bases[i].weights;
    return NULL;
}

static int move_streamed(struct model *m, uint64_t streamed, struct cairn_error *err)
{
    struct cairn_error ignored;
    uint64_t before = m->layout.streamed;
    int r = 0;
    for (size_t i = 0; i < m->n_bases; i++) {
        struct weights *w = m->bases[i].weights;
        size_t was = w->streamed, n = streamed < w->blocks.pieces ? (size_t)streamed : w->blocks.pieces;
        if (!weights_move_blocks(w, n, beside(m, i), err))
            continue;
        r = -1;
        if (w->streamed != was) /* moved; its windows do not fit on the device yet */
            continue;
        while (i-- > 0)
            weights_move_blocks(m->bases[i].weights, (size_t)before, beside(m, i), &ignored);
        return -1;
    }
    m->layout.streamed = streamed;
    return r;
}

static int leave_device(struct model *m, enum model_idle idle, struct cairn_error *err)
{
    for (size_t i = 0; i < m->n_bases && idle == MODEL_IDLE_HOST; i++)
        if (weights_copy_blocks(m->bases[i].weights, beside(m, i), err)) {
            while (i-- > 0)
                weights_drop_copies(m->bases[i].weights);
            return -1;
        }
    for (size_t i = 0; i < m->n_bases; i++)
        if (i != m->used)
            weights_drop_blocks(m->bases[i].weights);
    m->layout.idle = idle;
    return 0;
}

int model_move_blocks(struct model *m, const struct model_layout *to, struct cairn_error *err)
{
    if (to->idle != m->layout.idle && m->layout.idle == MODEL_IDLE_DEVICE && leave_device(m, to->idle, err))
        return -1;
    return to->streamed != m->layout.streamed ? move_streamed(m, to->streamed, err) : 0;
}

bool model_can_take_turns(const struct model *m)
{
    return m->n_bases == 2 && m->bases[0].blocks->pieces && have_same_blocks(&m->bases[0], &m->bases[1]);
}

int model_use_base(struct model *m, size_t base, bool *load, struct cairn_error *err)
{
    *load = false;
    if (m->layout.idle == MODEL_IDLE_DEVICE || (m->used == base && m->used_is_loaded))
        return 0;
    if (gpu_wait(m->nn->g, m->nn->stream, err))
        return -1;
    if (m->used != base)
        weights_hand_over(m->bases[m->used].weights, m->bases[base].weights);
    m->used = base;
    m->used_is_loaded = false;
    *load = m->layout.idle == MODEL_IDLE_FILE;
    if (*load)
        return 0;
    if (weights_upload_blocks(m->bases[base].weights, err))
        return -1;
    m->used_is_loaded = true;
    return 0;
}

void model_is_loaded(struct model *m)
{
    m->used_is_loaded = true;
}

const struct cairn_error *model_host_dequant(const struct model *m)
{
    for (size_t i = 0; i < m->n_bases; i++) {
        const struct weights *w = m->bases[i].weights;
        if (w->host_dequant && w->host_dequant->active)
            return &w->host_dequant->why;
    }
    return NULL;
}

const struct cairn_error *model_host_quant(const struct model *m)
{
    for (size_t i = 0; i < m->n_bases; i++) {
        const struct weights *w = m->bases[i].weights;
        if (w->host_quant && w->host_quant->active)
            return &w->host_quant->why;
    }
    return NULL;
}
