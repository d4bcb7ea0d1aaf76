/* SPDX-License-Identifier: Apache-2.0
 * Conversions for CPUs with AVX-512 (F, BW, VL, DQ).  Only those are here that gain from the wider
 * registers. */
#include "tensor/dtype.h"
#include "tensor/dtype_scalar.h"

#ifdef __x86_64__
#include <immintrin.h>

enum { STREAM_BYTES = 8 << 20 }; /* as in dtype_avx2.c */

static inline bool streams(const void *dst, size_t bytes)
{
    return bytes >= STREAM_BYTES && ((uintptr_t)dst & 63) == 0;
}

static inline void put(void *dst, __m512i v, bool stream)
{
    if (stream)
        _mm512_stream_si512(dst, v);
    else
        _mm512_storeu_si512(dst, v);
}

static void bf16_to_f32(void *to, const void *from, size_t n)
{
    f32_any *dst = to;
    const u16_any *src = from;
    bool stream = streams(dst, n * sizeof(*dst));
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m512i lo = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)(src + i)));
        __m512i hi = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)(src + i + 16)));
        put(dst + i, _mm512_slli_epi32(lo, 16), stream);
        put(dst + i + 16, _mm512_slli_epi32(hi, 16), stream);
    }
    for (; i < n; i++)
        dst[i] = scalar_f32(scalar_from_bf16(src[i]));
    _mm_sfence();
}

static void f16_to_f32(void *to, const void *from, size_t n)
{
    f32_any *dst = to;
    const u16_any *src = from;
    bool stream = streams(dst, n * sizeof(*dst));
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m512 v = _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(src + i)));
        put(dst + i, _mm512_castps_si512(v), stream);
    }
    for (; i < n; i++)
        dst[i] = scalar_f32(scalar_from_f16(src[i]));
    _mm_sfence();
}

/* Every fp8 value is a bf16 value, which is the upper half of an f32: the magnitudes 0 … 127 are looked up.
 * A multiplication would do without tables, but it is several times slower for subnormals. */
/* clang-format off */
static const uint16_t e4m3_magnitudes[128] = {
    0x0000, 0x3b00, 0x3b80, 0x3bc0, 0x3c00, 0x3c20, 0x3c40, 0x3c60, 0x3c80, 0x3c90, 0x3ca0, 0x3cb0,
    0x3cc0, 0x3cd0, 0x3ce0, 0x3cf0, 0x3d00, 0x3d10, 0x3d20, 0x3d30, 0x3d40, 0x3d50, 0x3d60, 0x3d70,
    0x3d80, 0x3d90, 0x3da0, 0x3db0, 0x3dc0, 0x3dd0, 0x3de0, 0x3df0, 0x3e00, 0x3e10, 0x3e20, 0x3e30,
    0x3e40, 0x3e50, 0x3e60, 0x3e70, 0x3e80, 0x3e90, 0x3ea0, 0x3eb0, 0x3ec0, 0x3ed0, 0x3ee0, 0x3ef0,
    0x3f00, 0x3f10, 0x3f20, 0x3f30, 0x3f40, 0x3f50, 0x3f60, 0x3f70, 0x3f80, 0x3f90, 0x3fa0, 0x3fb0,
    0x3fc0, 0x3fd0, 0x3fe0, 0x3ff0, 0x4000, 0x4010, 0x4020, 0x4030, 0x4040, 0x4050, 0x4060, 0x4070,
    0x4080, 0x4090, 0x40a0, 0x40b0, 0x40c0, 0x40d0, 0x40e0, 0x40f0, 0x4100, 0x4110, 0x4120, 0x4130,
    0x4140, 0x4150, 0x4160, 0x4170, 0x4180, 0x4190, 0x41a0, 0x41b0, 0x41c0, 0x41d0, 0x41e0, 0x41f0,
    0x4200, 0x4210, 0x4220, 0x4230, 0x4240, 0x4250, 0x4260, 0x4270, 0x4280, 0x4290, 0x42a0, 0x42b0,
    0x42c0, 0x42d0, 0x42e0, 0x42f0, 0x4300, 0x4310, 0x4320, 0x4330, 0x4340, 0x4350, 0x4360, 0x4370,
    0x4380, 0x4390, 0x43a0, 0x43b0, 0x43c0, 0x43d0, 0x43e0, 0x7fc0,
};
static const uint16_t e5m2_magnitudes[128] = {
    0x0000, 0x3780, 0x3800, 0x3840, 0x3880, 0x38a0, 0x38c0, 0x38e0, 0x3900, 0x3920, 0x3940, 0x3960,
    0x3980, 0x39a0, 0x39c0, 0x39e0, 0x3a00, 0x3a20, 0x3a40, 0x3a60, 0x3a80, 0x3aa0, 0x3ac0, 0x3ae0,
    0x3b00, 0x3b20, 0x3b40, 0x3b60, 0x3b80, 0x3ba0, 0x3bc0, 0x3be0, 0x3c00, 0x3c20, 0x3c40, 0x3c60,
    0x3c80, 0x3ca0, 0x3cc0, 0x3ce0, 0x3d00, 0x3d20, 0x3d40, 0x3d60, 0x3d80, 0x3da0, 0x3dc0, 0x3de0,
    0x3e00, 0x3e20, 0x3e40, 0x3e60, 0x3e80, 0x3ea0, 0x3ec0, 0x3ee0, 0x3f00, 0x3f20, 0x3f40, 0x3f60,
    0x3f80, 0x3fa0, 0x3fc0, 0x3fe0, 0x4000, 0x4020, 0x4040, 0x4060, 0x4080, 0x40a0, 0x40c0, 0x40e0,
    0x4100, 0x4120, 0x4140, 0x4160, 0x4180, 0x41a0, 0x41c0, 0x41e0, 0x4200, 0x4220, 0x4240, 0x4260,
    0x4280, 0x42a0, 0x42c0, 0x42e0, 0x4300, 0x4320, 0x4340, 0x4360, 0x4380, 0x43a0, 0x43c0, 0x43e0,
    0x4400, 0x4420, 0x4440, 0x4460, 0x4480, 0x44a0, 0x44c0, 0x44e0, 0x4500, 0x4520, 0x4540, 0x4560,
    0x4580, 0x45a0, 0x45c0, 0x45e0, 0x4600, 0x4620, 0x4640, 0x4660, 0x4680, 0x46a0, 0x46c0, 0x46e0,
    0x4700, 0x4720, 0x4740, 0x4760, 0x7f80, 0x7fe0, 0x7fc0, 0x7fe0,
};
/* clang-format on */

