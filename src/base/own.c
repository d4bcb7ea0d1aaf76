/* SPDX-License-Identifier: Apache-2.0 */
#include "base/own.h"

#include "base/file.h"
#include "base/str.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/path.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OTHERS_WRITE = S_IWGRP | S_IWOTH };

const char *own_place(enum path_place kind, const char *const *env, struct arena *a)
{
    const struct path_place_rule *place = path_place(kind);
    const char *named = str_env(env, place->variable), *home = str_env(env, place->home);
    if (named && path_is_absolute(named)) /* the XDG specification: ignore relative paths */
        return named;
    return home && path_is_absolute(home) ? arena_printf(a, "%s/%s", home, place->below) : NULL;
}

int own_path(enum path_place kind, const char *const *env, struct arena *a, const char **out,
             struct cairn_error *err)
{
    const struct path_place_rule *place = path_place(kind);
    const char *above = own_place(kind, env, a);
    if (!above)
        return cairn_fail(err, CAIRN_EIO, "neither %s nor %s names a folder by an absolute path",
                          place->variable, place->home);
    *out = arena_printf(a, "%s/cairn", above);
    return 0;
}

static int belongs_to_another(enum path_place kind, const char *path, const struct stat *st,
                              struct cairn_error *err)
{
    errno = EPERM;
    cairn_fail(err, CAIRN_EIO, "%s belongs to uid %u, but cairn runs as uid %u", path, (unsigned)st->st_uid,
               (unsigned)geteuid());
    if (geteuid() == 0)
        return cairn_hint(err, "sudo may have kept HOME: use sudo -H, or set %s to a folder of root's",
                          path_place(kind)->variable);
    return cairn_hint(err, "set %s to another folder", path_place(kind)->variable);
}

/* Fixes the mode if possible; a file system without permissions ignores it. */
static int verify(enum path_place kind, int fd, const char *path, struct cairn_error *err)
{
    struct stat st;
    if (fault_hit() || fstat(fd, &st))
        return cairn_fail_errno(err, "stat %s", path);
    if (st.st_uid != geteuid())
        return belongs_to_another(kind, path, &st, err);
    if (!(st.st_mode & OTHERS_WRITE))
        return 0;
    if (!fchmod(fd, st.st_mode & 07777 & ~(mode_t)OTHERS_WRITE) && !fstat(fd, &st) &&
        !(st.st_mode & OTHERS_WRITE))
        return 0;
    errno = EPERM;
    cairn_fail(err, CAIRN_EIO, "other users can write to %s, and its mode cannot be changed", path);
    return cairn_hint(err, "set %s to another folder", path_place(kind)->variable);
}

/* Adds the remedy, if another folder is one. */
static int name_another(enum path_place kind, int why, struct cairn_error *err)
{
    if (why == EROFS || why == EACCES || why == EPERM || why == ENOTDIR)
        cairn_hint(err, "set %s to a folder that you can write to", path_place(kind)->variable);
    errno = why;
    return -1;
}

static int cannot_open(enum path_place kind, const char *path, struct cairn_error *err)
{
    int why = errno;
    struct stat st;
    if ((why == ELOOP || why == ENOTDIR) && !lstat(path, &st) && S_ISLNK(st.st_mode))
        cairn_fail(err, CAIRN_EIO, "%s is a symbolic link, which cairn does not follow", path);
    else
        cairn_fail_errno(err, "open the folder %s", path);
    return name_another(kind, why, err);
}

static int cannot_make(enum path_place kind, const char *path, struct cairn_error *err)
{
    int why = errno;
    cairn_fail_errno(err, "make the folder %s", path);
    return name_another(kind, why, err);
}

static int open_dir(enum path_place kind, int at, const char *name, const char *path, int *out,
                    struct cairn_error *err)
{
    CLEANUP(fd_close)
    int fd = os_open_at(at, name, OS_READ | OS_FOLDER | OS_NO_LINK);
    if (fd < 0)
        return cannot_open(kind, path, err);
    if (verify(kind, fd, path, err))
        return -1;
    *out = fd;
    fd = -1;
    return 0;
}

/* Root creates nothing in another user's folder: that user would be locked out of it, and could replace
 * it. */
static int may_make(enum path_place kind, const char *root, struct cairn_error *err)
{
    CLEANUP(mem_free) char *above = path_folder(root);
    struct stat st;
    while (strcmp(above, "/") && strcmp(above, ".") && stat(above, &st) && errno == ENOENT) {
        char *next = path_folder(above);
        free(above);
        above = next;
    }
    if (geteuid() || stat(above, &st) || !st.st_uid || st.st_mode & S_ISVTX)
        return 0;
    return belongs_to_another(kind, above, &st, err);
}

