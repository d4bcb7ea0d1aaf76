/* SPDX-License-Identifier: Apache-2.0
 * Adafactor (Shazeer and Stern, 2018, https://arxiv.org/abs/1804.04235): of the squares of a matrix's gradient only the
 * means of rows and columns are kept; a vector keeps them all.
 *
 * A step of a matrix is a chain of launches with the same arguments:
 *   adafactor_rows      rows[i] = keep rows[i] + rest (mean of g[i]^2 + tiny)     K_WHOLE_GROUPS groups
 *   adafactor_columns   sums of g^2 over the rows of each part                    K_PARTS groups in x, K_TILES in y
 *   adafactor_fold      columns[j] likewise; the mean of rows                     K_TILES + 1 groups
 *   adafactor_size      sums of u^2 and w^2; u = g sqrt(mean / rows[i] / columns[j])   K_ROW_GROUPS groups
 *   adafactor_factor    how far u goes and what w shrinks by                      one group
 *   adafactor           w = w shrink - factor u                                   K_ROW_GROUPS groups
 * factor is rate / max(1, rms(u) / most), and with `scaled` that times max(least, rms(w)). */
#ifndef CAIRN_GPU_KERNELS_ADAFACTOR_H
#define CAIRN_GPU_KERNELS_ADAFACTOR_H

#include "gpu/kernels/types.h"

/* What a step and its optimizer say, the same for all parameters. */
struct adafactor_step {
    const float *by; /* factor of the gradients, on the device; not finite: the step is left out */
    k_u64 seed, stream;
    k_u32 stochastic;  /* as in struct optim_weights */
    k_u32 scaled;      /* steps in proportion to the weights */
    float keep, rest;  /* of the means, for the next ones */
    float tiny, least; /* added to squares; least rms of w that counts */
    float most;        /* rms of u */
    float rate, decay;
};

struct adafactor_args {
    struct k_fault *fault;
    struct adafactor_step step;
    void *w;
    float *master; /* may be NULL */
    const float *g;
    float *rows_mean, *columns_mean;
    float *sums;  /* [part][columns] */
    float *sizes; /* two for each of K_ROW_GROUPS */
    float *uses;  /* mean of rows, factor, shrink */
    k_i64 rows, columns, rows_per_part;
    k_i64 first; /* of the random bits */
};

/* adafactor_vector: all vectors, a group for each.  v = keep v + rest (g^2 + tiny), u = g / sqrt(v); w as above. */
struct adafactor_vector_args {
    struct k_fault *fault;
    struct adafactor_step step;
    void *w;
    const float *g;
    float *v;
    const k_i64 *places; /* of a vector: its first number and how many */
};

#endif
