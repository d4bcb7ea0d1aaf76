/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/quantize.h"
#include "base/thread.h"
#include "tensor/fp8_scaled.h"
#include <float.h>
#include <math.h>
#include <string.h>

enum { BLOCK = 512, LANES = 32, PIECE = 1 << 16 /* numbers */ };

/* The compiler makes vectors of the lanes. */
static inline __attribute__((always_inline)) void divide(float *restrict v, const float *restrict x, size_t n,
                                                         float scale)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            v[i + k] = x[i + k] / scale;
    for (; i < n; i++)
        v[i] = x[i] / scale;
}

/* To add 1.5 * 2^23 and to subtract it again rounds to an integer, ties to even. */
static inline __attribute__((always_inline)) int32_t int8_code(float v)
{
    return (int32_t)(v + 12582912 - 12582912);
}

static inline __attribute__((always_inline)) void to_int8(uint8_t *restrict codes, const float *restrict v,
                                                          size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        int32_t wide[LANES];
        for (int k = 0; k < LANES; k++)
            wide[k] = int8_code(v[i + k]);
        for (int k = 0; k < LANES; k++)
            codes[i + k] = (uint8_t)wide[k];
    }
    for (; i < n; i++)
        codes[i] = (uint8_t)int8_code(v[i]);
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static void divide_avx2(float *v, const float *x, size_t n, float scale)
{
    divide(v, x, n, scale);
}

__attribute__((target("avx2"))) static void to_int8_avx2(uint8_t *codes, const float *v, size_t n)
{
    to_int8(codes, v, n);
}
#else
#define divide_avx2 divide
#define to_int8_avx2 to_int8
#endif

void quantize_row(enum weights_format format, uint8_t *codes, float *scale, const float *x, size_t n)
{
    float v[BLOCK];
    bool avx2 = dtype_cpu() & DTYPE_CPU_AVX2;
    float most = format == WEIGHTS_INT8 ? 127 : 448;
    *scale = fp8_absmax(x, n) / most;
    if (!(*scale > 0)) {
        memset(codes, 0, n);
        return;
    }
    for (size_t at = 0, k; at < n; at += k) {
        k = n - at < BLOCK ? n - at : BLOCK;
        (avx2 ? divide_avx2 : divide)(v, x + at, k, *scale);
        for (size_t i = 0; *scale < FLT_MIN && i < k; i++) /* a subnormal scale is coarse */
            v[i] = fmaxf(fminf(v[i], most), -most);
        if (format == WEIGHTS_FP8)
            dtype_convert(codes + at, DTYPE_F8_E4M3, v, DTYPE_F32, k,
                          &(struct dtype_how){ .saturate = true });
        else
            (avx2 ? to_int8_avx2 : to_int8)(codes + at, v, k);
    }
}

void dequantize_row(enum weights_format format, float *y, const uint8_t *codes, float scale, size_t n)
{
    if (format == WEIGHTS_FP8)
        dtype_convert(y, DTYPE_F32, codes, DTYPE_F8_E4M3, n, &(struct dtype_how){ 0 });
    for (size_t i = 0; i < n; i++)
        y[i] = scale * (format == WEIGHTS_FP8 ? y[i] : (float)(int8_t)codes[i]);
}

static size_t piece_rows(const struct quantize_rows *q)
{
    return q->columns < PIECE ? PIECE / q->columns : 1;
}

static size_t pieces(const struct quantize_rows *q)
{
    return (q->rows + piece_rows(q) - 1) / piece_rows(q);
}

static int quantize_piece(void *context, size_t piece, struct cairn_error *err)
{
    const struct quantize_rows *q = context;
    size_t first = piece * piece_rows(q), n = q->columns;
    (void)err;
    for (size_t r = first; r < first + piece_rows(q) && r < q->rows; r++)
        quantize_row(q->format, q->codes + r * n, &q->scales[r], q->numbers + r * n, n);
    return 0;
}

static int dequantize_piece(void *context, size_t piece, struct cairn_error *err)
{
    const struct quantize_rows *q = context;
    size_t first = piece * piece_rows(q), n = q->columns;
    (void)err;
    for (size_t r = first; r < first + piece_rows(q) && r < q->rows; r++)
        dequantize_row(q->format, q->numbers + r * n, q->codes + r * n, q->scales[r], n);
    return 0;
}

/* The pieces cannot fail. */
void quantize_rows(const struct quantize_rows *q)
{
    struct cairn_error ignored;
    parallel_for(pieces(q), 0, quantize_piece, (void *)q, &ignored);
}

void dequantize_rows(const struct quantize_rows *q)
{
    struct cairn_error ignored;
    parallel_for(pieces(q), 0, dequantize_piece, (void *)q, &ignored);
}
