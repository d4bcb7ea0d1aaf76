/* SPDX-License-Identifier: Apache-2.0
 * Samples of a Wan model: what they depend on, and that nothing else of the model changes. */
#include "check.h"
#include "nn/wan_adapters.h"
#include "nn/wan_lora_file.h"
#include "tensor/safetensors.h"
#include "train/wan_generate.h"
#include "tree.h"
#include "video/noise.h"
#include <math.h>

enum { OUT = 4, TEXT = 8, ROWS = 6, FRAMES = 3, HEIGHT = 4, WIDTH = 6, FRAME = HEIGHT * WIDTH };
enum { CELLS = FRAMES * FRAME, VALUES = OUT * CELLS, STEPS = 4 };

static struct gpu *g;
static struct nn nn;
static struct tree tmp;
static struct cairn_error err;
static float text[ROWS * TEXT], negative[ROWS * TEXT];

/* A task without an engine. */
struct rig {
    struct task task;
    struct wan *m;
};

static void numbers(float *into, size_t n, uint64_t seed)
{
    noise_normal(&(struct noise_place){ .seed = seed }, into, n);
}

static const struct wan_shape tiny = { .layers = 2,
                                       .heads = 2,
                                       .width = 16,
                                       .ffn = 24,
                                       .in = OUT,
                                       .out = OUT,
                                       .text_width = TEXT,
                                       .text_rows = ROWS,
                                       .time_width = 8 };

static size_t said;

static void say(void *context, const char *line)
{
    (void)context, (void)line;
    said++;
}

/* Weights follow from the base's number; the LoRAs are not 0. */
static void open_rig(struct rig *r, const struct wan_shape *s, const struct wan_options *o,
                     const struct model_layout *l)
{
    *r = (struct rig){ 0 };
    REQUIRE(!wan_new(&nn, s, o, &r->m, &err) && !model_alloc(&r->m->model, l, &err));
    for (size_t i = 0; i < o->experts; i++)
        REQUIRE(!wan_init(r->m, i, 5 + i, &err));
    for (size_t i = 0; i < r->m->model.n_loras; i++) {
        const struct lora *lora = &r->m->loras[i];
        for (size_t k = 0; k < lora->params.n; k++) {
            float v[24 * 24];
            const struct param *p = &lora->params.list[k];
            numbers(v, p->rows * p->columns, 100 + 10 * i + k);
            REQUIRE(!weights_put(&lora->weights, p, v, &err));
        }
    }
    r->task.model = &r->m->model;
    r->task.env.nn = &nn;
    r->task.env.sink.say = say;
}

static void close_rig(struct rig *r)
{
    model_close(&r->m->model);
}

static const struct lora_options rank2 = { .rank = 2, .alpha = 1 };
static const struct wan_options plain = { .experts = 1 }, with_lora = { .experts = 1, .lora = &rank2 },
                                two = { .experts = 2, .lora = &rank2, .lora_per_expert = true };

static struct wan_clip usual(void)
{
    return (struct wan_clip){ .size = { FRAMES, HEIGHT, WIDTH },
                              .text = text,
                              .negative = negative,
                              .steps = STEPS,
                              .cfg = 4,
                              .shift = 3,
                              .boundary = 0.9,
                              .solver = SOLVER_EULER,
                              .seed = 11,
                              .lora_scale = 1 };
}

static void generate(struct rig *r, const struct wan_clip *c, float *into)
{
    err = (struct cairn_error){ 0 };
    if (wan_generate(&r->task, c, into, &err))
        CHECK_FAIL_("%s", err.msg);
}

