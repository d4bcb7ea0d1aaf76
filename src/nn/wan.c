/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/wan.h"
#include "base/str.h"
#include "gpu/kernels/attention.h"
#include "nn/wan_inside.h"
#include "nn/weights_init.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const wan_modules[WAN_MATRICES] = {
    [WAN_Q] = "self_attn.q",
    [WAN_K] = "self_attn.k",
    [WAN_V] = "self_attn.v",
    [WAN_O] = "self_attn.o",
    [WAN_CROSS_Q] = "cross_attn.q",
    [WAN_CROSS_K] = "cross_attn.k",
    [WAN_CROSS_V] = "cross_attn.v",
    [WAN_CROSS_O] = "cross_attn.o",
    [WAN_CROSS_K_IMG] = "cross_attn.k_img",
    [WAN_CROSS_V_IMG] = "cross_attn.v_img",
    [WAN_FFN_IN] = "ffn.0",
    [WAN_FFN_OUT] = "ffn.2",
};

bool wan_has_matrix(const struct wan_shape *s, enum wan_matrix m)
{
    return s->clip_width || (m != WAN_CROSS_K_IMG && m != WAN_CROSS_V_IMG);
}

/* ---- shapes ---- */

struct wan_shape wan_shape_common(void)
{
    return (struct wan_shape){ .text_width = 4096, .text_rows = 512, .time_width = 256, .clip_rows = 257 };
}

size_t wan_head_size(const struct wan_shape *s)
{
    return s->width / s->heads;
}

int wan_shape_check(const struct wan_shape *s, struct cairn_error *err)
{
    if (!s->layers || !s->heads || !s->width || !s->ffn || !s->in || !s->out || !s->text_width ||
        !s->text_rows || !s->time_width || s->time_width % 2)
        return cairn_fail(err, CAIRN_EUSAGE, "blocks, heads, hidden size and channels must be above 0");
    if (s->width % s->heads) {
        cairn_fail(err, CAIRN_EUSAGE, "hidden size %zu is not divisible by %zu heads", s->width, s->heads);
        return cairn_hint(
            err, "set model.heads to the number of attention heads; released models have heads of 128");
    }
    size_t size = wan_head_size(s);
    if (size < 4 || size > ATTENTION_SIZE || size % 2) {
        cairn_fail(err, CAIRN_EUSAGE, "head size %zu is not supported; it must be even and 4 to %d", size,
                   ATTENTION_SIZE);
        return cairn_hint(
            err, "set model.heads to the number of attention heads; released models have heads of 128");
    }
    return 0;
}

/* ---- parameters ---- */

static size_t matrix_in(const struct wan_shape *s, enum wan_matrix m)
{
    return m == WAN_FFN_OUT ? s->ffn : s->width;
}

static size_t matrix_out(const struct wan_shape *s, enum wan_matrix m)
{
    return m == WAN_FFN_IN ? s->ffn : s->width;
}

static size_t add_vector(struct params *p, size_t n, const char *name)
{
    return params_add(p, PARAM_VECTOR, 1, n, "%s", name);
}

static struct wan_linear add_linear(struct params *p, enum param_kind kind, size_t out, size_t in,
                                    const char *name)
{
    return (struct wan_linear){
        .w = params_add(p, kind, out, in, "%s.weight", name),
        .b = params_add(p, PARAM_VECTOR, 1, out, "%s.bias", name),
        .in = in,
        .out = out,
    };
}

