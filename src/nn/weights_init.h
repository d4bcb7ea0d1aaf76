/* SPDX-License-Identifier: Apache-2.0
 * New weights.  Their values come from the CPU and follow from the seed alone, so that every device
 * starts with the same. */
#ifndef CAIRN_NN_WEIGHTS_INIT_H
#define CAIRN_NN_WEIGHTS_INIT_H

#include "nn/weights.h"

struct weights_init {
    struct gpu *cpu;
    float *numbers; /* as many as the largest parameter has */
    const struct weights *w;
    uint64_t seed;
};
int weights_init_open(struct weights_init *k, const struct params *p, const struct weights *w, uint64_t seed,
                      struct cairn_error *err);
void weights_init_close(struct weights_init *k);
/* Normal values; each parameter has a stream of its own. */
int weights_init_normal(const struct weights_init *k, const struct param *p, float std, uint64_t stream,
                        struct cairn_error *err);
/* Between -limit and limit. */
int weights_init_uniform(const struct weights_init *k, const struct param *p, float limit, uint64_t stream,
                         struct cairn_error *err);
int weights_init_value(const struct weights_init *k, const struct param *p, float value,
                       struct cairn_error *err);

#endif
