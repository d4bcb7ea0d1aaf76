/* SPDX-License-Identifier: Apache-2.0
 * A GPT of every kind: gradients against differences of the loss, the ways to save memory against the plain way, and
 * token by token against all at once. */
#include "check.h"
#include "gpu/backend.h"
#include "nn/gpt_work.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 2, TOKENS = 9, ROWS = SAMPLES * TOKENS, VOCAB = 37 };

static const struct gpt_shape like_gpt2 = {
    .layers = 2,
    .heads = 3,
    .kv_heads = 3,
    .width = 24,
    .ffn = 40,
    .context = 16,
    .vocab = VOCAB,
    .bias = true,
    .tied = true,
    .norm_epsilon = 1e-5f,
};
static const struct gpt_shape like_llama = {
    .layers = 2,
    .heads = 4,
    .kv_heads = 2,
    .width = 32,
    .ffn = 48,
    .context = 16,
    .vocab = VOCAB,
    .norm = NN_NORM_RMS,
    .rope = true,
    .swiglu = true,
    .norm_epsilon = 1e-5f,
    .rope_theta = 10000,
};

/* A model with all that a pass needs. */
struct rig {
    struct gpu *g;
    struct nn nn;
    struct gpt *m;
    struct gpt_work *room;
    struct weights grads;
    int ids[ROWS], targets[ROWS];
};

static struct cairn_error err;

static uint32_t pick(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Biases and LoRA's second matrices start at 0, where half of the gradients would be 0 too. */
static void stir(struct weights *w, const struct params *p)
{
    uint32_t state = 7;
    for (size_t i = 0; i < p->n; i++) {
        const struct param *q = &p->list[i];
        size_t n = q->rows * q->columns;
        float *numbers = malloc(n * sizeof(*numbers));
        CHECK(numbers && !weights_get(w, q, numbers, &err));
        for (size_t k = 0; k < n; k++)
            numbers[k] += 0.1f * ((float)(pick(&state) % 2001) / 1000 - 1);
        CHECK(!weights_put(w, q, numbers, &err));
        free(numbers);
    }
}

/* Which way is the fastest may change, and with it the bits; NULL: never mind. */
static const char *only_way;

static void open_rig(struct rig *r, const struct gpt_shape *shape, const struct gpt_options *o,
                     bool recompute)
{
    struct gpt_work_options room = {
        .samples = SAMPLES, .tokens = TOKENS, .train = true, .recompute = recompute
    };
    uint32_t state = 1;
    *r = (struct rig){ 0 };
    CHECK(!gpu_open("cpu", &r->g, &err));
    CHECK(!nn_open(&r->nn, r->g, GPU_F32, &err));
    CHECK(!blas_force(r->nn.blas, only_way, &err));
    CHECK(!gpt_open(&r->nn, shape, o, &r->m, &err));
    CHECK(!gpt_init(r->m, 0.2f, 5, &err));
    if (o->lora)
        CHECK(!gpt_init_lora(r->m, 6, &err));
    stir(model_trained_weights(&r->m->model, 0), model_trained(&r->m->model, 0));
    CHECK(!gpt_work_open(r->m, &room, &r->room, &err));
    CHECK(!weights_open(&r->grads, r->g, model_trained(&r->m->model, 0), GPU_F32, WEIGHTS_INT8, &err));
    for (int i = 0; i < ROWS; i++) {
        r->ids[i] = (int)(pick(&state) % VOCAB);
        r->targets[i] = i == 3 ? -1 : (int)(pick(&state) % VOCAB);
    }
    CHECK(!gpt_put(r->room, 0, r->ids, r->targets, &err));
}

static void close_rig(struct rig *r)
{
    weights_close(&r->grads);
    gpt_work_close(r->room);
    gpt_close(r->m);
    nn_close(&r->nn);
    gpu_close(r->g);
}

static const struct gpt_pass learning = { .scale = 1, .seed = 3, .stream = 4, .learn = true };

static double loss_of(struct rig *r)
{
    double sum = NAN;
    size_t n = 0;
    CHECK(!gpt_run(r->room, &learning, NULL, &err));
    CHECK(!gpt_loss(r->room, 0, &sum, &n, &err));
    CHECK(n == ROWS - 1);
    return sum;
}

static void run_back(struct rig *r)
{
    CHECK(!weights_clear(&r->grads, model_trained(&r->m->model, 0), NULL, &err));
    CHECK(!gpt_run(r->room, &learning, &r->grads, &err));
    CHECK(!gpu_wait(r->g, NULL, &err));
}

/* Along its gradient the loss must rise by the gradient's length. */
static void check_slope(struct rig *r, const struct param *p)
{
    const double by = 4e-3;
    struct weights *w = model_trained_weights(&r->m->model, 0);
    size_t n = p->rows * p->columns;
    float *at = malloc(n * sizeof(*at)), *slope = malloc(n * sizeof(*slope)),
          *moved = malloc(n * sizeof(*moved));
    CHECK(at && slope && moved);
    CHECK(!weights_get(w, p, at, &err) && !weights_get(&r->grads, p, slope, &err));
    double length = 0, loss[2];
    for (size_t i = 0; i < n; i++)
        length += (double)slope[i] * (double)slope[i];
    length = sqrt(length);
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < n; i++)
            moved[i] = (float)((double)at[i] + (side ? by : -by) * (double)slope[i] / length);
        CHECK(!weights_put(w, p, moved, &err));
        loss[side] = loss_of(r);
    }
    CHECK(!weights_put(w, p, at, &err));
    double measured = (loss[1] - loss[0]) / (2 * by);
    if (!(fabs(measured - length) <= 0.01 * length + 2e-4))
        printf("# %s: the slope is %g, measured %g\n", p->name, length, measured);
    CHECK(fabs(measured - length) <= 0.01 * length + 2e-4);
    free(at);
    free(slope);
    free(moved);
}

