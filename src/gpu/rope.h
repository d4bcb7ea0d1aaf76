/* SPDX-License-Identifier: Apache-2.0
 * Tables for the rope kernels: cos and sin of the angles, made in double precision, [position][pairs]. */
#ifndef CAIRN_GPU_ROPE_H
#define CAIRN_GPU_ROPE_H

#include <stddef.h>

/* The angle of pair j at position p is p * base^(-j/pairs); positions first … first + positions - 1. */
void rope_table(size_t first, size_t positions, size_t pairs, double base, float *cos_, float *sin_);

/* Wan's three axes: the pairs are divided among frame, row and column of the token's place in the grid
 * (height and width a third each, rounded down, the frame what remains), and each axis has angles of its own,
 * base 10000. Position (f * height + y) * width + x. */
void rope_table_grid(size_t frames, size_t height, size_t width, size_t pairs, float *cos_, float *sin_);

#endif
