/* SPDX-License-Identifier: Apache-2.0 */
#include "os/path.h"

#include "os/file.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static const char self_link[] = "/proc/self/exe";

/* The kernel marks the name of a file that is gone.  After an upgrade a new one has its place. */
int path_program(char *out, size_t size)
{
    static const char mark[] = " (deleted)";
    ssize_t n = os_read_link(self_link, out, size);
    if (n < 0)
        return -1;
    size_t len = strlen(out), tail = sizeof(mark) - 1;
    if (len > tail && !strcmp(out + len - tail, mark) && access(out, F_OK))
        out[len - tail] = '\0';
    return 0;
}

int path_program_to_start(char *out, size_t size)
{
    if (path_program(out, size))
        return -1;
    if (access(out, X_OK))
        snprintf(out, size, "%s", self_link);
    return 0;
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