static double difference(const float *a, const float *b)
{
    double most = 0;
    for (size_t i = 0; i < VALUES; i++)
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

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
    r.task.env.budget_bytes = 1; /* none is left for a batch of two */
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
    r.task.env.budget_bytes = 1;
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

/* ---- LoRAs for samples alone ---- */

static const char *in_tmp(const char *name)
{
    static char path[2][512];
    static int turn;
    char *out = path[turn++ % 2];
    snprintf(out, sizeof(path[0]), "%s/%s", tmp.dir, name);
    return out;
}

static const char *save_lora(const struct rig *r, const char *name, enum lora_dialect d)
{
    const char *path = in_tmp(name);
    struct wan_lora_save o = { .path = path, .dialect = d, .dtype = DTYPE_F32 };
    if (wan_lora_save(r->m, 0, &o, &err))
        CHECK_FAIL_("%s", err.msg);
    return path;
}

static void use(struct rig *r, const char *path, double strength)
{
    err = (struct cairn_error){ 0 };
    if (wan_generate_use_loras(&r->task, &path, &strength, 1, &err))
        CHECK_FAIL_("%s", err.msg);
}

static void drop(struct rig *r)
{
    CHECK(!wan_generate_drop_loras(&r->task, &err) && !r->m->adapters);
}

/* The LoRA of a file does what the same LoRA does that is trained, beside one that is, and leaves no trace. */
static void extra_loras(void)
{
    static const enum lora_dialect dialects[] = { LORA_COMFY, LORA_MUSUBI, LORA_DIFFUSERS };
    struct rig trained, base;
    struct wan_clip c = usual();
    float want[VALUES], half[VALUES], x[VALUES], before[VALUES];
    open_rig(&trained, &tiny, &with_lora, NULL);
    open_rig(&base, &tiny, &plain, NULL);
    generate(&base, &c, before);
    generate(&trained, &c, want);
    c.lora_scale = 0.5;
    generate(&trained, &c, half);
    c.lora_scale = 1;
    for (size_t i = 0; i < ARRAY_LEN(dialects); i++) {
        const char *path = save_lora(&trained, "extra.safetensors", dialects[i]);
        use(&base, path, 1);
        generate(&base, &c, x);
        CHECK(difference(x, want) < 1e-4 && difference(x, before) > 1e-3);
        drop(&base);
        use(&base, path, 0.5);
        generate(&base, &c, x);
        CHECK(difference(x, half) < 1e-4);
        drop(&base);
        generate(&base, &c, x);
        CHECK(!memcmp(x, before, sizeof(x)));
        use(&trained, path, -1); /* takes away what the trained one adds */
        generate(&trained, &c, x);
        CHECK(difference(x, before) < 1e-3);
        drop(&trained);
    }
    generate(&trained, &c, x);
    CHECK(!memcmp(x, want, sizeof(x)));
    close_rig(&trained);
    close_rig(&base);
}

/* Over weights of any form and place. */
static void extra_loras_over(void)
{
    static const struct wan_options options[] = {
        { .experts = 1, .lora = &rank2 },
        { .experts = 1, .lora = &rank2, .quantize = true, .format = WEIGHTS_INT8 },
        { .experts = 1, .lora = &rank2, .quantize = true, .format = WEIGHTS_FP8 },
    };
    static const struct lora_options rank3 = { .rank = 3, .alpha = 2 };
    static const struct wan_options other = { .experts = 1, .lora = &rank3 };
    struct wan_clip c = usual();
    struct rig r;
    open_rig(&r, &tiny, &other, NULL);
    const char *path = save_lora(&r, "extra.safetensors", LORA_COMFY);
    close_rig(&r);
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        float before[VALUES], with[2][VALUES], x[VALUES];
        for (size_t streamed = 0; streamed < 2; streamed++) {
            open_rig(&r, &tiny, &options[i],
                     &(struct model_layout){ .streamed = streamed ? MODEL_ALL_BLOCKS : 0 });
            generate(&r, &c, before);
            use(&r, path, 1);
            CHECK_INT(wan_adapters_rank(r.m), 3);
            generate(&r, &c, with[streamed]);
            CHECK(difference(before, with[streamed]) > 1e-3);
            drop(&r);
            generate(&r, &c, x);
            CHECK(!memcmp(x, before, sizeof(x)));
            close_rig(&r);
        }
        CHECK(!memcmp(with[0], with[1], sizeof(with[0])));
    }
}

