/* SPDX-License-Identifier: Apache-2.0
 * Conversions for CPUs with AVX2 and F16C.  Built with those flags; called only where the CPU has them. */
#include "tensor/dtype.h"
#include "tensor/dtype_scalar.h"

#ifdef __x86_64__
#include <immintrin.h>

/* Results larger than this go past the caches: they would only push out what is still needed, and a plain
 * store first reads the line it overwrites. */
enum { STREAM_BYTES = 8 << 20 };

static inline bool streams(const void *dst, size_t bytes)
{
    return bytes >= STREAM_BYTES && ((uintptr_t)dst & 31) == 0;
}

static inline void put(void *dst, __m256i v, bool stream)
{
    if (stream)
        _mm256_stream_si256(dst, v);
    else
        _mm256_storeu_si256(dst, v);
}

static void bf16_to_f32(void *to, const void *from, size_t n)
{
    f32_any *dst = to;
    const u16_any *src = from;
    bool stream = streams(dst, n * sizeof(*dst));
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i v = _mm256_loadu_si256((const void *)(src + i));
        __m256i lo = _mm256_cvtepu16_epi32(_mm256_castsi256_si128(v));
        __m256i hi = _mm256_cvtepu16_epi32(_mm256_extracti128_si256(v, 1));
        put(dst + i, _mm256_slli_epi32(lo, 16), stream);
        put(dst + i + 8, _mm256_slli_epi32(hi, 16), stream);
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
    for (; i + 8 <= n; i += 8) {
        __m256 v = _mm256_cvtph_ps(_mm_loadu_si128((const void *)(src + i)));
        put(dst + i, _mm256_castps_si256(v), stream);
    }
    for (; i < n; i++)
        dst[i] = scalar_f32(scalar_from_f16(src[i]));
    _mm_sfence();
}

/* Exponent and mantissa are moved to f32's places; a multiplication by a power of two corrects the bias and
 * normalises subnormals, exactly. */
static inline __m256i widen8(__m256i codes, int shift, __m256 scale, __m256i top, __m256i special)
{
    __m256i sign = _mm256_slli_epi32(_mm256_and_si256(codes, _mm256_set1_epi32(0x80)), 24);
    __m256i abs = _mm256_and_si256(codes, _mm256_set1_epi32(0x7f));
    __m256i bits = _mm256_sll_epi32(abs, _mm_cvtsi32_si128(shift));
    __m256i v = _mm256_castps_si256(_mm256_mul_ps(_mm256_castsi256_ps(bits), scale));
    /* From `top` on the codes are infinity or NaN, and are given by a small table instead. */
    __m256i beyond = _mm256_cmpgt_epi32(abs, top);
    __m256i index = _mm256_and_si256(abs, _mm256_set1_epi32(3));
    v = _mm256_blendv_epi8(v, _mm256_permutevar8x32_epi32(special, index), beyond);
    return _mm256_or_si256(v, sign);
}

static void e4m3_to_f32(void *to, const void *from, size_t n)
{
    f32_any *dst = to;
    const uint8_t *src = from;
    bool stream = streams(dst, n * sizeof(*dst));
    const __m256 scale = _mm256_set1_ps(0x1p120f);
    const __m256i top = _mm256_set1_epi32(0x7e), special = _mm256_set1_epi32(0x7fc00000);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256i codes = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)(src + i)));
        put(dst + i, widen8(codes, 20, scale, top, special), stream);
    }
    for (; i < n; i++)
        dst[i] = scalar_f32(scalar_from_e4m3(src[i]));
    _mm_sfence();
}

static void e5m2_to_f32(void *to, const void *from, size_t n)
{
    f32_any *dst = to;
    const uint8_t *src = from;
    bool stream = streams(dst, n * sizeof(*dst));
    const __m256 scale = _mm256_set1_ps(0x1p112f);
    const __m256i top = _mm256_set1_epi32(0x7b);
    const __m256i special = _mm256_setr_epi32(0x7f800000, 0x7fe00000, 0x7fc00000, 0x7fe00000, 0, 0, 0, 0);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256i codes = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)(src + i)));
        put(dst + i, widen8(codes, 21, scale, top, special), stream);
    }
    for (; i < n; i++)
        dst[i] = scalar_f32(scalar_from_e5m2(src[i]));
    _mm_sfence();
}

