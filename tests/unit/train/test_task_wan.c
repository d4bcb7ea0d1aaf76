/* SPDX-License-Identifier: Apache-2.0
 * Batches of the Wan task: what noise, times and experts depend on, and what is made of a latent. */
#include "../video/caches.h"
#include "check.h"
#include "train/task_wan_inside.h"
#include "video/validation.h"
#include <math.h>

enum { BATCH = 4, CHANNELS = 4, TEXT = 8, ROWS = 6, FRAMES = 3, HEIGHT = 4, WIDTH = 6 };
enum { CELLS = FRAMES * HEIGHT * WIDTH, VALUES = CHANNELS * CELLS, IMAGE_VALUES = CHANNELS * HEIGHT * WIDTH };

static struct tree tmp;
static struct cairn_error err;
static struct gpu *cpu;
static struct nn f32;

/* A job without an engine: clips and an image, a tiny model, and a workspace. */
struct rig {
    struct job_config config;
    struct wan_job job;
    struct work *work;
    size_t items[8];
};

static void write_caches(void)
{
    char path[512], text[512];
    for (int i = 0; i < 5; i++) {
        int image = i == 4;
        snprintf(path, sizeof(path), "%s/caches/c%d%s_0048x0032_wan.safetensors", tmp.dir, i,
                 image ? "" : "_00000-009");
        snprintf(text, sizeof(text), "%s/caches/c%d_wan_te.safetensors", tmp.dir, i);
        cache_latents(path, CHANNELS, image ? 1 : FRAMES, HEIGHT, WIDTH);
        cache_text(text, 3, TEXT);
    }
}

static void open_job(struct rig *r)
{
    static const struct wan_shape shape = { .layers = 1,
                                            .heads = 1,
                                            .width = 8,
                                            .ffn = 8,
                                            .in = CHANNELS,
                                            .out = CHANNELS,
                                            .text_width = TEXT,
                                            .text_rows = ROWS,
                                            .time_width = 8 };
    *r = (struct rig){ 0 };
    struct job_config *c = &r->config;
    c->train.seed = 7;
    c->train.batch = BATCH;
    c->train.accumulate = 1;
    struct wan_job *t = &r->job;
    t->task.env.config = c;
    t->shape = shape;
    t->keys.train.switch_every = 1;
    t->flow = flow_options_default(FLOW_SHIFT);
    t->flow.shift = 3;
    t->recipe = FLOW_MUSUBI;
    t->cells = CELLS;
}

static void open_rig(struct rig *r)
{
    open_job(r);
    struct wan_job *t = &r->job;
    char folder[512];
    const char *paths[] = { folder };
    snprintf(folder, sizeof(folder), "%s/caches", tmp.dir);
    struct video_cache_options o = { .paths = paths,
                                     .n_paths = 1,
                                     .needs = { .channels = CHANNELS, .text_dim = TEXT } };
    REQUIRE(!video_cache_open(&t->cache, &o, &err));
    size_t n = video_cache_count(t->cache);
    REQUIRE(n == 5);
    for (size_t i = 0; i < n; i++)
        r->items[i] = i;
    struct batches_options b = {
        .cache = t->cache, .items = r->items, .n_items = n, .batch = BATCH, .each = 1, .seed = 7
    };
    REQUIRE(!batches_open(&t->batches, &b, &err));
    t->val_items = r->items;
    t->n_val = 2;
    struct lora_options lora = { .rank = 1, .alpha = 1 };
    struct wan_options wan = { .experts = WAN_EXPERTS, .lora = &lora };
    struct work_options work = { .samples = BATCH, .extent = CELLS / WAN_PATCH, .slots = 1 };
    REQUIRE(!wan_new(&f32, &t->shape, &wan, &t->wan, &err) && !model_alloc(&t->wan->model, NULL, &err));
    REQUIRE(!t->wan->model.ops->work_open(&t->wan->model, &work, &r->work, &err));
}

