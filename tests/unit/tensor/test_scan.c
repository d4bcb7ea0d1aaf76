/* SPDX-License-Identifier: Apache-2.0
 * Scanning against a second definition (fpclassify and long double), every variant against the plain one bit for
 * bit, and a file on any number of threads. */
#include "base/cleanup.h"
#include "os/fault.h"
#include "check.h"
#include "tensor/scan.h"
#include "tree.h"
#include <errno.h>
#include <math.h>

static const enum dtype floats[] = {
    DTYPE_F64, DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_F8_E4M3, DTYPE_F8_E5M2
};

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Random bits: every kind of number turns up, NaN and subnormals too. */
static void fill_bits(void *p, size_t bytes, uint32_t seed)
{
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)p)[i] = (uint8_t)next_random(&seed);
}

/* Ordinary weights, with a zero here and there. */
static void fill_weights(void *p, enum dtype t, size_t n, uint32_t seed)
{
    CLEANUP(mem_free) float *v = malloc(n * sizeof(float) + 1);
    for (size_t i = 0; i < n; i++)
        v[i] = next_random(&seed) % 50 ? ((float)next_random(&seed) / (1 << 24) - 0.4f) * 0.1f : 0;
    dtype_convert(p, t, v, DTYPE_F32, n, &(struct dtype_how){ 0 });
}

static double smallest_normal(enum dtype t)
{
    switch (t) {
    case DTYPE_F64:
        return 0x1p-1022;
    case DTYPE_F16:
    case DTYPE_F8_E5M2:
        return 0x1p-14;
    case DTYPE_F8_E4M3:
        return 0x1p-6;
    default:
        return 0x1p-126;
    }
}

static void check_against_definition(enum dtype t, const void *values, size_t n)
{
    CLEANUP(mem_free) double *v = malloc(n * sizeof(double) + 1);
    struct scan_stats got, want = { .n = n, .min = INFINITY, .max = -INFINITY };
    long double sum = 0, absolute = 0;
    dtype_convert(v, DTYPE_F64, values, t, n, &(struct dtype_how){ 0 });
    for (size_t i = 0; i < n; i++) {
        want.zero += v[i] == 0;
        want.nan += v[i] != v[i];
        want.inf += fabs(v[i]) == HUGE_VAL;
        want.subnormal += v[i] != 0 && fabs(v[i]) < smallest_normal(t);
        if (fpclassify(v[i]) == FP_NAN || fpclassify(v[i]) == FP_INFINITE)
            continue;
        want.min = fmin(want.min, v[i]);
        want.max = fmax(want.max, v[i]);
        sum += v[i];
        absolute += fabs(v[i]);
    }
    scan_init(&got);
    scan_add(&got, t, values, n);
    CHECK_INT(got.n, n);
    CHECK_INT(got.zero, want.zero);
    CHECK_INT(got.nan, want.nan);
    CHECK_INT(got.inf, want.inf);
    CHECK_INT(got.subnormal, want.subnormal);
    CHECK(got.min == want.min && got.max == want.max);
    /* At most 512 additions in f32 to a lane, each within half a unit in the last place. */
    if (t != DTYPE_F64 || isfinite((double)absolute))
        CHECK(fabsl(got.sum - sum) <= absolute * 0x1p-15L);
}

static void every_kind_of_number_is_counted(void)
{
    enum { N = 3 * SCAN_CHUNK + 77 };
    CLEANUP(mem_free) uint8_t *bits = malloc(N * 8);
    for (size_t k = 0; k < ARRAY_LEN(floats); k++) {
        size_t bytes = N * dtype_size(floats[k]);
        fill_bits(bits, bytes, 7);
        check_against_definition(floats[k], bits, N);
        fill_weights(bits, floats[k], N, 11);
        check_against_definition(floats[k], bits, N);
        memset(bits, 0, bytes);
        check_against_definition(floats[k], bits, N);
    }
}

