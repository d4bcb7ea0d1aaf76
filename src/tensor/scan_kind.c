/* SPDX-License-Identifier: Apache-2.0
 * Formats that are no dtype of ours, and what their numbers are. */
#include "tensor/scan.h"

#include <math.h>
#include <string.h>

/* A power of two: the exponent of an f32.  The last code is NaN. */
static void widen_e8m0(float *dst, const unsigned char *src, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = src[i] == 0xff ? 0x7fc00000 : src[i] ? (uint32_t)src[i] << 23 : 0x00400000;
        memcpy(&dst[i], &bits, sizeof(bits));
    }
}

/* Two numbers in a byte, the lower four bits first; neither NaN nor Inf. */
static void widen_f4(float *dst, const unsigned char *src, size_t n)
{
    static const float values[] = { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6 };
    for (size_t i = 0; i < n; i++)
        dst[i] = values[src[i / 2] >> (i % 2 * 4) & 15];
}

/* Without Inf and -0, whose code is NaN. */
static float from_fnuz(unsigned code, int mantissa, int bias)
{
    int exponent = (int)(code & 0x7f) >> mantissa, m = (int)code & ((1 << mantissa) - 1);
    float v = exponent ? ldexpf((float)(m + (1 << mantissa)), exponent - bias - mantissa)
                       : ldexpf((float)m, 1 - bias - mantissa);
    return code == 0x80 ? NAN : code & 0x80 ? -v : v;
}

static void widen_e4m3fnuz(float *dst, const unsigned char *src, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = from_fnuz(src[i], 3, 8);
}

static void widen_e5m2fnuz(float *dst, const unsigned char *src, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = from_fnuz(src[i], 2, 16);
}

static const struct {
    const char *text;
    struct scan_kind kind;
} kinds[] = {
    { "C64", { DTYPE_F32, 8, 2, NULL } }, /* real and imaginary part */
    { "C128", { DTYPE_F64, 16, 2, NULL } },
    { "F8_E8M0", { DTYPE_F32, 1, 1, widen_e8m0 } },
    { "F8_E4M3FNUZ", { DTYPE_F32, 1, 1, widen_e4m3fnuz } },
    { "F8_E5M2FNUZ", { DTYPE_F32, 1, 1, widen_e5m2fnuz } },
    { "F4", { DTYPE_F32, 1, 2, widen_f4 } },
};

bool scan_kind_of(const struct st_tensor *t, struct scan_kind *out)
{
    if (t->dtype != DTYPE_OTHER) {
        *out = (struct scan_kind){ t->dtype, dtype_size(t->dtype), 1, NULL };
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (!strcmp(t->dtype_text, kinds[i].text)) {
            *out = kinds[i].kind;
            return true;
        }
    return false;
}

void scan_add_kind(struct scan_stats *s, const struct scan_kind *k, const void *bytes, size_t n)
{
    float wide[SCAN_CHUNK];
    size_t values = n / k->bytes * k->values;
    if (!k->widen) {
        scan_add(s, k->as, bytes, values);
        return;
    }
    for (size_t done = 0, m; done < values; done += m) {
        m = values - done < SCAN_CHUNK ? values - done : SCAN_CHUNK;
        k->widen(wide, (const unsigned char *)bytes + done * k->bytes / k->values, m);
        scan_add(s, DTYPE_F32, wide, m);
    }
}
