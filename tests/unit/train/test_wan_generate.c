/* SPDX-License-Identifier: Apache-2.0
 * Samples of a Wan model: what they depend on, and that nothing else of the model changes. */
#include "wan_rig.h"

/* ---- the same, written plainly ---- */

static void velocity(struct rig *r, const struct wan_clip *c, size_t base, double time, const float *x,
                     const float *caption, float *into)
{
    size_t in = r->m->shape.in;
    struct work_options o = { .samples = 1, .extent = CELLS / WAN_PATCH, .slots = 1 };
    struct work *w = NULL;
    float *all = calloc(in * CELLS, sizeof(*all)), t = (float)time;
    memcpy(all, x, VALUES * sizeof(*x));
    if (in > OUT)
        memcpy(all + VALUES, c->image, (in - OUT) * CELLS * sizeof(*x));
    struct wan_batch b = { .samples = 1,
                           .expert = base,
                           .size = c->size,
                           .clean_frames = c->image && in == OUT,
                           .x = all,
                           .times = &t,
                           .text = caption,
                           .clip = c->clip };
    struct model *m = &r->m->model;
    CHECK(!m->ops->work_open(m, &o, &w, &err) && !wan_put(w, 0, &b, &err) &&
          !m->ops->run(w, &(struct model_pass){ 0 }, NULL, &err) && !wan_output(w, 0, into, &err));
    m->ops->work_close(w);
    free(all);
}

static void keep_frame(const struct rig *r, const struct wan_clip *c, float *x)
{
    for (size_t i = 0; c->image && r->m->shape.in == OUT && i < OUT * FRAME; i++)
        x[i / FRAME * CELLS + i % FRAME] = c->image[i];
}

static void euler(struct rig *r, const struct wan_clip *c, float *x)
{
    float cond[VALUES], uncond[VALUES];
    noise_normal(&(struct noise_place){ .seed = c->seed, .step = UINT64_MAX }, x, VALUES);
    keep_frame(r, c, x);
    for (size_t i = 0; i < c->steps; i++) {
        double s[2];
        for (size_t k = 0; k < 2; k++) {
            double even = (double)0.999f * (double)(c->steps - i - k) / (double)c->steps;
            s[k] = c->shift * even / (1 + (c->shift - 1) * even);
        }
        double time = floor(1000 * s[0]);
        size_t base = r->m->model.n_bases > 1 && time >= 1000 * c->boundary;
        double cfg = base && c->cfg_high > 0 ? c->cfg_high : c->cfg;
        velocity(r, c, base, time, x, c->text, cond);
        if (cfg != 1)
            velocity(r, c, base, time, x, c->negative, uncond);
        for (size_t k = 0; k < VALUES; k++) {
            double v = cfg != 1 ? uncond[k] + cfg * (cond[k] - uncond[k]) : cond[k];
            x[k] = (float)(x[k] + (s[1] - s[0]) * v);
        }
        keep_frame(r, c, x);
    }
}

static void check_as_euler(struct rig *r, const struct wan_clip *c)
{
    float got[VALUES], want[VALUES];
    generate(r, c, got);
    euler(r, c, want);
    CHECK(difference(got, want) < 1e-4);
}

/* ---- tests ---- */

static void as_written_plainly(void)
{
    struct rig r;
    struct wan_clip c = usual();
    open_rig(&r, &tiny, &with_lora, NULL);
    check_as_euler(&r, &c);
    c.cfg = 1;
    c.negative = NULL;
    check_as_euler(&r, &c);
    close_rig(&r);
}

static void seeds(void)
{
    struct rig r;
    float a[VALUES], b[VALUES];
    open_rig(&r, &tiny, &with_lora, NULL);
    for (int solver = SOLVER_UNIPC; solver <= SOLVER_EULER; solver++) {
        struct wan_clip c = usual();
        c.solver = (enum solver_kind)solver;
        generate(&r, &c, a);
        generate(&r, &c, b);
        CHECK(!memcmp(a, b, sizeof(a)));
        c.seed++;
        generate(&r, &c, b);
        CHECK(difference(a, b) > 0.1);
    }
    close_rig(&r);
}

