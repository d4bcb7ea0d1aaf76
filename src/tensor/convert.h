/* SPDX-License-Identifier: Apache-2.0
 * A tensor file into another one, tensor by tensor, in pieces and on all cores.
 *
 * The new file has the tensors and the metadata of the source in the source's order.  (When that order would
 * leave a tensor at an address that is no multiple of its element's size, which torch cannot map, tensors of
 * larger elements come first and the order is otherwise kept.)  Floating tensors get the wanted dtype, all others
 * are copied.  Memory is a few MiB a thread, whatever the size of the file.  The new file appears under its name
 * only when it is whole and on the disk; after an error there is nothing new. */
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
    bool drop_others; /* leave out what `only` does not name, instead of copying it */
    bool clamp;       /* what is beyond the largest finite value becomes that value; so do infinities */
    double limit;     /* what clamp keeps to; 0: the largest finite value of the dtype.  Not with scaled */
    bool replace_nan;
    double nan;      /* what replaces NaN */
    bool stochastic; /* instead of nearest-even */
    uint64_t seed;
    enum fp8_grain scaled; /* to fp8: with scales of this grain; from fp8: apply the scales that are there */
    bool replace;          /* an existing file may be replaced */
    bool direct;           /* keep nothing of the new file in the page cache */
    int threads;           /* 0: all */
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
    uint64_t underflowed; /* values that were not zero and are now */
    uint64_t clamped, nans_replaced;
};

int convert_file(const struct tensor_source *src, const char *path, const struct convert_options *o,
                 struct convert_report *report, struct cairn_error *err);

#endif
