/* SPDX-License-Identifier: Apache-2.0
 * Convolutions as models call them: streamed in parts as in one piece, the scratch, strides that are left out.  The
 * numbers of every shape are in `cairn selftest`. */
#include "check.h"
#include "nn/nn.h"
#include <math.h>
#include <string.h>

static struct gpu *g;
static struct nn nn;
static struct arena arena;
static struct cairn_error err;

static void open_all(void)
{
    CHECK(!gpu_open("cpu", &g, &err));
    CHECK(!nn_open(&nn, g, GPU_F32, &err));
}

static void close_all(void)
{
    arena_release(&arena);
    nn_close(&nn);
    gpu_close(g);
}

static float *numbers(size_t n)
{
    static uint32_t state = 1;
    float *x = ARENA_NEW(&arena, float, n);
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525 + 1013904223;
        x[i] = (float)(state >> 24) / 128 - 1;
    }
    return x;
}

enum { FRAMES = 5, HEIGHT = 6, WIDTH = 7, IN = 8, OUT = 4, PIXELS = HEIGHT * WIDTH };

static struct nn_conv causal(const float *x, const float *w, float *y, size_t frames)
{
    return (struct nn_conv){
        .x = x,
        .frames = frames,
        .height = HEIGHT,
        .width = WIDTH,
        .in = IN,
        .w = w,
        .y = y,
        .out = OUT,
        .out_frames = frames,
        .out_height = HEIGHT,
        .out_width = WIDTH,
        .kernel = { 3, 3, 3 },
        .pad = { 2, 1, 1 },
    };
}

static void a_clip_in_parts_is_the_clip(void)
{
    open_all();
    float *x = numbers(FRAMES * PIXELS * IN), *w = numbers(OUT * 27 * IN);
    float *whole = ARENA_NEW(&arena, float, FRAMES *PIXELS *OUT);
    float *parts = ARENA_NEW(&arena, float, FRAMES *PIXELS *OUT);
    struct nn_conv c = causal(x, w, whole, FRAMES);
    CHECK(!nn_conv(&nn, &c, &err));
    c = causal(x, w, parts, 3);
    CHECK(!nn_conv(&nn, &c, &err));
    c = causal(x + 3 * PIXELS * IN, w, parts + 3 * PIXELS * OUT, 2);
    c.past = x + PIXELS * IN;
    c.past_frames = 2;
    CHECK(!nn_conv(&nn, &c, &err));
    for (size_t i = 0; i < FRAMES * PIXELS * OUT; i++)
        if (fabsf(whole[i] - parts[i]) > 1e-5f)
            CHECK_FAIL_("number %zu is %g, and %g in parts", i, (double)whole[i], (double)parts[i]);
    close_all();
}

static void a_residual_may_be_the_result(void)
{
    open_all();
    float *x = numbers(PIXELS * IN), *w = numbers(OUT * 27 * IN), *sum = numbers(PIXELS * OUT);
    float *y = ARENA_NEW(&arena, float, PIXELS *OUT), *before = ARENA_NEW(&arena, float, PIXELS *OUT);
    memcpy(before, sum, PIXELS * OUT * sizeof(*sum));
    struct nn_conv c = causal(x, w, y, 1);
    CHECK(!nn_conv(&nn, &c, &err));
    c.y = sum;
    c.residual = sum;
    CHECK(!nn_conv(&nn, &c, &err));
    for (size_t i = 0; i < PIXELS * OUT; i++)
        CHECK(fabsf(sum[i] - before[i] - y[i]) < 1e-4f);
    close_all();
}

