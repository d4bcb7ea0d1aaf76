/* SPDX-License-Identifier: Apache-2.0
 * Every code of every narrow format, and a dense sample of f32, against definitions that share no line with the
 * code: a value is sign * mantissa * 2^exponent computed in long double, and rounding is a search for the nearest
 * of all the format's values. */
#include "base/cleanup.h"
#include "check.h"
#include "tensor/dtype.h"
#include <math.h>

struct format {
    enum dtype type;
    int exponent_bits, mantissa_bits, bias;
    bool has_inf;
    /* All finite values >= 0, by code; and the codes' count. */
    double *value;
    unsigned n;
};

static struct format formats[] = {
    { DTYPE_BF16, 8, 7, 127, true, NULL, 0 },
    { DTYPE_F16, 5, 10, 15, true, NULL, 0 },
    { DTYPE_F8_E5M2, 5, 2, 15, true, NULL, 0 },
    { DTYPE_F8_E4M3, 4, 3, 7, false, NULL, 0 },
};

static unsigned width(const struct format *f)
{
    return 1u + (unsigned)f->exponent_bits + (unsigned)f->mantissa_bits;
}

static double define(const struct format *f, unsigned code)
{
    unsigned exponent = code >> f->mantissa_bits, mantissa = code & ((1u << f->mantissa_bits) - 1);
    if (exponent == 0)
        return ldexp(mantissa, 1 - f->bias - f->mantissa_bits);
    return ldexp(mantissa + (1u << f->mantissa_bits), (int)exponent - f->bias - f->mantissa_bits);
}

static void prepare(void)
{
    for (size_t k = 0; k < ARRAY_LEN(formats); k++) {
        struct format *f = &formats[k];
        unsigned all = 1u << (width(f) - 1);
        f->n = f->has_inf ? all - (1u << f->mantissa_bits) : all - 1;
        f->value = calloc(f->n, sizeof(double));
        for (unsigned c = 0; c < f->n; c++)
            f->value[c] = define(f, c);
    }
}

/* The nearest code to a finite magnitude; the even one of two; f->n when it rounds past the largest. */
static unsigned nearest(const struct format *f, double v)
{
    unsigned lo = 0, hi = f->n - 1;
    if (v >= f->value[hi]) {
        double step = f->value[hi] - f->value[hi - 1], limit = f->value[hi] + step / 2;
        bool up = v > limit || (v == limit && (hi & 1));
        return up ? f->n : hi;
    }
    while (hi - lo > 1) {
        unsigned mid = (lo + hi) / 2;
        if (f->value[mid] <= v)
            lo = mid;
        else
            hi = mid;
    }
    double down = v - f->value[lo],
           up = f->value[hi] - v; /* exact: all are doubles of few bits, or far apart */
    return down < up || (down == up && !(lo & 1)) ? lo : hi;
}

static unsigned get(const void *p, size_t size, size_t i)
{
    return size == 1 ? ((const uint8_t *)p)[i] : ((const uint16_t *)p)[i];
}

static void every_code_widens_to_its_value(void)
{
    for (size_t k = 0; k < ARRAY_LEN(formats); k++) {
        const struct format *f = &formats[k];
        unsigned all = 1u << width(f), half = all / 2;
        uint16_t *codes16 = calloc(all, 2);
        uint8_t *codes8 = calloc(all, 1);
        float *out = calloc(all, sizeof(float));
        for (unsigned c = 0; c < all; c++)
            codes16[c] = (uint16_t)c, codes8[c] = (uint8_t)c;
        dtype_convert(out, DTYPE_F32, dtype_size(f->type) == 1 ? (void *)codes8 : codes16, f->type, all,
                      &(struct dtype_how){ 0 });
        int bad = 0;
        for (unsigned c = 0; c < all; c++) {
            unsigned magnitude = c & (half - 1);
            bool inf = f->has_inf && magnitude == f->n;
            bool right = magnitude < f->n ? out[c] == (float)f->value[magnitude] * (c < half ? 1 : -1)
                         : inf            ? isinf(out[c])
                                          : isnan(out[c]);
            right = right && (signbit(out[c]) != 0) == (c >= half);
            if (!right && bad++ < 5)
                CHECK_FAIL_("%s code %04x gives %g", dtype_name(f->type), c, (double)out[c]);
        }
        free(codes16), free(codes8), free(out);
    }
}

static uint32_t sample(uint32_t i)
{
    /* Every exponent with every pattern of leading mantissa bits and a few tails, then a hash. */
    return i * 2654435761u;
}

static void check_narrow(const struct format *f, uint32_t bits, unsigned code, bool saturate, int *bad)
{
    float v;
    memcpy(&v, &bits, 4);
    unsigned half = 1u << (width(f) - 1), magnitude = code & (half - 1);
    bool right;
    if (isnan(v)) {
        right = f->has_inf ? magnitude > f->n : magnitude == half - 1;
    } else {
        unsigned want = isinf(v) ? f->n : nearest(f, fabs((double)v));
        if (want == f->n && saturate)
            want = f->n - 1;
        right = magnitude == want; /* f->n is infinity, or e4m3's NaN */
    }
    right = right && (code >= half) == (bits >> 31);
    if (!right && (*bad)++ < 5)
        CHECK_FAIL_("%s of %08x (%g)%s is %04x", dtype_name(f->type), bits, (double)v,
                    saturate ? ", saturating" : "", code);
}