static void negative_prompt(void)
{
    struct rig r;
    struct wan_clip c = usual();
    float a[VALUES], b[VALUES];
    open_rig(&r, &tiny, &with_lora, NULL);
    c.cfg = 1;
    generate(&r, &c, a);
    c.negative = NULL; /* not read */
    generate(&r, &c, b);
    CHECK(!memcmp(a, b, sizeof(a)));
    c.cfg = 2;
    CHECK(wan_generate(&r.task, &c, b, &err) && err.code == CAIRN_EUSAGE);
    c.negative = negative;
    generate(&r, &c, b);
    CHECK(difference(a, b) > 1e-3);
    close_rig(&r);
}

static void two_passes(void)
{
    struct rig r;
    struct wan_clip c = usual();
    float a[VALUES], b[VALUES];
    open_rig(&r, &tiny, &with_lora, NULL);
    generate(&r, &c, a);
    r.task.env.budget_bytes = 1; /* how much memory is free changes nothing */
    generate(&r, &c, b);
    CHECK(!memcmp(a, b, sizeof(a)));
    c.one_by_one = true;
    generate(&r, &c, b);
    CHECK(difference(a, b) < 1e-4);
    close_rig(&r);
}

static void lora_scale(void)
{
    struct rig r, base;
    struct wan_clip c = usual();
    float a[VALUES], b[VALUES];
    open_rig(&r, &tiny, &with_lora, NULL);
    open_rig(&base, &tiny, &plain, NULL);
    float scale = r.m->loras[0].scale;
    generate(&base, &c, a);
    c.lora_scale = 0;
    generate(&r, &c, b);
    CHECK(!memcmp(a, b, sizeof(a)));
    CHECK(r.m->loras[0].scale == scale);
    c.lora_scale = 1;
    generate(&r, &c, a);
    CHECK(difference(a, b) > 1e-3);
    c.lora_scale = 0.5;
    generate(&r, &c, b);
    CHECK(difference(a, b) > 1e-3);
    r.m->loras[0].scale = scale / 2;
    euler(&r, &c, a);
    CHECK(difference(a, b) < 1e-4);
    close_rig(&r);
    close_rig(&base);
}

/* Both experts, on the device or in turns. */
static void experts(void)
{
    static const enum model_idle idle[] = { MODEL_IDLE_DEVICE, MODEL_IDLE_HOST };
    float first[VALUES], x[VALUES];
    for (size_t i = 0; i < ARRAY_LEN(idle); i++) {
        struct rig r;
        struct wan_clip c = usual();
        open_rig(&r, &tiny, &two, NULL);
        if (idle[i] != MODEL_IDLE_DEVICE)
            CHECK(!model_move_blocks(&r.m->model, &(struct model_layout){ .idle = idle[i] }, &err));
        generate(&r, &c, x);
        if (!i) {
            memcpy(first, x, sizeof(x));
            check_as_euler(&r, &c);
            c.cfg_high = 1.5;
            check_as_euler(&r, &c);
            c.boundary = 2;
            check_as_euler(&r, &c);
            c.boundary = 0;
            check_as_euler(&r, &c);
        }
        CHECK(!memcmp(first, x, sizeof(x)));
        close_rig(&r);
    }
}

/* Blocks that are streamed from the host compute the same bits. */
static void streamed_blocks(void)
{
    float whole[VALUES], x[VALUES];
    for (uint64_t n = 0; n <= tiny.layers; n++) {
        struct rig r;
        struct wan_clip c = usual();
        open_rig(&r, &tiny, &with_lora, &(struct model_layout){ .streamed = n });
        CHECK(model_is_offloaded(&r.m->model) == (n > 0));
        generate(&r, &c, n ? x : whole);
        CHECK(!n || !memcmp(whole, x, sizeof(x)));
        close_rig(&r);
    }
}

static void image_to_video(void)
{
    struct rig r;
    struct wan_shape s = tiny;
    float image[5 * CELLS], clip[3 * 10];
    struct wan_clip c = usual();
    s.in = OUT + 5;
    s.clip_rows = 3;
    s.clip_width = 10;
    numbers(image, ARRAY_LEN(image), 8);
    numbers(clip, ARRAY_LEN(clip), 9);
    open_rig(&r, &s, &with_lora, NULL);
    CHECK(wan_generate(&r.task, &c, image, &err) && err.code == CAIRN_EUSAGE);
    c.image = image;
    c.clip = clip;
    check_as_euler(&r, &c);
    c.one_by_one = true;
    check_as_euler(&r, &c);
    close_rig(&r);
}

