/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/scan.h"

#include "tensor/scan_scalar.h"
#include <math.h>
#include <string.h>

/* Of the formats that are scanned as f32: the smallest normal number, as bits of an f32. */
static const uint32_t smallest_normal[DTYPE_COUNT] = {
    [DTYPE_F32] = 0x00800000,     /* 2^-126 */
    [DTYPE_BF16] = 0x00800000,    /* the same exponents */
    [DTYPE_F16] = 0x38800000,     /* 2^-14 */
    [DTYPE_F8_E5M2] = 0x38800000, /* 2^-14 */
    [DTYPE_F8_E4M3] = 0x38800000, /* 2^-6, of which 1/256 is scanned */
};

static void scan_f32(const void *values, size_t n, uint32_t smallest, struct scan_lanes *lanes)
{
    for (size_t i = 0; i < n; i++)
        scan_one(lanes, SCAN_LANE_F32(i), scalar_bits((const f32_any *)values + i), smallest);
}

static void scan_bf16(const void *values, size_t n, uint32_t smallest, struct scan_lanes *lanes)
{
    for (size_t i = 0; i < n; i++)
        scan_one(lanes, SCAN_LANE_BF16(i), scan_bf16_bits(((const u16_any *)values)[i]), smallest);
}

static void scan_f16(const void *values, size_t n, uint32_t smallest, struct scan_lanes *lanes)
{
    for (size_t i = 0; i < n; i++)
        scan_one(lanes, SCAN_LANE_F16(i), scan_f16_bits(((const u16_any *)values)[i]), smallest);
}

static void scan_e4m3(const void *values, size_t n, uint32_t smallest, struct scan_lanes *lanes)
{
    for (size_t i = 0; i < n; i++)
        scan_one(lanes, SCAN_LANE_F8(i), scan_e4m3_bits(((const uint8_t *)values)[i]), smallest);
}

static void scan_e5m2(const void *values, size_t n, uint32_t smallest, struct scan_lanes *lanes)
{
    for (size_t i = 0; i < n; i++)
        scan_one(lanes, SCAN_LANE_F8(i), scan_e5m2_bits(((const uint8_t *)values)[i]), smallest);
}

static void scan_f64_c(const void *values, size_t n, struct scan_wide_lanes *lanes)
{
    scan_wide_values(values, n, lanes);
}

void scan_ops_init(struct scan_ops *ops, unsigned cpu)
{
    *ops = (struct scan_ops){ scan_f32, scan_bf16, scan_f16, scan_e4m3, scan_e5m2, scan_f64_c };
#ifdef __x86_64__
    if (cpu & DTYPE_CPU_AVX2)
        scan_ops_init_avx2(ops);
    if (cpu & DTYPE_CPU_AVX512)
        scan_ops_init_avx512(ops);
#else
    (void)cpu;
#endif
}

/* Integers and bool are scanned as f64. */
#define WIDEN(name, type)                                             \
    static void widen_##name(double *dst, const void *src, size_t n)  \
    {                                                                 \
        for (size_t i = 0; i < n; i++) {                              \
            type v;                                                   \
            memcpy(&v, (const char *)src + i * sizeof(v), sizeof(v)); \
            dst[i] = (double)v;                                       \
        }                                                             \
    }
WIDEN(f64, double)
WIDEN(i64, int64_t)
WIDEN(i32, int32_t)
WIDEN(i16, int16_t)
WIDEN(i8, int8_t)
WIDEN(u64, uint64_t)
WIDEN(u32, uint32_t)
WIDEN(u16, uint16_t)
WIDEN(u8, uint8_t)

static void (*const widen[DTYPE_COUNT])(double *dst, const void *src, size_t n) = {
    [DTYPE_F64] = widen_f64, [DTYPE_I64] = widen_i64, [DTYPE_I32] = widen_i32, [DTYPE_I16] = widen_i16,
    [DTYPE_I8] = widen_i8,   [DTYPE_U64] = widen_u64, [DTYPE_U32] = widen_u32, [DTYPE_U16] = widen_u16,
    [DTYPE_U8] = widen_u8,   [DTYPE_BOOL] = widen_u8,
};