static void check_slopes(const struct gpt_shape *shape, const struct gpt_options *o)
{
    struct rig r;
    open_rig(&r, shape, o, false);
    run_back(&r);
    const struct params *p = model_trained(&r.m->model, 0);
    for (size_t i = 0; i < p->n; i++)
        check_slope(&r, &p->list[i]);
    close_rig(&r);
}

static void gradients_of_gpt2(void)
{
    check_slopes(&like_gpt2, &(struct gpt_options){ 0 });
}

static void gradients_of_llama(void)
{
    check_slopes(&like_llama, &(struct gpt_options){ 0 });
}

static void gradients_with_dropout(void)
{
    struct gpt_shape s = like_gpt2;
    s.dropout = 0.3f;
    check_slopes(&s, &(struct gpt_options){ 0 });
}

static void gradients_of_lora(void)
{
    struct lora_options lora = { .rank = 3, .alpha = 6 };
    check_slopes(&like_gpt2, &(struct gpt_options){ .lora = &lora });
    check_slopes(&like_llama, &(struct gpt_options){ .lora = &lora });
    lora.dropout = 0.25f;
    check_slopes(&like_llama, &(struct gpt_options){ .lora = &lora });
}

static void gradients_of_lora_on_bytes(void)
{
    struct lora_options lora = { .rank = 3, .alpha = 6 };
    check_slopes(&like_llama, &(struct gpt_options){ .lora = &lora, .quantize = GPT_QUANTIZE_INT8 });
    check_slopes(&like_gpt2, &(struct gpt_options){ .lora = &lora, .quantize = GPT_QUANTIZE_FP8 });
}

static void lora_learns_where_it_is_told(void)
{
    const char *targets[] = { "*.q_proj", "down_proj" };
    struct lora_options lora = { .rank = 2, .alpha = 2, .targets = targets, .n_targets = 2 };
    struct rig r;
    open_rig(&r, &like_llama, &(struct gpt_options){ .lora = &lora }, false);
    CHECK(r.m->lora.params.n == 2 * 2 * like_llama.layers);
    CHECK(params_find(&r.m->lora.params, "model.layers.1.self_attn.q_proj.lora_A.weight"));
    CHECK(params_find(&r.m->lora.params, "model.layers.0.mlp.down_proj.lora_B.weight"));
    close_rig(&r);
    targets[0] = targets[1] = "nothing";
    struct nn nn;
    struct gpu *g;
    struct gpt *m;
    CHECK(!gpu_open("cpu", &g, &err) && !nn_open(&nn, g, GPU_F32, &err));
    CHECK(gpt_open(&nn, &like_llama, &(struct gpt_options){ .lora = &lora }, &m, &err) == -1);
    CHECK(strstr(err.msg, "lora.targets"));
    nn_close(&nn);
    gpu_close(g);
}

