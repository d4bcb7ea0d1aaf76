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

extern const struct conv_way conv_by_cpu, conv_by_wgmma;

static inline size_t conv_number_size(enum gpu_storage storage)
{
    return storage == GPU_F32 ? 4 : 2;
}

/* Where pixel `first` of the result lies, in bytes. */
static inline size_t conv_result_at(enum gpu_storage storage, const struct conv_args *a)
{
    return (size_t)(a->first * a->filters) * (a->y_f32 ? sizeof(float) : conv_number_size(storage));
}

/* first_t, count_t: the kernel's frames that see more than zeros from a frame of the result. */
void conv_set_frames(struct conv_args *a, k_i64 frame);

#endif
