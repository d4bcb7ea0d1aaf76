/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/machine.h"

extern char **environ;

int machine_read(const struct machine_options *m, struct facts *out, struct cairn_error *err)
{
    const struct facts_options o = {
        .root = m->root,
        .torch_dir = m->torch_dir,
        .rocm_dir = m->rocm_dir,
        .command = m->command,
        .env = (const char *const *)environ,
        .parts = FACTS_ALL,
    };
    if (facts_read(out, &o, err))
        return -1;
    return m->gfx ? facts_set_gfx(out, m->gfx, err) : 0;
}