static void add_block(struct wan *m, struct params *p, size_t layer, enum param_kind kind)
{
    const struct wan_shape *s = &m->shape;
    struct wan_block *b = &m->blocks[layer];
    char name[64];
#define NAME(part) (snprintf(name, sizeof(name), "blocks.%zu.%s", layer, part), name)
    b->modulation = add_vector(p, WAN_MODULATIONS * s->width, NAME("modulation"));
    for (int i = 0; i < WAN_MATRICES; i++)
        if (wan_has_matrix(s, (enum wan_matrix)i))
            b->linear[i] = add_linear(p, kind, matrix_out(s, (enum wan_matrix)i),
                                      matrix_in(s, (enum wan_matrix)i), NAME(wan_modules[i]));
    b->norm_q = add_vector(p, s->width, NAME("self_attn.norm_q.weight"));
    b->norm_k = add_vector(p, s->width, NAME("self_attn.norm_k.weight"));
    b->norm3_w = add_vector(p, s->width, NAME("norm3.weight"));
    b->norm3_b = add_vector(p, s->width, NAME("norm3.bias"));
    b->cross_norm_q = add_vector(p, s->width, NAME("cross_attn.norm_q.weight"));
    b->cross_norm_k = add_vector(p, s->width, NAME("cross_attn.norm_k.weight"));
    if (s->clip_width)
        b->cross_norm_k_img = add_vector(p, s->width, NAME("cross_attn.norm_k_img.weight"));
#undef NAME
}

static void add_image(struct wan *m, struct params *p)
{
    const struct wan_shape *s = &m->shape;
    struct wan_image *i = &m->image;
    i->norm_w[0] = add_vector(p, s->clip_width, "img_emb.proj.0.weight");
    i->norm_b[0] = add_vector(p, s->clip_width, "img_emb.proj.0.bias");
    i->linear[0] = add_linear(p, PARAM_MATRIX, s->clip_width, s->clip_width, "img_emb.proj.1");
    i->linear[1] = add_linear(p, PARAM_MATRIX, s->width, s->clip_width, "img_emb.proj.3");
    i->norm_w[1] = add_vector(p, s->width, "img_emb.proj.4.weight");
    i->norm_b[1] = add_vector(p, s->width, "img_emb.proj.4.bias");
}

/* The blocks' linears follow each other, and the head is the last matrix. */
static void add_params(struct wan *m, struct params *p, bool quantize)
{
    const struct wan_shape *s = &m->shape;
    m->patch = add_linear(p, PARAM_MATRIX, s->width, s->in * WAN_PATCH, "patch_embedding");
    m->text[0] = add_linear(p, PARAM_MATRIX, s->width, s->text_width, "text_embedding.0");
    m->text[1] = add_linear(p, PARAM_MATRIX, s->width, s->width, "text_embedding.2");
    m->time[0] = add_linear(p, PARAM_MATRIX, s->width, s->time_width, "time_embedding.0");
    m->time[1] = add_linear(p, PARAM_MATRIX, s->width, s->width, "time_embedding.2");
    m->time_projection =
        add_linear(p, PARAM_MATRIX, WAN_MODULATIONS * s->width, s->width, "time_projection.1");
    if (s->clip_width)
        add_image(m, p);
    for (size_t i = 0; i < s->layers; i++)
        add_block(m, p, i, quantize ? PARAM_QUANTIZED : PARAM_MATRIX);
    m->head_modulation = add_vector(p, 2 * s->width, "head.modulation");
    m->head = add_linear(p, PARAM_MATRIX, s->out * WAN_PATCH, s->width, "head.head");
}

static struct weights_blocks frozen_blocks(const struct wan *m, const struct params *p)
{
    const struct param *first = &p->list[m->blocks[0].linear[WAN_Q].w], *head = &p->list[m->head.w];
    size_t end = head->kind == first->kind ? head->at : p->numbers[first->kind];
    return (struct weights_blocks){ first->kind, first->at, (end - first->at) / m->shape.layers,
                                    m->shape.layers };
}

static void add_lora(struct wan *m, size_t which, const struct lora_options *o)
{
    struct lora *l = &m->loras[which];
    *l = (struct lora){ .rank = o->rank, .scale = o->alpha / (float)o->rank, .dropout = o->dropout };
    for (size_t layer = 0; layer < m->shape.layers; layer++)
        for (int i = 0; i < WAN_MATRICES; i++) {
            const struct wan_linear *linear = &m->blocks[layer].linear[i];
            char module[96];
            snprintf(module, sizeof(module), "blocks.%zu.%s", layer, wan_modules[i]);
            if (wan_has_matrix(&m->shape, (enum wan_matrix)i) && lora_is_target(o, module))
                lora_add(l, &m->blocks[layer].lora[which][i], module, 0, linear->out, linear->in);
        }
}

