/* SPDX-License-Identifier: Apache-2.0
 * A LoRA that adds less than half a unit in the last place of what a 16-bit linear gives. */
#include "check.h"
#include "nn/wan_work.h"
#include "nn/weights_init.h"

enum { ROWS = 16, COLUMNS = 16, WIDTH = 64, CELLS = 16 * ROWS * COLUMNS };
static const struct wan_shape shape = {
    .layers = 2,
    .heads = 2,
    .width = WIDTH,
    .ffn = 128,
    .in = 16,
    .out = 16,
    .text_width = 32,
    .text_rows = 8,
    .time_width = 32,
};

static float numbers[CELLS], text[8 * 32];

/* b of all pairs normal, of this scale. */
static int set_lora(struct wan *m, float scale, struct cairn_error *err)
{
    const struct params *all = &m->loras[0].params;
    struct weights_init k;
    int r = 0;
    if (weights_init_open(&k, all, &m->loras[0].weights, 2, err))
        return -1;
    for (size_t i = 0; i < all->n && !r; i++)
        r = weights_init_normal(&k, &all->list[i], strstr(all->list[i].name, "lora_A") ? 0.125f : scale, i,
                                err);
    weights_init_close(&k);
    return r;
}

static int forward(struct wan *m, struct work *w, float scale, float *out, struct cairn_error *err)
{
    float time = 400;
    struct model_pass p = { .scale = 1 };
    struct wan_batch b = {
        .samples = 1, .size = { 1, ROWS, COLUMNS }, .x = numbers, .times = &time, .text = text
    };
    return set_lora(m, scale, err) || wan_put(w, 0, &b, err) || m->model.ops->run(w, &p, NULL, err) ||
                   wan_output(w, 0, out, err)
               ? -1
               : 0;
}

/* What the LoRA changes in the output. */
static int change(enum gpu_storage storage, float *out, struct cairn_error *err)
{
    static float without[CELLS];
    const struct lora_options lora = { .rank = 4, .alpha = 4 };
    const struct wan_options o = { .experts = 1, .lora = &lora };
    const struct work_options work = { .samples = 1, .extent = ROWS * COLUMNS / 4 };
    struct gpu *g;
    struct nn nn = { 0 };
    struct wan *m = NULL;
    struct work *w = NULL;
    if (gpu_open("cpu", &g, err))
        return -1;
    int r = nn_open(&nn, g, storage, err) || wan_new(&nn, &shape, &o, &m, err) ||
            model_alloc(&m->model, NULL, err) || wan_init(m, 0, 1, err) ||
            m->model.ops->work_open(&m->model, &work, &w, err) || forward(m, w, 0, without, err) ||
            forward(m, w, 0.0005f, out, err);
    for (size_t i = 0; i < CELLS; i++)
        out[i] -= without[i];
    if (m) {
        m->model.ops->work_close(w);
        model_close(&m->model);
    }
    nn_close(&nn);
    gpu_close(g);
    return r ? -1 : 0;
}

/* Rounding makes noise, which is as often up as down: on average the change is that of f32. */
static void is_not_rounded_away(void)
{
    static float want[CELLS], got[CELLS];
    struct cairn_error err = { 0 };
    double both = 0, square = 0;
    for (size_t i = 0; i < CELLS; i++)
        numbers[i] = (float)(i * 7919 % 1009) / 504 - 1;
    for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++)
        text[i] = (float)(i * 31 % 17) / 8 - 1;
    REQUIRE(!change(GPU_F32, want, &err));
    REQUIRE(!change(GPU_BF16, got, &err));
    for (size_t i = 0; i < CELLS; i++) {
        both += (double)got[i] * (double)want[i];
        square += (double)want[i] * (double)want[i];
    }
    double share = both / square;
    printf("# of the change, %.3f arrives\n", share);
    CHECK(share > 0.75 && share < 1.25);
}

int main(void)
{
    RUN(is_not_rounded_away);
    return check_done();
}
