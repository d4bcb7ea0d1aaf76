/* SPDX-License-Identifier: Apache-2.0
 * Dtypes, and the conversions between the floating-point ones.
 *
 * Narrowing rounds to nearest, ties to even, once: no conversion goes through an intermediate that rounds.
 * Subnormals are kept in both directions.  A value that rounds past the largest finite one becomes infinity
 * (NaN in f8_e4m3, which has no infinity), or the largest finite value with `saturate`, which also replaces
 * infinities.  NaN stays NaN with its sign: widening bf16 and f8_e5m2 keeps the payload bit for bit; every
 * other conversion keeps the payload's upper bits and sets the quiet bit; f8_e4m3 has one NaN per sign.
 *
 * There is a plain reference for everything; variants for AVX2+F16C and AVX-512 are chosen at run time and
 * give the same bits.  (AVX512-BF16's own conversion is not used: it flushes subnormals.) */
#ifndef CAIRN_TENSOR_DTYPE_H
#define CAIRN_TENSOR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dtype {
    DTYPE_OTHER, /* unknown name, or elements that are not whole bytes: can be listed, not converted */
    DTYPE_F64,
    DTYPE_F32,
    DTYPE_F16,
    DTYPE_BF16,
    DTYPE_F8_E4M3,
    DTYPE_F8_E5M2,
    DTYPE_I64,
    DTYPE_I32,
    DTYPE_I16,
    DTYPE_I8,
    DTYPE_U64,
    DTYPE_U32,
    DTYPE_U16,
    DTYPE_U8,
    DTYPE_BOOL,
    DTYPE_COUNT,
};

size_t dtype_size(enum dtype t);             /* bytes of one element; 0 for DTYPE_OTHER */
const char *dtype_name(enum dtype t);        /* "bf16"; "other" */
const char *dtype_safetensors(enum dtype t); /* "BF16"; NULL for DTYPE_OTHER */
bool dtype_is_float(enum dtype t);
/* "bf16", "BF16", "bfloat16", "f8_e4m3", "float8_e4m3fn" …; DTYPE_OTHER if it is none. */
enum dtype dtype_parse(const char *name);
/* The largest finite value of a floating kind. */
double dtype_max(enum dtype t);

enum dtype_round { DTYPE_NEAREST, DTYPE_STOCHASTIC };

struct dtype_how {
    bool saturate;
    enum dtype_round round;
    /* Stochastic: element i uses the random bits of (seed, first + i), whatever the pieces it is done in. */
    uint64_t seed, first;
};

/* dst and src hold n elements and do not overlap, except that dst == src is allowed when the sizes are equal.
 * No alignment is asked for.  Both kinds must be floating; equal kinds copy the bits (and saturate if
 * asked). */
void dtype_convert(void *dst, enum dtype to, const void *src, enum dtype from, size_t n,
                   const struct dtype_how *how);
bool dtype_can_convert(enum dtype from, enum dtype to);

/* For tests and benches: the table behind dtype_convert for a given set of CPU features. */
enum { DTYPE_CPU_AVX2 = 1, DTYPE_CPU_AVX512 = 2 };
unsigned dtype_cpu(void); /* what this CPU has */

struct dtype_ops {
    void (*bf16_to_f32)(void *dst, const void *src, size_t n);
    void (*f16_to_f32)(void *dst, const void *src, size_t n);
    void (*e4m3_to_f32)(void *dst, const void *src, size_t n);
    void (*e5m2_to_f32)(void *dst, const void *src, size_t n);
    void (*f32_to_bf16)(void *dst, const void *src, size_t n, bool saturate);
    void (*f32_to_f16)(void *dst, const void *src, size_t n, bool saturate);
    void (*f32_to_e4m3)(void *dst, const void *src, size_t n, bool saturate);
    void (*f32_to_e5m2)(void *dst, const void *src, size_t n, bool saturate);
};
void dtype_ops_init(struct dtype_ops *ops, unsigned cpu);
/* Each overwrites what it does better; in dtype_avx2.c and dtype_avx512.c. */
void dtype_ops_init_avx2(struct dtype_ops *ops);
void dtype_ops_init_avx512(struct dtype_ops *ops);

#endif
