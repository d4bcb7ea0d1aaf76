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

/* Prodigy (Mishchenko and Defazio, 2023, https://arxiv.org/abs/2306.06101): AdamW whose step d is estimated from how far
 * the weights of all arrays went from where they started.  to.rate is what d is multiplied by.
 *   prodigy_look   s = beta3 s + d / d0 (d if `warm`, else rate d) g; a part of <g, start - w> and of the sum of |s|
 *   prodigy_grow   the next d from the parts of all arrays, which lie side by side; one group
 *   prodigy        with the d of prodigy_look: m = beta1 m + (1 - beta1) d g; v = beta2 v + (1 - beta2) (d g)^2;
 *                  w -= rate d decay w; w -= rate d m / (sqrt(v) + next d epsilon)
 * The first and the last take K_GROUPS(n) groups. */
enum { PRODIGY_D, PRODIGY_MOST, PRODIGY_SUM, PRODIGY_WAS, PRODIGY_NUMBERS };
struct prodigy_args {
    struct k_fault *fault;
    struct optim_weights to;
    float *m, *v, *s;
    const float *start;
    float *parts; /* two of each group */
    float *d; /* PRODIGY_NUMBERS: d, the largest estimate so far, the running sum of products, the d before */
    float beta1, beta2, rest1, rest2, beta3;
    float epsilon, first; /* first: d0 */
    k_u32 warm;           /* s does not follow the rate */
};
struct prodigy_grow_args {
    struct k_fault *fault;
    const float *parts, *by;
    float *d;
    k_i64 n;                                   /* pairs of parts */
    float beta3, rate, first, by_hand, growth; /* by_hand: what the estimate is multiplied by */
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
