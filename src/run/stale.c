/* SPDX-License-Identifier: Apache-2.0 */
#include "run/stale.h"

#include "base/fault.h"
#include "base/str.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Where the libraries keep them: their own variable, or below HOME. */
static const struct {
    const char *variable, *below_home;
} places[] = {
    { "MIOPEN_CUSTOM_CACHE_DIR", ".cache/miopen" },
    { "MIOPEN_USER_DB_PATH", ".config/miopen" },
    { "TRITON_CACHE_DIR", ".triton/cache" },
};

/* NULL if there is no folder there.  A link is left alone: what it leads to may be somebody else's. */
static const char *place(const char *const *env, size_t i, struct arena *a)
{
    const char *own = str_env(env, places[i].variable), *home = str_env(env, "HOME");
    struct stat st;
    const char *path = own && *own            ? own
                       : home && *home == '/' ? arena_printf(a, "%s/%s", home, places[i].below_home)
                                              : NULL;
    return path && *path == '/' && !lstat(path, &st) && S_ISDIR(st.st_mode) ? path : NULL;
}

bool stale_exists(const char *const *env)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (place(env, i, &a))
            return true;
    return false;
}

size_t stale_move(const char *const *env, struct arena *a, struct stale_move **out, const char **trouble)
{
    size_t n = 0;
    *out = NULL;
    *trouble = NULL;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        const char *from = place(env, i, a);
        if (!from)
            continue;
        size_t len = strlen(from);
        while (len > 1 && from[len - 1] == '/')
            len--;
        const char *to = arena_printf(a, "%.*s.cairn-backup-%lld-%d", (int)len, from, (long long)time(NULL),
                                      (int)getpid());
        if (fault_hit() || rename(from, to))
            *trouble = arena_printf(a, "move %s aside: %s", from, strerror(errno));
        else
            *ARENA_PUSH(a, *out, n) = (struct stale_move){ from, to };
    }
    return n;
}
