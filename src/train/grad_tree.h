/* SPDX-License-Identifier: Apache-2.0
 * Sums the gradients of a step's micro-batches in a fixed binary tree, for dist.reduce exact.
 *
 * The tree halves the micro-batches of the whole step as long as their number is even; what is left, an odd number, is summed
 * in order.  A rank of 2, 4, 8 … has one whole subtree, and comm_sum adds these as the tree would: so the number of ranks
 * does not change a bit.  A tree of n levels on one rank keeps n further copies of the gradients. */
#ifndef CAIRN_TRAIN_GRAD_TREE_H
#define CAIRN_TRAIN_GRAD_TREE_H

#include "nn/model.h"

struct grad_tree;

/* Of this many micro-batches on each of so many ranks. */
size_t grad_tree_levels(size_t micros, size_t ranks);
int grad_tree_open(const struct model *m, size_t micros, size_t ranks, struct grad_tree **out,
                   struct cairn_error *err);
void grad_tree_close(struct grad_tree *t); /* accepts NULL */

/* After the pass of micro-batch `micro` of this rank, which has added to `grads`; clear them before the first pass.  After the
 * last one, `grads` has the sum of all.  Queued. */
int grad_tree_add(struct grad_tree *t, size_t set, const struct weights *grads, size_t micro,
                  struct cairn_error *err);

#endif