static void clean_first_frame(void)
{
    struct rig r;
    float image[OUT * FRAME], x[VALUES];
    struct wan_clip c = usual();
    numbers(image, ARRAY_LEN(image), 8);
    c.image = image;
    open_rig(&r, &tiny, &with_lora, NULL);
    check_as_euler(&r, &c);
    c.solver = SOLVER_UNIPC;
    generate(&r, &c, x);
    for (size_t i = 0; i < OUT; i++)
        CHECK(!memcmp(x + i * CELLS, image + i * FRAME, FRAME * sizeof(*x)));
    close_rig(&r);
}

/* ---- what is not a sample ---- */

static size_t told;
static volatile sig_atomic_t stop;

static void progress(void *to, size_t step, size_t steps)
{
    CHECK(to == &told && steps == STEPS && step == told + 1);
    told = step;
    stop = step == 2;
}

static void stopped(void)
{
    struct rig r;
    float x[VALUES];
    struct wan_clip c = usual();
    c.progress = progress;
    c.to = &told;
    open_rig(&r, &tiny, &with_lora, NULL);
    told = 0;
    generate(&r, &c, x);
    CHECK_INT(told, STEPS);
    told = 0;
    c.stop = &stop;
    c.lora_scale = 0;
    float scale = r.m->loras[0].scale;
    CHECK(wan_generate(&r.task, &c, x, &err));
    CHECK_INT(told, 2);
    CHECK(r.m->loras[0].scale == scale);
    close_rig(&r);
}

static void not_finite(void)
{
    struct rig r;
    float x[VALUES], bad[ROWS * TEXT];
    struct wan_clip c = usual();
    open_rig(&r, &tiny, &with_lora, NULL);
    memcpy(bad, text, sizeof(bad));
    bad[3] = NAN;
    c.text = bad;
    CHECK(wan_generate(&r.task, &c, x, &err) && err.code == CAIRN_EFORMAT);
    CHECK_HAS(err.msg, "step 1 of 4");
    close_rig(&r);
}

/* The first sample of a size may measure matmuls, which takes more.  So that the peak is the second one's, other memory is
 * in use then. */
static void memory(void)
{
    enum { LARGE = 4 };
    struct rig r;
    float *x = calloc(LARGE * LARGE * VALUES, sizeof(*x));
    struct wan_clip c = usual();
    c.size.height *= LARGE;
    c.size.width *= LARGE;
    c.steps = 1;
    open_rig(&r, &tiny, &with_lora, NULL);
    for (int both = 0; both < 2; both++) {
        void *other;
        c.one_by_one = !both;
        struct work_bytes b = wan_generate_bytes(r.m, c.size, true, c.one_by_one);
        generate(&r, &c, x); /* on the CPU, memory for packed operands stays */
        REQUIRE(!gpu_alloc(g, GPU_MEM_DEVICE, 2 * b.own, &other, &err));
        uint64_t before = gpu_allocated(g).bytes;
        generate(&r, &c, x);
        CHECK_INT(gpu_allocated(g).bytes, before);
        double used = (double)(gpu_allocated(g).most_bytes - before);
        CHECK(used <= 1.05 * (double)b.own && used >= 0.95 * (double)b.own);
        gpu_free(g, GPU_MEM_DEVICE, other);
    }
    const struct wan_size large = { 1, 256, 128 }; /* is never made in one batch */
    CHECK_INT(wan_generate_bytes(r.m, large, true, false).own,
              wan_generate_bytes(r.m, large, true, true).own);
    CHECK(wan_generate_bytes(r.m, c.size, true, false).own >
          wan_generate_bytes(r.m, c.size, false, false).own);
    close_rig(&r);
    free(x);
}

int main(int argc, char **argv)
{
    open_device(argc, argv);
    RUN(as_written_plainly);
    RUN(seeds);
    RUN(negative_prompt);
    RUN(two_passes);
    RUN(lora_scale);
    RUN(experts);
    RUN(streamed_blocks);
    RUN(image_to_video);
    RUN(clean_first_frame);
    RUN(stopped);
    RUN(not_finite);
    RUN(memory);
    return close_device();
}
