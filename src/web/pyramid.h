/* SPDX-License-Identifier: Apache-2.0
 * One metric of a long run, with the minimum, maximum and sum of every 16, 256, 4,096 and 65,536 points, so that a
 * chart of a million points reads a few thousand numbers.
 *
 * Values are kept as floats.  A point without a value is NaN; NaN and Inf do not count. */
#ifndef CAIRN_WEB_PYRAMID_H
#define CAIRN_WEB_PYRAMID_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

enum { PYRAMID_FAN_BITS = 4, PYRAMID_LEVELS = 4 };

/* Of some points; n 0: none has a value. */
struct pyramid_node {
    float min, max;
    uint32_t n;
    double sum;
};

struct pyramid {
    float *value;
    size_t n, room;
    struct pyramid_level {
        struct pyramid_node *node; /* complete ones */
        size_t n, room;
    } level[PYRAMID_LEVELS];
};

void pyramid_release(struct pyramid *p);
/* Sets point `at`, which is the last one or a later one; points between are without a value. */
int pyramid_set(struct pyramid *p, size_t at, double value, struct cairn_error *err);
/* Forgets all points from n on. */
void pyramid_cut(struct pyramid *p, size_t n);
/* Points from ≤ i < to; those beyond the last have no value. */
int pyramid_read(struct pyramid *p, size_t from, size_t to, struct pyramid_node *out,
                 struct cairn_error *err);
/* Makes one point of each two: the later value, or the earlier one where the later has none. */
void pyramid_halve(struct pyramid *p);
/* Bytes of memory that it takes. */
size_t pyramid_bytes(const struct pyramid *p);

#endif
