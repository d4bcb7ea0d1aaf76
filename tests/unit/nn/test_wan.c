/* SPDX-License-Identifier: Apache-2.0
 * The Wan transformer: gradients of its LoRAs against differences of the loss, the ways to save memory against
 * the plain way, experts, and quantized weights.  test_wan DEVICE. */
#include "check.h"
#include "nn/wan_inside.h"
#include "nn/wan_work.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SAMPLES = 2,
    FRAMES = 3,
    HEIGHT = 4,
    WIDTH = 6,
    CELLS = FRAMES * HEIGHT * WIDTH,
    TOKENS = CELLS / WAN_PATCH
};

/* As I2V of Wan 2.1: the image's latents go in, and CLIP's features. */
static const struct wan_shape shape = {
    .layers = 2,
    .heads = 2,
    .width = 16,
    .ffn = 24,
    .in = 7,
    .out = 4,
    .text_width = 10,
    .text_rows = 5,
    .time_width = 8,
    .clip_width = 6,
    .clip_rows = 3,
};
static const struct lora_options lora = { .rank = 3, .alpha = 6 };

/* What a test wants of a model and its batch. */
struct wanted {
    struct wan_options model;
    struct model_layout layout;
    bool recompute, inputs_on_host, no_clip;
    size_t expert, clean_frames;
    enum gpu_storage storage;
};

/* A model with all that a pass needs. */
struct rig {
    struct nn nn;
    struct wan *m;
    struct work *work;
    struct weights grads;
    size_t set;
    float *numbers; /* of the batch */
};

static const char *only_way; /* of matrix products */
static struct gpu *g;
static struct cairn_error err;

/* Nothing that follows would say more. */
#define REQUIRE_RUN(cond)                      \
    do {                                       \
        if (!(cond)) {                         \
            printf("Bail out! %s\n", err.msg); \
            exit(99);                          \
        }                                      \
    } while (0)

static float pick(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8 & 0xffff) / 32768 - 1;
}

/* Biases and the LoRA's second matrices are 0 at first, where half of the gradients would be 0 too. */
static void stir(const struct weights *w, const struct params *p, float by)
{
    uint32_t state = 7;
    for (size_t i = 0; i < p->n; i++) {
        const struct param *q = &p->list[i];
        size_t n = q->rows * q->columns;
        float *numbers = malloc(n * sizeof(*numbers));
        CHECK(numbers && !weights_get(w, q, numbers, &err));
        for (size_t k = 0; k < n; k++)
            numbers[k] += by * pick(&state);
        CHECK(!weights_put(w, q, numbers, &err));
        free(numbers);
    }
}

static void put_batch(struct rig *r, const struct wanted *o)
{
    const struct wan_shape *s = &r->m->shape;
    static const float times[SAMPLES] = { 300, 811.5f }, weights[SAMPLES] = { 1, 0.5f };
    size_t x = SAMPLES * s->in * CELLS, target = SAMPLES * s->out * CELLS;
    size_t text = SAMPLES * s->text_rows * s->text_width, clip = SAMPLES * s->clip_rows * s->clip_width;
    uint32_t state = 3;
    r->numbers = malloc((x + target + text + clip) * sizeof(float));
    for (size_t i = 0; i < x + target + text + clip; i++)
        r->numbers[i] = pick(&state);
    struct wan_batch b = {
        .samples = SAMPLES,
        .expert = o->expert,
        .size = { FRAMES, HEIGHT, WIDTH },
        .clean_frames = o->clean_frames,
        .x = r->numbers,
        .target = r->numbers + x,
        .times = times,
        .weights = weights,
        .text = r->numbers + x + target,
        .clip = s->clip_width ? r->numbers + x + target + text : NULL,
    };
    CHECK(!wan_put(r->work, 0, &b, &err));
}

