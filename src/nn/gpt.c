/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/gpt.h"
#include "base/str.h"
#include "gpu/kernels/attention.h"
#include "nn/gpt_inside.h"
#include "nn/weights_init.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { VOCAB_MULTIPLE = 64 }; /* matrix cores work best on whole tiles */

size_t gpt_head_size(const struct gpt_shape *s)
{
    return s->width / s->heads;
}

size_t gpt_qkv_rows(const struct gpt_shape *s)
{
    return (s->heads + 2 * s->kv_heads) * gpt_head_size(s);
}

bool gpt_is_gpt2(const struct gpt_shape *s)
{
    return !s->rope && !s->swiglu && s->norm == NN_NORM_LAYER && s->bias && s->kv_heads == s->heads;
}

int gpt_shape_check(const struct gpt_shape *s, struct cairn_error *err)
{
    if (!s->layers || !s->heads || !s->kv_heads || !s->width || !s->ffn || !s->context || !s->vocab)
        return cairn_fail(err, CAIRN_EUSAGE,
                          "layers, heads, hidden size, inner size, context and vocabulary must be above 0");
    if (s->width % s->heads)
        return cairn_fail(err, CAIRN_EUSAGE, "hidden size %zu is not divisible by %zu heads", s->width,
                          s->heads);
    if (s->heads % s->kv_heads)
        return cairn_fail(err, CAIRN_EUSAGE, "%zu heads are not divisible by %zu key/value heads", s->heads,
                          s->kv_heads);
    size_t size = gpt_head_size(s);
    if (size < 4 || size > ATTENTION_SIZE)
        return cairn_fail(err, CAIRN_EUSAGE, "head size %zu is not supported; it must be 4 to %d", size,
                          ATTENTION_SIZE);
    if (s->rope && size % 2)
        return cairn_fail(err, CAIRN_EUSAGE, "rotary positions (RoPE) need an even head size, not %zu", size);
    return 0;
}

/* ---- names ---- */

void gpt_parts(const struct gpt_shape *s, enum gpt_matrix m, struct gpt_part out[GPT_PARTS])
{
    static const char *const gpt2[GPT_MATRICES] = {
        [GPT_QKV] = "attn.c_attn",
        [GPT_PROJ] = "attn.c_proj",
        [GPT_FC] = "mlp.c_fc",
        [GPT_DOWN] = "mlp.c_proj",
    };
    static const char *const llama[GPT_MATRICES] = {
        [GPT_PROJ] = "self_attn.o_proj",
        [GPT_FC] = "mlp.gate_proj",
        [GPT_UP] = "mlp.up_proj",
        [GPT_DOWN] = "mlp.down_proj",
    };
    size_t rows = m == GPT_QKV ? gpt_qkv_rows(s) : m == GPT_FC || m == GPT_UP ? s->ffn : s->width;
    size_t q = s->width, kv = s->kv_heads * gpt_head_size(s);
    for (int i = 0; i < GPT_PARTS; i++)
        out[i] = (struct gpt_part){ 0 };
    if (m == GPT_UP && !s->swiglu)
        return;
    if (gpt_is_gpt2(s) || m != GPT_QKV) {
        out[0] = (struct gpt_part){ gpt_is_gpt2(s) ? gpt2[m] : llama[m], 0, rows };
        return;
    }
    out[0] = (struct gpt_part){ "self_attn.q_proj", 0, q };
    out[1] = (struct gpt_part){ "self_attn.k_proj", q, kv };
    out[2] = (struct gpt_part){ "self_attn.v_proj", q + kv, kv };
}

const char *gpt_blocks_name(const struct gpt_shape *s)
{
    return gpt_is_gpt2(s) ? "transformer.h" : "model.layers";
}

/* ---- parameters ---- */

