/* SPDX-License-Identifier: Apache-2.0
 * Conversions for CPUs with AVX-512 (F, BW, VL, DQ).  Only those are here that gain from the wider registers. */
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

/* A mask takes the place of AVX2's table: e4m3 has one special code, e5m2 four. */
static inline __m512i widen16(__m128i codes, int shift, __m512 scale, __m512i top, __m512i special)
{
    __m512i v = _mm512_cvtepu8_epi32(codes), abs = _mm512_and_si512(v, _mm512_set1_epi32(0x7f));
    __m512i sign = _mm512_slli_epi32(_mm512_srli_epi32(v, 7), 31);
    __m512i bits = _mm512_sll_epi32(abs, _mm_cvtsi32_si128(shift));
    __m512i out = _mm512_castps_si512(_mm512_mul_ps(_mm512_castsi512_ps(bits), scale));
    __mmask16 beyond = _mm512_cmpgt_epi32_mask(abs, top);
    __m512i index = _mm512_and_si512(abs, _mm512_set1_epi32(3));
    out = _mm512_mask_permutexvar_epi32(out, beyond, index, special);
    return _mm512_or_si512(out, sign);
}

static void e4m3_to_f32(void *to, const void *from, size_t n)
{
    f32_any *dst = to;
    const uint8_t *src = from;
    bool stream = streams(dst, n * sizeof(*dst));
    const __m512 scale = _mm512_set1_ps(0x1p120f);
    const __m512i top = _mm512_set1_epi32(0x7e), special = _mm512_set1_epi32(0x7fc00000);
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        put(dst + i, widen16(_mm_loadu_si128((const void *)(src + i)), 20, scale, top, special), stream);
    for (; i < n; i++)
        dst[i] = scalar_f32(scalar_from_e4m3(src[i]));
    _mm_sfence();
}

static void e5m2_to_f32(void *to, const void *from, size_t n)
{
    f32_any *dst = to;
    const uint8_t *src = from;
    bool stream = streams(dst, n * sizeof(*dst));
    const __m512 scale = _mm512_set1_ps(0x1p112f);
    const __m512i top = _mm512_set1_epi32(0x7b);
    const __m512i special =
        _mm512_setr_epi32(0x7f800000, 0x7fe00000, 0x7fc00000, 0x7fe00000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        put(dst + i, widen16(_mm_loadu_si128((const void *)(src + i)), 21, scale, top, special), stream);
    for (; i < n; i++)
        dst[i] = scalar_f32(scalar_from_e5m2(src[i]));
    _mm_sfence();
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