static void open_rig(struct rig *r, const struct wanted *o)
{
    struct wan_shape s = shape;
    struct wan_options options = o->model;
    struct work_options work = { .samples = SAMPLES,
                                 .extent = TOKENS,
                                 .slots = 1,
                                 .train = true,
                                 .recompute = o->recompute,
                                 .inputs_on_host = o->inputs_on_host };
    *r = (struct rig){ 0 };
    if (o->no_clip)
        s.clip_width = s.clip_rows = 0;
    options.experts = options.experts ? options.experts : 1;
    options.lora = options.lora ? options.lora : &lora;
    REQUIRE(!nn_open(&r->nn, g, o->storage, &err));
    /* Which way is the fastest may change, and with it the bits. */
    CHECK(!blas_force(r->nn.blas, only_way, &err));
    REQUIRE(!wan_new(&r->nn, &s, &options, &r->m, &err));
    REQUIRE(!model_alloc(&r->m->model, &o->layout, &err));
    for (size_t i = 0; i < options.experts; i++)
        CHECK(!wan_init(r->m, i, 5 + i, &err));
    CHECK(!wan_init_lora(r->m, 6, &err));
    for (size_t i = 0; i < r->m->model.n_loras; i++)
        stir(&r->m->loras[i].weights, &r->m->loras[i].params, 0.2f);
    r->set = wan_lora_of(r->m, o->expert);
    REQUIRE(!r->m->model.ops->work_open(&r->m->model, &work, &r->work, &err));
    REQUIRE(!weights_open(&r->grads, g, &r->m->loras[r->set].params, GPU_F32, WEIGHTS_INT8, &err));
    put_batch(r, o);
}

static void close_rig(struct rig *r)
{
    weights_close(&r->grads);
    r->m->model.ops->work_close(r->work);
    model_close(&r->m->model);
    nn_close(&r->nn);
    free(r->numbers);
}

static const struct model_pass learning = { .scale = 1, .seed = 3, .stream = 4, .learn = true };

static double loss_of(struct rig *r)
{
    double sum = NAN, n = 0;
    const struct model_ops *ops = r->m->model.ops;
    REQUIRE_RUN(!ops->run(r->work, &learning, NULL, &err) && !ops->loss(r->work, 0, &sum, &n, &err));
    CHECK(n == SAMPLES);
    return sum;
}

static void run_back(struct rig *r)
{
    CHECK(!weights_clear(&r->grads, &r->m->loras[r->set].params, NULL, &err));
    REQUIRE_RUN(!r->m->model.ops->run(r->work, &learning, &r->grads, &err) && !gpu_wait(g, NULL, &err));
}

static float *all_grads(struct rig *r, size_t *bytes)
{
    *bytes = r->m->loras[r->set].params.numbers[PARAM_MATRIX] * sizeof(float);
    float *out = malloc(*bytes);
    CHECK(out && !gpu_download(g, NULL, out, r->grads.matrices, *bytes, &err) && !gpu_wait(g, NULL, &err));
    return out;
}

/* ---- gradients ---- */

/* The change of the loss along a direction of length 1. */
static double measure(struct rig *r, const struct param *p, const float *at, const double *direction)
{
    const double by = 0.02;
    const struct weights *w = &r->m->loras[r->set].weights;
    size_t n = p->rows * p->columns;
    float *moved = malloc(n * sizeof(*moved));
    double loss[2];
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < n; i++)
            moved[i] = (float)((double)at[i] + (side ? by : -by) * direction[i]);
        CHECK(!weights_put(w, p, moved, &err));
        loss[side] = loss_of(r);
    }
    CHECK(!weights_put(w, p, at, &err));
    free(moved);
    return (loss[1] - loss[0]) / (2 * by);
}

/* Along the gradient, and perhaps along a random direction. */
static void check_slope(struct rig *r, const struct param *p, int ways)
{
    size_t n = p->rows * p->columns;
    float *at = malloc(n * sizeof(*at)), *slope = malloc(n * sizeof(*slope));
    double *direction = malloc(n * sizeof(*direction));
    uint32_t state = (uint32_t)p->at + 1;
    CHECK(at && slope && direction);
    CHECK(!weights_get(&r->m->loras[r->set].weights, p, at, &err) && !weights_get(&r->grads, p, slope, &err));
    for (int way = 0; way < ways; way++) {
        double length = 0, expected = 0;
        for (size_t i = 0; i < n; i++) {
            direction[i] = way ? (double)pick(&state) : (double)slope[i];
            length += direction[i] * direction[i];
        }
        for (size_t i = 0; i < n; i++) {
            direction[i] /= sqrt(length);
            expected += direction[i] * (double)slope[i];
        }
        double measured = measure(r, p, at, direction);
        CHECK(length > 0);
        if (!(fabs(measured - expected) <= 0.01 * fabs(expected) + 5e-5))
            CHECK_FAIL_("%s: the slope is %g, measured %g", p->name, expected, measured);
    }
    free(at);
    free(slope);
    free(direction);
}

