/* SPDX-License-Identifier: Apache-2.0
 * Random numbers of a run: functions of (seed, step, sample of the step, position) alone, the same bits on
 * every machine and in whatever pieces and on however many threads they are made.
 *
 * Normal numbers are those of Box and Muller, with polynomials for log, sin and cos (portable_math.h says
 * why). */
#ifndef CAIRN_VIDEO_NOISE_H
#define CAIRN_VIDEO_NOISE_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

struct noise_place {
    uint64_t seed, step;
    uint32_t sample; /* below 2^31 */
};

/* n standard normal numbers, on all cores if there are many; n is below 2^34. */
void noise_normal(const struct noise_place *p, float *out, size_t n);
/* Two numbers of uniform distribution in (0, 1).  Independent of the normal numbers and, for each k, of one
 * another. */
void noise_uniform(const struct noise_place *p, uint32_t k, double out[2]);

#endif
