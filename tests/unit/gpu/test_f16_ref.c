/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/f16_ref.h"

#include "check.h"
#include <math.h>

static void known_codes(void)
{
    static const struct {
        float f;
        uint16_t bf16, f16;
    } rows[] = {
        { 0.0f, 0x0000, 0x0000 },       { -0.0f, 0x8000, 0x8000 },     { 1.0f, 0x3f80, 0x3c00 },
        { -2.0f, 0xc000, 0xc000 },      { 65504.0f, 0x4780, 0x7bff },  { 65520.0f, 0x4780, 0x7c00 },
        { 1e-40f, 0x0001, 0x0000 },     { 0x1p-24f, 0x3380, 0x0001 },  { 0x1p-25f, 0x3300, 0x0000 },
        { 0x1.8p-25f, 0x3340, 0x0001 }, { INFINITY, 0x7f80, 0x7c00 },  { 3.4028235e38f, 0x7f80, 0x7c00 },
        { 0x1.01p0f, 0x3f80, 0x3c04 },  { 0x1.03p0f, 0x3f82, 0x3c0c },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_INT(f16_from_float(GPU_BF16, rows[i].f), rows[i].bf16);
        CHECK_INT(f16_from_float(GPU_F16, rows[i].f), rows[i].f16);
    }
    CHECK(isnan(f16_to_float(GPU_F16, f16_from_float(GPU_F16, NAN))));
    CHECK(isnan(f16_to_float(GPU_BF16, f16_from_float(GPU_BF16, NAN))));
}

static void every_code_comes_back(void)
{
    for (int s = GPU_BF16; s <= GPU_F16; s++)
        for (uint32_t i = 0; i < 65536; i++) {
            float f = f16_to_float((enum gpu_storage)s, (uint16_t)i);
            if (!isnan(f) && f16_from_float((enum gpu_storage)s, f) != i)
                CHECK_FAIL_("format %d: 0x%04x is %g", s, i, (double)f);
        }
}

int main(void)
{
    RUN(known_codes);
    RUN(every_code_comes_back);
    return check_done();
}