/* A file for one expert does not change the other; both are read from one file that has both. */
static void extra_loras_of_experts(void)
{
    struct rig r;
    struct wan_clip c = usual();
    float high[VALUES], low[VALUES], x[VALUES];
    open_rig(&r, &tiny, &two, NULL);
    save_lora(&r, "few_steps_high_noise.safetensors", LORA_COMFY);
    c.boundary = 0;
    generate(&r, &c, high);
    c.boundary = 2;
    generate(&r, &c, low);
    use(&r, in_tmp("few_steps_high_noise.safetensors"), 1);
    generate(&r, &c, x);
    CHECK(!memcmp(x, low, sizeof(x)));
    c.boundary = 0;
    generate(&r, &c, x);
    CHECK(difference(x, high) > 1e-3);
    drop(&r);
    generate(&r, &c, x);
    CHECK(!memcmp(x, high, sizeof(x)));
    close_rig(&r);
}

/* A file of f32 tensors of one value each. */
struct added {
    const char *name;
    uint64_t rows, columns; /* columns 0: one dimension */
    float value;
};

static void write_file(const char *path, const struct added *list, size_t n)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(st_writer_close) struct st_writer w = { .out = FILE_OUT_NONE };
    struct st_tensor *t = ARENA_NEW(&a, struct st_tensor, n);
    float **values = ARENA_NEW(&a, float *, n);
    for (size_t i = 0; i < n; i++) {
        uint64_t *shape = ARENA_NEW(&a, uint64_t, 2), elements = list[i].rows;
        shape[0] = list[i].rows;
        shape[1] = list[i].columns;
        elements *= list[i].columns ? list[i].columns : 1;
        values[i] = ARENA_NEW(&a, float, elements);
        for (size_t k = 0; k < elements; k++)
            values[i][k] = list[i].value;
        t[i] = (struct st_tensor){ .name = list[i].name,
                                   .dtype = DTYPE_F32,
                                   .dtype_text = "F32",
                                   .shape = shape,
                                   .rank = list[i].columns ? 2 : 1,
                                   .elements = elements,
                                   .bytes = 4 * elements };
    }
    REQUIRE(!st_writer_open(&w, path, &(struct st_contents){ .tensors = t, .n = n }, true, &err));
    for (size_t i = 0; i < n; i++)
        CHECK(!st_writer_put(&w, i, 0, values[i], t[i].bytes, &err));
    CHECK(!st_writer_commit(&w, &err));
}

static float *parameter(const struct rig *r, const char *name, size_t *n)
{
    const struct param *p = params_find(&r->m->params[0], name);
    *n = p->rows * p->columns;
    float *v = calloc(*n, sizeof(*v));
    CHECK(!weights_get(&r->m->weights[0], p, v, &err));
    return v;
}

/* Norms, biases and linears before and behind the blocks, as files for few steps have them. */
static void extra_differences(void)
{
    static const struct added list[] = {
        { "diffusion_model.blocks.1.self_attn.norm_k.diff", 16, 0, 0.25f },
        { "diffusion_model.blocks.0.ffn.0.diff_b", 24, 0, 0.5f },
        { "diffusion_model.blocks.0.ffn.0.lora_down.weight", 5, 16, 0.125f },
        { "diffusion_model.blocks.0.ffn.0.lora_up.weight", 24, 5, 0.25f },
        { "diffusion_model.head.head.lora_down.weight", 2, 16, 0.5f },
        { "diffusion_model.head.head.lora_up.weight", 16, 2, 0.25f },
        { "diffusion_model.blocks.0.cross_attn.k_img.lora_down.weight", 2, 16, 1 },
        { "diffusion_model.blocks.0.cross_attn.k_img.lora_up.weight", 16, 2, 1 },
    };
    static const struct {
        const char *name;
        float by;
    } wants[] = { { "blocks.1.self_attn.norm_k.weight", 0.5f },
                  { "blocks.0.ffn.0.bias", 1 },
                  { "head.head.weight", 0.5f } };
    struct rig r;
    struct wan_clip c = usual();
    float before[VALUES], x[VALUES], *values[ARRAY_LEN(wants)];
    size_t n;
    open_rig(&r, &tiny, &plain, NULL);
    generate(&r, &c, before);
    for (size_t i = 0; i < ARRAY_LEN(wants); i++)
        values[i] = parameter(&r, wants[i].name, &n);
    write_file(in_tmp("few.safetensors"), list, ARRAY_LEN(list));
    said = 0;
    use(&r, in_tmp("few.safetensors"), 2);
    CHECK_INT(said, 1); /* of k_img, which the model lacks */
    for (size_t i = 0; i < ARRAY_LEN(wants); i++) {
        float *now = parameter(&r, wants[i].name, &n);
        for (size_t k = 0; k < n; k++)
            CHECK(fabsf(now[k] - values[i][k] - wants[i].by) < 1e-5f);
        free(now);
    }
    generate(&r, &c, x);
    CHECK(difference(x, before) > 1e-3);
    drop(&r);
    for (size_t i = 0; i < ARRAY_LEN(wants); i++) {
        float *now = parameter(&r, wants[i].name, &n);
        CHECK(!memcmp(now, values[i], n * sizeof(*now)));
        free(now);
        free(values[i]);
    }
    generate(&r, &c, x);
    CHECK(!memcmp(x, before, sizeof(x)));
    close_rig(&r);
}