static float *all_grads(struct rig *r, size_t *bytes)
{
    const struct params *p = model_trained(&r->m->model, 0);
    *bytes = p->numbers[PARAM_MATRIX] * sizeof(float);
    float *out = malloc(*bytes);
    CHECK(out && !gpu_download(r->g, NULL, out, r->grads.matrices, *bytes, &err) &&
          !gpu_wait(r->g, NULL, &err));
    return out;
}

static void recomputing_gives_the_same_bits(void)
{
    struct gpt_shape shapes[] = { like_gpt2, like_llama };
    shapes[0].dropout = 0.2f;
    for (int i = 0; i < 2; i++) {
        struct rig plain, again;
        size_t bytes;
        open_rig(&plain, &shapes[i], &(struct gpt_options){ 0 }, false);
        open_rig(&again, &shapes[i], &(struct gpt_options){ 0 }, true);
        run_back(&plain);
        run_back(&again);
        float *a = all_grads(&plain, &bytes), *b = all_grads(&again, &bytes);
        CHECK(!memcmp(a, b, bytes));
        free(a);
        free(b);
        close_rig(&plain);
        close_rig(&again);
    }
}

/* The whole way with blocks that come over one by one, and after they moved. */
static void blocks_on_the_host_give_the_same_bits(void)
{
    struct lora_options lora = { .rank = 2, .alpha = 4 };
    struct gpt_shape shapes[] = { like_gpt2, like_llama, like_llama };
    shapes[1].layers = 5;
    shapes[1].tied = false;
    only_way = "gemm";
    for (int i = 1; i < 5; i++) {
        struct rig near, far;
        size_t bytes, host;
        struct model_layout none = { 0 }, all = { .streamed = MODEL_ALL_BLOCKS };
        struct gpt_options o = { .lora = &lora, .quantize = i % 2 ? GPT_QUANTIZE_INT8 : GPT_QUANTIZE_NONE };
        open_rig(&near, &shapes[i / 2], &o, false);
        o.blocks_on_host = true;
        open_rig(&far, &shapes[i / 2], &o, i % 2);
        CHECK(near.m->frozen.pieces == shapes[i / 2].layers && !near.m->weights.offloaded &&
              far.m->weights.offloaded);
        CHECK(near.m->frozen.pieces < 4 ||
              model_bytes(&far.m->model, &all, &host) < model_bytes(&far.m->model, &none, &bytes));
        size_t some[] = { 0, 2, SIZE_MAX, 1, 0 }; /* of the blocks, after each round */
        for (size_t round = 0; round < ARRAY_LEN(some); round++) {
            if (far.m->weights.host_dequant)
                far.m->weights.host_dequant->active = round != 1; /* in the middle of a block */
            run_back(&near);
            run_back(&far);
            float *a = all_grads(&near, &bytes), *b = all_grads(&far, &bytes);
            CHECK(!memcmp(a, b, bytes));
            free(a);
            free(b);
            CHECK(!weights_move_blocks(&far.m->weights, some[round], NULL, &err));
            CHECK((far.m->weights.offloaded != NULL) == (some[round] > 0));
            size_t streamed = 0;
            for (size_t k = 0; k < far.m->frozen.pieces; k++)
                streamed += weights_is_streamed(&far.m->weights, k);
            CHECK_INT(streamed, some[round] < far.m->frozen.pieces ? some[round] : far.m->frozen.pieces);
        }
        close_rig(&near);
        close_rig(&far);
    }
    only_way = NULL;
}

static void recomputing_takes_less(void)
{
    struct rig r;
    open_rig(&r, &like_gpt2, &(struct gpt_options){ 0 }, false);
    struct gpt_work_options o = { .samples = 8, .tokens = 16, .train = true };
    size_t plain = gpt_work_bytes(r.m, &o);
    o.recompute = true;
    CHECK(gpt_work_bytes(r.m, &o) < plain);
    close_rig(&r);
}

/* No product and no attention asks for more than was reserved. */
static void what_the_cpu_packs_is_reserved(void)
{
    const struct gpt_shape *shapes[] = { &like_gpt2, &like_llama };
    struct lora_options lora = { .rank = 2, .alpha = 2 };
    only_way = "cpu";
    for (int i = 0; i < 4; i++) {
        struct rig r;
        struct gpt_work_options o = { .samples = SAMPLES, .tokens = TOKENS, .train = true };
        open_rig(&r, shapes[i % 2], &(struct gpt_options){ .lora = i < 2 ? NULL : &lora }, false);
        size_t bytes = gpt_work_packed_bytes(r.m, &o);
        CHECK(bytes > 0);
        CHECK_INT(r.nn.packed_bytes, bytes);
        run_back(&r);
        CHECK_INT(gpu_host_scratch_size(r.g) * sizeof(float), bytes);
        close_rig(&r);
    }
    only_way = NULL;
}