static struct gpt_norm add_norm(struct gpt *m, const char *name)
{
    struct gpt_norm n = { .w = params_add(&m->params, PARAM_VECTOR, 1, m->shape.width, "%s.weight", name) };
    if (m->shape.bias && m->shape.norm == NN_NORM_LAYER)
        n.b = params_add(&m->params, PARAM_VECTOR, 1, m->shape.width, "%s.bias", name);
    return n;
}

static struct gpt_linear add_linear(struct gpt *m, enum param_kind kind, size_t out, size_t in,
                                    const char *name)
{
    struct gpt_linear l = { .w = params_add(&m->params, kind, out, in, "%s.weight", name),
                            .in = in,
                            .out = out };
    if (m->shape.bias)
        l.b = params_add(&m->params, PARAM_VECTOR, 1, out, "%s.bias", name);
    return l;
}

static void add_block(struct gpt *m, size_t layer, enum param_kind kind)
{
    const struct gpt_shape *s = &m->shape;
    struct gpt_block *b = &m->blocks[layer];
    char name[64];
#define NAME(part) (snprintf(name, sizeof(name), "h.%zu." part, layer), name)
    b->norm[0] = add_norm(m, NAME("ln_1"));
    b->linear[GPT_QKV] = add_linear(m, kind, gpt_qkv_rows(s), s->width, NAME("attn.c_attn"));
    b->linear[GPT_PROJ] = add_linear(m, kind, s->width, s->width, NAME("attn.c_proj"));
    b->norm[1] = add_norm(m, NAME("ln_2"));
    b->linear[GPT_FC] = add_linear(m, kind, s->ffn, s->width, NAME("mlp.c_fc"));
    if (s->swiglu)
        b->linear[GPT_UP] = add_linear(m, kind, s->ffn, s->width, NAME("mlp.c_up"));
    b->linear[GPT_DOWN] = add_linear(m, kind, s->width, s->ffn, NAME("mlp.c_proj"));
#undef NAME
}

static void add_params(struct gpt *m, enum gpt_quantize quantize)
{
    const struct gpt_shape *s = &m->shape;
    m->vocab_padded = (s->vocab + VOCAB_MULTIPLE - 1) / VOCAB_MULTIPLE * VOCAB_MULTIPLE;
    m->wte = params_add_padded(&m->params, s->vocab, s->width, m->vocab_padded, "wte.weight");
    if (!s->rope)
        m->wpe = params_add(&m->params, PARAM_MATRIX, s->context, s->width, "wpe.weight");
    m->blocks = ARENA_NEW(&m->params.arena, struct gpt_block, s->layers);
    for (size_t i = 0; i < s->layers; i++)
        add_block(m, i, quantize == GPT_QUANTIZE_NONE ? PARAM_MATRIX : PARAM_QUANTIZED);
    m->norm = add_norm(m, "ln_f");
    m->head = s->tied ? m->wte
                      : params_add_padded(&m->params, s->vocab, s->width, m->vocab_padded, "lm_head.weight");
}

static void add_lora(struct gpt *m, const struct lora_options *o)
{
    m->lora = (struct lora){ .rank = o->rank, .scale = o->alpha / (float)o->rank, .dropout = o->dropout };
    for (size_t layer = 0; layer < m->shape.layers; layer++)
        for (int i = 0; i < GPT_MATRICES; i++) {
            struct gpt_linear *l = &m->blocks[layer].linear[i];
            struct gpt_part parts[GPT_PARTS];
            gpt_parts(&m->shape, (enum gpt_matrix)i, parts);
            for (int k = 0; k < GPT_PARTS && parts[k].module; k++) {
                char module[96];
                snprintf(module, sizeof(module), "%s.%zu.%s", gpt_blocks_name(&m->shape), layer,
                         parts[k].module);
                if (lora_is_target(o, module))
                    lora_add(&m->lora, &l->lora, module, parts[k].first, parts[k].rows, l->in);
            }
        }
}

/* ---- opening ---- */

