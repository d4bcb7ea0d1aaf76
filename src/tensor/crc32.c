/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/crc32.h"

#include <stdbool.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

static const uint32_t polynomial = 0xedb88320; /* bits reversed: the lowest is the highest power */

/* a * b modulo the polynomial. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (uint32_t bit = 1u << 31; bit; bit >>= 1) {
        if (a & bit)
            product ^= b;
        b = b & 1 ? (b >> 1) ^ polynomial : b >> 1;
    }
    return product;
}

uint32_t crc32_add_plain(uint32_t crc, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    crc = ~crc;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? (crc >> 1) ^ polynomial : crc >> 1;
    }
    return ~crc;
}

/* Appending n bytes multiplies what was there by x^(8n). */
uint32_t crc32_join(uint32_t first, uint32_t second, uint64_t n)
{
    uint32_t power = 1u << 31, square = 1u << 23; /* 1, and x^8 */
    for (; n; n >>= 1, square = multiply(square, square))
        if (n & 1)
            power = multiply(power, square);
    return multiply(first, power) ^ second;
}

#ifdef __x86_64__
/* Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction (Intel, 2009), reflected: 64 bytes
 * at a time are folded onto the next 64, then into 16, then into 8, and Barrett's reduction gives the
 * remainder. */
#define CLMUL __attribute__((target("pclmul,sse4.1")))

CLMUL static inline __m128i fold(__m128i v, __m128i by, __m128i next)
{
    return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(v, by, 0x00), _mm_clmulepi64_si128(v, by, 0x11)),
                         next);
}

CLMUL static inline __m128i load(const unsigned char *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

CLMUL static uint32_t reduce(__m128i v)
{
    const __m128i low = _mm_setr_epi32(~0, 0, ~0, 0);
    const __m128i by_96 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0), by_64 = _mm_set_epi64x(0, 0x0163cd6124);
    const __m128i barrett = _mm_set_epi64x(0x01f7011641, 0x01db710641);
    v = _mm_xor_si128(_mm_srli_si128(v, 8), _mm_clmulepi64_si128(v, by_96, 0x10));
    v = _mm_xor_si128(_mm_srli_si128(v, 4), _mm_clmulepi64_si128(_mm_and_si128(v, low), by_64, 0x00));
    __m128i t = _mm_and_si128(_mm_clmulepi64_si128(_mm_and_si128(v, low), barrett, 0x10), low);
    return (uint32_t)_mm_extract_epi32(_mm_xor_si128(v, _mm_clmulepi64_si128(t, barrett, 0x00)), 1);
}

/* n is a multiple of 16, and 64 or more. */
CLMUL static uint32_t add_clmul(uint32_t crc, const unsigned char *p, size_t n)
{
    const __m128i by_512 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
    const __m128i by_128 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
    __m128i a = _mm_xor_si128(load(p), _mm_cvtsi32_si128((int)~crc)), b = load(p + 16), c = load(p + 32),
            d = load(p + 48);
    for (p += 64, n -= 64; n >= 64; p += 64, n -= 64) {
        a = fold(a, by_512, load(p));
        b = fold(b, by_512, load(p + 16));
        c = fold(c, by_512, load(p + 32));
        d = fold(d, by_512, load(p + 48));
    }
    a = fold(fold(fold(a, by_128, b), by_128, c), by_128, d);
    for (; n; p += 16, n -= 16)
        a = fold(a, by_128, load(p));
    return ~reduce(a);
}

static bool has_clmul(void)
{
    return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}
#endif

uint32_t crc32_add(uint32_t crc, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
#ifdef __x86_64__
    if (n >= 64 && has_clmul()) {
        size_t fast = n & ~(size_t)15;
        crc = add_clmul(crc, p, fast);
        p += fast;
        n -= fast;
    }
#endif
    return crc32_add_plain(crc, p, n);
}
