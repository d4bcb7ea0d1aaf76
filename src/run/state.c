/* SPDX-License-Identifier: Apache-2.0 */
#include "run/state.h"

#include "base/str.h"

int state_dir(const char *const *env, struct arena *a, const char **out, struct cairn_error *err)
{
    const char *state = str_env(env, "XDG_STATE_HOME"), *home = str_env(env, "HOME");
    if (state && *state == '/') /* the XDG rules: a relative one is to be ignored */
        *out = arena_printf(a, "%s/cairn", state);
    else if (home && *home == '/')
        *out = arena_printf(a, "%s/.local/state/cairn", home);
    else
        return cairn_fail(err, CAIRN_EIO,
                          "no folder for it: neither XDG_STATE_HOME nor HOME is a path from /");
    return 0;
}