void scan_widen(double *dst, enum dtype t, const void *values, size_t n)
{
    if (widen[t])
        widen[t](dst, values, n);
    else
        dtype_convert(dst, DTYPE_F64, values, t, n, &(struct dtype_how){ 0 });
}

void scan_init(struct scan_stats *s)
{
    *s = (struct scan_stats){ .min = INFINITY, .max = -INFINITY };
}

void scan_merge(struct scan_stats *s, const struct scan_stats *next)
{
    s->zero_head += s->zero_head == s->n ? next->zero_head : 0;
    s->zero_tail = next->zero == next->n ? s->zero_tail + next->n : next->zero_tail;
    s->n += next->n;
    s->zero += next->zero;
    s->nan += next->nan;
    s->inf += next->inf;
    s->subnormal += next->subnormal;
    s->min = next->min < s->min ? next->min : s->min;
    s->max = next->max > s->max ? next->max : s->max;
    s->sum += next->sum;
    s->squares += next->squares;
}

/* Of a floating kind: no bit but the sign. */
static bool is_zero(const void *values, size_t size, size_t i)
{
    uint64_t v = 0;
    memcpy(&v, (const char *)values + i * size, size); /* the formats are little-endian, as files are */
    return v << (65 - 8 * size) == 0;
}

static void count_edges(struct scan_stats *part, const void *values, size_t size, size_t n)
{
    if (!part->zero)
        return;
    while (part->zero_head < n && is_zero(values, size, part->zero_head))
        part->zero_head++;
    while (part->zero_tail < n && is_zero(values, size, n - 1 - part->zero_tail))
        part->zero_tail++;
}

/* Zero has no sign in the range: which of the two came first would depend on the lanes. */
static void widen_range(struct scan_stats *part, double min, double max)
{
    part->min = (min < part->min ? min : part->min) + 0.0;
    part->max = (max > part->max ? max : part->max) + 0.0;
}

static void scan_wide(const struct scan_ops *ops, struct scan_stats *part, const void *v, size_t n)
{
    struct scan_wide_lanes l = { .zero = { 0 } };
    for (int i = 0; i < SCAN_WIDE_LANES; i++)
        l.min[i] = INFINITY, l.max[i] = -INFINITY;
    ops->f64(v, n, &l);
    for (int i = 0; i < SCAN_WIDE_LANES; i++) {
        part->zero += (uint64_t)l.zero[i];
        part->subnormal += (uint64_t)(l.small[i] - l.zero[i]);
        part->nan += (uint64_t)l.nan[i];
        part->inf += (uint64_t)(l.special[i] - l.nan[i]);
        part->sum += l.sum[i];
        part->squares += l.squares[i];
        widen_range(part, l.min[i], l.max[i]);
    }
    count_edges(part, v, sizeof(double), n);
}

/* Values so large that their f32 sums overflow are added again in f64. */
static void sum_again(struct scan_stats *part, const float *v, size_t n)
{
    part->sum = part->squares = 0;
    for (size_t i = 0; i < n; i++) {
        part->sum += isfinite(v[i]) ? v[i] : 0;
        part->squares += isfinite(v[i]) ? (double)v[i] * v[i] : 0;
    }
}

static void reduce_lanes(struct scan_stats *part, const struct scan_lanes *l)
{
    double sum[4] = { 0 }, squares[4] = { 0 }; /* additions that need not wait for each other */
    float min = l->min[0], max = l->max[0];
    part->zero = l->zero;
    part->nan = l->nan;
    part->inf = l->inf;
    part->subnormal = l->subnormal;
    for (int i = 0; i < SCAN_LANES; i++) {
        min = l->min[i] < min ? l->min[i] : min;
        max = l->max[i] > max ? l->max[i] : max;
        sum[i % 4] += l->sum[i];
        squares[i % 4] += l->squares[i];
    }
    widen_range(part, min, max);
    part->sum = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    part->squares = (squares[0] + squares[1]) + (squares[2] + squares[3]);
}