struct fp8_table {
    __m512i part[4];   /* 32 magnitudes each */
    __m512i low, high; /* which of 32 halves goes to the upper half of each f32 */
};

static inline struct fp8_table fp8_table_load(const uint16_t *magnitudes)
{
    struct fp8_table t;
    for (int i = 0; i < 4; i++)
        t.part[i] = _mm512_loadu_si512(magnitudes + 32 * i);
    t.low = _mm512_slli_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), 16);
    t.high = _mm512_add_epi32(t.low, _mm512_set1_epi32(16 << 16));
    return t;
}

/* A look-up takes the lower six bits of a code; the seventh chooses between two of them, the eighth is the
 * sign. */
static inline __m512i fp8_halves(const struct fp8_table *t, __m256i codes)
{
    __m512i v = _mm512_cvtepu8_epi16(codes);
    __m512i small = _mm512_permutex2var_epi16(t->part[0], v, t->part[1]);
    __mmask32 large = _mm512_test_epi16_mask(v, _mm512_set1_epi16(0x40));
    __m512i m = _mm512_mask_blend_epi16(large, small, _mm512_permutex2var_epi16(t->part[2], v, t->part[3]));
    __m512i sign = _mm512_and_si512(_mm512_slli_epi16(v, 8), _mm512_set1_epi16((short)0x8000));
    return _mm512_or_si512(m, sign);
}

static inline size_t widen_fp8(f32_any *dst, const uint8_t *src, size_t n, const uint16_t *magnitudes)
{
    const __mmask32 upper = 0xaaaaaaaa;
    const struct fp8_table t = fp8_table_load(magnitudes);
    bool stream = streams(dst, n * sizeof(*dst));
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m512i halves = fp8_halves(&t, _mm256_loadu_si256((const void *)(src + i)));
        put(dst + i, _mm512_maskz_permutexvar_epi16(upper, t.low, halves), stream);
        put(dst + i + 16, _mm512_maskz_permutexvar_epi16(upper, t.high, halves), stream);
    }
    _mm_sfence();
    return i;
}

static void e4m3_to_f32(void *to, const void *from, size_t n)
{
    f32_any *dst = to;
    const uint8_t *src = from;
    for (size_t i = widen_fp8(dst, src, n, e4m3_magnitudes); i < n; i++)
        dst[i] = scalar_f32(scalar_from_e4m3(src[i]));
}

static void e5m2_to_f32(void *to, const void *from, size_t n)
{
    f32_any *dst = to;
    const uint8_t *src = from;
    for (size_t i = widen_fp8(dst, src, n, e5m2_magnitudes); i < n; i++)
        dst[i] = scalar_f32(scalar_from_e5m2(src[i]));
}

static inline __m256i to_bf16(__m512i v, __m512i most)
{
    __m512i abs = _mm512_and_si512(v, _mm512_set1_epi32(0x7fffffff)), top = _mm512_srli_epi32(abs, 16);
    __m512i odd = _mm512_and_si512(top, _mm512_set1_epi32(1));
    __m512i code =
        _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(abs, _mm512_set1_epi32(0x7fff)), odd), 16);
    code = _mm512_min_epu32(code, most);
    __mmask16 is_nan = _mm512_cmpgt_epi32_mask(abs, _mm512_set1_epi32(0x7f800000));
    code = _mm512_mask_or_epi32(code, is_nan, top, _mm512_set1_epi32(0x40));
    code = _mm512_or_si512(code, _mm512_slli_epi32(_mm512_srli_epi32(v, 31), 15));
    return _mm512_cvtepi32_epi16(code);
}

static void f32_to_bf16(void *to, const void *from, size_t n, bool saturate)
{
    u16_any *dst = to;
    const f32_any *src = from;
    const __m512i most = _mm512_set1_epi32(saturate ? 0x7f7f : 0x7f80);
    bool stream = streams(dst, n * sizeof(*dst));
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i a = to_bf16(_mm512_loadu_si512(src + i), most);
        __m256i b = to_bf16(_mm512_loadu_si512(src + i + 16), most);
        put(dst + i, _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1), stream);
    }
    for (; i < n; i++)
        dst[i] = (uint16_t)scalar_narrow(&scalar_bf16, scalar_bits(src + i), SCALAR_HALF, saturate);
    _mm_sfence();
}

void dtype_ops_init_avx512(struct dtype_ops *ops)
{
    ops->bf16_to_f32 = bf16_to_f32;
    ops->f16_to_f32 = f16_to_f32;
    ops->e4m3_to_f32 = e4m3_to_f32;
    ops->e5m2_to_f32 = e5m2_to_f32;
    ops->f32_to_bf16 = f32_to_bf16;
}
#endif