/* Made by the compiler's conversions, of the smallest, the largest and others. */
#define CHECK_INTEGERS(type, t, smallest, largest)                         \
    do {                                                                   \
        const type v[] = { smallest, largest, 0, 1, 100, 0, largest / 2 }; \
        double wide[ARRAY_LEN(v)], sum = 0;                                \
        struct scan_stats s;                                               \
        scan_widen(wide, t, v, ARRAY_LEN(v));                              \
        for (size_t i_ = 0; i_ < ARRAY_LEN(v); i_++) {                     \
            CHECK(wide[i_] == (double)v[i_]);                              \
            sum += (double)v[i_];                                          \
        }                                                                  \
        scan_init(&s);                                                     \
        scan_add(&s, t, v, ARRAY_LEN(v));                                  \
        CHECK_INT(s.n, ARRAY_LEN(v));                                      \
        CHECK_INT(s.zero, (smallest) == 0 ? 3 : 2);                        \
        CHECK(s.min == (double)(smallest) && s.max == (double)(largest));  \
        CHECK(s.sum == sum);                                               \
    } while (0)

static void integers_are_numbers_too(void)
{
    CHECK_INTEGERS(int64_t, DTYPE_I64, INT64_MIN, INT64_MAX);
    CHECK_INTEGERS(int32_t, DTYPE_I32, INT32_MIN, INT32_MAX);
    CHECK_INTEGERS(int16_t, DTYPE_I16, INT16_MIN, INT16_MAX);
    CHECK_INTEGERS(int8_t, DTYPE_I8, INT8_MIN, INT8_MAX);
    CHECK_INTEGERS(uint64_t, DTYPE_U64, 0, UINT64_MAX);
    CHECK_INTEGERS(uint32_t, DTYPE_U32, 0, UINT32_MAX);
    CHECK_INTEGERS(uint16_t, DTYPE_U16, 0, UINT16_MAX);
    CHECK_INTEGERS(uint8_t, DTYPE_U8, 0, UINT8_MAX);
}

static bool same(const struct scan_stats *a, const struct scan_stats *b)
{
    return a->n == b->n && a->zero == b->zero && a->nan == b->nan && a->inf == b->inf &&
           a->subnormal == b->subnormal && a->zero_head == b->zero_head && a->zero_tail == b->zero_tail &&
           !memcmp(&a->min, &b->min, sizeof(double)) && !memcmp(&a->max, &b->max, sizeof(double)) &&
           !memcmp(&a->sum, &b->sum, sizeof(double)) && !memcmp(&a->squares, &b->squares, sizeof(double));
}

static void compare_variant(unsigned cpu, enum dtype t, const void *values, size_t n)
{
    struct scan_ops plain, fast;
    struct scan_stats a, b;
    scan_ops_init(&plain, 0);
    scan_ops_init(&fast, cpu);
    scan_init(&a);
    scan_init(&b);
    scan_add_with(&plain, &a, t, values, n);
    scan_add_with(&fast, &b, t, values, n);
    if (!same(&a, &b))
        CHECK_FAIL_("cpu %u, %s, %zu values: the variant differs", cpu, dtype_name(t), n);
}

static void variants_give_the_same_bits(void)
{
    enum { N = SCAN_CHUNK + 300 };
    CLEANUP(mem_free) uint8_t *data = malloc(N * 8 + 64);
    unsigned have = dtype_cpu();
    for (unsigned cpu = 1; cpu <= have; cpu++) {
        if ((cpu & have) != cpu)
            continue;
        for (size_t k = 0; k < ARRAY_LEN(floats); k++) {
            for (uint32_t seed = 0; seed < 3; seed++) {
                if (seed)
                    fill_weights(data, floats[k], N, seed);
                else
                    fill_bits(data, N * 8 + 64, 3);
                for (size_t n = 0; n <= 257; n++)
                    compare_variant(cpu, floats[k], data + n % 64, n);
                compare_variant(cpu, floats[k], data + 3, N - 64);
            }
        }
    }
}