/* bf16 codes in the low halves of eight 32-bit lanes. */
static inline __m256i to_bf16(__m256i v, __m256i most)
{
    const __m256i inf = _mm256_set1_epi32(0x7f800000), quiet = _mm256_set1_epi32(0x40);
    __m256i abs = _mm256_and_si256(v, _mm256_set1_epi32(0x7fffffff));
    __m256i is_nan = _mm256_cmpgt_epi32(abs, inf);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(v, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(abs, _mm256_set1_epi32(0x7fff)), odd);
    __m256i code = _mm256_min_epu32(_mm256_srli_epi32(rounded, 16), most);
    __m256i nan = _mm256_or_si256(_mm256_srli_epi32(abs, 16), quiet);
    code = _mm256_blendv_epi8(code, nan, is_nan);
    return _mm256_or_si256(code,
                           _mm256_srli_epi32(_mm256_andnot_si256(_mm256_set1_epi32(0x7fffffff), v), 16));
}

static void f32_to_bf16(void *to, const void *from, size_t n, bool saturate)
{
    u16_any *dst = to;
    const f32_any *src = from;
    const __m256i most = _mm256_set1_epi32(saturate ? 0x7f7f : 0x7f80);
    bool stream = streams(dst, n * sizeof(*dst));
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i a = to_bf16(_mm256_loadu_si256((const void *)(src + i)), most);
        __m256i b = to_bf16(_mm256_loadu_si256((const void *)(src + i + 8)), most);
        put(dst + i, _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xd8), stream);
    }
    for (; i < n; i++)
        dst[i] = (uint16_t)scalar_narrow(&scalar_bf16, scalar_bits(src + i), SCALAR_HALF, saturate);
    _mm_sfence();
}

static void f32_to_f16(void *to, const void *from, size_t n, bool saturate)
{
    u16_any *dst = to;
    const f32_any *src = from;
    const __m128i inf = _mm_set1_epi16(0x7c00), abs_mask = _mm_set1_epi16(0x7fff);
    const __m128i clamp = _mm_set1_epi16(saturate ? -1 : 0);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i v = _mm256_cvtps_ph(_mm256_loadu_ps((const float *)(src + i)),
                                    _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        /* One less than infinity is the largest finite value. */
        __m128i is_inf = _mm_and_si128(_mm_cmpeq_epi16(_mm_and_si128(v, abs_mask), inf), clamp);
        _mm_storeu_si128((void *)(dst + i), _mm_add_epi16(v, is_inf));
    }
    for (; i < n; i++)
        dst[i] = (uint16_t)scalar_narrow(&scalar_f16, scalar_bits(src + i), SCALAR_HALF, saturate);
}

struct narrow8 {
    int drop;         /* mantissa bits of f32 that are cut */
    __m256i rebias;   /* difference of the biases, in f32's exponent place */
    __m256i smallest; /* bits of the smallest normal number */
    __m256 magic;     /* adding it leaves a subnormal's code in the low bits, rounded by the FPU */
    __m256i most;     /* largest code that may come out of rounding */
    __m256i nan;      /* of positive sign, payload 0 */
    __m256i payload;  /* bits of a NaN's code that are its payload */
};

