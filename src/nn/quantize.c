/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/quantize.h"
#include "base/thread.h"
#include "tensor/fp8_scaled.h"

enum { BLOCK = 512, PIECE = 1 << 16 /* numbers */ };

void quantize_row(enum weights_format format, uint8_t *codes, float *scale, const float *x, size_t n)
{
    const float magic = 12582912; /* 1.5 * 2^23: adding it rounds to an integer, ties to even */
    float v[BLOCK];
    *scale = fp8_absmax(x, n) / (format == WEIGHTS_INT8 ? 127 : 448);
    for (size_t at = 0, k; at < n; at += k) {
        k = n - at < BLOCK ? n - at : BLOCK;
        for (size_t i = 0; i < k; i++)
            v[i] = *scale > 0 ? x[at + i] / *scale : 0;
        if (format == WEIGHTS_FP8)
            dtype_convert(codes + at, DTYPE_F8_E4M3, v, DTYPE_F32, k,
                          &(struct dtype_how){ .saturate = true });
        else
            for (size_t i = 0; i < k; i++) {
                float c = v[i] > 127 ? 127 : v[i] < -127 ? -127 : v[i]; /* a subnormal scale is coarse */
                codes[at + i] = (uint8_t)(int8_t)(c + magic - magic);
            }
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
