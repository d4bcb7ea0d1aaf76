/* SPDX-License-Identifier: Apache-2.0 */
#include "toy_inside.h"
#include "nn/weights_init.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static struct toy *toy_of(const struct model *m)
{
    return (struct toy *)m;
}

/* ---- parameters ---- */

size_t toy_linear_in(const struct toy *m, size_t linear)
{
    return linear % TOY_LINEARS ? m->o.ffn : m->o.width;
}

size_t toy_linear_out(const struct toy *m, size_t linear)
{
    return linear % TOY_LINEARS ? m->o.width : m->o.ffn;
}

static void name_linear(size_t linear, char name[64])
{
    snprintf(name, 64, "blocks.%zu.%s", linear / TOY_LINEARS, linear % TOY_LINEARS ? "proj" : "fc");
}

/* Parameter i is linear i; the last is the linear behind the blocks. */
static void add_expert(struct toy *m, struct toy_expert *e)
{
    enum param_kind kind = m->o.quantize ? PARAM_QUANTIZED : PARAM_MATRIX;
    size_t linears = m->o.layers * TOY_LINEARS;
    char name[64];
    for (size_t i = 0; i < linears; i++) {
        name_linear(i, name);
        params_add(&e->params, kind, toy_linear_out(m, i), toy_linear_in(m, i), "%s.weight", name);
    }
    e->blocks = (struct weights_blocks){
        .kind = kind,
        .numbers = e->params.numbers[kind] / m->o.layers,
        .pieces = m->o.layers,
    };
    params_add(&e->params, PARAM_MATRIX, m->o.width, m->o.width, "out.weight");
}

static void add_lora(struct toy *m, size_t set)
{
    const struct lora_options *o = &m->o.lora;
    struct lora *l = &m->loras[set];
    size_t linears = m->o.layers * TOY_LINEARS;
    char name[64];
    *l = (struct lora){ .rank = o->rank, .scale = o->alpha / (float)o->rank, .dropout = o->dropout };
    m->sites[set] = ARENA_NEW(&m->experts[0].params.arena, struct lora_site, linears);
    for (size_t i = 0; i < linears; i++) {
        name_linear(i, name);
        if (lora_is_target(o, name))
            lora_add(l, &m->sites[set][i], name, 0, toy_linear_out(m, i), toy_linear_in(m, i));
    }
    m->model.loras[set] = l;
}

static const struct model_ops toy_model_ops;

int toy_new(struct nn *nn, const struct toy_options *o, struct toy **out, struct cairn_error *err)
{
    struct toy *m = calloc(1, sizeof(*m));
    if (!m)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    m->o = *o;
    m->model = (struct model){
        .ops = &toy_model_ops,
        .nn = nn,
        .n_bases = TOY_EXPERTS,
        .n_loras = o->lora_per_expert ? TOY_EXPERTS : 1,
    };
    for (size_t i = 0; i < TOY_EXPERTS; i++) {
        struct toy_expert *e = &m->experts[i];
        add_expert(m, e);
        m->model.bases[i] = (struct model_base){ &e->params, &e->weights, WEIGHTS_INT8, &e->blocks };
    }
    for (size_t i = 0; i < m->model.n_loras; i++)
        add_lora(m, i);
    *out = m;
    return 0;
}

static void close_toy(struct model *model)
{
    struct toy *m = toy_of(model);
    for (size_t i = 0; i < TOY_EXPERTS; i++) {
        params_release(&m->experts[i].params);
        params_release(&m->loras[i].params);
    }
    free(m);
}

static int init_table(const struct params *p, const struct weights *w, uint64_t seed, bool pairs,
                      struct cairn_error *err)
{
    struct weights_init k;
    int r = 0;
    if (weights_init_open(&k, p, w, seed, err))
        return -1;
    for (size_t i = 0; i < p->n && !r; i++)
        r = pairs && i % 2 /* b of a pair */
                ? weights_init_value(&k, &p->list[i], 0, err)
                : weights_init_normal(&k, &p->list[i], 1 / sqrtf((float)p->list[i].columns), i, err);
    weights_init_close(&k);
    return r;
}

int toy_init_expert(struct toy *m, size_t expert, uint64_t seed, struct cairn_error *err)
{
    struct toy_expert *e = &m->experts[expert];
    return init_table(&e->params, &e->weights, seed + expert, false, err);
}

int toy_init(struct toy *m, uint64_t seed, struct cairn_error *err)
{
    for (size_t i = 0; i < TOY_EXPERTS; i++)
        if (toy_init_expert(m, i, seed, err))
            return -1;
    for (size_t i = 0; i < m->model.n_loras; i++)
        if (init_table(&m->loras[i].params, &m->loras[i].weights, seed + TOY_EXPERTS + i, true, err))
            return -1;
    return 0;
}

/* ---- files ---- */

static const char *file_name(const struct model *m, size_t set, bool average)
{
    static const char *const names[][2] = {
        { "lora.safetensors", "lora-ema.safetensors" },
        { "lora_high.safetensors", "lora_high-ema.safetensors" },
        { "lora_low.safetensors", "lora_low-ema.safetensors" },
    };
    return names[m->n_loras == 1 ? 0 : 1 + set][average];
}

static void list_tensors(struct param_tensors *t, const struct params *p)
{
    for (size_t i = 0; i < p->n; i++) {
        struct param_tensor one = param_tensor_whole(&p->list[i]);
        param_tensors_add(t, &one, "%s", p->list[i].name);
    }
}

static int save(const struct model *m, const struct model_save *s, struct cairn_error *err)
{
    CLEANUP(param_tensors_release) struct param_tensors t = { 0 };
    const struct lora *l = m->loras[s->set];
    list_tensors(&t, &l->params);
    const char *path = arena_printf(&t.arena, "%s/%s", s->dir, file_name(m, s->set, s->average));
    return param_file_write(&t, &l->weights, s->from ? &s->from[s->set] : NULL, s->dtype, path, err);
}

static int load(struct model *m, size_t set, const char *path, struct param_report *report,
                struct cairn_error *err)
{
    CLEANUP(source_close) struct tensor_source source = { 0 };
    CLEANUP(param_tensors_release) struct param_tensors t = { 0 };
    struct param_file_rules rules = { .under = "" };
    list_tensors(&t, &m->loras[set]->params);
    *report = (struct param_report){ 0 };
    return source_open(&source, path, err) ||
                   param_file_read(&t, &m->loras[set]->weights, &source, &rules, report, err)
               ? -1
               : 0;
}

static const struct model_ops toy_model_ops = {
    .kind = "toy",
    .close = close_toy,
    .work_bytes = toy_work_bytes,
    .work_open = toy_work_open,
    .can_save_on_host = true,
    .work_close = toy_work_close,
    .run = toy_run,
    .loss = toy_loss,
    .file_name = file_name,
    .save = save,
    .load = load,
};