static void close_rig(struct rig *r)
{
    r->job.wan->model.ops->work_close(r->work);
    model_close(&r->job.wan->model);
    batches_close(r->job.batches);
    video_cache_close(r->job.cache);
    wan_job_free_batch(&r->job.host);
}

/* What was put for some samples. */
struct seen {
    float x[BATCH][VALUES], target[BATCH][VALUES], times[BATCH], weights[BATCH];
};

static void see(const struct rig *r, size_t first, size_t n, size_t values, struct seen *out)
{
    const struct wan_host_batch *b = &r->job.host;
    for (size_t i = 0; i < n; i++) {
        memcpy(out->x[first + i], b->x + i * values, values * sizeof(float));
        memcpy(out->target[first + i], b->target + i * values, values * sizeof(float));
        out->times[first + i] = b->times[i];
        out->weights[first + i] = b->weights[i];
    }
}

static const struct video_item *item_of(const struct rig *r, uint64_t step, size_t k)
{
    return video_cache_item(r->job.cache, batches_at(r->job.batches, step, k).item);
}

static size_t values_of(const struct rig *r, uint64_t step)
{
    return item_of(r, step, 0)->frames == 1 ? IMAGE_VALUES : VALUES;
}

/* A step, in micro-batches of n samples. */
static void put(struct rig *r, uint64_t step, size_t n, struct seen *out)
{
    memset(out, 0, sizeof(*out));
    for (size_t micro = 0; micro < BATCH / n; micro++) {
        CHECK(!wan_job_put(&r->job.task, r->work, 0, step, micro, n, &err));
        see(r, micro * n, n, values_of(r, step), out);
    }
}

/* The first step from this one on whose items are clips, or are images. */
static uint64_t step_of(const struct rig *r, uint64_t step, bool image)
{
    while ((item_of(r, step, 0)->frames == 1) != image)
        step++;
    return step;
}

static bool same(const struct seen *a, const struct seen *b)
{
    return !memcmp(a, b, sizeof(*a));
}

/* ---- noise and times ---- */

static void noise_depends_on_seed_step_and_place_alone(void)
{
    static struct seen whole, other;
    struct rig r;
    open_rig(&r);
    uint64_t step = step_of(&r, 5, false), next = step_of(&r, step + 1, false);
    put(&r, step, BATCH, &whole);
    put(&r, next, BATCH, &other);
    CHECK(!same(&whole, &other));
    for (size_t n = 1; n <= BATCH; n *= 2) { /* after another step, and in micro-batches */
        put(&r, step, n, &other);
        CHECK(same(&whole, &other));
    }
    CHECK(whole.times[0] != whole.times[1] &&
          memcmp(whole.target[0], whole.target[1], sizeof(whole.target[0])));
    r.config.train.seed = 8;
    put(&r, step, BATCH, &other);
    CHECK(!same(&whole, &other) && whole.times[0] != other.times[0]);
    close_rig(&r);
}

static void latents_and_noise_are_mixed(void)
{
    static struct seen got;
    static float latents[VALUES];
    struct rig r;
    double sum = 0, squares = 0;
    open_rig(&r);
    uint64_t step = step_of(&r, 0, false);
    put(&r, step, BATCH, &got);
    for (size_t i = 0; i < BATCH; i++) {
        REQUIRE(!video_item_read(item_of(&r, step, i), VIDEO_LATENTS, latents, &err));
        double t = ((double)got.times[i] - 1) / 1000; /* musubi-tuner's */
        CHECK(t > 0 && t < 1 && got.weights[i] == 1);
        for (size_t k = 0; k < VALUES; k++) {
            double noise = (double)got.target[i][k] + (double)latents[k];
            double want = (1 - t) * (double)latents[k] + t * noise;
            sum += noise;
            squares += noise * noise;
            if (!(fabs((double)got.x[i][k] - want) <= 1e-4 * (1 + fabs(want))))
                CHECK_FAIL_("%zu, %zu: %g, and not %g", i, k, (double)got.x[i][k], want);
        }
    }
    CHECK(fabs(sum / (BATCH * VALUES)) < 0.15 && fabs(squares / (BATCH * VALUES) - 1) < 0.2);
    close_rig(&r);
}

