/* SPDX-License-Identifier: Apache-2.0
 * fp8 weights with scales: the true weight is code * scale.
 *
 * The scales of X.weight are X.scale_weight or X.weight_scale: one for the whole tensor, one for each row, or
 * one for each run of columns in a row (64 by custom).  In all three cases a scale covers `block` consecutive
 * elements, so that element e has scale number e / block.  A file that was written so also has an empty
 * tensor "scaled_fp8" as a marker, and may have hints for activations, which mean nothing without the
 * codes. */
#ifndef CAIRN_TENSOR_FP8_SCALED_H
#define CAIRN_TENSOR_FP8_SCALED_H

#include "tensor/source.h"

enum fp8_grain { FP8_PLAIN, FP8_TENSOR, FP8_CHANNEL, FP8_BLOCK64 };

/* "tensor", "channel", "block64"; false for anything else. */
bool fp8_grain_parse(const char *word, enum fp8_grain *out);
bool fp8_is(enum dtype t);

#define FP8_MARKER "scaled_fp8"
#define FP8_METADATA "_quantization_metadata" /* describes the codes; goes with them */

/* Whether it is a scale, marker or hint, not a weight. */
bool fp8_is_bookkeeping(const char *name);
/* What is quantized by default: matrices of the blocks' linear layers. */
bool fp8_is_target(const struct st_tensor *t);
/* "X.scale_weight" for "X.weight"; NULL if the name does not end so. */
const char *fp8_scale_name(struct arena *a, const char *weight);
/* The reverse, for a scale or a hint; NULL if the name is neither. */
const char *fp8_weight_name(struct arena *a, const char *bookkeeping);
/* The scales of a weight; NULL: it has none. */
const struct st_tensor *fp8_scale_of(const struct tensor_source *s, const struct st_tensor *weight);

/* How many elements share an existing scale; an error names both shapes. */
int fp8_block_of(const struct st_tensor *weight, const struct st_tensor *scale, uint64_t *block,
                 struct cairn_error *err);
/* The same for new scales.  If a granularity does not fit the shape, the next coarser one is used: rows
 * instead of 64 columns, the whole tensor instead of rows. */
uint64_t fp8_block_for(const struct st_tensor *weight, enum fp8_grain grain);
/* The tensor that will hold them: name, dtype, shape, bytes. */
void fp8_scale_tensor(struct arena *a, const struct st_tensor *weight, uint64_t block, struct st_tensor *out);

/* The largest magnitude; infinity if there is one, NaN counts as infinity. */
float fp8_absmax(const float *w, size_t n);
/* The scale that maps absmax to the largest code. */
float fp8_scale_for(float absmax, enum dtype to);
/* w / scale, saturating; w is overwritten. */
void fp8_quantise(void *codes, enum dtype to, float *w, size_t n, float scale, const struct dtype_how *how);
/* code * scale, rounded once. */
void fp8_dequantise(void *out, enum dtype to, const void *codes, enum dtype from, size_t n, float scale,
                    const struct dtype_how *how);

#endif
