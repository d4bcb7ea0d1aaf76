/* SPDX-License-Identifier: Apache-2.0
 * Batches of the Wan task: latents with noise added, their captions and times.
 *
 * Noise and times follow from the seed, the step and the sample's place in the step, whatever the size of the
 * micro-batches, so that a resumed run and one that had to split its batches see the same. */
#include "base/int.h"
#include "train/task_wan_inside.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

void wan_job_free_batch(struct wan_host_batch *b)
{
    float *all[] = { b->x, b->target, b->text, b->clip, b->times, b->weights, b->latents, b->noise };
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        free(all[i]);
    *b = (struct wan_host_batch){ 0 };
}

static int reserve(struct wan_job *t, size_t n, struct cairn_error *err)
{
    const struct wan_shape *s = &t->shape;
    struct wan_host_batch *b = &t->host;
    if (n <= b->samples)
        return 0;
    wan_job_free_batch(b);
    const struct {
        float **at;
        size_t n;
    } parts[] = {
        { &b->x, n * s->in * t->cells },
        { &b->target, n * s->out * t->cells },
        { &b->text, n * s->text_rows * s->text_width },
        { &b->clip, n * s->clip_rows * s->clip_width },
        { &b->times, n },
        { &b->weights, n },
        { &b->latents, s->out * t->cells },
        { &b->noise, s->out * t->cells },
    };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (!(*parts[i].at = calloc(parts[i].n + 1, sizeof(float))))
            return cairn_fail(err, CAIRN_ENOMEM, "no memory for a batch of %zu sample%s", n,
                              n == 1 ? "" : "s");
    b->samples = n;
    return 0;
}

/* ---- one sample ---- */

/* What is put into place i of a batch. */
struct sample {
    const struct video_item *item;
    const struct video_item *text; /* whose caption it gets */
    struct noise_place place;      /* of its noise */
    struct flow_time time;
};

static struct wan_size size_of(const struct video_item *item)
{
    return (struct wan_size){ item->frames, item->height, item->width };
}

static size_t cells_of(const struct video_item *item)
{
    return item->frames * item->height * item->width;
}

static size_t clean_frames(const struct wan_job *t, const struct video_item *item)
{
    bool wanted = t->keys.train.clean_first_frame || item->use.clean_first_frame;
    return wanted && t->kind == WAN_TI2V_5B && item->frames > 1 ? 1 : 0;
}

/* x = (1 - t) latents + t noise, and the target noise - latents.  Clean frames have no noise. */
static void add_noise(const struct wan_job *t, const struct sample *s, float *x, float *target)
{
    const struct wan_host_batch *b = &t->host;
    size_t frame = s->item->height * s->item->width, frames = s->item->frames;
    size_t clean = clean_frames(t, s->item), n = t->shape.out * cells_of(s->item);
    float keep = (float)(1 - s->time.t), add = (float)s->time.t;
    for (size_t i = 0; i < n; i++) {
        bool is_clean = clean && i / frame % frames < clean;
        x[i] = is_clean ? b->latents[i] : keep * b->latents[i] + add * b->noise[i];
        target[i] = b->noise[i] - b->latents[i];
    }
}

static int read_text(const struct wan_job *t, const struct video_item *item, float *out,
                     struct cairn_error *err)
{
    size_t used = item->text_rows * item->text_dim, all = t->shape.text_rows * t->shape.text_width;
    memset(out + used, 0, (all - used) * sizeof(*out));
    return video_item_read(item, VIDEO_TEXT, out, err);
}