static void clean_frames_have_no_noise(void)
{
    static struct seen got, noisy;
    static float latents[VALUES];
    struct rig r;
    open_rig(&r);
    uint64_t step = step_of(&r, 0, false), image = step_of(&r, 0, true);
    put(&r, step, BATCH, &noisy);
    r.job.keys.train.clean_first_frame = true;
    r.job.kind = WAN_TI2V_5B;
    put(&r, step, BATCH, &got);
    REQUIRE(!video_item_read(item_of(&r, step, 0), VIDEO_LATENTS, latents, &err));
    for (size_t k = 0; k < VALUES; k++) {
        bool clean = k % CELLS < HEIGHT * WIDTH;
        CHECK(got.x[0][k] == (clean ? latents[k] : noisy.x[0][k]) && got.target[0][k] == noisy.target[0][k]);
    }
    put(&r, image, BATCH, &got); /* its only frame has noise */
    r.job.keys.train.clean_first_frame = false;
    put(&r, image, BATCH, &noisy);
    CHECK(same(&got, &noisy));
    close_rig(&r);
}

/* sigma_sqrt: one over the square of the sigma of a table of 1000. */
static void samples_have_weights(void)
{
    static struct seen got;
    struct rig r;
    open_rig(&r);
    r.job.flow.weighting = FLOW_WEIGHT_SIGMA_SQRT;
    put(&r, step_of(&r, 0, false), BATCH, &got);
    for (size_t i = 0; i < BATCH; i++) {
        double t = ((double)got.times[i] - 1) / 1000;
        CHECK(fabs((double)got.weights[i] * t * t - 1) < 0.02 &&
              got.weights[i] != got.weights[(i + 1) % BATCH]);
    }
    close_rig(&r);
}

/* ---- experts ---- */

/* musubi-tuner compares what the model is given. */
static size_t expert_in(const struct rig *r, const struct seen *got)
{
    return (double)got->times[0] >= 1000 * r->job.flow.boundary;
}

static void a_step_has_times_of_its_expert(void)
{
    static struct seen got;
    struct rig r;
    size_t counts[WAN_EXPERTS] = { 0 };
    open_rig(&r);
    r.job.both = true;
    for (uint64_t step = 0; step < 60; step++) {
        size_t expert = wan_job_expert(&r.job, step);
        counts[expert]++;
        put(&r, step, BATCH, &got);
        for (size_t i = 0; i < BATCH; i++)
            if (((double)got.times[i] >= 1000 * r.job.flow.boundary) != expert)
                CHECK_FAIL_("step %d, sample %zu: timestep %.9g, expert %zu", (int)step, i,
                            (double)got.times[i], expert);
    }
    /* musubi-tuner lets the time decide: at a shift of 3 it is above 0.875 in 30 of 100 draws. */
    CHECK(counts[1] >= 8 && counts[1] <= 32 && counts[0] + counts[1] == 60);
    close_rig(&r);
}

static void experts_change_every_so_often(void)
{
    struct rig r;
    open_rig(&r);
    r.job.both = true;
    for (int recipe = FLOW_MUSUBI; recipe <= FLOW_AI_TOOLKIT; recipe++) {
        size_t changes = 0;
        r.job.recipe = (enum flow_recipe)recipe;
        r.job.keys.train.switch_every = 5;
        for (uint64_t step = 1; step < 200; step++) {
            bool changed = wan_job_expert(&r.job, step) != wan_job_expert(&r.job, step - 1);
            CHECK(!changed || step % 5 == 0);
            changes += changed;
        }
        CHECK(recipe == FLOW_AI_TOOLKIT ? changes == 39 : changes > 5 && changes < 39);
    }
    CHECK(wan_job_expert(&r.job, 0) == 1); /* ai-toolkit begins with it */
    r.job.both = false;
    for (uint64_t step = 0; step < 20; step++)
        CHECK(!wan_job_expert(&r.job, step));
    close_rig(&r);
}

