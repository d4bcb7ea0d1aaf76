/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/param_layout.h"
#include <float.h>
#include <stdlib.h>
#include <string.h>

enum {
    PIECE = 1 << 18, /* values, or one row of the file if that is longer */
    TILE = 32,       /* of a matrix that is transposed */
};

struct param_layout param_layout_of(const struct param_tensor *t)
{
    size_t columns = t->param->columns;
    if (t->param->kind == PARAM_VECTOR)
        return (struct param_layout){ 1, t->rows };
    if (t->taps)
        return (struct param_layout){ t->rows, t->taps * t->channels };
    return t->transposed ? (struct param_layout){ columns, t->rows }
                         : (struct param_layout){ t->rows, columns };
}

int param_layout_shape(const struct param_tensor *t, uint64_t shape[PARAM_DIMS])
{
    if (t->rank) {
        memcpy(shape, t->shape, sizeof(t->shape));
        return t->rank;
    }
    struct param_layout s = param_layout_of(t);
    if (t->param->kind == PARAM_VECTOR) {
        shape[0] = s.columns;
        return 1;
    }
    shape[0] = s.rows;
    shape[1] = s.columns;
    return 2;
}

size_t param_layout_start(const struct param_tensor *t)
{
    return t->param->kind == PARAM_VECTOR ? t->first : t->first * t->param->columns;
}

size_t param_layout_piece_rows(struct param_layout s)
{
    return s.columns > PIECE ? 1 : PIECE / s.columns;
}

size_t param_layout_pieces(struct param_layout s)
{
    size_t rows = param_layout_piece_rows(s);
    return (s.rows + rows - 1) / rows;
}

void param_layout_transpose(float *y, size_t y_stride, const float *x, size_t x_stride, size_t rows,
                            size_t columns)
{
    for (size_t r0 = 0; r0 < rows; r0 += TILE)
        for (size_t c0 = 0; c0 < columns; c0 += TILE)
            for (size_t c = c0; c < columns && c < c0 + TILE; c++)
                for (size_t r = r0; r < rows && r < r0 + TILE; r++)
                    y[c * y_stride + r] = x[r * x_stride + c];
}

void param_layout_last_channels(const struct param_tensor *t, float *y, const float *x, size_t rows)
{
    size_t channels = t->param->columns / t->taps, columns = t->taps * t->channels;
    for (size_t r = 0; r < rows; r++, y += t->param->columns, x += columns)
        for (size_t k = 0; k < t->taps; k++)
            for (size_t c = 0; c < channels; c++)
                y[k * channels + c] = c < t->copies * t->channels ? x[c % t->channels * t->taps + k] : 0;
}

float param_limit(const struct param *p, enum gpu_storage storage)
{
    if (storage == GPU_F32 || p->kind == PARAM_VECTOR)
        return FLT_MAX;
    return (float)dtype_max(storage == GPU_F16 ? DTYPE_F16 : DTYPE_BF16);
}

int param_refuse(const struct tensor_source *s, const struct st_tensor *found, const char *name,
                 enum gpu_storage storage, struct cairn_error *err)
{
    return cairn_fail(err, CAIRN_EFORMAT, "%s: %s has non-finite values (NaN or Inf)%s",
                      source_path_of(s, found), name,
                      storage == GPU_F32 ? "" : ", or values too large for the model's 16 bits");
}

/* The bits that are all set in a NaN and an infinity, in 64 bits of values, and the lowest of them. */
static const struct exponent {
    uint64_t bits, lowest;
} exponents[] = {
    [DTYPE_F32] = { 0x7f8000007f800000, 0x0080000000800000 },
    [DTYPE_F16] = { 0x7c007c007c007c00, 0x0400040004000400 },
    [DTYPE_BF16] = { 0x7f807f807f807f80, 0x0080008000800080 },
    [DTYPE_F8_E4M3] = { 0x7f7f7f7f7f7f7f7f, 0x0101010101010101 }, /* has no infinity */
};

enum { WORDS = 16 };

/* Adding its lowest bit to an exponent carries into the sign if all its bits are set. */
static void add_lowest(uint64_t sums[WORDS], const struct exponent e, const uint64_t some[WORDS])
{
    for (int i = 0; i < WORDS; i++)
        sums[i] |= (some[i] & e.bits) + e.lowest;
}

/* Many words at a time, which compilers vectorize: this must not slow down the reading of a file. */
bool param_layout_is_finite(const void *numbers, enum dtype t, size_t n)
{
    const struct exponent e = exponents[t];
    const char *bytes = numbers;
    uint64_t sums[WORDS] = { 0 }, some[WORDS], all = 0;
    size_t left = n * dtype_size(t);
    for (; left >= sizeof(some); left -= sizeof(some), bytes += sizeof(some)) {
        memcpy(some, bytes, sizeof(some));
        add_lowest(sums, e, some);
    }
    memset(some, 0, sizeof(some));
    memcpy(some, bytes, left);
    add_lowest(sums, e, some);
    for (int i = 0; i < WORDS; i++)
        all |= sums[i];
    return !(all & (e.bits + e.lowest));
}

size_t param_tensors_of(const struct param_tensors *t, size_t at)
{
    size_t n = 1;
    while (at + n < t->n && t->list[at + n].param == t->list[at].param)
        n++;
    return n;
}

float *param_alloc(const struct param *p, struct cairn_error *err)
{
    float *numbers = malloc(p->rows * p->columns * sizeof(*numbers));
    if (!numbers)
        cairn_fail(err, CAIRN_ENOMEM, "%s: no memory for %zu values", p->name, p->rows * p->columns);
    return numbers;
}
