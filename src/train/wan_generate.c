/* SPDX-License-Identifier: Apache-2.0 */
#include "train/wan_generate.h"
#include "base/int.h"
#include "nn/param_layout.h"
#include "nn/wan_adapters.h"
#include "nn/wan_kind.h"
#include "video/noise.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BOTH = 2 }; /* the prompt and the negative prompt */

struct generation {
    struct task *task;
    struct wan *m;
    const struct wan_clip *c;
    struct work *work;
    struct solver *solver;
    size_t batch;  /* samples that the workspace holds */
    size_t values; /* of the latents */
    size_t clean_frames;
    size_t put;                /* texts that the workspace has: so many of the batch */
    float *x, *text, *clip;    /* of `batch` samples */
    float *velocity;           /* of both */
    float scales[WAN_EXPERTS]; /* of the LoRAs, as they were */
};

/* ---- memory ---- */

static struct work_options options_of(struct wan_size size, size_t samples)
{
    return (struct work_options){ .samples = samples, .extent = wan_tokens(size), .slots = 1 };
}

/* Tokens of a sample up to which a batch of two is worth its memory.  Above, the matmuls of one keep a device busy, and
 * outlast the transfer of streamed blocks. */
enum { SMALL = 4096 };

static size_t batch_of(struct wan_size size, bool guided, bool one_by_one)
{
    return guided && !one_by_one && wan_tokens(size) <= SMALL ? BOTH : 1;
}

struct work_bytes wan_generate_bytes(const struct wan *m, struct wan_size size, bool guided, bool one_by_one)
{
    struct work_options o = options_of(size, batch_of(size, guided, one_by_one));
    return m->model.ops->work_bytes(&m->model, &o);
}

static double cfg_of(const struct wan_clip *c, size_t base)
{
    return base && c->cfg_high > 0 ? c->cfg_high : c->cfg;
}

static bool is_guided(const struct generation *g)
{
    for (size_t base = 0; base < g->m->model.n_bases; base++)
        if (cfg_of(g->c, base) != 1)
            return true;
    return false;
}

static int open_work(struct generation *g, struct cairn_error *err)
{
    struct model *model = &g->m->model;
    g->batch = batch_of(g->c->size, is_guided(g), g->c->one_by_one);
    struct work_options o = options_of(g->c->size, g->batch);
    return model->ops->work_open(model, &o, &g->work, err);
}

static int open_host(struct generation *g, struct cairn_error *err)
{
    const struct wan_shape *s = &g->m->shape;
    size_t cells = g->values / s->out;
    const struct {
        float **at;
        size_t n;
    } parts[] = {
        { &g->x, g->batch * s->in * cells },
        { &g->text, g->batch * s->text_rows * s->text_width },
        { &g->clip, g->batch * s->clip_rows * s->clip_width },
        { &g->velocity, BOTH * g->values },
    };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (!(*parts[i].at = calloc(parts[i].n + 1, sizeof(float))))
            return cairn_fail(err, CAIRN_ENOMEM, "no memory for a sample of %zu values", g->values);
    g->solver = solver_new(g->c->solver, g->c->steps, g->c->shift, g->values);
    return g->solver ? 0 : cairn_fail(err, CAIRN_ENOMEM, "no memory for a sample of %zu values", g->values);
}

static void generation_close(struct generation *g)
{
    if (g->work)
        g->m->model.ops->work_close(g->work);
    for (size_t i = 0; i < g->m->model.n_loras; i++)
        g->m->loras[i].scale = g->scales[i];
    solver_free(g->solver);
    free(g->x);
    free(g->text);
    free(g->clip);
    free(g->velocity);
}

/* ---- the model ---- */