static void f32_narrows_to_the_nearest(void)
{
    enum { N = 1 << 20 };
    uint32_t *bits = calloc(N, 4);
    uint16_t *out = calloc(N, 2);
    for (size_t k = 0; k < ARRAY_LEN(formats); k++) {
        const struct format *f = &formats[k];
        int bad = 0;
        for (unsigned pass = 0; pass < 4; pass++) {
            bool saturate = pass & 1;
            for (uint32_t i = 0; i < N; i++)
                bits[i] = pass < 2 ? sample(i + pass * N) : i << 12 | (i & 1 ? 0x7ff : 0x800);
            dtype_convert(out, f->type, bits, DTYPE_F32, N, &(struct dtype_how){ .saturate = saturate });
            for (uint32_t i = 0; i < N; i++)
                check_narrow(f, bits[i], get(out, dtype_size(f->type), i), saturate, &bad);
        }
    }
    free(bits), free(out);
}

/* Between any two neighbours: the middle, and one f64 step to either side of it. */
static void f64_rounds_once(void)
{
    for (size_t k = 0; k < ARRAY_LEN(formats); k++) {
        const struct format *f = &formats[k];
        int bad = 0;
        for (unsigned c = 0; c < f->n; c++) {
            double up = c + 1 < f->n ? f->value[c + 1] : 2 * f->value[c] - f->value[c - 1];
            double middle = f->value[c] / 2 + up / 2;
            double v[3] = { nextafter(middle, 0), middle, nextafter(middle, INFINITY) };
            uint16_t out[3] = { 0 };
            dtype_convert(out, f->type, v, DTYPE_F64, 3, &(struct dtype_how){ 0 });
            unsigned want[3] = { c, c & 1 ? c + 1 : c, c + 1 };
            for (unsigned i = 0; i < 3; i++)
                if (get(out, dtype_size(f->type), i) != want[i] && bad++ < 5)
                    CHECK_FAIL_("%s of %a is %04x, want %04x", dtype_name(f->type), v[i],
                                get(out, dtype_size(f->type), i), want[i]);
        }
    }
}

static void every_pair_of_formats(void)
{
    for (size_t a = 0; a < ARRAY_LEN(formats); a++) {
        for (size_t b = 0; b < ARRAY_LEN(formats); b++) {
            const struct format *from = &formats[a], *to = &formats[b];
            int bad = 0;
            for (unsigned c = 0; c < from->n; c++) {
                uint16_t in = (uint16_t)c, out = 0;
                dtype_convert(&out, to->type, &in, from->type, 1, &(struct dtype_how){ 0 });
                if (get(&out, dtype_size(to->type), 0) != nearest(to, from->value[c]) && bad++ < 3)
                    CHECK_FAIL_("%s %04x to %s is %04x", dtype_name(from->type), c, dtype_name(to->type),
                                out);
            }
        }
    }
}

static const unsigned masks[] = { 0, DTYPE_CPU_AVX2, DTYPE_CPU_AVX2 | DTYPE_CPU_AVX512 };

/* One call of each kernel on the same bytes; results one after the other in out. */
static size_t run_all(const struct dtype_ops *ops, const uint8_t *in, size_t n, bool saturate, uint8_t *out)
{
    uint8_t *p = out;
    ops->bf16_to_f32(p, in, n), p += 4 * n;
    ops->f16_to_f32(p, in, n), p += 4 * n;
    ops->e4m3_to_f32(p, in, n), p += 4 * n;
    ops->e5m2_to_f32(p, in, n), p += 4 * n;
    ops->f32_to_bf16(p, in, n, saturate), p += 2 * n;
    ops->f32_to_f16(p, in, n, saturate), p += 2 * n;
    ops->f32_to_e4m3(p, in, n, saturate), p += n;
    ops->f32_to_e5m2(p, in, n, saturate), p += n;
    return (size_t)(p - out);
}

static void every_variant_agrees_at_every_length_and_place(void)
{
    enum { MOST = 257, ALIGN = 64 };
    static _Alignas(64) uint8_t in[4 * MOST + ALIGN], want[22 * MOST], got[22 * MOST + ALIGN + 8];
    struct dtype_ops reference, fast;
    dtype_ops_init(&reference, 0);
    for (size_t m = 1; m < ARRAY_LEN(masks); m++) {
        if ((dtype_cpu() & masks[m]) != masks[m]) {
            printf("# this CPU lacks the variant %u\n", masks[m]);
            continue;
        }
        dtype_ops_init(&fast, masks[m]);
        int bad = 0;
        for (size_t n = 0; n <= MOST; n++) {
            for (size_t align = 0; align < ALIGN; align += n < 40 ? 1 : 7) {
                for (size_t i = 0; i < sizeof(in); i++)
                    in[i] = (uint8_t)(sample((uint32_t)(i + n * 977 + align * 131)) >> 13);
                memset(got, 0xa5, sizeof(got));
                size_t size = run_all(&reference, in + align, n, n & 1, want);
                run_all(&fast, in + align, n, n & 1, got + align);
                bool same = !memcmp(want, got + align, size) && got[align + size] == 0xa5;
                if (!same && bad++ < 5)
                    CHECK_FAIL_("variant %u, %zu elements at +%zu", masks[m], n, align);
            }
        }
    }
}