/* In bf16 an f32 sum keeps what is far below its last bit. */
static void an_f32_sum_is_not_rounded(void)
{
    struct nn narrow;
    enum { COUNT = PIXELS * OUT };
    CHECK(!gpu_open("cpu", &g, &err));
    CHECK(!nn_open(&narrow, g, GPU_BF16, &err));
    uint16_t *x = ARENA_NEW(&arena, uint16_t, PIXELS * IN), *w = ARENA_NEW(&arena, uint16_t, OUT * 27 * IN);
    float *sum = ARENA_NEW(&arena, float, COUNT), *row = ARENA_NEW(&arena, float, PIXELS *IN), silu[IN];
    for (size_t i = 0; i < PIXELS * IN; i++)
        x[i] = 0x3f80;            /* 1 */
    w[(2 * 9 + 4) * IN] = 0x3a80; /* 2^-10, for the pixel itself, and the first filter */
    for (size_t i = 0; i < COUNT; i++)
        sum[i] = 100;
    struct nn_conv c = causal(NULL, NULL, sum, 1);
    c.x = x, c.w = w, c.residual = sum, c.y_f32 = true;
    CHECK(!nn_conv(&narrow, &c, &err));
    for (size_t i = 0; i < COUNT; i++)
        CHECK(sum[i] == (i % OUT ? 100 : 100 + 1.0f / 1024));
    float *other = ARENA_NEW(&arena, float, COUNT);
    c.y = other;
    CHECK(nn_conv(&narrow, &c, &err) == -1 && err.code == CAIRN_EUSAGE);
    /* and its norm reads all of it */
    for (size_t i = 0; i < IN; i++)
        row[i] = 1 + (float)i / 4096, silu[i] = 1;
    struct nn_norm_silu n = { .x = row, .y = x, .w = silu, .rows = 1, .columns = IN, .wide = true };
    CHECK(!nn_norm_silu(&narrow, &n, &err));
    for (size_t i = 0; i < IN; i++)
        CHECK(x[i] == 0x3f3b); /* silu(1) */
    nn_close(&narrow);
    gpu_close(g);
    arena_release(&arena);
}

/* Debug kernels gather rows in memory, on every device. */
static void scratch_grows_when_it_is_needed(void)
{
    CHECK(!gpu_open("cpu", &g, &err));
    CHECK(!gpu_set_debug(g, &err));
    CHECK(!nn_open(&nn, g, GPU_F32, &err));
    float *x = numbers(PIXELS * IN), *w = numbers(OUT * 27 * IN);
    float *y = ARENA_NEW(&arena, float, PIXELS *OUT);
    struct nn_conv c = causal(x, w, y, 1);
    CHECK(!nn_conv(&nn, &c, &err));
    CHECK(nn.conv_work_bytes >= PIXELS * 9 * IN * sizeof(float));
    void *kept = nn.conv_work;
    CHECK(!nn_conv(&nn, &c, &err));
    CHECK(nn.conv_work == kept);
    c.out_height = 0;
    CHECK(nn_conv(&nn, &c, &err) == -1 && err.code == CAIRN_EUSAGE);
    close_all();
}

static void norm_silu_of_a_row_of_zeros_is_zeros(void)
{
    open_all();
    float *x = numbers(3 * 96), *w = numbers(96), *y = ARENA_NEW(&arena, float, 3 * 96);
    memset(x + 96, 0, 96 * sizeof(*x));
    struct nn_norm_silu n = { .x = x, .y = y, .w = w, .rows = 3, .columns = 96 };
    CHECK(!nn_norm_silu(&nn, &n, &err));
    double square = 0;
    for (size_t i = 0; i < 96; i++)
        square += (double)x[i] * (double)x[i];
    for (size_t i = 0; i < 96; i++) {
        double z = (double)x[i] / sqrt(square) * sqrt(96) * (double)w[i];
        CHECK(fabs((double)y[i] - z / (1 + exp(-z))) < 1e-5);
        CHECK(y[96 + i] == 0);
    }
    close_all();
}

int main(void)
{
    RUN(a_clip_in_parts_is_the_clip);
    RUN(a_residual_may_be_the_result);
    RUN(an_f32_sum_is_not_rounded);
    RUN(scratch_grows_when_it_is_needed);
    RUN(norm_silu_of_a_row_of_zeros_is_zeros);
    return check_done();
}
