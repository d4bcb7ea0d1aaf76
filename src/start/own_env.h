/* SPDX-License-Identifier: Apache-2.0
 * Applies the plan of `cairn env` to this process before it opens a GPU runtime: a variable left over in
 * the shell (HSA_OVERRIDE_GFX_VERSION=gfx1031) must not hide the GPU.  Then it offers the ROCm
 * installations of this machine to gpu/, in the order of host/runtimes.h. */
#ifndef CAIRN_START_OWN_ENV_H
#define CAIRN_START_OWN_ENV_H

#include "base/message_sink.h"

/* Reports the variables that it removes, and why the cache is not used.  Call it before the first thread
 * starts. */
void own_env_apply(const struct message_sink *messages);

#endif