static void every_variant_agrees_on_every_code(void)
{
    enum { N = 65536 };
    uint8_t *in = malloc(4 * N), *want = malloc(22 * N), *got = malloc(22 * N);
    struct dtype_ops reference, fast;
    dtype_ops_init(&reference, 0);
    for (unsigned pass = 0; pass < 66; pass++) {
        for (uint32_t i = 0; i < N; i++) {
            uint32_t v = pass == 0 ? i | i << 16 : pass == 1 ? i << 16 : sample(i + pass * N);
            memcpy(in + 4 * i, &v, 4);
        }
        size_t size = run_all(&reference, in, N, pass & 1, want);
        for (size_t m = 1; m < ARRAY_LEN(masks); m++) {
            if ((dtype_cpu() & masks[m]) != masks[m])
                continue;
            dtype_ops_init(&fast, masks[m]);
            run_all(&fast, in, N, pass & 1, got);
            CHECK(!memcmp(want, got, size));
        }
    }
    free(in), free(want), free(got);
}

static void stochastic_rounding_is_fair_and_repeatable(void)
{
    enum { N = 100000 };
    static float in[N];
    static uint16_t a[N], b[N];
    /* A quarter of the way from 1 to the next bf16. */
    for (int i = 0; i < N; i++)
        in[i] = 1.0f + 0x1p-9f;
    struct dtype_how how = { .round = DTYPE_STOCHASTIC, .seed = 42 };
    dtype_convert(a, DTYPE_BF16, in, DTYPE_F32, N, &how);
    int up = 0;
    for (int i = 0; i < N; i++) {
        CHECK(a[i] == 0x3f80 || a[i] == 0x3f81);
        up += a[i] == 0x3f81;
    }
    CHECK(up > N / 4 - 700 && up < N / 4 + 700); /* five standard deviations */
    for (int piece = 0; piece < 10; piece++) {
        how.first = (uint64_t)piece * (N / 10);
        dtype_convert(b + how.first, DTYPE_BF16, in + how.first, DTYPE_F32, N / 10, &how);
    }
    CHECK(!memcmp(a, b, sizeof(a)));
    float exact[3] = { 1.5f, -0.0f, INFINITY };
    dtype_convert(a, DTYPE_BF16, exact, DTYPE_F32, 3, &how);
    CHECK(a[0] == 0x3fc0 && a[1] == 0x8000 && a[2] == 0x7f80); /* what fits is not touched */
}

static void saturating_replaces_infinity(void)
{
    double d[3] = { INFINITY, -INFINITY, 1e300 };
    struct dtype_how how = { .saturate = true };
    float f[3];
    dtype_convert(f, DTYPE_F32, d, DTYPE_F64, 3, &how);
    CHECK(f[0] == 0x1.fffffep127f && f[1] == -0x1.fffffep127f && f[2] == 0x1.fffffep127f);
    uint16_t inf = 0x7f80, out;
    dtype_convert(&out, DTYPE_BF16, &inf, DTYPE_BF16, 1, &how);
    CHECK_INT(out, 0x7f7f);
    dtype_convert(d, DTYPE_F64, d, DTYPE_F64, 1, &how);
    CHECK(d[0] == dtype_max(DTYPE_F64));
}

static void names(void)
{
    for (int t = DTYPE_OTHER + 1; t < DTYPE_COUNT; t++) {
        CHECK_INT(dtype_parse(dtype_name((enum dtype)t)), t);
        CHECK_INT(dtype_parse(dtype_safetensors((enum dtype)t)), t);
    }
    CHECK_INT(dtype_parse("bfloat16"), DTYPE_BF16);
    CHECK_INT(dtype_parse("float8_e4m3fn"), DTYPE_F8_E4M3);
    CHECK_INT(dtype_parse("float"), DTYPE_F32);
    CHECK_INT(dtype_parse("floa"), DTYPE_OTHER);
    CHECK_INT(dtype_parse(""), DTYPE_OTHER);
}

int main(void)
{
    prepare();
    RUN(names);
    RUN(every_code_widens_to_its_value);
    RUN(f32_narrows_to_the_nearest);
    RUN(f64_rounds_once);
    RUN(every_pair_of_formats);
    RUN(every_variant_agrees_at_every_length_and_place);
    RUN(every_variant_agrees_on_every_code);
    RUN(stochastic_rounding_is_fair_and_repeatable);
    RUN(saturating_replaces_infinity);
    for (size_t k = 0; k < ARRAY_LEN(formats); k++)
        free(formats[k].value);
    return check_done();
}