static void integers_and_bool(void)
{
    const int8_t small[] = { -5, 0, 7, 0 };
    const uint64_t large[] = { 1, UINT64_MAX };
    const uint8_t yes[] = { 1, 1, 0, 1 };
    struct scan_stats s;
    scan_init(&s);
    scan_add(&s, DTYPE_I8, small, 4);
    CHECK(s.min == -5 && s.max == 7 && s.zero == 2 && s.zero_tail == 1 && s.zero_head == 0 &&
          scan_mean(&s) == 0.5);
    scan_init(&s);
    scan_add(&s, DTYPE_U64, large, 2);
    CHECK(s.min == 1 && s.max == 0x1p64);
    scan_init(&s);
    scan_add(&s, DTYPE_BOOL, yes, 4);
    CHECK(s.zero == 1 && scan_mean(&s) == 0.75);
}

static void mean_and_deviation(void)
{
    const float v[] = { 1, 2, 3, 4, NAN, INFINITY };
    struct scan_stats s;
    scan_init(&s);
    CHECK(!scan_has_range(&s) && scan_mean(&s) == 0 && scan_std(&s) == 0 && scan_absmax(&s) == 0);
    scan_add(&s, DTYPE_F32, v, 6);
    CHECK(scan_mean(&s) == 2.5);
    CHECK(fabs(scan_std(&s) - sqrt(1.25)) < 1e-12);
    CHECK(scan_absmax(&s) == 4);
}

/* The f32 sum of these is infinite; the mean is not. */
static void sums_do_not_overflow(void)
{
    float v[100];
    struct scan_stats s;
    for (int i = 0; i < 100; i++)
        v[i] = 3e38f;
    scan_init(&s);
    scan_add(&s, DTYPE_F32, v, 100);
    CHECK(fabs(scan_mean(&s) / (double)3e38f - 1) < 1e-12);
    CHECK(scan_std(&s) < 1e32);
}

static void zeros_at_the_edges(void)
{
    enum { N = 2 * SCAN_CHUNK + 100 };
    CLEANUP(mem_free) float *v = calloc(N, sizeof(float));
    struct scan_stats s;
    v[SCAN_CHUNK + 5] = 1;
    v[SCAN_CHUNK + 9] = -1;
    scan_init(&s);
    scan_add(&s, DTYPE_F32, v, N);
    CHECK_INT(s.zero_head, SCAN_CHUNK + 5);
    CHECK_INT(s.zero_tail, N - SCAN_CHUNK - 10);
    v[0] = 2;
    v[N - 1] = -0.0f;
    scan_init(&s);
    scan_add(&s, DTYPE_F32, v, N);
    CHECK_INT(s.zero_head, 0);
    CHECK_INT(s.zero_tail, N - SCAN_CHUNK - 10);
    memset(v, 0, N * sizeof(float));
    scan_init(&s);
    scan_add(&s, DTYPE_F32, v, N);
    CHECK(s.zero == N && s.zero_head == N && s.zero_tail == N);
}

/* 5 million bf16 (more than one piece), a small f32, an empty one, one of unknown dtype. */
static int write_file(const char *path, const void *big, size_t n, struct cairn_error *err)
{
    const uint64_t shape[] = { n }, three[] = { 3 }, none[] = { 0 }, four[] = { 4 };
    const struct st_tensor t[] = {
        { .name = "big", .dtype_text = "BF16", .shape = shape, .rank = 1, .bytes = 2 * n },
        { .name = "small", .dtype_text = "F32", .shape = three, .rank = 1, .bytes = 12 },
        { .name = "none", .dtype_text = "F32", .shape = none, .rank = 1 },
        { .name = "strange", .dtype_text = "F9_FUTURE", .shape = four, .rank = 1, .bytes = 4 },
    };
    struct st_writer w;
    int r = st_writer_open(&w, path, &(struct st_contents){ .tensors = t, .n = 4, .order = ST_ORDER_GIVEN },
                           true, err);
    if (!r)
        r = st_writer_put(&w, 0, 0, big, n * 2, err) ||
                    st_writer_put(&w, 1, 0, (float[]){ 1, 2, 3 }, 12, err) ||
                    st_writer_put(&w, 3, 0, "abcd", 4, err) || st_writer_commit(&w, err)
                ? -1
                : 0;
    st_writer_close(&w);
    return r;
}

