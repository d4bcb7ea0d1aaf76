/* SPDX-License-Identifier: Apache-2.0 */
#include "os/path.h"

#include "os/file.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool path_is_absolute(const char *path)
{
    return *path == '/';
}

const char *path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *path_folder(const char *path)
{
    size_t n = (size_t)(path_name(path) - path);
    char *out = !n ? strdup(".") : strndup(path, n > 1 ? n - 1 : 1);
    if (!out) {
        fputs("cairn: out of memory\n", stderr);
        abort();
    }
    return out;
}

char *path_separator(const char *from)
{
    return strchr(from, '/');
}

int path_program(char *out, size_t size)
{
    return os_read_link("/proc/self/exe", out, size) < 0 ? -1 : 0;
}

int path_beside_program(const char *folder, const char *name, char *out, size_t size)
{
    char self[PATH_MAX];
    if (path_program(self, sizeof(self)))
        return -1;
    int n = (int)(path_name(self) - self);
    snprintf(out, size, "%.*s%s%s%s", n, self, folder, *folder ? "/" : "", name);
    return 0;
}

const struct path_place_rule *path_place(enum path_place place)
{
    static const struct path_place_rule rules[] = {
        [PLACE_STATE] = { "XDG_STATE_HOME", "HOME", ".local/state" },
        [PLACE_CACHE] = { "XDG_CACHE_HOME", "HOME", ".cache" },
    };
    return &rules[place];
}
