/* SPDX-License-Identifier: Apache-2.0
 * Rows of 8 bits with a scale for each, on the host: value = scale * code.  A row's largest magnitude becomes
 * the largest code. */
#ifndef CAIRN_NN_QUANTIZE_H
#define CAIRN_NN_QUANTIZE_H

#include "nn/weights.h"

void quantize_row(enum weights_format format, uint8_t *codes, float *scale, const float *x, size_t n);
void dequantize_row(enum weights_format format, float *y, const uint8_t *codes, float scale, size_t n);

/* Many rows, on all cores. */
struct quantize_rows {
    enum weights_format format;
    size_t rows, columns;
    float *numbers;
    uint8_t *codes;
    float *scales;
};
void quantize_rows(const struct quantize_rows *q);
void dequantize_rows(const struct quantize_rows *q);

#endif