static void threads_do_not_change_the_result(void)
{
    enum { N = 5000011 };
    struct tree t;
    struct cairn_error err = { 0 };
    struct scan_stats whole, got[4];
    struct tensor_source src;
    CLEANUP(mem_free) uint16_t *big = malloc(N * 2);
    tree_make(&t);
    fill_weights(big, DTYPE_BF16, N, 5);
    REQUIRE(!write_file(tree_path(&t, "a.safetensors"), big, N, &err));
    REQUIRE(!source_open(&src, tree_path(&t, "a.safetensors"), &err));
    struct scan_stats first;
    for (int threads = 1; threads <= 5; threads++) {
        CHECK(!scan_source(&src, threads, got, NULL, &err));
        if (threads == 1)
            first = got[0];
        CHECK(same(&got[0], &first));
    }
    scan_init(&whole);
    scan_add(&whole, DTYPE_BF16, big, N);
    CHECK(whole.n == got[0].n && whole.zero == got[0].zero && whole.min == got[0].min &&
          whole.max == got[0].max);
    CHECK(fabs(whole.sum - got[0].sum) <= 1e-9 * N);
    CHECK(got[1].n == 3 && got[1].sum == 6 && got[2].n == 0 && got[3].n == 0);
    source_close(&src);
    tree_remove(&t);
}

static void a_file_that_shrinks_is_named(void)
{
    struct tree t;
    struct cairn_error err = { 0 };
    struct scan_stats got[4];
    struct tensor_source src;
    CLEANUP(mem_free) uint16_t *big = calloc(50000, 2);
    tree_make(&t);
    const char *path = tree_path(&t, "a.safetensors");
    REQUIRE(!write_file(path, big, 50000, &err));
    REQUIRE(!source_open(&src, path, &err));
    CHECK(!truncate(path, 5000));
    CHECK(scan_source(&src, 2, got, NULL, &err) == -1);
    CHECK_HAS(err.msg, "a.safetensors");
    CHECK_HAS(err.msg, "tensor big");
    CHECK_HAS(err.msg, "byte 5000");
    source_close(&src);
    tree_remove(&t);
}

static void a_file_that_changes_is_named(void)
{
    struct tree t;
    struct cairn_error err = { 0 };
    struct scan_stats got[4];
    struct tensor_source src;
    tree_make(&t);
    const char *path = tree_path(&t, "a.safetensors");
    REQUIRE(!write_file(path, "abcd", 2, &err));
    REQUIRE(!source_open(&src, path, &err));
    FILE *f = fopen(path, "r+");
    REQUIRE(f);
    struct timespec later[2] = { { 4000000000, 0 }, { 4000000000, 0 } };
    CHECK(!futimens(fileno(f), later));
    fclose(f);
    CHECK(scan_source(&src, 1, got, NULL, &err) == -1);
    CHECK_HAS(err.msg, "a.safetensors changed");
    source_close(&src);
    tree_remove(&t);
}

static void every_outside_call_may_fail(void)
{
    struct tree t;
    struct cairn_error err = { 0 };
    struct scan_stats got[4];
    tree_make(&t);
    const char *path = tree_path(&t, "a.safetensors");
    REQUIRE(!write_file(path, "abcd", 2, &err));
    int nth = 1;
    for (;; nth++) {
        CLEANUP(source_close) struct tensor_source src = { 0 };
        err = (struct cairn_error){ 0 };
        fault_arm(nth, EIO);
        int r = source_open(&src, path, &err) || scan_source(&src, 1, got, NULL, &err) ? -1 : 0;
        if (!fault_disarm()) {
            CHECK(r == 0);
            break;
        }
        CHECK(r == -1);
        CHECK_HAS(err.msg, "a.safetensors");
        CHECK_HAS(err.msg, "Input/output error");
    }
    CHECK(nth > 6);
    tree_remove(&t);
}

int main(void)
{
    RUN(every_kind_of_number_is_counted);
    RUN(integers_are_numbers_too);
    RUN(variants_give_the_same_bits);
    RUN(integers_and_bool);
    RUN(mean_and_deviation);
    RUN(sums_do_not_overflow);
    RUN(zeros_at_the_edges);
    RUN(threads_do_not_change_the_result);
    RUN(a_file_that_shrinks_is_named);
    RUN(a_file_that_changes_is_named);
    RUN(every_outside_call_may_fail);
    return check_done();
}
