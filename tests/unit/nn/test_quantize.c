/* SPDX-License-Identifier: Apache-2.0
 * Rows of 8 bits against the plain formula and against the kernels, number by number. */
#include "nn/quantize.h"

#include "check.h"
#include "gpu/kernels/quant.h"
#include <math.h>

static void plain(enum weights_format format, uint8_t *codes, float *scale, const float *x, size_t n)
{
    float most = 0, limit = format == WEIGHTS_INT8 ? 127 : 448;
    for (size_t i = 0; i < n; i++)
        most = fmaxf(most, fabsf(x[i]));
    *scale = most / limit;
    for (size_t i = 0; i < n; i++) {
        float v = *scale > 0 ? fmaxf(fminf(x[i] / *scale, limit), -limit) : 0;
        if (format == WEIGHTS_INT8)
            codes[i] = (uint8_t)(int8_t)rintf(v);
        else
            dtype_convert(&codes[i], DTYPE_F8_E4M3, &v, DTYPE_F32, 1, &(struct dtype_how){ 0 });
    }
}

static uint32_t state = 1;

static float next(void)
{
    state = state * 1664525 + 1013904223;
    return (float)(int32_t)state / (float)(1u << 31);
}

enum { MOST = 1100 };

static void check_row(const float *x, size_t n)
{
    static const enum weights_format formats[] = { WEIGHTS_INT8, WEIGHTS_FP8 };
    for (size_t f = 0; f < ARRAY_LEN(formats); f++) {
        uint8_t got[MOST + 1], want[MOST];
        float scale = -1, plain_scale, back[MOST], most = 0;
        got[n] = 77;
        quantize_row(formats[f], got, &scale, x, n);
        plain(formats[f], want, &plain_scale, x, n);
        CHECK(scale == plain_scale);
        CHECK(!memcmp(got, want, n));
        CHECK_INT(got[n], 77);
        dequantize_row(formats[f], back, got, scale, n);
        for (size_t i = 0; i < n; i++)
            most = fmaxf(most, fabsf(x[i]));
        for (size_t i = 0; i < n && scale > 1e-38f; i++)
            if (fabsf(back[i] - x[i]) > most / (formats[f] == WEIGHTS_INT8 ? 253 : 27))
                CHECK_FAIL_("%g became %g; the largest is %g", (double)x[i], (double)back[i], (double)most);
    }
}

static void rows_of_every_length_and_scale(void)
{
    static const size_t lengths[] = { 1, 2, 31, 32, 33, 511, 512, 513, 1024, MOST };
    static const float scales[] = { 1, 1e-3f, 3e4f, 1e37f, 1e-37f, 1e-39f, 1e-43f };
    for (size_t l = 0; l < ARRAY_LEN(lengths); l++)
        for (size_t s = 0; s < ARRAY_LEN(scales); s++) {
            float x[MOST];
            for (size_t i = 0; i < lengths[l]; i++)
                x[i] = next() * scales[s];
            check_row(x, lengths[l]);
        }
}

/* Halves go to the even neighbour. */
static void ties_go_to_even(void)
{
    float x[64] = { 127 };
    uint8_t codes[64];
    float scale;
    for (int i = 1; i < 64; i++)
        x[i] = (float)(i - 32) + 0.5f;
    quantize_row(WEIGHTS_INT8, codes, &scale, x, 64);
    CHECK(scale == 1);
    for (int i = 1; i < 64; i++)
        CHECK_INT((int8_t)codes[i], (int)rintf(x[i]));
    check_row(x, 64);
}

static void zeros_stay_zeros(void)
{
    float x[40] = { 0 }, back[40];
    uint8_t codes[40];
    float scale;
    memset(codes, 1, sizeof(codes));
    quantize_row(WEIGHTS_FP8, codes, &scale, x, 40);
    dequantize_row(WEIGHTS_FP8, back, codes, scale, 40);
    CHECK(scale == 0 && !memcmp(back, x, sizeof(x)));
}