/* ---- opening ---- */

size_t wan_lora_of(const struct wan *m, size_t base)
{
    return m->model.n_loras > 1 ? base : 0;
}

/* A rank above the smaller side of a matrix adds parameters and nothing else. */
static int check_rank(const struct wan_shape *s, const struct lora_options *o, struct cairn_error *err)
{
    size_t most = s->width < s->ffn ? s->width : s->ffn;
    return o->rank <= most
               ? 0
               : cairn_fail(err, CAIRN_EUSAGE,
                            "lora.rank %zu is above %zu, the smallest side of a linear layer", o->rank, most);
}

static void fill_bases(struct wan *m, const struct wan_options *o)
{
    for (size_t i = 0; i < o->experts; i++) {
        add_params(m, &m->params[i], o->quantize);
        m->blocks_of[i] = frozen_blocks(m, &m->params[i]);
        m->model.bases[i] = (struct model_base){ &m->params[i], &m->weights[i], o->format, &m->blocks_of[i] };
    }
}

int wan_new(struct nn *nn, const struct wan_shape *s, const struct wan_options *o, struct wan **out,
            struct cairn_error *err)
{
    if (wan_shape_check(s, err) || (o->lora && check_rank(s, o->lora, err)))
        return -1;
    struct wan *m = calloc(1, sizeof(*m));
    if (!m)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    m->nn = nn;
    m->shape = *s;
    m->model = (struct model){ .ops = &wan_model_ops, .nn = nn, .n_bases = o->experts };
    m->blocks = ARENA_NEW(&m->params[0].arena, struct wan_block, s->layers);
    fill_bases(m, o);
    if (o->lora) {
        m->lora_options = *o->lora;
        m->model.n_loras = o->lora_per_expert ? o->experts : 1;
        for (size_t i = 0; i < m->model.n_loras; i++) {
            add_lora(m, i, o->lora);
            m->model.loras[i] = &m->loras[i];
        }
    }
    if (o->lora && !m->loras[0].params.n) {
        model_close(&m->model);
        cairn_fail(err, CAIRN_EUSAGE, "lora.targets matches no linear layer");
        return cairn_hint(err, "names are like blocks.0.self_attn.q and blocks.0.ffn.0, with * and ?");
    }
    *out = m;
    return 0;
}

/* ---- new weights ---- */

int wan_init(struct wan *m, size_t base, uint64_t seed, struct cairn_error *err)
{
    const struct params *all = &m->params[base];
    struct weights_init k;
    int r = 0;
    if (weights_init_open(&k, all, &m->weights[base], seed, err))
        return -1;
    for (size_t i = 0; i < all->n && !r; i++) {
        const struct param *p = &all->list[i];
        bool is_norm = strstr(p->name, "norm") || strstr(p->name, "proj.0") || strstr(p->name, "proj.4");
        if (p->kind != PARAM_VECTOR)
            r = weights_init_normal(&k, p, 1 / sqrtf((float)p->columns), i, err);
        else if (str_ends(p->name, "modulation"))
            r = weights_init_normal(&k, p, 1 / sqrtf((float)m->shape.width), i, err);
        else
            r = weights_init_value(&k, p, is_norm && str_ends(p->name, ".weight") ? 1 : 0, err);
    }
    weights_init_close(&k);
    return r;
}

int wan_init_lora(struct wan *m, uint64_t seed, struct cairn_error *err)
{
    int r = 0;
    for (size_t set = 0; set < m->model.n_loras && !r; set++) {
        const struct params *all = &m->loras[set].params;
        struct weights_init k;
        if (weights_init_open(&k, all, &m->loras[set].weights, seed, err))
            return -1;
        for (size_t i = 0; i < all->n && !r; i++) {
            const struct param *p = &all->list[i];
            bool is_a = str_ends(p->name, "lora_A.weight");
            r = is_a ? weights_init_uniform(&k, p, 1 / sqrtf((float)p->columns), set * all->n + i, err)
                     : weights_init_value(&k, p, 0, err);
        }
        weights_init_close(&k);
    }
    return r;
}