/* Of another model, with values that are not finite, or for a whole matrix: refused, and nothing has changed. */
static void extra_refused(void)
{
    static const struct {
        struct added list[2];
        size_t n;
    } bad[] = {
        { { { "diffusion_model.blocks.7.ffn.0.diff_b", 24, 0, 1 } }, 1 },
        { { { "diffusion_model.blocks.0.ffn.0.diff_b", 23, 0, 1 } }, 1 },
        { { { "diffusion_model.blocks.0.ffn.0.diff", 24, 16, 1 } }, 1 },
        { { { "diffusion_model.blocks.0.ffn.0.lora_down.weight", 2, 16, NAN },
            { "diffusion_model.blocks.0.ffn.0.lora_up.weight", 24, 2, 1 } },
          2 },
        { { { "diffusion_model.blocks.0.ffn.0.lora_down.weight", 2, 18, 1 },
            { "diffusion_model.blocks.0.ffn.0.lora_up.weight", 24, 2, 1 } },
          2 },
    };
    struct rig r;
    struct wan_clip c = usual();
    float before[VALUES], x[VALUES];
    double one = 1;
    open_rig(&r, &tiny, &plain, NULL);
    generate(&r, &c, before);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const char *path = in_tmp("bad.safetensors");
        write_file(path, bad[i].list, bad[i].n);
        CHECK(wan_generate_use_loras(&r.task, &path, &one, 1, &err) && err.code == CAIRN_EFORMAT);
        CHECK_HAS(err.msg, "bad.safetensors");
        CHECK(!r.m->adapters);
    }
    generate(&r, &c, x);
    CHECK(!memcmp(x, before, sizeof(x)));
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

/* Larger than all samples before, so that the peak is this one's. */
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
        r.task.env.budget_bytes = !both;
        generate(&r, &c, x); /* on the CPU, memory for packed operands stays */
        uint64_t before = gpu_allocated(g).bytes;
        struct work_bytes b = wan_generate_bytes(r.m, c.size, both);
        generate(&r, &c, x);
        CHECK_INT(gpu_allocated(g).bytes, before);
        double used = (double)(gpu_allocated(g).most_bytes - before);
        CHECK(used <= 1.05 * (double)b.own && used >= 0.95 * (double)b.own);
    }
    close_rig(&r);
    free(x);
}

int main(int argc, char **argv)
{
    if (gpu_open(argc > 1 ? argv[1] : "cpu", &g, &err) || nn_open(&nn, g, GPU_F32, &err)) {
        printf("Bail out! %s\n", err.msg);
        return 99;
    }
    tree_make(&tmp);
    numbers(text, ARRAY_LEN(text), 2);
    numbers(negative, ARRAY_LEN(negative), 3);
    RUN(as_written_plainly);
    RUN(seeds);
    RUN(negative_prompt);
    RUN(two_passes);
    RUN(lora_scale);
    RUN(experts);
    RUN(image_to_video);
    RUN(clean_first_frame);
    RUN(extra_loras);
    RUN(extra_loras_over);
    RUN(extra_loras_of_experts);
    RUN(extra_differences);
    RUN(extra_refused);
    RUN(stopped);
    RUN(not_finite);
    RUN(memory);
    tree_remove(&tmp);
    nn_close(&nn);
    gpu_close(g);
    return check_done();
}