static void many_rows_are_as_single_ones(void)
{
    enum { ROWS = 301, COLUMNS = 257 };
    static float x[ROWS * COLUMNS], back[ROWS * COLUMNS], scales[ROWS];
    static uint8_t codes[ROWS * COLUMNS];
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        x[i] = next() * (float)(i / COLUMNS);
    quantize_rows(&(struct quantize_rows){ WEIGHTS_FP8, ROWS, COLUMNS, x, codes, scales });
    dequantize_rows(&(struct quantize_rows){ WEIGHTS_FP8, ROWS, COLUMNS, back, codes, scales });
    for (size_t r = 0; r < ROWS; r++) {
        uint8_t want[COLUMNS];
        float scale, values[COLUMNS];
        quantize_row(WEIGHTS_FP8, want, &scale, x + r * COLUMNS, COLUMNS);
        dequantize_row(WEIGHTS_FP8, values, want, scale, COLUMNS);
        CHECK(scale == scales[r] && !memcmp(want, codes + r * COLUMNS, COLUMNS));
        CHECK(!memcmp(values, back + r * COLUMNS, sizeof(values)));
    }
}

/* The text of the kernels, on the CPU. */
static void kernels_make_the_same_codes(void)
{
    enum { COLUMNS = 1037 };
    static const float sizes[] = { 1, 1e-3f, 3e4f, 1e37f, 1e-37f, 1e-39f, 1e-43f, 0 };
    static const enum dtype dtypes[] = {
        [GPU_F32] = DTYPE_F32, [GPU_BF16] = DTYPE_BF16, [GPU_F16] = DTYPE_F16
    };
    enum { ROWS = ARRAY_LEN(sizes) };
    struct cairn_error err = { 0 };
    struct gpu *cpu;
    REQUIRE(!gpu_open("cpu", &cpu, &err));
    for (int i = 0; i < 2 * GPU_STORAGES; i++) {
        static float x[ROWS * COLUMNS], scales[ROWS];
        static char narrow[sizeof(x)];
        static uint8_t codes[ROWS * COLUMNS];
        enum gpu_storage storage = i / 2;
        enum weights_format format = i % 2 ? WEIGHTS_INT8 : WEIGHTS_FP8;
        const struct gpu_kernel *k = NULL;
        struct quantise_args args = {
            .y = codes, .scale = scales, .x = narrow, .rows = ROWS, .columns = COLUMNS
        };
        for (size_t n = 0; n < ROWS * COLUMNS; n++)
            x[n] = next() * sizes[n / COLUMNS];
        dtype_convert(narrow, dtypes[storage], x, DTYPE_F32, ROWS * COLUMNS,
                      &(struct dtype_how){ .saturate = true });
        dtype_convert(x, DTYPE_F32, narrow, dtypes[storage], ROWS * COLUMNS, &(struct dtype_how){ 0 });
        REQUIRE(!gpu_kernel(cpu, i % 2 ? "quantise_int8" : "quantise_e4m3", storage, &k, &err));
        CHECK(!gpu_launch(cpu, NULL, k, (struct gpu_grid){ .x = ROWS }, &args, sizeof(args), &err));
        CHECK(!gpu_wait(cpu, NULL, &err));
        for (size_t r = 0; r < ROWS; r++) {
            uint8_t want[COLUMNS];
            float scale;
            quantize_row(format, want, &scale, x + r * COLUMNS, COLUMNS);
            CHECK(scale == scales[r] && !memcmp(want, codes + r * COLUMNS, COLUMNS));
        }
    }
    gpu_close(cpu);
}

int main(void)
{
    RUN(rows_of_every_length_and_scale);
    RUN(ties_go_to_even);
    RUN(zeros_stay_zeros);
    RUN(many_rows_are_as_single_ones);
    RUN(kernels_make_the_same_codes);
    return check_done();
}
