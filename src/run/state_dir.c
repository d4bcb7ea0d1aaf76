/* SPDX-License-Identifier: Apache-2.0 */
#include "run/state_dir.h"

#include "base/own.h"

int state_dir(const char *const *env, struct arena *a, const char **out, struct cairn_error *err)
{
    const char *dir;
    if (own_path(PLACE_STATE, env, a, &dir, err) || own_check(PLACE_STATE, dir, err))
        return -1;
    *out = dir;
    return 0;
}