static void token_by_token_is_all_at_once(void)
{
    const struct gpt_shape *shapes[] = { &like_gpt2, &like_llama };
    for (int i = 0; i < 2; i++) {
        struct rig r;
        struct gpt_work *room;
        float all[ROWS * VOCAB], one[VOCAB];
        struct gpt_work_options o = { .samples = 1, .tokens = TOKENS };
        open_rig(&r, shapes[i], &(struct gpt_options){ 0 }, false);
        CHECK(!gpt_run(r.room, &(struct gpt_pass){ .scale = 1 }, NULL, &err));
        CHECK(!gpt_scores(r.room, all, &err));
        CHECK(!gpt_work_open(r.m, &o, &room, &err));
        CHECK(!gpt_next(room, r.ids, 4, 0, one, &err));
        for (int t = 3; t < TOKENS; t++) {
            for (int k = 0; k < VOCAB; k++)
                CHECK(fabsf(one[k] - all[t * VOCAB + k]) < 1e-4f);
            if (t + 1 < TOKENS)
                CHECK(!gpt_next(room, r.ids + t + 1, 1, (size_t)t + 1, one, &err));
        }
        CHECK(gpt_next(room, r.ids, 1, TOKENS, one, &err) == -1);
        gpt_work_close(room);
        close_rig(&r);
    }
}

static void bytes_are_near(void)
{
    struct lora_options lora = { .rank = 2, .alpha = 2 };
    for (int i = 0; i < 2; i++) {
        struct rig r;
        enum gpt_quantize q = i ? GPT_QUANTIZE_FP8 : GPT_QUANTIZE_INT8;
        open_rig(&r, &like_gpt2, &(struct gpt_options){ .quantize = q, .lora = &lora }, false);
        const struct param *p = params_find(&r.m->params, "h.0.mlp.c_fc.weight");
        float x[40 * 24], y[40 * 24];
        CHECK(p && p->kind == PARAM_QUANTIZED);
        for (int k = 0; k < 40 * 24; k++)
            x[k] = k < 24 ? 0 : sinf((float)k) * (float)(k / 24);
        CHECK(!weights_put(&r.m->weights, p, x, &err) && !weights_get(&r.m->weights, p, y, &err));
        for (int k = 0; k < 40 * 24; k++)
            CHECK(fabsf(x[k] - y[k]) <= (i ? 0.0626f * fabsf(x[k]) + 1e-3f : (float)(k / 24) / 253));
        close_rig(&r);
    }
}

static void wrong_shapes_are_refused(void)
{
    struct gpt_shape s = like_gpt2;
    CHECK(!gpt_shape_check(&s, &err));
    s.heads = 5;
    CHECK(gpt_shape_check(&s, &err) == -1 && strstr(err.msg, "5 heads"));
    s = like_llama;
    s.kv_heads = 3;
    CHECK(gpt_shape_check(&s, &err) == -1 && strstr(err.msg, "heads"));
    s = like_gpt2;
    s.heads = s.kv_heads = 1, s.width = 256;
    CHECK(gpt_shape_check(&s, &err) == -1 && strstr(err.msg, "256"));
    struct rig r;
    struct gpt_work *room;
    open_rig(&r, &like_gpt2, &(struct gpt_options){ 0 }, false);
    CHECK(gpt_work_open(r.m, &(struct gpt_work_options){ .samples = 1, .tokens = 17 }, &room, &err) == -1);
    CHECK(strstr(err.msg, "context"));
    r.ids[2] = VOCAB;
    CHECK(gpt_put(r.room, 0, r.ids, r.targets, &err) == -1);
    close_rig(&r);
}

int main(void)
{
    RUN(gradients_of_gpt2);
    RUN(gradients_of_llama);
    RUN(gradients_with_dropout);
    RUN(gradients_of_lora);
    RUN(gradients_of_lora_on_bytes);
    RUN(lora_learns_where_it_is_told);
    RUN(recomputing_gives_the_same_bits);
    RUN(blocks_on_the_host_give_the_same_bits);
    RUN(recomputing_takes_less);
    RUN(what_the_cpu_packs_is_reserved);
    RUN(token_by_token_is_all_at_once);
    RUN(bytes_are_near);
    RUN(wrong_shapes_are_refused);
    return check_done();
}
