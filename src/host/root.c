/* SPDX-License-Identifier: Apache-2.0 */
#include "host/root.h"

#include "os/fault.h"
#include "base/str.h"
#include "os/file.h"
#include "os/list.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int root_open(struct root *r, const char *dir, struct cairn_error *err)
{
    const char *path = dir ? dir : "/";
    if (!*path) /* a shell variable that was not set; this machine is not what was asked for */
        return cairn_fail(err, CAIRN_EUSAGE, "root: an empty name; expected a directory");
    int fd = os_open(path, OS_PLACE | OS_FOLDER);
    if (fd < 0 && dir)
        return cairn_fail(err, CAIRN_EUSAGE, "root %s: %s", path, strerror(errno));
    if (fd < 0)
        return cairn_fail_errno(err, "root %s", path);
    *r = (struct root){ .fd = fd, .live = !strcmp(path, "/"), .path = path };
    return 0;
}

void root_close(struct root *r)
{
    if (r->path)
        fd_close(&r->fd);
    *r = (struct root){ .fd = -1 };
}

/* In a capture, links must not lead out into this machine's own files. */
static int open_inside(const struct root *r, const char *path, unsigned how)
{
    return r->live ? os_open(path, how) : os_open_inside(r->fd, path, how);
}

int root_open_file(const struct root *r, const char *path)
{
    /* Else a fifo would wait for a writer. */
    int fd = open_inside(r, path, OS_READ | OS_NO_WAIT);
    if (fd < 0)
        return -1;
    struct stat st;
    if (fstat(fd, &st)) {
        fd_close(&fd);
        return -1;
    }
    if (S_ISREG(st.st_mode))
        return fd;
    close(fd);
    errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
    return -1;
}

int root_stat(const struct root *r, const char *path, struct stat *st)
{
    CLEANUP(fd_close) int fd = open_inside(r, path, OS_PLACE);
    return fd < 0 ? -1 : fstat(fd, st);
}

bool root_exists(const struct root *r, const char *path)
{
    struct stat st;
    return !root_stat(r, path, &st);
}

bool root_is_dir(const struct root *r, const char *path)
{
    struct stat st;
    return !root_stat(r, path, &st) && S_ISDIR(st.st_mode);
}

char *path_join(struct arena *a, const char *dir, const char *name)
{
    return arena_printf(a, "%s%s%s", dir, str_ends(dir, "/") ? "" : "/", name);
}

const char *path_parent(struct arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');
    return !slash || slash == path ? "/" : arena_strndup(a, path, (size_t)(slash - path));
}

char *root_read(const struct root *r, struct arena *a, const char *path, size_t *len)
{
    CLEANUP(fd_close) int fd = root_open_file(r, path);
    if (fd < 0)
        return NULL;
    char page[4096];
    CLEANUP(str_release) struct str all = { 0 };
    for (;;) {
        ssize_t n = fault_hit() ? -1 : read(fd, page, sizeof(page));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return NULL;
        if (n == 0 || all.len >= ROOT_TEXT_MAX)
            break;
        str_addn(&all, page, (size_t)n);
    }
    while (all.len && strchr(" \t\r\n", all.s[all.len - 1]))
        all.len--;
    if (len)
        *len = all.len;
    return arena_strndup(a, all.s ? all.s : "", all.len);
}

static int compare_names(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    int order = str_compare_natural(x, y);
    return order ? order : strcmp(x, y);
}

int root_list_unsorted(const struct root *r, struct arena *a, const char *path, char ***names, size_t *n)
{
    CLEANUP(os_list_close) struct os_list *l = os_list_of(open_inside(r, path, OS_READ | OS_FOLDER));
    if (!l)
        return -1;
    char **list = NULL;
    size_t count = 0;
    for (const char *name; (name = os_list_next(l));)
        *ARENA_PUSH(a, list, count) = arena_strdup(a, name);
    if (errno) /* half a list is not a list */
        return -1;
    *names = list;
    *n = count;
    return 0;
}

int root_list(const struct root *r, struct arena *a, const char *path, char ***names, size_t *n)
{
    if (root_list_unsorted(r, a, path, names, n))
        return -1;
    if (*n > 1)
        qsort(*names, *n, sizeof(**names), compare_names);
    return 0;
}

/* What the kernel calls an open file. */
static char *fd_path(struct arena *a, int fd)
{
    char link[64], target[PATH_MAX];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    return os_read_link(link, target, sizeof(target)) > 0 ? arena_strdup(a, target) : NULL;
}

char *root_resolve(const struct root *r, struct arena *a, const char *path)
{
    CLEANUP(fd_close) int fd = open_inside(r, path, OS_PLACE);
    if (fd < 0)
        return NULL;
    char *full = fd_path(a, fd);
    if (!full || r->live)
        return full;
    const char *top = fd_path(a, r->fd);
    size_t n = top ? strlen(top) : 0;
    if (!n || strncmp(full, top, n) || (full[n] != '/' && full[n] != '\0'))
        return NULL;
    return full[n] ? full + n : arena_strdup(a, "/");
}

char *root_resolve_dir(const struct root *r, struct arena *a, const char *given)
{
    char cwd[PATH_MAX];
    const char *path = given;
    if (*given != '/' && !fault_hit() && getcwd(cwd, sizeof(cwd)))
        path = path_join(a, cwd, given);
    char *dir = root_resolve(r, a, path);
    return dir && root_is_dir(r, dir) ? dir : NULL;
}

char *root_link(const struct root *r, struct arena *a, const char *path)
{
    CLEANUP(fd_close) int fd = open_inside(r, path, OS_PLACE | OS_NO_LINK);
    char target[PATH_MAX];
    return fd >= 0 && os_read_link_at(fd, "", target, sizeof(target)) > 0 ? arena_strdup(a, target) : NULL;
}
