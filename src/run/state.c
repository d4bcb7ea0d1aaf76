/* SPDX-License-Identifier: Apache-2.0 */
#include "run/state.h"

#include "base/fault.h"
#include "base/str.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int state_dir(const char *const *env, struct arena *a, const char **out, struct cairn_error *err)
{
    const char *state = str_env(env, "XDG_STATE_HOME"), *home = str_env(env, "HOME");
    if (state && *state == '/') /* the XDG rules: a relative one is to be ignored */
        *out = arena_printf(a, "%s/cairn", state);
    else if (home && *home == '/')
        *out = arena_printf(a, "%s/.local/state/cairn", home);
    else
        return cairn_fail(err, CAIRN_EIO, "no folder for it: neither XDG_STATE_HOME nor HOME is set");
    return 0;
}

static int make_one(const char *path)
{
    return fault_hit() ? -1 : mkdir(path, 0700) && errno != EEXIST ? -1 : 0;
}

int state_make_dir(const char *path, struct cairn_error *err)
{
    char part[PATH_MAX];
    if ((size_t)snprintf(part, sizeof(part), "%s", path) >= sizeof(part)) {
        errno = ENAMETOOLONG;
        return cairn_fail_errno(err, "make the folder %s", path);
    }
    for (char *at = strchr(part + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = 0;
        make_one(part); /* what is wrong above shows below */
        *at = '/';
    }
    struct stat st;
    if (make_one(part) || stat(part, &st))
        return cairn_fail_errno(err, "make the folder %s", path);
    if (!S_ISDIR(st.st_mode)) {
        errno = ENOTDIR;
        return cairn_fail_errno(err, "make the folder %s", path);
    }
    return 0;
}
