/* SPDX-License-Identifier: Apache-2.0
 * Compares two tensor files: which tensors are in only one of them, and which differ. */
#ifndef CAIRN_TENSOR_COMPARE_H
#define CAIRN_TENSOR_COMPARE_H

#include "tensor/diff.h"

struct compare_options {
    const char *const *only; /* patterns of names; none: all */
    size_t n_only;
    bool ignore_dtype; /* the same values in another dtype are the same */
    bool metadata;     /* compare it too */
    struct diff_options values;
};

struct comparison {
    const struct compare_options *o;
    struct tensor_source a, b;
    struct diff_pair *pairs; /* of the names that are in both */
    size_t n_pairs, same, differ, only_a, only_b, meta;
    uint64_t bytes; /* to be compared, of a */
};

/* Opens both and pairs the names.  `k` is zeroed, and `o` outlives it. */
int compare_open(struct comparison *k, const char *a, const char *b, const struct compare_options *o,
                 struct cairn_error *err);
/* Compares the values and fills in the counts. */
int compare_run(struct comparison *k, struct cairn_error *err);
void compare_close(struct comparison *k); /* for CLEANUP */

bool compare_is_same(const struct comparison *k);
bool compare_covers(const struct compare_options *o, const char *name);
bool compare_differs(const struct compare_options *o, const struct diff_pair *p);
/* Whether this metadata entry is missing or different in the other file. */
bool compare_meta_differs(const struct tensor_source *other, const struct st_meta *m);
/* The position of an element in each dimension; out holds ST_RANK_MAX. */
void compare_index(const struct st_tensor *t, uint64_t index, uint64_t *out);

#endif
