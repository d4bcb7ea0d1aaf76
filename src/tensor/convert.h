/* SPDX-License-Identifier: Apache-2.0
 * Converts a tensor file to another one, tensor by tensor, in pieces and on all cores.
 *
 * The new file has the tensors and the metadata of the source in the source's order.  (If that order would
 * misalign a tensor, which torch cannot map, tensors of larger elements come first and the order is otherwise
 * kept.)  Floating-point tensors get the requested dtype, all others are copied.  Memory is a few MiB per
 * thread, whatever the size of the file. The new file appears under its name only when it is complete and on
 * disk; after an error there is no new file. */
#ifndef CAIRN_TENSOR_CONVERT_H
#define CAIRN_TENSOR_CONVERT_H

#include "tensor/fp8_scaled.h"
#include "tensor/source.h"
#include <signal.h>

struct progress;

struct convert_options {
    enum dtype to;           /* DTYPE_OTHER: every tensor keeps its own */
    const char *const *only; /* shell patterns of the names to convert; the others are copied */
    size_t n_only;
    bool drop_others; /* drop the tensors that `only` does not match, instead of copying them */
    bool clamp;       /* clamp Inf and overflow to the largest finite value */
    double limit;     /* limit of clamp; 0: the largest finite value of the dtype.  Not with scaled */
    bool replace_nan;
    double nan;      /* what replaces NaN */
    bool stochastic; /* instead of nearest-even */
    uint64_t seed;
    enum fp8_grain
        scaled;   /* to fp8: compute scales of this granularity; from fp8: apply the existing scales */
    bool replace; /* an existing file may be replaced */
    bool direct;  /* keep nothing of the new file in the page cache */
    int threads;  /* 0: all */
    struct progress *progress;         /* or NULL; counts bytes written */
    const volatile sig_atomic_t *stop; /* or NULL; when it becomes true, convert fails */
};

struct convert_report {
    size_t converted, copied, dropped; /* tensors */
    size_t scaled;                     /* weights that got scales */
    size_t unscaled;                   /* weights whose scales were applied */
    size_t scales_ignored;             /* weights that have scales, converted without them */
    bool reordered;
    uint64_t bytes_in, bytes_out, values;
    uint64_t overflowed;  /* finite values that are Inf (NaN in f8_e4m3) now */
    uint64_t underflowed; /* nonzero values that became zero */
    uint64_t clamped, nans_replaced;
};

int convert_file(const struct tensor_source *src, const char *path, const struct convert_options *o,
                 struct convert_report *report, struct cairn_error *err);

#endif