static int put_sample(struct wan_job *t, const struct sample *s, size_t i, struct cairn_error *err)
{
    const struct wan_shape *shape = &t->shape;
    struct wan_host_batch *b = &t->host;
    size_t cells = cells_of(s->item), latents = shape->out * cells;
    float *x = b->x + i * shape->in * cells;
    if (video_item_read(s->item, VIDEO_LATENTS, b->latents, err) ||
        (shape->in > shape->out && video_item_read(s->item, VIDEO_IMAGE, x + latents, err)) ||
        (shape->clip_width &&
         video_item_read(s->item, VIDEO_CLIP, b->clip + i * shape->clip_rows * shape->clip_width, err)) ||
        read_text(t, s->text, b->text + i * shape->text_rows * shape->text_width, err))
        return -1;
    noise_normal(&s->place, b->noise, latents);
    add_noise(t, s, x, b->target + i * latents);
    b->times[i] = (float)s->time.timestep;
    b->weights[i] = (float)s->time.weight;
    return 0;
}

static struct wan_batch batch_of(const struct wan_job *t, const struct video_item *item, size_t n,
                                 size_t expert)
{
    const struct wan_host_batch *b = &t->host;
    return (struct wan_batch){
        .samples = n,
        .expert = expert,
        .size = size_of(item),
        .clean_frames = clean_frames(t, item),
        .x = b->x,
        .target = b->target,
        .times = b->times,
        .weights = b->weights,
        .text = b->text,
        .clip = t->shape.clip_width ? b->clip : NULL,
    };
}

/* ---- training ---- */

enum { CAPTION_DRAW = 0x100000 }; /* apart from the draws of times */

/* The item's own caption, or the empty one. */
static const struct video_item *text_of(const struct wan_job *t, const struct video_item *item,
                                        const struct noise_place *place)
{
    double u[2] = { 1, 1 };
    if (t->empty.text_path)
        noise_uniform(place, CAPTION_DRAW, u);
    double share =
        t->keys.data.caption_dropout > 0 ? t->keys.data.caption_dropout : item->use.caption_dropout;
    return u[0] < share ? &t->empty : item;
}

enum { STEP_DRAW = 0x7fffffff }; /* the draw that belongs to a step, and to none of its samples */

/* ai-toolkit alternates.  musubi-tuner lets a time decide; here one for all samples of the step, and of the
 * steps until the expert may change. */
static enum flow_side side_of_step(const struct wan_job *t, uint64_t step)
{
    const struct job_config *c = t->task.env.config;
    uint64_t every = at_least((size_t)t->keys.train.switch_every, 1);
    if (!t->both)
        return t->side;
    if (t->recipe == FLOW_AI_TOOLKIT)
        return flow_side_at_step(step, every);
    const struct video_item *first = t->cache ? video_cache_item(t->cache, 0) : &t->planned;
    struct flow_draw d = {
        .place = { (uint64_t)c->train.seed, step / every * every, STEP_DRAW },
        .height = first->height,
        .width = first->width,
    };
    struct flow_options o = t->flow;
    struct flow_time time;
    o.buckets = 0;
    flow_time_draw(&o, &d, &time);
    return flow_side_of(&o, &time);
}

size_t wan_job_expert(const struct wan_job *t, uint64_t step)
{
    return t->both && side_of_step(t, step) == FLOW_HIGH ? 1 : 0;
}

/* ai-toolkit: regularisation sets have the steps 0, 2, 4 and so on. */
static struct batches_sample sample_at(const struct wan_job *t, uint64_t step, size_t k,
                                       const struct batches **order)
{
    *order = t->batches;
    if (t->regularisation && step % 2 == 0)
        *order = t->regularisation;
    return batches_at(*order, t->regularisation ? step / 2 : step, k);
}

double wan_job_step_cost(const struct task *task, uint64_t step)
{
    const struct wan_job *t = (const struct wan_job *)task;
    const struct wan_shape *s = &t->shape;
    double width = (double)s->width, cost = 0;
    double linears = 6 * width * width + 2 * width * (double)s->ffn + 2 * width * (double)s->text_rows;
    const struct batches *order;
    for (size_t i = 0; i < (size_t)task->step_units; i++) {
        const struct video_item *item = video_cache_item(t->cache, sample_at(t, step, i, &order).item);
        double tokens = (double)wan_tokens(size_of(item));
        cost += tokens * (linears + 2 * width * tokens);
    }
    return cost;
}

