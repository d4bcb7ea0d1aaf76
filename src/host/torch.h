/* SPDX-License-Identifier: Apache-2.0
 * PyTorch installations, read from their files; nothing is imported.
 *
 * What a torch was compiled for is taken from the first of these that tells: the list in libtorch_python.so,
 * the code objects in libtorch_hip.so, the device wheels, and at last pytorch.org's build lists by version
 * (then `from` begins with FROM_VERSION of prefix.h). */
#ifndef CAIRN_HOST_TORCH_H
#define CAIRN_HOST_TORCH_H

#include "base/error.h"
#include "host/facts.h"

/* Fills f->torches, in the order in which a shell would find them, each once; with --torch only that one.
 * Fails only for a --torch that does not exist or contains none. */
int torch_find(struct facts *f, const struct facts_options *o, struct cairn_error *err);
/* The PyTorch in a site-packages directory of this machine comes before all others, because it is known to be
 * in use; `how` names the source. False if there is none. */
bool torch_prefer(struct facts *f, const char *site, const char *how);
/* The ROCm it was built with: "6.4" of "2.9.1+rocm6.4", else HIP's major and minor; n is 0 when not known. */
struct version torch_rocm(const struct torch_facts *t);

#endif