/* Of every matrix, or for a variant of every seventh. */
static void check_slopes(const struct wanted *o, size_t every)
{
    struct rig r;
    open_rig(&r, o);
    run_back(&r);
    const struct params *p = &r.m->loras[r.set].params;
    CHECK_INT(p->n, 2 * shape.layers * (o->no_clip ? 10 : 12));
    for (size_t i = 0; i < p->n; i += every)
        check_slope(&r, &p->list[i], i % 5 ? 1 : 2);
    close_rig(&r);
}

static void gradients(void)
{
    check_slopes(&(struct wanted){ 0 }, 1);
}

static void gradients_with_clean_frames(void)
{
    check_slopes(&(struct wanted){ .clean_frames = 1, .no_clip = true, .recompute = true }, 7);
}

static void gradients_with_dropout(void)
{
    static const struct lora_options drop = { .rank = 3, .alpha = 6, .dropout = 0.25f };
    check_slopes(&(struct wanted){ .model.lora = &drop, .clean_frames = 1, .recompute = true }, 7);
}

static void gradients_over_int8(void)
{
    check_slopes(&(struct wanted){ .model = { .quantize = true, .format = WEIGHTS_INT8 } }, 7);
}

static void gradients_of_the_second_expert(void)
{
    check_slopes(&(struct wanted){ .model = { .experts = 2, .lora_per_expert = true }, .expert = 1 }, 7);
    check_slopes(&(struct wanted){ .model = { .experts = 2 }, .expert = 1, .no_clip = true }, 7);
}

/* ---- what does not change the bits ---- */

static void check_same_bits(const struct wanted *a, const struct wanted *b, bool same)
{
    const struct wanted *both[] = { a, b };
    float *found[2];
    double loss[2];
    size_t bytes;
    for (int i = 0; i < 2; i++) {
        struct rig r;
        open_rig(&r, both[i]);
        run_back(&r);
        found[i] = all_grads(&r, &bytes);
        loss[i] = loss_of(&r);
        close_rig(&r);
    }
    CHECK(!memcmp(found[0], found[1], bytes) == same);
    CHECK((loss[0] == loss[1]) == same);
    free(found[0]);
    free(found[1]);
}

static void recomputing_gives_the_same_bits(void)
{
    static const struct lora_options drop = { .rank = 3, .alpha = 6, .dropout = 0.25f };
    struct wanted plain = { .model.lora = &drop }, again = { .model.lora = &drop, .recompute = true };
    check_same_bits(&plain, &again, true);
    for (int i = 0; i < 2; i++) {
        plain = (struct wanted){ .clean_frames = 1, .storage = i ? GPU_F16 : GPU_BF16 };
        again = plain;
        again.recompute = true;
        check_same_bits(&plain, &again, true);
        again.clean_frames = 0;
        check_same_bits(&plain, &again, false);
    }
}

static void inputs_on_the_host_give_the_same_bits(void)
{
    struct wanted near = { .recompute = true }, far = { .recompute = true, .inputs_on_host = true };
    check_same_bits(&near, &far, true);
    near.storage = far.storage = GPU_F16; /* where they are f32 */
    check_same_bits(&near, &far, true);
}

static void blocks_on_the_host_give_the_same_bits(void)
{
    const struct wan_options models[] = {
        { 0 },
        { .quantize = true, .format = WEIGHTS_INT8 },
        { .quantize = true, .format = WEIGHTS_FP8 },
        { .experts = 2 },
    };
    for (size_t i = 0; i < ARRAY_LEN(models); i++)
        for (uint64_t streamed = 1; streamed <= 2; streamed++) {
            struct wanted near = { .model = models[i], .expert = models[i].experts == 2, .recompute = true };
            struct wanted far = near;
            far.layout.streamed = streamed;
            check_same_bits(&near, &far, true);
        }
}

