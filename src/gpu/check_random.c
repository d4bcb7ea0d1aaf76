/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/check.h"
#include "gpu/kernels/random.h"
#include <math.h>

static const size_t sizes[] = { 1, 3, 4, 258, 4096, 4097, 9999 };
enum { SEED_HIGH = 0x1234567, STREAM_HIGH = 7 };
static const uint64_t seed = (uint64_t)SEED_HIGH << 32 | 89, stream = (uint64_t)STREAM_HIGH << 32 | 11;

/* Philox4x32-10 as published by Salmon and others, "Parallel random numbers: as easy as 1, 2, 3" (2011). */
static void philox(uint64_t counter, uint32_t out[4])
{
    uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    uint32_t c[4] = { (uint32_t)counter, (uint32_t)(counter >> 32), (uint32_t)stream,
                      (uint32_t)(stream >> 32) };
    for (int round = 0; round < 10; round++) {
        uint64_t p = (uint64_t)0xd2511f53 * c[0], q = (uint64_t)0xcd9e8d57 * c[2];
        uint32_t next[4] = { (uint32_t)(q >> 32) ^ c[1] ^ key[0], (uint32_t)q,
                             (uint32_t)(p >> 32) ^ c[3] ^ key[1], (uint32_t)p };
        for (int k = 0; k < 4; k++)
            c[k] = next[k];
        key[0] += 0x9e3779b9, key[1] += 0xbb67ae85;
    }
    for (int k = 0; k < 4; k++)
        out[k] = c[k];
}

static uint32_t word_of(size_t i)
{
    uint32_t w[4];
    philox(i / 4, w);
    return w[i % 4];
}

/* As an f32. */
static double uniform_of(uint32_t word)
{
    return (float)(((word >> 8) + 0.5) / 16777216);
}

static void launch(struct check *c, const char *kernel, struct check_tensor *y, float shift, float scale)
{
    struct random_args args = {
        .y = y->device, .n = (k_i64)y->n, .seed = seed, .stream = stream, .shift = shift, .scale = scale
    };
    CHECK_LAUNCH(c, kernel, ((struct gpu_grid){ .x = (unsigned)K_GROUPS(y->n) }), args);
}

/* Exact: u has 25 bits, of which f32 keeps 24, rounded to even; then it is rounded to the format. */
static void random_uniform(struct check *c)
{
    for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
        struct check_tensor y = check_output(c, sizes[s]);
        launch(c, "random_uniform", &y, 0, 1);
        check_fetch(c, &y);
        for (size_t i = 0; i < y.n && check_ok(c); i++) {
            float want = check_widen(c, check_narrow(c, (float)uniform_of(word_of(i))));
            if (y.host[i] != want)
                check_complain(c, "element %zu is %.9g, not %.9g", i, (double)y.host[i], (double)want);
        }
    }
}

static void random_normal(struct check *c)
{
    for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
        struct check_tensor y = check_output(c, sizes[s]);
        launch(c, "random_normal", &y, 0.5f, 2);
        double *want = check_doubles(c, y.n);
        for (size_t i = 0; i < y.n; i++) {
            double radius = sqrt(-2 * log(uniform_of(word_of(i & ~(size_t)1))));
            double angle = 2 * M_PI * uniform_of(word_of(i | 1));
            want[i] = 0.5 + 2 * radius * (i & 1 ? sin(angle) : cos(angle));
        }
        check_compare(c, &y, want, 8);
    }
}

/* Sums of z, z^2, z^4 of a million are those of a normal distribution. */
static void random_moments(struct check *c)
{
    enum { N = 1 << 20 };
    struct check_tensor y = check_output_f32(c, N);
    double mean = 0, square = 0, fourth = 0;
    launch(c, "random_normal", &y, 0, 1);
    check_fetch(c, &y);
    for (size_t i = 0; i < N; i++) {
        double z = y.host[i];
        mean += z / N, square += z * z / N, fourth += z * z * z * z / N;
    }
    if (check_ok(c) && (fabs(mean) > 0.005 || fabs(square - 1) > 0.01 || fabs(fourth - 3) > 0.06))
        check_complain(c, "mean %.4f, mean square %.4f, mean fourth power %.4f", mean, square, fourth);
}

static void dropout(struct check *c)
{
    for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
        size_t n = sizes[s];
        struct check_tensor x = check_input(c, n, 1), y = check_output(c, n);
        struct dropout_args args = { .y = y.device,
                                     .x = x.device,
                                     .n = (k_i64)n,
                                     .seed = seed,
                                     .stream = stream,
                                     .threshold = 0x40000000,
                                     .scale = 4.0f / 3 };
        CHECK_LAUNCH(c, "dropout", ((struct gpu_grid){ .x = (unsigned)K_GROUPS(n) }), args);
        double *want = check_doubles(c, n);
        for (size_t i = 0; i < n; i++)
            want[i] = word_of(i) < 0x40000000 ? 0 : (double)args.scale * x.host[i];
        check_compare(c, &y, want, 1);
    }
}

const struct check_case checks_random[] = {
    { "random_uniform", random_uniform, false },
    { "random_normal", random_normal, false },
    { "random_normal", random_moments, true },
    { "dropout", dropout, false },
};
const size_t n_checks_random = ARRAY_LEN(checks_random);
