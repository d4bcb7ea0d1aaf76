/* SPDX-License-Identifier: Apache-2.0
 * The ROCms that cairn itself can compute with, in the order in which it tries them, told from the
 * files alone: nothing is loaded.
 *
 * First what the user names: ROCM_PATH, ROCM_HOME, HIP_PATH, and LD_LIBRARY_PATH where it leads to a
 * libamdhip64, since the loader follows it for everything that a library needs in turn.  Then the
 * newest of all others: /opt/rocm*, those inside a PyTorch, the distribution's and the rest of the
 * loader's folders; of the same version, in this order.  One without a compiler comes after those that
 * have one.
 *
 * Compiler and libraries are those of the same ROCm as the runtime.  One that is missing is taken from
 * another ROCm of the same major version (the compiler), or of the same release (the others). */
#ifndef CAIRN_HOST_RUNTIMES_H
#define CAIRN_HOST_RUNTIMES_H

#include "host/facts.h"

/* Fills f->runtimes from the rocms and torches of f, and from the loader's folders. */
void runtimes_find(struct facts *f);
/* "ROCm 6.4, of PyTorch 2.9.1+rocm6.4". */
const char *runtime_text(const struct hip_runtime *r, struct arena *a);

#endif
