/* SPDX-License-Identifier: Apache-2.0
 * The names of Wan's tensors in a file: the official ones or diffusers', after any prefix; and what a file
 * is that has neither. */
#ifndef CAIRN_NN_WAN_NAMES_H
#define CAIRN_NN_WAN_NAMES_H

#include "base/arena.h"
#include "tensor/source.h"

struct wan_names {
    const char *prefix; /* "model.diffusion_model.", or empty */
    bool diffusers;
};

/* Fails for a file of something else, which the error names, and for relatives of Wan that are not
 * supported. */
int wan_names_find(const struct tensor_source *s, struct arena *a, struct wan_names *out,
                   struct cairn_error *err);
/* The name in the file of a parameter by its official name, "blocks.3.self_attn.q.weight". */
const char *wan_names_of(const struct wan_names *n, struct arena *a, const char *official);

#endif