int wan_job_put(struct task *task, struct work *w, size_t slot, uint64_t step, size_t micro, size_t n,
                struct cairn_error *err)
{
    struct wan_job *t = (struct wan_job *)task;
    const struct job_config *c = task->env.config;
    enum flow_side side = side_of_step(t, step);
    const struct video_item *item = NULL;
    if (reserve(t, n, err))
        return -1;
    for (size_t i = 0; i < n; i++) {
        const struct batches *order;
        struct batches_sample b = sample_at(t, step, micro * n + i, &order);
        item = video_cache_item(t->cache, b.item);
        struct flow_draw draw = {
            .place = { (uint64_t)c->train.seed, step, (uint32_t)(micro * n + i) },
            .height = item->height,
            .width = item->width,
            .side = side,
            .epoch = b.epoch,
            .position = b.position,
            .per_epoch = batches_per_epoch(order) * (uint64_t)c->train.batch,
        };
        struct sample s = { .item = item, .text = text_of(t, item, &draw.place), .place = draw.place };
        flow_time_draw(&t->flow, &draw, &s.time);
        s.time.weight *= item->use.weight;
        task->data_failed = put_sample(t, &s, i, err);
        if (task->data_failed)
            return -1;
    }
    struct wan_batch batch = batch_of(t, item, n, t->both && side == FLOW_HIGH ? 1 : 0);
    return wan_put(w, slot, &batch, err);
}

/* ---- validation ---- */

static struct flow_time val_time(const struct wan_job *t, const struct noise_place *place, size_t quarter)
{
    double low = t->side == FLOW_HIGH ? t->flow.boundary : 0, u[2];
    double high = t->side == FLOW_LOW ? t->flow.boundary : 1;
    noise_uniform(place, 0, u);
    double time = low + (high - low) * ((double)quarter + u[0]) / WAN_QUARTERS;
    return (struct flow_time){ .t = time,
                               .timestep = 1000 * time + (t->recipe == FLOW_MUSUBI ? 1 : 0),
                               .weight = 1 };
}

/* The first of the n samples of batch `index`.  train.batch samples, whether in one batch or in several, are of
 * one item and one time. */
static struct sample val_sample(const struct wan_job *t, uint64_t index, size_t n)
{
    const struct job_config *c = t->task.env.config;
    uint64_t first = index * n, batch = (uint64_t)c->train.batch, whole = first / batch;
    size_t item = t->val_items[whole / WAN_QUARTERS % t->n_val];
    struct noise_place place = { ~(uint64_t)c->train.seed, whole, 0 };
    const struct video_item *it = video_cache_item(t->cache, item);
    struct sample s = { .item = it, .text = it, .time = val_time(t, &place, whole % WAN_QUARTERS) };
    place.sample = (uint32_t)(first % batch);
    s.place = place;
    return s;
}

size_t wan_job_val_expert(const struct wan_job *t, uint64_t index, size_t n)
{
    struct sample s = val_sample(t, index, n);
    return t->both && flow_side_of(&t->flow, &s.time) == FLOW_HIGH ? 1 : 0;
}

int wan_job_put_val(struct task *task, struct work *w, uint64_t index, size_t n, struct cairn_error *err)
{
    struct wan_job *t = (struct wan_job *)task;
    struct sample s = val_sample(t, index, n);
    if (reserve(t, n, err))
        return -1;
    for (size_t i = 0; i < n; i++, s.place.sample++) {
        task->data_failed = put_sample(t, &s, i, err);
        if (task->data_failed)
            return -1;
    }
    struct wan_batch batch = batch_of(t, s.item, n, wan_job_val_expert(t, index, n));
    return wan_put(w, 0, &batch, err);
}