static void one_expert_has_its_side(void)
{
    static struct seen got;
    const enum flow_side sides[] = { FLOW_LOW, FLOW_HIGH };
    for (size_t k = 0; k < ARRAY_LEN(sides); k++) {
        struct rig r;
        open_rig(&r);
        r.job.side = sides[k];
        for (uint64_t step = 0; step < 20; step++) {
            put(&r, step, BATCH, &got);
            CHECK(expert_in(&r, &got) == (sides[k] == FLOW_HIGH));
        }
        close_rig(&r);
    }
}

/* ---- validation ---- */

static void put_val(struct rig *r, uint64_t batch, size_t n, struct seen *out)
{
    size_t which = r->job.val_items[batch / WAN_QUARTERS % r->job.n_val];
    size_t values = video_cache_item(r->job.cache, which)->frames == 1 ? IMAGE_VALUES : VALUES;
    memset(out, 0, sizeof(*out));
    for (size_t i = 0; i < BATCH / n; i++) {
        CHECK(!wan_job_put_val(&r->job.task, r->work, batch * (BATCH / n) + i, n, &err));
        see(r, i * n, n, values, out);
    }
}

static void validation_is_fixed_and_by_quarter(void)
{
    static struct seen got, other;
    struct rig r;
    open_rig(&r);
    for (uint64_t batch = 0; batch < 2 * WAN_QUARTERS; batch++) {
        put_val(&r, batch, BATCH, &got);
        for (size_t n = 1; n < BATCH; n *= 2) {
            put(&r, batch, BATCH, &other); /* whatever is between */
            put_val(&r, batch, n, &other);
            CHECK(same(&got, &other));
        }
        double t = ((double)got.times[0] - 1) / 1000 * WAN_QUARTERS;
        CHECK_INT((int)floor(t), (int)(batch % WAN_QUARTERS));
        CHECK(got.times[1] == got.times[0] && memcmp(got.target[0], got.target[1], sizeof(got.target[0])));
    }
    close_rig(&r);
}

static void validation_uses_the_expert_of_its_time(void)
{
    static struct seen got;
    struct rig r;
    open_rig(&r);
    r.job.both = true;
    for (uint64_t batch = 0; batch < 2 * WAN_QUARTERS; batch++) {
        put_val(&r, batch, BATCH, &got);
        size_t expert = wan_job_val_expert(&r.job, batch, BATCH);
        CHECK(expert == expert_in(&r, &got) &&
              expert == wan_job_val_expert(&r.job, 2 * batch + 1, BATCH / 2));
        CHECK(!expert || batch % WAN_QUARTERS == 3);
    }
    r.job.flow.boundary = 0;
    CHECK(wan_job_val_expert(&r.job, 0, BATCH) == 1);
    r.job.both = false;
    r.job.side = FLOW_LOW;
    r.job.flow.boundary = 0.5;
    put_val(&r, 3, BATCH, &got); /* quarters of the expert's own times */
    CHECK(got.times[0] > 376 && got.times[0] < 501 && !wan_job_val_expert(&r.job, 3, BATCH));
    close_rig(&r);
}

int main(void)
{
    if (gpu_open("cpu", &cpu, &err) || nn_open(&f32, cpu, GPU_F32, &err)) {
        printf("Bail out! %s\n", err.msg);
        return 99;
    }
    tree_make(&tmp);
    tree_put(&tmp, "caches/.keep", "");
    write_caches();
    RUN(noise_depends_on_seed_step_and_place_alone);
    RUN(latents_and_noise_are_mixed);
    RUN(clean_frames_have_no_noise);
    RUN(samples_have_weights);
    RUN(a_step_has_times_of_its_expert);
    RUN(experts_change_every_so_often);
    RUN(one_expert_has_its_side);
    RUN(validation_is_fixed_and_by_quarter);
    RUN(validation_uses_the_expert_of_its_time);
    tree_remove(&tmp);
    nn_close(&f32);
    gpu_close(cpu);
    return check_done();
}
