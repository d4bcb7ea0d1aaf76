/* SPDX-License-Identifier: Apache-2.0
 * The verdict of `cairn env` applied to this process, before it opens a GPU runtime: a variable left over in the shell
 * (HSA_OVERRIDE_GFX_VERSION=gfx1031) must not leave it without a GPU.  Then the ROCms of this machine are offered to
 * gpu/, in the order of host/runtimes.h. */
#ifndef CAIRN_START_OWN_ENV_H
#define CAIRN_START_OWN_ENV_H

#include "base/message_sink.h"

/* Says what it removes, and why the cache is not used where it is not.  Call it before the first thread is started. */
void own_env_apply(const struct message_sink *messages);

#endif
