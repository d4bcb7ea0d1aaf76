/* SPDX-License-Identifier: Apache-2.0
 * ROCm installations: AMD's packages in /opt, TheRock's, the distribution's, and the wheels in a Python. */
#ifndef CAIRN_HOST_ROCM_H
#define CAIRN_HOST_ROCM_H

#include "base/error.h"
#include "host/facts.h"

/* Fills f->rocms, each once: what ROCM_PATH and HIP_PATH name, /opt, the distribution, then wheels. With
 * --rocm only that one and the wheels. Fails only for a --rocm that does not exist or is not an installation.
 * */
int rocm_find(struct facts *f, const struct facts_options *o, struct cairn_error *err);

#endif
