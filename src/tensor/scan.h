/* SPDX-License-Identifier: Apache-2.0
 * Statistics of a tensor's values: range, mean, and how many are zero, NaN, infinite or subnormal.
 *
 * Range and sums are over the finite values.  A tensor is scanned in chunks of fixed size; within a chunk
 * every value belongs to one of a few lanes, which are summed in f32 (in f64 for f64 and whole numbers); the
 * lanes of all chunks are added in f64, in order.  So neither the number of threads nor the CPU changes a bit
 * of the result. */
#ifndef CAIRN_TENSOR_SCAN_H
#define CAIRN_TENSOR_SCAN_H

#include "tensor/source.h"

struct progress;

struct scan_stats {
    uint64_t n, zero, nan, inf, subnormal;
    uint64_t zero_head, zero_tail; /* number of zeros at its start and end */
    double min, max;               /* min > max: no value is finite */
    double sum, squares;
    /* The part of the file that contains the tensor, if its CRC-32 does not match; or NULL. */
    const char *wrong_sum;
};

enum { SCAN_CHUNK = 8192 };

void scan_init(struct scan_stats *s);
/* Values that follow the ones before; every call but the last brings a multiple of SCAN_CHUNK.  Not for
 * DTYPE_OTHER. */
void scan_add(struct scan_stats *s, enum dtype t, const void *values, size_t n);
/* Stats of a part that follows, itself begun at a multiple of SCAN_CHUNK. */
void scan_merge(struct scan_stats *s, const struct scan_stats *next);

bool scan_has_range(const struct scan_stats *s); /* some value is finite */
double scan_mean(const struct scan_stats *s);    /* 0 if none is */
double scan_std(const struct scan_stats *s);
double scan_absmax(const struct scan_stats *s);

/* Any dtype but DTYPE_OTHER as f64; exact, but for whole numbers beyond 2^53. */
void scan_widen(double *dst, enum dtype t, const void *values, size_t n);

/* How values are stored in a tensor's bytes: `values` values in `bytes` bytes.  Complex numbers are two, and
 * formats that are no dtype of ours are widened. */
struct scan_kind {
    enum dtype as;
    size_t bytes, values;
    /* n numbers; NULL: they are `as` already. */
    void (*widen)(float *dst, const unsigned char *src, size_t n);
};
/* False: a format that nobody here knows. */
bool scan_kind_of(const struct st_tensor *t, struct scan_kind *out);
/* As scan_add; n counts bytes. */
void scan_add_kind(struct scan_stats *s, const struct scan_kind *k, const void *bytes, size_t n);

/* All tensors of a source on `threads` threads (0: all); out has n_tensors elements.  Tensors of a format
 * that is not known get empty stats.  Sums that the file has of its bytes are compared.  progress may be
 * NULL. */
int scan_source(const struct tensor_source *src, int threads, struct scan_stats *out,
                struct progress *progress, struct cairn_error *err);

/* For tests and benches: the table behind scan_add for a set of CPU features (enum in dtype.h). */
enum { SCAN_LANES = 32, SCAN_WIDE_LANES = 8 };
struct scan_lanes {
    float min[SCAN_LANES], max[SCAN_LANES], sum[SCAN_LANES], squares[SCAN_LANES];
    uint64_t zero, subnormal, nan, inf;
};
struct scan_wide_lanes {
    double min[SCAN_WIDE_LANES], max[SCAN_WIDE_LANES], sum[SCAN_WIDE_LANES], squares[SCAN_WIDE_LANES];
    /* small: zero or subnormal; special: NaN or infinite */
    int64_t zero[SCAN_WIDE_LANES], small[SCAN_WIDE_LANES], nan[SCAN_WIDE_LANES], special[SCAN_WIDE_LANES];
};
/* n is at most SCAN_CHUNK; smallest is the bits of the format's smallest normal number, as f32.  e4m3 is
 * scanned as 1/256 of its value. */
typedef void scan_kernel(const void *values, size_t n, uint32_t smallest, struct scan_lanes *lanes);
typedef void scan_wide_kernel(const void *values, size_t n, struct scan_wide_lanes *lanes);
struct scan_ops {
    scan_kernel *f32, *bf16, *f16, *e4m3, *e5m2;
    scan_wide_kernel *f64;
};
void scan_ops_init(struct scan_ops *ops, unsigned cpu);
void scan_ops_init_avx2(struct scan_ops *ops);
void scan_ops_init_avx512(struct scan_ops *ops);
void scan_add_with(const struct scan_ops *ops, struct scan_stats *s, enum dtype t, const void *values,
                   size_t n);

#endif