/* The matrices of the blocks, where LoRA leaves them as they are.  All blocks have the same. */
static struct weights_blocks frozen_blocks(const struct gpt *m)
{
    if (!m->lora.rank)
        return (struct weights_blocks){ 0 };
    const struct param *first = &m->params.list[m->blocks[0].linear[GPT_QKV].w];
    const struct param *head = &m->params.list[m->head];
    bool behind = !m->shape.tied && head->kind == first->kind; /* a separate head follows them */
    size_t end = behind ? head->at : m->params.numbers[first->kind];
    return (struct weights_blocks){ first->kind, first->at, (end - first->at) / m->shape.layers,
                                    m->shape.layers };
}

int gpt_new(struct nn *nn, const struct gpt_shape *s, const struct gpt_options *o, struct gpt **out,
            struct cairn_error *err)
{
    if (gpt_shape_check(s, err))
        return -1;
    struct gpt *m = calloc(1, sizeof(*m));
    if (!m)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    m->nn = nn;
    m->shape = *s;
    m->model = (struct model){
        .ops = &gpt_model_ops,
        .nn = nn,
        .bases = { { &m->params, &m->weights, 0, &m->frozen } },
        .n_bases = 1,
        .loras = { &m->lora },
        .n_loras = o->lora ? 1 : 0,
    };
    m->format = o->quantize == GPT_QUANTIZE_FP8 ? WEIGHTS_FP8 : WEIGHTS_INT8;
    m->model.bases[0].format = m->format;
    add_params(m, o->quantize);
    if (o->lora) {
        m->lora_options = *o->lora;
        add_lora(m, o->lora);
    }
    if (o->lora && !m->lora.params.n) {
        gpt_close(m);
        return cairn_fail(err, CAIRN_EUSAGE, "lora.targets matches no linear layer");
    }
    m->frozen = frozen_blocks(m);
    *out = m;
    return 0;
}

int gpt_open(struct nn *nn, const struct gpt_shape *s, const struct gpt_options *o, struct gpt **out,
             struct cairn_error *err)
{
    struct gpt *m;
    if (gpt_new(nn, s, o, &m, err))
        return -1;
    struct model_layout l = { .streamed = o->blocks_on_host ? MODEL_ALL_BLOCKS : 0 };
    if (model_alloc(&m->model, &l, err)) {
        gpt_close(m);
        return -1;
    }
    *out = m;
    return 0;
}

void gpt_close(struct gpt *m)
{
    if (m)
        model_close(&m->model);
}

/* ---- new weights ---- */

int gpt_init(struct gpt *m, float init_std, uint64_t seed, struct cairn_error *err)
{
    struct weights_init k;
    int r = 0;
    if (weights_init_open(&k, &m->params, &m->weights, seed, err))
        return -1;
    for (size_t i = 0; i < m->params.n && !r; i++) {
        const struct param *p = &m->params.list[i];
        bool added = str_ends(p->name, "c_proj.weight");
        float std = added ? init_std / sqrtf(2 * (float)m->shape.layers) : init_std;
        if (p->kind != PARAM_VECTOR)
            r = weights_init_normal(&k, p, std, i, err);
        else
            r = weights_init_value(&k, p, str_ends(p->name, ".bias") ? 0 : 1, err);
    }
    weights_init_close(&k);
    return r;
}

int gpt_init_lora(struct gpt *m, uint64_t seed, struct cairn_error *err)
{
    const struct params *all = &m->lora.params;
    struct weights_init k;
    int r = 0;
    if (weights_init_open(&k, all, &m->lora.weights, seed, err))
        return -1;
    for (size_t i = 0; i < all->n && !r; i++) {
        const struct param *p = &all->list[i];
        if (str_ends(p->name, "lora_A.weight"))
            r = weights_init_normal(&k, p, 1 / sqrtf((float)p->columns), m->params.n + i, err);
        else
            r = weights_init_value(&k, p, 0, err);
    }
    weights_init_close(&k);
    return r;
}
