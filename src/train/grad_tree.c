/* SPDX-License-Identifier: Apache-2.0 */
#include "train/grad_tree.h"

#include "gpu/kernels/elementwise.h"
#include <stdlib.h>

enum { LEVELS_MOST = 64 };

struct grad_tree {
    const struct model *model;
    struct gpu *g;
    size_t span; /* micro-batches that are summed in order: a leaf of the tree */
    size_t micros, levels;
    struct weights partial[MODEL_SETS][LEVELS_MOST]; /* the sum of 1, 2, 4 … leaves */
};

/* The largest odd divisor. */
static size_t odd_part(size_t n)
{
    while (n && n % 2 == 0)
        n /= 2;
    return n;
}

size_t grad_tree_levels(size_t micros, size_t ranks)
{
    size_t leaves = micros / odd_part(micros * ranks), levels = 0;
    while (leaves > 1) {
        leaves /= 2;
        levels++;
    }
    return levels;
}

int grad_tree_open(const struct model *m, size_t micros, size_t ranks, struct grad_tree **out,
                   struct cairn_error *err)
{
    struct grad_tree *t = calloc(1, sizeof(*t));
    if (!t)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    *t = (struct grad_tree){ .model = m,
                             .g = m->nn->g,
                             .span = odd_part(micros * ranks),
                             .micros = micros,
                             .levels = grad_tree_levels(micros, ranks) };
    for (size_t set = 0; set < model_sets(m); set++)
        for (size_t i = 0; i < t->levels; i++)
            if (weights_open(&t->partial[set][i], t->g, model_trained(m, set), GPU_F32, WEIGHTS_INT8, err)) {
                grad_tree_close(t);
                return -1;
            }
    *out = t;
    return 0;
}

void grad_tree_close(struct grad_tree *t)
{
    if (!t)
        return;
    for (size_t set = 0; set < MODEL_SETS; set++)
        for (size_t i = 0; i < t->levels; i++)
            weights_close(&t->partial[set][i]);
    free(t);
}

/* to += from. */
static int add(struct grad_tree *t, float *to, const float *from, size_t n, struct cairn_error *err)
{
    const struct gpu_kernel *k;
    struct combine_args args = { .y = to, .x = from, .z = to, .n = (k_i64)n };
    if (!n)
        return 0;
    if (gpu_kernel(t->g, "add", GPU_F32, &k, err))
        return -1;
    return gpu_launch(t->g, NULL, k, (struct gpu_grid){ .x = (unsigned)K_GROUPS(n) }, &args, sizeof(args),
                      err);
}

static int copy(struct grad_tree *t, float *to, const float *from, size_t n, struct cairn_error *err)
{
    return n ? gpu_copy(t->g, NULL, to, from, n * sizeof(*to), err) : 0;
}

int grad_tree_add(struct grad_tree *t, size_t set, const struct weights *grads, size_t micro,
                  struct cairn_error *err)
{
    const struct params *p = model_trained(t->model, set);
    size_t matrices = p->numbers[PARAM_MATRIX], vectors = p->numbers[PARAM_VECTOR], level = 0;
    if ((micro + 1) % t->span)
        return 0;
    for (size_t leaf = micro / t->span; leaf % 2; leaf /= 2, level++) {
        const struct weights *left = &t->partial[set][level];
        if (add(t, grads->matrices, left->matrices, matrices, err) ||
            add(t, grads->vectors, left->vectors, vectors, err))
            return -1;
    }
    if (micro + 1 == t->micros)
        return 0;
    const struct weights *kept = &t->partial[set][level];
    if (copy(t, kept->matrices, grads->matrices, matrices, err) ||
        copy(t, kept->vectors, grads->vectors, vectors, err))
        return -1;
    return weights_clear(grads, p, NULL, err);
}