/* f8 codes in eight 32-bit lanes. */
static inline __m256i to_f8(__m256i v, const struct narrow8 *k)
{
    const __m128i drop = _mm_cvtsi32_si128(k->drop);
    __m256i abs = _mm256_and_si256(v, _mm256_set1_epi32(0x7fffffff));
    __m256i odd = _mm256_and_si256(_mm256_srl_epi32(abs, drop), _mm256_set1_epi32(1));
    __m256i half = _mm256_set1_epi32((1 << (k->drop - 1)) - 1);
    __m256i normal = _mm256_add_epi32(_mm256_add_epi32(_mm256_sub_epi32(abs, k->rebias), half), odd);
    normal = _mm256_srl_epi32(normal, drop);
    __m256i small = _mm256_castps_si256(_mm256_add_ps(_mm256_castsi256_ps(abs), k->magic));
    small = _mm256_sub_epi32(small, _mm256_castps_si256(k->magic));
    __m256i code = _mm256_blendv_epi8(normal, small, _mm256_cmpgt_epi32(k->smallest, abs));
    code = _mm256_min_epu32(code, k->most);
    __m256i nan = _mm256_or_si256(k->nan, _mm256_and_si256(_mm256_srl_epi32(abs, drop), k->payload));
    code = _mm256_blendv_epi8(code, nan, _mm256_cmpgt_epi32(abs, _mm256_set1_epi32(0x7f800000)));
    return _mm256_or_si256(code, _mm256_slli_epi32(_mm256_srli_epi32(v, 31), 7));
}

static void store_low_bytes(uint8_t *dst, __m256i a, __m256i b)
{
    __m256i words = _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xd8);
    __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128((void *)dst, bytes);
}

static void f32_to_f8(uint8_t *dst, const f32_any *src, size_t n, bool saturate, const struct narrow8 *k,
                      const struct scalar_format *f)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        store_low_bytes(dst + i, to_f8(_mm256_loadu_si256((const void *)(src + i)), k),
                        to_f8(_mm256_loadu_si256((const void *)(src + i + 8)), k));
    for (; i < n; i++)
        dst[i] = (uint8_t)scalar_narrow(f, scalar_bits(src + i), SCALAR_HALF, saturate);
}

static void f32_to_e4m3(void *to, const void *from, size_t n, bool saturate)
{
    uint8_t *dst = to;
    const f32_any *src = from;
    const struct narrow8 k = {
        .drop = 20,
        .rebias = _mm256_set1_epi32((127 - 7) << 23),
        .smallest = _mm256_set1_epi32((127 - 6) << 23),
        .magic = _mm256_castsi256_ps(_mm256_set1_epi32((127 - 7 + 20 + 1) << 23)),
        .most = _mm256_set1_epi32(saturate ? 0x7e : 0x7f),
        .nan = _mm256_set1_epi32(0x7f),
        .payload = _mm256_setzero_si256(),
    };
    f32_to_f8(dst, src, n, saturate, &k, &scalar_e4m3);
}

static void f32_to_e5m2(void *to, const void *from, size_t n, bool saturate)
{
    uint8_t *dst = to;
    const f32_any *src = from;
    const struct narrow8 k = {
        .drop = 21,
        .rebias = _mm256_set1_epi32((127 - 15) << 23),
        .smallest = _mm256_set1_epi32((127 - 14) << 23),
        .magic = _mm256_castsi256_ps(_mm256_set1_epi32((127 - 15 + 21 + 1) << 23)),
        .most = _mm256_set1_epi32(saturate ? 0x7b : 0x7c),
        .nan = _mm256_set1_epi32(0x7e),
        .payload = _mm256_set1_epi32(3),
    };
    f32_to_f8(dst, src, n, saturate, &k, &scalar_e5m2);
}

void dtype_ops_init_avx2(struct dtype_ops *ops)
{
    *ops = (struct dtype_ops){
        .bf16_to_f32 = bf16_to_f32,
        .f16_to_f32 = f16_to_f32,
        .e4m3_to_f32 = e4m3_to_f32,
        .e5m2_to_f32 = e5m2_to_f32,
        .f32_to_bf16 = f32_to_bf16,
        .f32_to_f16 = f32_to_f16,
        .f32_to_e4m3 = f32_to_e4m3,
        .f32_to_e5m2 = f32_to_e5m2,
    };
}
#endif
