/* SPDX-License-Identifier: Apache-2.0
 * Steps of optimizers.  What does not change from number to number (the rate of this step, the corrections of the
 * bias) is worked out by the caller in double precision. */
#ifndef CAIRN_GPU_KERNELS_OPTIM_H
#define CAIRN_GPU_KERNELS_OPTIM_H

#include "gpu/kernels/types.h"

/* What every optimizer moves.  Where there is a master copy it is what is moved, and w is its rounded image;
 * otherwise w itself is moved.  With `stochastic` the rounding goes up or down by chance, in proportion, from the
 * random bits of (seed, stream); a step has a stream of its own. */
struct optim_weights {
    void *w;
    float *master;      /* may be NULL */
    const void *g;      /* gradient in the storage format, or */
    const float *g_f32; /* in f32; one of them is NULL */
    const float *by; /* factor of the gradient, on the device; NULL: 1.  Not finite: the step is left out */
    k_i64 n;
    k_u64 seed, stream;
    k_u32 stochastic;
    float rate, decay; /* w shrinks by rate * decay */
};

/* adamw: w -= rate decay w; m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
 * w -= rate / correction1 m / (sqrt(v) / sqrt(correction2) + epsilon), where correction = 1 - beta^step.
 * lion: w -= rate decay w; w -= rate sign(beta1 m + (1 - beta1) g); m = beta2 m + (1 - beta2) g; v is not used.
 * K_GROUPS(n) groups. */
struct adamw_args {
    struct k_fault *fault;
    struct optim_weights to;
    float *m, *v;
    float beta1, beta2, rest1, rest2; /* rest = 1 - beta, which f32 would get wrong in the fifth digit */
    float epsilon, correction1, correction2;
};

/* adamw8: AdamW whose m and v are codes of 8 bits (optim8.h), with one factor, the block's maximum, for each
 * OPTIM8_BLOCK numbers.  The decay comes after the step; a number whose gradient is not finite keeps its weight and
 * loses its state.  Codes start at optim8's zero, factors at 0.  n / OPTIM8_BLOCK groups, rounded up. */
#define OPTIM8_BLOCK 256
struct adamw8_args {
    struct k_fault *fault;
    struct optim_weights to;
    k_u8 *m, *v;
    float *m_max, *v_max;
    const float *tables;              /* of optim8_tables */
    float beta1, beta2, rest1, rest2; /* rest = 1 - beta, which f32 would get wrong in the fifth digit */
    float epsilon, correction1, correction2;
};

/* square_sum: parts[group] = the sum of squares of its share; K_GROUPS(n) groups.  Several arrays may leave their
 * parts side by side. */
struct square_sum_args {
    struct k_fault *fault;
    float *parts;
    const void *x;
    k_i64 n;
};

/* clip: the norm of gradients that were multiplied by 1 / unscale, and the factor for `by` that undoes this and makes
 * the norm no larger than max_norm (0: no limit).  NaN where the norm is not finite: the step will be left out.  One
 * group. */
struct clip_args {
    struct k_fault *fault;
    float *y; /* norm, factor */
    const float *parts;
    k_i64 n; /* parts */
    float max_norm, unscale;
};

/* ema: average = decay average + (1 - decay) w.  K_GROUPS(n) groups. */
struct ema_args {
    struct k_fault *fault;
    float *average;
    const void *w;
    k_i64 n;
    float decay;
};

#endif
