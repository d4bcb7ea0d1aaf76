/* SPDX-License-Identifier: Apache-2.0
 * Elementary functions made of additions, multiplications, divisions and square roots alone, which IEEE 754
 * defines to the last bit.  C libraries differ in the last bit of theirs, and a run must not depend on the
 * library.  Accurate to about 2^-51.  Compile users with -ffp-contract=off. */
#ifndef CAIRN_VIDEO_PORTABLE_MATH_H
#define CAIRN_VIDEO_PORTABLE_MATH_H

#define PORTABLE_PI 3.14159265358979323846

double portable_log(double x); /* x is positive and normal */
double portable_exp(double x); /* 0 below -700; at most e^700 */
double portable_sigmoid(double x);
double portable_sin(double x); /* |x| <= pi */
double portable_cos(double x);
/* Inverse of the cumulative normal distribution; 0 < p < 1. */
double portable_normal(double p);

#endif
