/* SPDX-License-Identifier: Apache-2.0
 * The verdict of `cairn env` applied to this process, before it opens a GPU runtime: a variable left over in the shell
 * (HSA_OVERRIDE_GFX_VERSION=gfx1031) must not leave it without a GPU.  Then the ROCms of this machine are offered to
 * gpu/, in the order of host/runtimes.h. */
#ifndef CAIRN_CLI_SELF_ENV_H
#define CAIRN_CLI_SELF_ENV_H

/* Says on stderr what it removes, and why the cache is not used where it is not.  Call it before the first thread is started. */
void self_env_apply(void);

#endif