/* ---- experts and quantized weights ---- */

/* The loss of an expert depends on its own weights and LoRA alone. */
static void experts_are_apart(void)
{
    for (size_t expert = 0; expert < 2; expert++) {
        struct rig r;
        struct wanted o = { .model = { .experts = 2, .lora_per_expert = true }, .expert = expert };
        open_rig(&r, &o);
        double before = loss_of(&r);
        stir(&r.m->loras[!expert].weights, &r.m->loras[!expert].params, 0.2f);
        stir(&r.m->weights[!expert], &r.m->params[!expert], 0.2f);
        CHECK(loss_of(&r) == before);
        stir(&r.m->loras[expert].weights, &r.m->loras[expert].params, 0.2f);
        CHECK(loss_of(&r) != before);
        close_rig(&r);
    }
}

/* The same numbers as matrices that are not quantized. */
static void quantized_is_what_it_stands_for(void)
{
    const enum weights_format formats[] = { WEIGHTS_INT8, WEIGHTS_FP8 };
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        struct rig small, plain;
        open_rig(&small, &(struct wanted){ .model = { .quantize = true, .format = formats[i] } });
        open_rig(&plain, &(struct wanted){ 0 });
        double first = loss_of(&plain);
        for (size_t k = 0; k < small.m->params[0].n; k++) {
            const struct param *p = &small.m->params[0].list[k];
            float *numbers = malloc(p->rows * p->columns * sizeof(*numbers));
            CHECK(numbers && !weights_get(&small.m->weights[0], p, numbers, &err) &&
                  !weights_put(&plain.m->weights[0], &plain.m->params[0].list[k], numbers, &err));
            free(numbers);
        }
        double got = loss_of(&small), want = loss_of(&plain);
        CHECK(got != first && fabs(got - want) <= 1e-6 * want);
        close_rig(&small);
        close_rig(&plain);
    }
}

/* Samples of a batch do not see one another, and their losses are weighted. */
static void samples_are_apart(void)
{
    struct rig r;
    open_rig(&r, &(struct wanted){ .clean_frames = 1 });
    size_t x = shape.in * CELLS, target = shape.out * CELLS, text = shape.text_rows * shape.text_width;
    size_t clip = shape.clip_rows * shape.clip_width;
    static const float times[SAMPLES] = { 300, 811.5f }, weights[SAMPLES] = { 1, 0.5f };
    double all = loss_of(&r), sum = 0, n, part;
    for (size_t i = 0; i < SAMPLES; i++) {
        const float *at = r.numbers + SAMPLES * (x + target);
        struct wan_batch b = {
            .samples = 1,
            .size = { FRAMES, HEIGHT, WIDTH },
            .clean_frames = 1,
            .x = r.numbers + i * x,
            .target = r.numbers + SAMPLES * x + i * target,
            .times = times + i,
            .weights = weights + i,
            .text = at + i * text,
            .clip = at + SAMPLES * text + i * clip,
        };
        CHECK(!wan_put(r.work, 0, &b, &err) && !r.m->model.ops->run(r.work, &learning, NULL, &err));
        CHECK(!r.m->model.ops->loss(r.work, 0, &part, &n, &err) && n == 1);
        sum += part;
    }
    CHECK(fabs(sum - all) <= 1e-6 * all);
    close_rig(&r);
}

int main(int argc, char **argv)
{
    const char *device = argc > 1 ? argv[1] : "cpu";
    only_way = strcmp(device, "cpu") ? "gemm" : "cpu";
    if (gpu_open(device, &g, &err)) {
        printf("Bail out! %s\n", err.msg);
        return 99;
    }
    RUN(gradients);
    RUN(gradients_with_clean_frames);
    RUN(gradients_with_dropout);
    RUN(gradients_over_int8);
    RUN(gradients_of_the_second_expert);
    RUN(recomputing_gives_the_same_bits);
    RUN(inputs_on_the_host_give_the_same_bits);
    RUN(blocks_on_the_host_give_the_same_bits);
    RUN(experts_are_apart);
    RUN(quantized_is_what_it_stands_for);
    RUN(samples_are_apart);
    gpu_close(g);
    return check_done();
}
