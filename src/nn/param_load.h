/* SPDX-License-Identifier: Apache-2.0
 * Parameters from a file to the device, for param_file.c.  All threads read straight into the pieces
 * that are copied (gpu/transfer.h), and transpose them there where the file has them transposed. */
#ifndef CAIRN_NN_PARAM_LOAD_H
#define CAIRN_NN_PARAM_LOAD_H

#include "gpu/transfer.h"
#include "nn/param_file.h"

/* found[i] is the tensor of t->list[i], of the right shape and a type that can be read. */
int param_load(const struct param_tensors *t, const struct weights *w, const struct tensor_source *s,
               const struct st_tensor *const *found, struct param_report *report, struct cairn_error *err);

/* The same in parts, for a caller that reads them elsewhere first.  The values of `scales`, at their contexts, are
 * known when all other parts were read.  1: some tensor cannot be read in pieces; param_load can. */
struct param_parts {
    struct arena arena;
    struct transfer_part *parts, *scales;
    size_t n, n_scales;
};
int param_load_parts(const struct param_tensors *t, const struct weights *w, const struct tensor_source *s,
                     const struct st_tensor *const *found, struct param_parts *out, struct cairn_error *err);
void param_parts_release(struct param_parts *p);

#endif