/* The image's channels follow those of the latents. */
static void fill_conditions(struct generation *g)
{
    const struct wan_shape *s = &g->m->shape;
    size_t cells = g->values / s->out, text = s->text_rows * s->text_width,
           clip = s->clip_rows * s->clip_width;
    for (size_t i = 0; i < g->batch; i++) {
        if (s->in > s->out && g->c->image)
            memcpy(g->x + (i * s->in + s->out) * cells, g->c->image,
                   (s->in - s->out) * cells * sizeof(float));
        if (clip && g->c->clip)
            memcpy(g->clip + i * clip, g->c->clip, clip * sizeof(float));
        memcpy(g->text + i * text, i ? g->c->negative : g->c->text, text * sizeof(float));
    }
}

static void set_clean_frame(const struct generation *g, float *latents)
{
    size_t frame = g->c->size.height * g->c->size.width;
    for (size_t c = 0; g->clean_frames && c < g->m->shape.out; c++)
        memcpy(latents + c * g->c->size.frames * frame, g->c->image + c * frame, frame * sizeof(float));
}

/* The velocities of n samples.  text NULL: that of the last pass. */
static int run_model(struct generation *g, size_t base, double time, const float *text, size_t n, float *into,
                     struct cairn_error *err)
{
    const float times[BOTH] = { (float)time, (float)time };
    struct wan_batch b = {
        .samples = n,
        .expert = base,
        .size = g->c->size,
        .clean_frames = g->clean_frames,
        .x = g->x,
        .times = times,
        .text = text,
        .clip = text && g->m->shape.clip_width ? g->clip : NULL,
    };
    struct model_pass pass = { .slot = 0 };
    return wan_put(g->work, 0, &b, err) || g->m->model.ops->run(g->work, &pass, NULL, err) ||
                   wan_output(g->work, 0, into, err)
               ? -1
               : 0;
}

static int check_stop(const struct generation *g, struct cairn_error *err)
{
    return g->c->stop && *g->c->stop ? cairn_fail(err, CAIRN_EIO, "interrupted") : 0;
}

/* velocity = that of the prompt, led away from that of the negative prompt. */
static int predict(struct generation *g, const float *latents, size_t base, double time,
                   struct cairn_error *err)
{
    double cfg = cfg_of(g->c, base);
    size_t n = cfg != 1 ? g->batch : 1, bytes = g->values * sizeof(float);
    float *v = g->velocity, *away = g->velocity + g->values;
    for (size_t i = 0; i < n; i++)
        memcpy(g->x + i * (g->values / g->m->shape.out) * g->m->shape.in, latents, bytes);
    if (run_model(g, base, time, n > g->put ? g->text : NULL, n, v, err))
        return -1;
    g->put = at_least(g->put, n);
    if (cfg != 1 && n == 1) {
        g->put = 0;
        if (check_stop(g, err) || run_model(g, base, time, g->c->negative, 1, away, err))
            return -1;
    }
    for (size_t i = 0; cfg != 1 && i < g->values; i++)
        v[i] = (float)((double)away[i] + cfg * ((double)v[i] - (double)away[i]));
    return 0;
}

static int take_step(struct generation *g, size_t step, float *latents, struct cairn_error *err)
{
    const struct wan_clip *c = g->c;
    double time = solver_timestep(g->solver, step), seconds;
    size_t base = g->m->model.n_bases > 1 && time >= 1000 * c->boundary ? 1 : 0;
    if (check_stop(g, err) || task_use_base(g->task, base, &seconds, err) ||
        (seconds > 0 && wan_adapters_apply(g->m, base, err)) || predict(g, latents, base, time, err))
        return -1;
    solver_step(g->solver, latents, g->velocity);
    set_clean_frame(g, latents);
    if (!param_layout_is_finite(latents, DTYPE_F32, g->values))
        return cairn_fail(err, CAIRN_EFORMAT, "step %zu of %zu of a sample: the latents have NaN or Inf",
                          step + 1, c->steps);
    if (c->progress)
        c->progress(c->to, step + 1, c->steps);
    return 0;
}

/* ---- a sample ---- */

