/* SPDX-License-Identifier: Apache-2.0
 * LoRA: a frozen matrix w learns a product of two small ones, y = x wᵀ + scale (x aᵀ) bᵀ, where a is
 * rank × in, b out × rank and scale alpha / rank (Hu and others, 2021,
 * https://arxiv.org/abs/2106.09685).
 *
 * A site is one matrix of a model.  It may have several pairs, each for some of its rows: q, k and v
 * can lie in one matrix here, and have pairs of their own in other formats. */
#ifndef CAIRN_NN_LORA_H
#define CAIRN_NN_LORA_H

#include "nn/nn.h"
#include "nn/weights.h"

struct lora_options {
    size_t rank;
    float alpha, dropout;       /* dropout of x, in training */
    const char *const *targets; /* patterns of module names; none: every linear of the blocks */
    size_t n_targets;
};

struct lora_pair {
    size_t a, b;        /* indices of parameters */
    size_t first, rows; /* of the output */
};
enum { LORA_PAIRS = 3 };
struct lora_site {
    struct lora_pair pairs[LORA_PAIRS];
    size_t n; /* 0: no LoRA here */
};

struct lora {
    struct params params; /* "NAME.lora_A.weight", "NAME.lora_B.weight" */
    struct weights weights;
    size_t rank; /* of what is trained; pairs that are not may differ in it */
    float scale, dropout;
    size_t most_in; /* columns of the widest matrix that has a pair */
};

/* Whether a pattern names this module: all of the name, or its end after a dot. */
bool lora_is_target(const struct lora_options *o, const char *module);
/* A pair for `rows` rows from `first` of a matrix of `in` columns. */
void lora_add(struct lora *l, struct lora_site *site, const char *module, size_t first, size_t rows,
              size_t in);

/* On the CPU: how many values of packed operands the matmuls of a linear take, forward and, with train, back
 * to its input and to its pairs; with rank 0, to its own matrix. */
struct lora_linear {
    size_t rows, in, out, rank;
    bool train;
};
size_t lora_packed_elements(const struct nn *nn, const struct lora_linear *l);

/* Scratch memory for a pass. */
struct lora_scratch {
    void *dropped;            /* rows × most_in twice, where there is dropout */
    void *small, *small_back; /* rows × rank */
};

struct lora_call {
    const struct lora *lora;
    const struct lora_site *site;
    const struct lora_scratch *scratch;
    const struct nn_drop *drop; /* rate 0: none */
    const void *x;
    size_t rows, in, out;
    /* y and dx have no contents yet: they become what the pairs add, and the frozen matrix is added to that.  A 16-bit sum then
     * keeps what a young LoRA adds, which is less than half a unit in the last place of the rest.  Pairs must cover all rows of
     * y. */
    bool first;
};
/* y += what the site's pairs add; or y = that. */
int lora_forward(struct nn *nn, const struct lora_call *c, void *y, struct cairn_error *err);
/* The gradients of the pairs, added to grads, and of x, added to dx (may be NULL); or dx = that. */
int lora_back(struct nn *nn, const struct lora_call *c, const void *dy, void *dx, const struct weights *grads,
              struct cairn_error *err);

#endif
