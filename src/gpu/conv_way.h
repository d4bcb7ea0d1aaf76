/* SPDX-License-Identifier: Apache-2.0
 * The ways of convolving among which conv.c chooses. */
#ifndef CAIRN_GPU_CONV_WAY_H
#define CAIRN_GPU_CONV_WAY_H

#include "gpu/conv.h"

struct conv_way {
    const char *name; /* of its kernels, with their sizes behind it */
    bool (*fits)(const struct conv *c, const struct conv_args *a);
    int (*run)(const struct conv *c, const struct conv_args *a, struct cairn_error *err);
};

extern const struct conv_way conv_by_wgmma;

#endif
