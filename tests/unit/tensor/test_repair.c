/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/repair.h"

#include "base/cleanup.h"
#include "check.h"
#include <math.h>

static const enum dtype kinds[] = {
    DTYPE_F64, DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_F8_E4M3, DTYPE_F8_E5M2
};

/* Values of every sort; the lengths below put them into whole blocks and into the rest of one. */
static const double values[] = {
    0.0,   -0.0,  1.0,      -2.5,      1e300, -1e300, 1e38, 3e4,    -1e5,  500.0,
    460.0, 464.0, INFINITY, -INFINITY, NAN,   1e-3,   1e-9, -1e-30, 1e-42, 1e-310
};

enum { MOST = 300 };

static double get(const void *p, enum dtype t, size_t i)
{
    double v;
    dtype_convert(&v, DTYPE_F64, (const char *)p + i * dtype_size(t), t, 1, &(struct dtype_how){ 0 });
    return v;
}

/* What must come out, from the definition: element by element, by way of doubles. */
static struct repair_counts expected(const void *before, enum dtype from, const void *after, enum dtype to,
                                     size_t n, const struct repair_options *how)
{
    struct repair_counts c = { 0 };
    for (size_t i = 0; i < n; i++) {
        double a = get(before, from, i), b = get(after, to, i);
        bool lost = !isfinite(b);
        c.nans_replaced += isnan(a) && how->replace_nan;
        c.clamped += !isnan(a) && lost && how->clamp;
        c.overflowed += isfinite(a) && lost && !how->clamp;
        c.underflowed += a != 0 && b == 0;
    }
    return c;
}

static void check_values(const void *before, enum dtype from, const void *cast, const void *repaired,
                         enum dtype to, size_t n, const struct repair_options *how)
{
    for (size_t i = 0; i < n; i++) {
        double a = get(before, from, i), b = get(cast, to, i), got = get(repaired, to, i), want = b;
        if (isnan(a) && how->replace_nan)
            want = how->nan;
        else if (!isnan(a) && !isfinite(b) && how->clamp)
            want = copysign(dtype_max(to), a);
        CHECK(isnan(want) ? isnan(got) != 0 : got == want && !signbit(got) == !signbit(want));
    }
}

static void one(enum dtype from, enum dtype to, size_t n, const struct repair_options *how)
{
    double wide[MOST] = { 0 };
    char before[MOST * 8], cast[MOST * 8], repaired[MOST * 8];
    for (size_t i = 0; i < n; i++)
        wide[i] = values[i * 7 % ARRAY_LEN(values)];
    dtype_convert(before, from, wide, DTYPE_F64, n, &(struct dtype_how){ 0 });
    dtype_convert(cast, to, before, from, n, &(struct dtype_how){ 0 });
    memcpy(repaired, cast, n * dtype_size(to));
    struct repair_counts c = { 0 }, want = expected(before, from, cast, to, n, how);
    repair_values(repaired, to, before, from, n, how, &c);
    check_values(before, from, cast, repaired, to, n, how);
    CHECK_INT(c.overflowed, want.overflowed);
    CHECK_INT(c.underflowed, want.underflowed);
    CHECK_INT(c.clamped, want.clamped);
    CHECK_INT(c.nans_replaced, want.nans_replaced);
    /* A conversion that is said to lose nothing must lose nothing. */
    if (!repair_is_needed(to, from, how))
        CHECK_INT(want.overflowed + want.underflowed, 0);
}

static const struct repair_options hows[] = { { 0 },
                                              { .clamp = true },
                                              { .replace_nan = true, .nan = 2.0 },
                                              { .clamp = true, .replace_nan = true, .nan = -0.5 } };

static void every_pair(void)
{
    static const size_t lengths[] = { 0, 1, 20, 127, 128, 129, 256, MOST };
    for (size_t f = 0; f < ARRAY_LEN(kinds); f++)
        for (size_t t = 0; t < ARRAY_LEN(kinds); t++)
            for (size_t h = 0; h < ARRAY_LEN(hows); h++)
                for (size_t n = 0; n < ARRAY_LEN(lengths); n++)
                    one(kinds[f], kinds[t], lengths[n], &hows[h]);
}

/* Saturating while converting and repairing afterwards are the same. */
static void clamping_is_saturation(void)
{
    for (size_t t = 0; t < ARRAY_LEN(kinds); t++) {
        double wide[MOST];
        char a[MOST * 8], b[MOST * 8];
        for (size_t i = 0; i < MOST; i++)
            wide[i] = values[i % ARRAY_LEN(values)];
        dtype_convert(a, kinds[t], wide, DTYPE_F64, MOST, &(struct dtype_how){ .saturate = true });
        dtype_convert(b, kinds[t], wide, DTYPE_F64, MOST, &(struct dtype_how){ 0 });
        repair_values(b, kinds[t], wide, DTYPE_F64, MOST, &hows[1], &(struct repair_counts){ 0 });
        CHECK(!memcmp(a, b, MOST * dtype_size(kinds[t])));
    }
}

static void which_conversions_lose(void)
{
    const struct repair_options no = { 0 }, nan = { .replace_nan = true };
    CHECK(!repair_is_needed(DTYPE_F32, DTYPE_BF16, &no));
    CHECK(!repair_is_needed(DTYPE_BF16, DTYPE_F8_E4M3, &no));
    CHECK(!repair_is_needed(DTYPE_BF16, DTYPE_BF16, &no));
    CHECK(repair_is_needed(DTYPE_BF16, DTYPE_BF16, &nan));
    CHECK(repair_is_needed(DTYPE_F16, DTYPE_BF16, &no));
    CHECK(repair_is_needed(DTYPE_F32, DTYPE_F64, &no));
    CHECK(repair_is_needed(DTYPE_F8_E4M3, DTYPE_F8_E5M2, &no));
}

int main(void)
{
    RUN(every_pair);
    RUN(clamping_is_saturation);
    RUN(which_conversions_lose);
    return check_done();
}
