/* SPDX-License-Identifier: Apache-2.0
 * A tiny Wan model in a task without an engine, for tests of samples. */
#ifndef CAIRN_TESTS_UNIT_TRAIN_WAN_RIG_H
#define CAIRN_TESTS_UNIT_TRAIN_WAN_RIG_H

#include "check.h"
#include "train/wan_generate.h"
#include "video/noise.h"
#include <math.h>

enum { OUT = 4, TEXT = 8, ROWS = 6, FRAMES = 3, HEIGHT = 4, WIDTH = 6, FRAME = HEIGHT * WIDTH };
enum { CELLS = FRAMES * FRAME, VALUES = OUT * CELLS, STEPS = 4 };

static struct gpu *g;
static struct nn nn;
static struct cairn_error err;
static float text[ROWS * TEXT], negative[ROWS * TEXT];

/* A task without an engine. */
struct rig {
    struct task task;
    struct wan *m;
};

static inline void numbers(float *into, size_t n, uint64_t seed)
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

static size_t said; /* lines */

static inline void say(void *context, const char *line)
{
    (void)context, (void)line;
    said++;
}

/* Weights follow from the base's number; the LoRAs are not 0. */
static inline void open_rig(struct rig *r, const struct wan_shape *s, const struct wan_options *o,
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

static inline void close_rig(struct rig *r)
{
    model_close(&r->m->model);
}

static const struct lora_options rank2 = { .rank = 2, .alpha = 1 };
static const struct wan_options plain = { .experts = 1 }, with_lora = { .experts = 1, .lora = &rank2 },
                                two = { .experts = 2, .lora = &rank2, .lora_per_expert = true };

static inline struct wan_clip usual(void)
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

static inline void generate(struct rig *r, const struct wan_clip *c, float *into)
{
    err = (struct cairn_error){ 0 };
    if (wan_generate(&r->task, c, into, &err))
        CHECK_FAIL_("%s", err.msg);
}

static inline double difference(const float *a, const float *b)
{
    double most = 0;
    for (size_t i = 0; i < VALUES; i++)
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

/* Opens the device of the arguments, and fills the texts. */
static inline void open_device(int argc, char **argv)
{
    if (gpu_open(argc > 1 ? argv[1] : "cpu", &g, &err) || nn_open(&nn, g, GPU_F32, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(99);
    }
    numbers(text, ARRAY_LEN(text), 2);
    numbers(negative, ARRAY_LEN(negative), 3);
}

static inline int close_device(void)
{
    nn_close(&nn);
    gpu_close(g);
    return check_done();
}

#endif
