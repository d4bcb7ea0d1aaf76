/* SPDX-License-Identifier: Apache-2.0
 * NaN and infinity are found at every place of a tensor; nothing else is taken for one. */
#include "nn/param_layout.h"

#include "check.h"
#include <string.h>

enum { VALUES = 150 }; /* more than two blocks of bytes, and a rest */

static const struct format {
    enum dtype type;
    uint32_t fine[4], bad[4];
} formats[] = {
    { DTYPE_F32,
      { 0, 0x7f7fffff, 0xff7fffff, 0x007fffff },
      { 0x7f800000, 0xff800000, 0x7fc00000, 0xff800001 } },
    { DTYPE_F16, { 0, 0x7bff, 0xfbff, 0x03ff }, { 0x7c00, 0xfc00, 0x7e00, 0xfc01 } },
    { DTYPE_BF16, { 0, 0x7f7f, 0xff7f, 0x007f }, { 0x7f80, 0xff80, 0x7fc0, 0xff81 } },
    { DTYPE_F8_E4M3, { 0, 0x7e, 0xfe, 0x80 }, { 0x7f, 0xff, 0x7f, 0xff } },
};

static void put(char *values, size_t size, size_t at, uint32_t code)
{
    memcpy(values + at * size, &code, size);
}

static void every_place_is_seen(void)
{
    for (size_t f = 0; f < ARRAY_LEN(formats); f++)
        for (size_t n = 0; n <= VALUES; n++) {
            char values[VALUES * sizeof(float)];
            size_t size = dtype_size(formats[f].type);
            for (size_t i = 0; i < VALUES; i++)
                put(values, size, i, formats[f].fine[i % 4]);
            CHECK(param_layout_is_finite(values, formats[f].type, n));
            for (size_t i = 0; i < VALUES; i++) {
                put(values, size, i, formats[f].bad[i % 4]);
                CHECK(param_layout_is_finite(values, formats[f].type, n) == (i >= n));
                put(values, size, i, formats[f].fine[(i + 1) % 4]);
            }
        }
}

int main(void)
{
    RUN(every_place_is_seen);
    return check_done();
}
