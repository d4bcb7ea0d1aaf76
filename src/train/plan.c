/* SPDX-License-Identifier: Apache-2.0
 * Computes the memory a job needs, without allocating it. */
#include "train/job.h"
#include <string.h>

_Static_assert(ARRAY_LEN(((struct train_plan *)0)->parts) >= MEMORY_PARTS,
               "a plan has an entry for each part");
_Static_assert(sizeof(((struct train_plan *)0)->fallbacks) == sizeof(((struct job_memory *)0)->fallbacks),
               "a plan has an entry for each fallback");

_Static_assert(ARRAY_LEN(((struct train_plan *)0)->sizes) >= (size_t)TASK_PICTURES * TASK_FRAMES,
               "a plan has an entry for each size");

/* ---- the parts ---- */

static void add_detail(struct train_plan *out, const char *name, uint64_t device, uint64_t host)
{
    size_t i = out->n_parts;
    if (device || host)
        out->parts[i].of[out->parts[i].n_of++] = (struct train_plan_bytes){ name, device, host };
}

static void detail_weights(const struct job *j, struct train_plan *out)
{
    const struct task *t = j->task;
    const struct model *m = t->model;
    const struct model_layout *l = &j->state.layout.weights;
    struct model_parts p = model_parts(m, l);
    bool turns = m->n_bases > 1 && l->idle != MODEL_IDLE_DEVICE;
    uint64_t loras = 0;
    if (!m->n_loras)
        return;
    for (size_t i = 0; i < m->n_bases; i++)
        add_detail(out,
                   turns               ? i ? "the other expert" : "expert in use"
                   : t->ops->base_name ? t->ops->base_name(t, i)
                                       : "base model",
                   p.bases[i], p.host[i]);
    for (size_t i = 0; i < m->n_loras; i++)
        loras += p.loras[i];
    add_detail(out, "buffers for streamed blocks", p.windows, 0);
    add_detail(out, "tables", p.tables, 0);
    add_detail(out, "LoRA", loras, 0);
}

static void detail_activations(const struct job *j, struct train_plan *out)
{
    const struct model *m = j->task->model;
    struct work_options o = memory_work_options(&j->memory.job, &j->state.layout);
    struct work_bytes b = m->ops->work_bytes(m, &o);
    if (!b.inputs)
        return;
    add_detail(out, "inputs of the blocks", b.inputs, b.host);
    add_detail(out, o.recompute ? "working set of one block" : "what the blocks keep", b.block, 0);
    add_detail(out, "batch, text, times", b.batch, 0);
}

static void report_parts(const struct job *j, struct train_plan *out)
{
    const struct memory_plan *p = &j->memory.plan;
    for (int i = 0; i < MEMORY_PARTS; i++) {
        if (!p->device[i] && !p->host[i])
            continue;
        out->parts[out->n_parts].name = memory_part_names[i];
        out->parts[out->n_parts].device_bytes = p->device[i];
        out->parts[out->n_parts].host_bytes = p->host[i];
        if (i == MEMORY_WEIGHTS)
            detail_weights(j, out);
        if (i == MEMORY_ACTIVATIONS)
            detail_activations(j, out);
        out->n_parts++;
    }
}

static void report_plan(const struct job *j, struct train_plan *out)
{
    const struct memory_plan *p = &j->memory.plan;
    const struct job_layout *l = &j->state.layout;
    report_parts(j, out);
    out->device_bytes = memory_plan_sum(p->device);
    out->host_bytes = memory_plan_sum(p->host);
    out->peak_bytes = memory_plan_bound(&j->memory.job, p);
    out->budget_bytes = j->o->budget_bytes;
    out->parameters = model_parameters(j->task->model);
    out->trained = model_trained_parameters(j->task->model);
    out->micro = l->micro;
    out->micros = job_micros(j);
    out->recompute = l->recompute;
    out->optim_on_host = l->optim_on_host;
    out->inputs_on_host = l->inputs_on_host;
    out->blocks = model_blocks(j->task->model);
    out->streamed = l->weights.streamed;
    out->idle = memory_idle_names[l->weights.idle];
    out->storage = gpu_storage_name(j->nn.storage);
    out->n_fallbacks = j->memory.n_fallbacks;
    memcpy(out->fallbacks, j->memory.fallbacks, sizeof(out->fallbacks));
}

/* ---- other sizes ---- */

/* The same job with samples of another size. */
static struct train_plan_size try_size(const struct job *j, const struct task_pictures *p, size_t size,
                                       size_t frames)
{
    const struct task_picture *s = &p->sizes[size];
    struct train_plan_size out = { .width = s->width, .height = s->height, .frames = frames };
    struct job other = *j;
    struct cairn_error why = { 0 };
    size_t own = j->task->extent;
    other.memory = (struct job_memory){ .job = j->memory.job };
    job_set_start(&other);
    j->task->extent = s->positions * ((frames - 1) / p->frames_step + 1);
    out.fits = !job_fit(&other, &why);
    out.fallbacks = other.memory.n_fallbacks;
    out.streamed = other.state.layout.weights.streamed;
    j->task->extent = own;
    return out;
}

/* The most frames of the job's own size, by halving. */
static size_t most_frames(const struct job *j, const struct task_pictures *p, bool plain)
{
    size_t low = 0, high = (p->frames_most - 1) / p->frames_step + 2; /* in latents: fits, does not */
    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;
        struct train_plan_size s = try_size(j, p, p->own, (middle - 1) * p->frames_step + 1);
        if (s.fits && !(plain && s.fallbacks))
            low = middle;
        else
            high = middle;
    }
    return low ? (low - 1) * p->frames_step + 1 : 0;
}

static void report_sizes(const struct job *j, struct train_plan *out)
{
    struct task_pictures p;
    if (!j->task->ops->pictures || !j->o->budget_bytes)
        return;
    j->task->ops->pictures(j->task, &p);
    for (size_t i = 0; i < p.n_sizes; i++)
        for (size_t k = 0; k < p.n_frames; k++)
            out->sizes[out->n_sizes++] = try_size(j, &p, i, p.frames[k]);
    out->frames = (struct train_plan_frames){
        .width = p.sizes[p.own].width,
        .height = p.sizes[p.own].height,
        .most = most_frames(j, &p, false),
        .most_plain = most_frames(j, &p, true),
    };
}

int train_plan(const struct train_options *o, struct train_plan *out, struct cairn_error *err)
{
    struct job j = { .o = o, .c = o->config, .quiet = true, .only_plan = true };
    *out = (struct train_plan){ 0 };
    int r = job_resolve(&j, err);
    job_set_start(&j);
    if (!r && !(r = job_open_task(&j, err))) {
        if (job_fit(&j, &out->lack) && out->lack.code != CAIRN_ENOMEM)
            *err = out->lack, r = -1;
        report_plan(&j, out);
        report_sizes(&j, out);
    }
    job_close(&j);
    return r;
}
