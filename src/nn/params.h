/* SPDX-License-Identifier: Apache-2.0
 * The parameters of a model: one table of names and shapes, each with its place in memory (weights.h).
 *
 * Matrices lie one after the other, and so do vectors (biases, weights of norms), and so do quantized
 * matrices.  Each begins at a multiple of PARAMS_ALIGN values; the padding between them is zero and
 * stays zero, so that an optimizer can walk over all of a kind in one launch.  A matrix may be padded
 * with rows that its shape does not count; these are zero too. */
#ifndef CAIRN_NN_PARAMS_H
#define CAIRN_NN_PARAMS_H

#include "base/arena.h"
#include <stdbool.h>
#include <stddef.h>

enum { PARAMS_ALIGN = 256 };

enum param_kind {
    PARAM_MATRIX,    /* in the storage format of the model */
    PARAM_VECTOR,    /* f32, one row */
    PARAM_QUANTIZED, /* a matrix in 8 bits with a scale for each row; frozen */
    PARAM_KINDS,
};

struct param {
    const char *name; /* "h.0.attn.c_attn.weight" */
    enum param_kind kind;
    size_t rows, columns;
    size_t at;       /* its first number among those of its kind */
    size_t scale_at; /* of PARAM_QUANTIZED: the scale of its first row */
};

struct params {
    struct arena arena;
    struct param *list;
    size_t n;
    size_t numbers[PARAM_KINDS]; /* with padding */
    size_t scales;
};

/* Both return the index.  The name is formatted; rows_padded >= rows are reserved. */
size_t params_add(struct params *p, enum param_kind kind, size_t rows, size_t columns, const char *fmt, ...)
    PRINTF_LIKE(5, 6);
size_t params_add_padded(struct params *p, size_t rows, size_t columns, size_t rows_padded, const char *name);
/* NULL: no such parameter. */
const struct param *params_find(const struct params *p, const char *name);
size_t params_count(const struct params *p); /* values, without padding */
void params_release(struct params *p);

#endif