static void scale_back(struct scan_stats *part, double scale)
{
    part->min /= scale;
    part->max /= scale;
    part->sum /= scale;
    part->squares /= scale * scale;
}

static void scan_narrow(const struct scan_ops *ops, struct scan_stats *part, enum dtype t, const void *values,
                        size_t n)
{
    scan_kernel *const kernels[DTYPE_COUNT] = { [DTYPE_F32] = ops->f32,
                                                [DTYPE_BF16] = ops->bf16,
                                                [DTYPE_F16] = ops->f16,
                                                [DTYPE_F8_E4M3] = ops->e4m3,
                                                [DTYPE_F8_E5M2] = ops->e5m2 };
    struct scan_lanes l = { .zero = 0 };
    for (int i = 0; i < SCAN_LANES; i++)
        l.min[i] = INFINITY, l.max[i] = -INFINITY;
    kernels[t](values, n, smallest_normal[t], &l);
    reduce_lanes(part, &l);
    if (t == DTYPE_F8_E4M3)
        scale_back(part, SCAN_E4M3_SCALE);
    count_edges(part, values, dtype_size(t), n);
    if (isfinite(part->sum) && isfinite(part->squares))
        return;
    float wide[SCAN_CHUNK];
    dtype_convert(wide, DTYPE_F32, values, t, n, &(struct dtype_how){ 0 });
    sum_again(part, wide, n);
}

static void scan_chunk(const struct scan_ops *ops, struct scan_stats *part, enum dtype t, const void *values,
                       size_t n)
{
    double wide[SCAN_CHUNK];
    if (t == DTYPE_F64)
        scan_wide(ops, part, values, n);
    else if (!widen[t])
        scan_narrow(ops, part, t, values, n);
    else {
        widen[t](wide, values, n);
        scan_wide(ops, part, wide, n);
    }
}

void scan_add_with(const struct scan_ops *ops, struct scan_stats *s, enum dtype t, const void *values,
                   size_t n)
{
    for (size_t at = 0; at < n; at += SCAN_CHUNK) {
        size_t m = n - at < SCAN_CHUNK ? n - at : SCAN_CHUNK;
        struct scan_stats part;
        scan_init(&part);
        part.n = m;
        scan_chunk(ops, &part, t, (const char *)values + at * dtype_size(t), m);
        scan_merge(s, &part);
    }
}

/* Written once, by the first caller; the same values whoever is first. */
static const struct scan_ops *best_ops(void)
{
    static struct scan_ops ops;
    static int ready;
    if (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) {
        struct scan_ops fresh;
        scan_ops_init(&fresh, dtype_cpu());
        ops = fresh;
        __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
    }
    return &ops;
}

void scan_add(struct scan_stats *s, enum dtype t, const void *values, size_t n)
{
    scan_add_with(best_ops(), s, t, values, n);
}

bool scan_has_range(const struct scan_stats *s)
{
    return s->min <= s->max;
}

static double finite_count(const struct scan_stats *s)
{
    return (double)(s->n - s->nan - s->inf);
}

double scan_mean(const struct scan_stats *s)
{
    return scan_has_range(s) ? s->sum / finite_count(s) : 0;
}

double scan_std(const struct scan_stats *s)
{
    if (!scan_has_range(s) || s->min == s->max)
        return 0;
    double mean = scan_mean(s), variance = s->squares / finite_count(s) - mean * mean;
    return variance > 0 ? sqrt(variance) : 0;
}

double scan_absmax(const struct scan_stats *s)
{
    return scan_has_range(s) ? fmax(fabs(s->min), fabs(s->max)) : 0;
}