static int check(const struct wan *m, const struct wan_clip *c, struct cairn_error *err)
{
    const struct wan_size *s = &c->size;
    bool guided = c->cfg != 1 || (m->model.n_bases > 1 && c->cfg_high > 0 && c->cfg_high != 1);
    if (!s->frames || !s->height || !s->width || s->height % 2 || s->width % 2)
        return cairn_fail(err, CAIRN_EUSAGE, "a sample of %zux%zux%zu latents: sides must be even", s->width,
                          s->height, s->frames);
    if (!c->steps || !(c->shift > 0))
        return cairn_fail(err, CAIRN_EUSAGE, "a sample needs steps and a shift above 0");
    if (!isfinite(c->cfg) || !isfinite(c->cfg_high) || !isfinite(c->lora_scale))
        return cairn_fail(err, CAIRN_EUSAGE, "a sample's CFG and LoRA scale must be finite");
    if (!c->text || (guided && !c->negative))
        return cairn_fail(err, CAIRN_EUSAGE, "a sample with CFG needs a prompt and a negative prompt");
    if (m->shape.in > m->shape.out && !c->image)
        return cairn_fail(err, CAIRN_EUSAGE, "an image-to-video model needs an image for each sample");
    if (m->shape.clip_width && !c->clip)
        return cairn_fail(err, CAIRN_EUSAGE,
                          "this model needs the CLIP features of an image for each sample");
    return 0;
}

int wan_generate(struct task *t, const struct wan_clip *c, float *latents, struct cairn_error *err)
{
    /* No step of a job has this number: the noise is none that the model was trained with. */
    const struct noise_place place = { .seed = c->seed, .step = UINT64_MAX };
    struct wan *m = (struct wan *)t->model;
    CLEANUP(generation_close) struct generation g = { .task = t, .m = m, .c = c };
    for (size_t i = 0; i < m->model.n_loras; i++) {
        g.scales[i] = m->loras[i].scale;
        m->loras[i].scale = (float)((double)g.scales[i] * c->lora_scale);
    }
    if (check(m, c, err))
        return -1;
    g.values = m->shape.out * c->size.frames * c->size.height * c->size.width;
    g.clean_frames = c->image && m->shape.in == m->shape.out && c->size.frames > 1 ? 1 : 0;
    if (open_work(&g, err) || open_host(&g, err))
        return -1;
    fill_conditions(&g);
    noise_normal(&place, latents, g.values);
    set_clean_frame(&g, latents);
    for (size_t step = 0; step < c->steps; step++)
        if (take_step(&g, step, latents, err))
            return -1;
    return 0;
}

/* ---- LoRAs for samples alone ---- */

static size_t base_of_file(const struct wan *m, const char *path)
{
    enum wan_expert e = m->model.n_bases > 1 ? wan_expert_by_name(path) : WAN_EXPERT_NONE;
    return e == WAN_EXPERT_NONE ? WAN_EXPERTS : e == WAN_EXPERT_HIGH ? 1 : 0;
}

int wan_generate_use_loras(struct task *t, const char *const *files, const double *strengths, size_t n,
                           struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena arena = { 0 };
    struct wan *m = (struct wan *)t->model;
    struct wan_adapter_file *list = ARENA_NEW(&arena, struct wan_adapter_file, n + 1);
    struct wan_adapter_report *reports = ARENA_NEW(&arena, struct wan_adapter_report, n + 1);
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(strengths[i]))
            return cairn_fail(err, CAIRN_EUSAGE, "%s: its strength must be finite", files[i]);
        list[i] = (struct wan_adapter_file){ files[i], strengths[i], base_of_file(m, files[i]) };
    }
    if (wan_adapters_open(m, list, n, reports, err))
        return -1;
    for (size_t i = 0; i < n; i++)
        if (reports[i].unknown)
            message_say(
                &t->env.sink,
                "warning: %s: %zu of its layers are not in the model and are left out; the first is %s",
                files[i], reports[i].unknown, reports[i].first_unknown);
    return 0;
}

int wan_generate_drop_loras(struct task *t, struct cairn_error *err)
{
    return wan_adapters_close((struct wan *)t->model, err);
}
