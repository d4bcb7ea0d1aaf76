/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/rope.h"

#include <math.h>

static void put_angles(double position, size_t pairs, double base, float *cos_, float *sin_)
{
    for (size_t j = 0; j < pairs; j++) {
        double angle = position * pow(base, -(double)j / (double)pairs);
        cos_[j] = (float)cos(angle);
        sin_[j] = (float)sin(angle);
    }
}

void rope_table(size_t first, size_t positions, size_t pairs, double base, float *cos_, float *sin_)
{
    for (size_t p = 0; p < positions; p++)
        put_angles((double)(first + p), pairs, base, cos_ + p * pairs, sin_ + p * pairs);
}

void rope_table_grid(size_t frames, size_t height, size_t width, size_t pairs, float *cos_, float *sin_)
{
    size_t third = pairs / 3, rest = pairs - 2 * third;
    for (size_t p = 0; p < frames * height * width; p++, cos_ += pairs, sin_ += pairs) {
        put_angles((double)(p / (height * width)), rest, 10000, cos_, sin_);
        put_angles((double)(p / width % height), third, 10000, cos_ + rest, sin_ + rest);
        put_angles((double)(p % width), third, 10000, cos_ + rest + third, sin_ + rest + third);
    }
}