static int open_root(enum path_place kind, const char *root, bool make, int *fd, struct cairn_error *err)
{
    if (!open_dir(kind, AT_FDCWD, root, root, fd, err))
        return 0;
    if (!make || errno != ENOENT)
        return -1;
    CLEANUP(mem_free) char *above = path_folder(root);
    if (may_make(kind, root, err))
        return -1;
    if (file_make_dir(above, 0700, err))
        return name_another(kind, errno, err);
    if (os_make_dir(root, 0700) && errno != EEXIST)
        return cannot_make(kind, root, err);
    return open_dir(kind, AT_FDCWD, root, root, fd, err);
}

int own_check(enum path_place kind, const char *root, struct cairn_error *err)
{
    CLEANUP(fd_close) int fd = -1;
    if (!open_root(kind, root, false, &fd, err))
        return 0;
    return errno == ENOENT ? may_make(kind, root, err) : -1;
}

int own_dir_open(struct own_dir *d, enum path_place kind, const char *root, const char *below, bool make,
                 struct cairn_error *err)
{
    char path[PATH_MAX];
    CLEANUP(fd_close) int top = -1;
    int fd = -1;
    *d = (struct own_dir)OWN_DIR_NONE;
    snprintf(path, sizeof(path), "%s%s%s", root, below ? "/" : "", below ? below : "");
    if (open_root(kind, root, make, &top, err))
        return -1;
    if (below) {
        if (make && os_make_dir_at(top, below, 0700) && errno != EEXIST)
            return cannot_make(kind, path, err);
        if (open_dir(kind, top, below, path, &fd, err))
            return -1;
    } else {
        fd = top;
        top = -1;
    }
    *d = (struct own_dir){ fd, strdup(path) };
    return 0;
}

int own_cache_open(struct own_dir *d, const char *below, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    const char *root;
    *d = (struct own_dir)OWN_DIR_NONE;
    return own_path(PLACE_CACHE, (const char *const *)environ, &a, &root, err)
               ? -1
               : own_dir_open(d, PLACE_CACHE, root, below, true, err);
}

int own_dir_enter(struct own_dir *out, const struct own_dir *d, const char *name, struct cairn_error *err)
{
    char path[PATH_MAX];
    int fd;
    *out = (struct own_dir)OWN_DIR_NONE;
    snprintf(path, sizeof(path), "%s/%s", d->path, name);
    if (open_dir(PLACE_STATE, d->fd, name, path, &fd, err))
        return -1;
    *out = (struct own_dir){ fd, strdup(path) };
    return 0;
}

int own_dir_make(struct own_dir *out, const struct own_dir *d, const char *name, struct cairn_error *err)
{
    *out = (struct own_dir)OWN_DIR_NONE;
    if (os_make_dir_at(d->fd, name, 0700))
        return cairn_fail_errno(err, "make the folder %s/%s", d->path, name);
    return own_dir_enter(out, d, name, err);
}

void own_dir_close(struct own_dir *d)
{
    if (d->path)
        fd_close(&d->fd);
    free(d->path);
    *d = (struct own_dir)OWN_DIR_NONE;
}

/* A folder that others could once write to may still contain their files. */
static int verify_file(int fd, const char *path, bool reads, struct cairn_error *err)
{
    struct stat st;
    if (fault_hit() || fstat(fd, &st))
        return cairn_fail_errno(err, "stat %s", path);
    errno = EPERM;
    if (!S_ISREG(st.st_mode))
        return cairn_fail(err, CAIRN_EFORMAT, "%s is not a regular file", path);
    if (st.st_uid != geteuid())
        return cairn_fail(err, CAIRN_EIO, "%s belongs to uid %u, but cairn runs as uid %u", path,
                          (unsigned)st.st_uid, (unsigned)geteuid());
    if ((st.st_nlink > 1 && !reads) || (st.st_mode & OTHERS_WRITE && fchmod(fd, 0600)))
        return cairn_fail(err, CAIRN_EIO, "%s has another hard link, or other users can write to it", path);
    return 0;
}

int own_file_open(const struct own_dir *d, const char *name, unsigned how, int *out, struct cairn_error *err)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", d->path, name);
    CLEANUP(fd_close) int fd = os_open_at(d->fd, name, how | OS_NO_LINK | OS_NO_WAIT | OS_PRIVATE);
    if (fd < 0) {
        int why = errno;
        cairn_fail_errno(err, "open %s", path);
        errno = why;
        return -1;
    }
    if (verify_file(fd, path, !(how & (OS_WRITE | OS_APPEND)), err))
        return -1;
    *out = fd;
    fd = -1;
    return 0;
}

int own_file_write(const struct own_dir *d, const char *name, const void *bytes, size_t n,
                   struct cairn_error *err)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", d->path, name);
    return file_write_at(d->fd, path, bytes, n, err);
}
