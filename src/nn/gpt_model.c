/* SPDX-License-Identifier: Apache-2.0
 * GPT as an implementation of nn/model.h. */
#include "gpu/rope.h"
#include "nn/gpt_file.h"
#include "nn/gpt_inside.h"
#include <stdio.h>
#include <stdlib.h>

static struct gpt *gpt_of(const struct model *m)
{
    return (struct gpt *)m; /* it is the first member */
}

static struct gpt_work *gpt_work_of(struct work *w)
{
    return (struct gpt_work *)w;
}

static void close_gpt(struct model *model)
{
    struct gpt *m = gpt_of(model);
    params_release(&m->params);
    params_release(&m->lora.params);
    free(m);
}

/* ---- tables of rotary positions ---- */

static size_t table_bytes(const struct gpt_shape *s)
{
    return s->rope ? s->context * (gpt_head_size(s) / 2) * sizeof(float) : 0;
}

static size_t tables_bytes(const struct model *m)
{
    return 2 * table_bytes(&gpt_of(m)->shape);
}

static int tables_alloc(struct model *model, struct cairn_error *err)
{
    struct gpt *m = gpt_of(model);
    size_t bytes = table_bytes(&m->shape), n = bytes / sizeof(float);
    if (!bytes)
        return 0;
    CLEANUP(mem_free) float *tables = malloc(2 * bytes);
    if (!tables)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for the tables of %zu positions", m->shape.context);
    rope_table(0, m->shape.context, gpt_head_size(&m->shape) / 2, m->shape.rope_theta, tables, tables + n);
    if (gpu_alloc(m->nn->g, GPU_MEM_DEVICE, bytes, (void **)&m->rope_cos, err) ||
        gpu_alloc(m->nn->g, GPU_MEM_DEVICE, bytes, (void **)&m->rope_sin, err) ||
        gpu_upload(m->nn->g, NULL, m->rope_cos, tables, bytes, err) ||
        gpu_upload(m->nn->g, NULL, m->rope_sin, tables + n, bytes, err))
        return -1;
    return gpu_wait(m->nn->g, NULL, err);
}

static void tables_release(struct model *model)
{
    struct gpt *m = gpt_of(model);
    gpu_free(m->nn->g, GPU_MEM_DEVICE, m->rope_cos);
    gpu_free(m->nn->g, GPU_MEM_DEVICE, m->rope_sin);
    m->rope_cos = m->rope_sin = NULL;
}

/* ---- passes ---- */

static struct gpt_work_options options_of(const struct work_options *o)
{
    return (struct gpt_work_options){
        .samples = o->samples,
        .tokens = o->extent,
        .slots = o->slots,
        .train = o->train,
        .recompute = o->recompute,
    };
}

static struct work_bytes work_bytes(const struct model *model, const struct work_options *o)
{
    const struct gpt *m = gpt_of(model);
    struct gpt_work_options g = options_of(o);
    return (struct work_bytes){
        .own = gpt_work_bytes(m, &g),
        .sums = gpt_work_sums_bytes(m, &g),
        .packed = gpt_work_packed_bytes(m, &g),
    };
}

static int work_open(struct model *m, const struct work_options *o, struct work **out,
                     struct cairn_error *err)
{
    struct gpt_work_options g = options_of(o);
    struct gpt_work *w;
    if (gpt_work_open(gpt_of(m), &g, &w, err))
        return -1;
    *out = (struct work *)w;
    return 0;
}

static void work_close(struct work *w)
{
    gpt_work_close(gpt_work_of(w));
}

static int run(struct work *w, const struct model_pass *p, const struct weights *grads,
               struct cairn_error *err)
{
    struct gpt_work *work = gpt_work_of(w);
    struct gpt_pass pass = {
        .slot = p->slot,
        .scale = p->scale,
        .smoothing = p->learn ? work->m->label_smoothing : 0,
        .seed = p->seed,
        .stream = p->stream,
        .learn = p->learn,
    };
    return gpt_run(work, &pass, grads, err);
}

static int loss(struct work *w, size_t slot, double *sum, double *units, struct cairn_error *err)
{
    size_t targets;
    if (gpt_loss(gpt_work_of(w), slot, sum, &targets, err))
        return -1;
    *units = (double)targets;
    return 0;
}

/* ---- files ---- */

static const char *file_name(const struct model *m, size_t set, bool average)
{
    (void)set;
    if (m->n_loras)
        return average ? "lora-ema.safetensors" : "lora.safetensors";
    return average ? "model-ema.safetensors" : "model.safetensors";
}

static int save(const struct model *model, const struct model_save *s, struct cairn_error *err)
{
    const struct gpt *m = gpt_of(model);
    const struct param_getter *from = s->from ? &s->from[s->set] : NULL;
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", s->dir, file_name(model, s->set, s->average));
    if (s->average && model->n_loras)
        return gpt_file_save_lora_tensors(m, path, s->dtype, from, err);
    if (s->average)
        return gpt_file_save_tensors(m, path, s->dtype, from, err);
    if (!model->n_loras)
        return gpt_file_save(m, s->dir, s->dtype, from, err);
    struct gpt_lora_file lora = {
        .options = &m->lora_options,
        .base = s->base,
        .copy = file_name(model, s->set, false),
        .dtype = s->dtype,
        .from = from,
    };
    return gpt_file_save_lora(m, s->dir, &lora, err);
}

static int load(struct model *m, size_t set, const char *path, struct param_report *report,
                struct cairn_error *err)
{
    (void)set;
    return m->n_loras ? gpt_file_load_lora(gpt_of(m), path, report, err)
                      : gpt_file_load(gpt_of(m), path, report, err);
}

const struct model_ops gpt_model_ops = {
    .kind = "gpt",
    .close = close_gpt,
    .tables_bytes = tables_bytes,
    .tables_alloc = tables_alloc,
    .tables_release = tables_release,
    .work_bytes = work_bytes,
    .work_open = work_open,
    .work_close = work_close,
    .run = run,
    .loss = loss,
    .file_name = file_name,
    .save = save,
    .load = load,
};
