/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/rope.h"

#include "check.h"
#include <math.h>

static void one_axis_starts_where_it_is_told(void)
{
    float cos_[6], sin_[6];
    rope_table(7, 2, 3, 500, cos_, sin_);
    for (int i = 0; i < 6; i++) {
        double angle = (7 + i / 3) * pow(500, -(i % 3) / 3.0);
        CHECK(cos_[i] == (float)cos(angle) && sin_[i] == (float)sin(angle));
    }
}

/* 64 pairs are 22 for the frame, 21 for the row, 21 for the column. */
static void three_axes_share_the_pairs(void)
{
    enum { PAIRS = 64, TOKEN = (1 * 3 + 2) * 4 + 3 };
    static float cos_[2 * 3 * 4 * PAIRS], sin_[2 * 3 * 4 * PAIRS];
    rope_table_grid(2, 3, 4, PAIRS, cos_, sin_);
    static const struct {
        int pair, place;
        double exponent;
    } some[] = { { 0, 1, 0 },          { 21, 1, 21 / 22.0 }, { 22, 2, 0 },
                 { 42, 2, 20 / 21.0 }, { 43, 3, 0 },         { 63, 3, 20 / 21.0 } };
    for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
        double angle = some[i].place * pow(10000, -some[i].exponent);
        CHECK(cos_[TOKEN * PAIRS + some[i].pair] == (float)cos(angle));
        CHECK(sin_[TOKEN * PAIRS + some[i].pair] == (float)sin(angle));
    }
}

int main(void)
{
    RUN(one_axis_starts_where_it_is_told);
    RUN(three_axes_share_the_pairs);
    return check_done();
}
