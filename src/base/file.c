/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include "base/int.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/path.h"
#include "os/list.h"
#include "os/memory.h"
#include "os/info.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes per write-back request: smaller ones cost more than they gain. */
enum { FLUSH_BYTES = 8 << 20 };

static int check_target(const struct file_out *f, struct cairn_error *err)
{
    struct stat st;
    const char *path = f->path, *name = f->file.name;
    int dir = f->file.dir;
    if (!*name)
        return cairn_fail(err, CAIRN_EUSAGE, "%s is a directory", path);
    if (fstatat(dir, name, &st, 0)) {
        if (errno != ENOENT)
            return cairn_fail_errno(err, "%s", path);
        return f->replace || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW)
                   ? 0
                   : cairn_fail(err, CAIRN_EUSAGE, "%s exists: a dangling symbolic link", path);
    }
    if (S_ISDIR(st.st_mode))
        return cairn_fail(err, CAIRN_EUSAGE, "%s is a directory", path);
    if (f->replace && S_ISREG(st.st_mode))
        return 0;
    if (!S_ISREG(st.st_mode))
        return cairn_fail(err, CAIRN_EUSAGE, "%s is not a regular file", path);
    cairn_fail(err, CAIRN_EUSAGE, "%s exists", path);
    return cairn_hint(err, "--force replaces it");
}

/* The message names the file and its folder, not the temporary file. */
static int cannot_create(const char *path, struct cairn_error *err)
{
    int why = errno;
    CLEANUP(mem_free) char *folder = path_folder(path);
    cairn_fail_errno(err, "create %s", path);
    if (why == ENOENT)
        return cairn_hint(err, "create the folder first: mkdir -p '%s'", folder);
    if (why == EACCES || why == EROFS)
        return cairn_hint(err, "check the permissions of '%s', or choose another folder", folder);
    return -1;
}

int file_out_open_at(struct file_out *f, int dir, const char *path, uint64_t size, bool replace,
                     struct cairn_error *err)
{
    *f = (struct file_out)FILE_OUT_NONE;
    if (!*path)
        return cairn_fail(err, CAIRN_EUSAGE, "the new file has no name");
    CLEANUP(file_out_close) struct file_out new = FILE_OUT_NONE;
    new.replace = replace;
    new.path = strdup(path);
    if (!new.path)
        return cairn_fail(err, CAIRN_ENOMEM, "create %s: no memory", path);
    new.file.name = path_name(new.path);
    new.file.dir = fcntl(dir, F_DUPFD_CLOEXEC, 0);
    if (new.file.dir < 0)
        return cannot_create(path, err);
    if (check_target(&new, err))
        return -1;
    if (os_new_file_create(&new.file))
        return cannot_create(path, err);
    if (size && os_reserve(new.file.fd, size))
        return cairn_fail_errno(err, "reserve %llu bytes for %s", (unsigned long long)size, path);
    *f = new;
    new = (struct file_out)FILE_OUT_NONE;
    return 0;
}

int file_out_open(struct file_out *f, const char *path, uint64_t size, bool replace, struct cairn_error *err)
{
    CLEANUP(mem_free) char *folder = path_folder(path);
    *f = (struct file_out)FILE_OUT_NONE;
    CLEANUP(fd_close) int dir = os_open(folder, OS_READ | OS_FOLDER);
    if (dir < 0 && *path)
        return cannot_create(path, err);
    return file_out_open_at(f, dir, path, size, replace, err);
}

int file_out_write(struct file_out *f, const void *bytes, size_t n, uint64_t at, struct cairn_error *err)
{
    const char *p = bytes;
    while (n) {
        ssize_t w = os_write_at(f->file.fd, p, n, at);
        if (w <= 0)
            return cairn_fail_errno(err, "write %s at byte %llu", f->path, (unsigned long long)at);
        p += w;
        n -= (size_t)w;
        at += (uint64_t)w;
    }
    return 0;
}

void file_out_start_flush(struct file_out *f, uint64_t at, uint64_t n)
{
    uint64_t first = at / FLUSH_BYTES * FLUSH_BYTES, end = (at + n) / FLUSH_BYTES * FLUSH_BYTES;
    if (end > first)
        os_start_flush(f->file.fd, first, end - first);
}

void file_out_drop(struct file_out *f, uint64_t at, uint64_t n)
{
    os_drop(f->file.fd, at, n);
}

int file_out_commit(struct file_out *f, struct cairn_error *err)
{
    if (os_sync(f->file.fd))
        return cairn_fail_errno(err, "flush %s", f->path);
    if (os_new_file_name(&f->file, f->replace))
        return errno == EEXIST ? cairn_fail_errno(err, "%s", f->path)
                               : cairn_fail_errno(err, "rename the temporary file to %s", f->path);
    int fd = f->file.fd;
    f->file.fd = -1;
    if (close(fd))
        return cairn_fail_errno(err, "close %s (the file is written)", f->path);
    if (os_sync(f->file.dir))
        return cairn_fail_errno(err, "flush the directory of %s (the file is written)", f->path);
    return 0;
}

void file_out_close(struct file_out *f)
{
    if (f->path) {
        fd_close(&f->file.fd);
        os_new_file_discard(&f->file);
        fd_close(&f->file.dir);
    }
    free(f->path);
    *f = (struct file_out)FILE_OUT_NONE;
}

int file_write_at(int dir, const char *path, const void *bytes, size_t n, struct cairn_error *err)
{
    CLEANUP(file_out_close) struct file_out f = FILE_OUT_NONE;
    if (file_out_open_at(&f, dir, path, 0, true, err) || file_out_write(&f, bytes, n, 0, err))
        return -1;
    return file_out_commit(&f, err);
}

int file_write(const char *path, const void *bytes, size_t n, struct cairn_error *err)
{
    CLEANUP(file_out_close) struct file_out f = FILE_OUT_NONE;
    if (file_out_open(&f, path, 0, true, err) || file_out_write(&f, bytes, n, 0, err))
        return -1;
    return file_out_commit(&f, err);
}

static int read_failed(ssize_t r, const char *path, uint64_t at, size_t n, struct cairn_error *err)
{
    if (r < 0)
        return cairn_fail_errno(err, "read %s at byte %llu", path, (unsigned long long)at);
    return cairn_fail(err, CAIRN_EFORMAT, "%s is truncated: at byte %llu, expected %zu more bytes", path,
                      (unsigned long long)at, n);
}

enum { DIRECT_BYTES = 4 << 20 };

bool file_set_direct(int fd)
{
    void *block = os_aligned(OS_BLOCK, OS_BLOCK);
    bool set = block && !os_set_direct(fd, true);
    /* Some file systems accept the flag but refuse to read. */
    if (set && os_read_at(fd, block, OS_BLOCK, 0) < 0) {
        os_set_direct(fd, false);
        set = false;
    }
    os_free_aligned(block);
    return set;
}

static size_t whole_blocks(size_t n)
{
    return n < DIRECT_BYTES ? align_up(n, OS_BLOCK) : DIRECT_BYTES;
}

/* Reads whole blocks into a buffer and copies the requested part. */
static int read_direct(int fd, const char *path, char *into, size_t n, uint64_t at, struct cairn_error *err)
{
    size_t size = whole_blocks(at % OS_BLOCK + n);
    CLEANUP(os_free_aligned_at) char *blocks = os_aligned(OS_BLOCK, size);
    if (!blocks)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory for %zu bytes", path, size);
    while (n) {
        size_t skip = at % OS_BLOCK;
        ssize_t r = os_read_at(fd, blocks, whole_blocks(skip + n), at - skip);
        if (r <= (ssize_t)skip)
            return read_failed(r, path, at, n, err);
        size_t got = (size_t)r - skip < n ? (size_t)r - skip : n;
        memcpy(into, blocks + skip, got);
        into += got;
        n -= got;
        at += got;
    }
    return 0;
}

int file_read_at(int fd, const char *path, void *into, size_t n, uint64_t at, struct cairn_error *err)
{
    char *p = into;
    if (n && os_is_direct(fd))
        return read_direct(fd, path, into, n, at, err);
    while (n) {
        ssize_t r = os_read_at(fd, p, n, at);
        if (r <= 0)
            return read_failed(r, path, at, n, err);
        p += r;
        n -= (size_t)r;
        at += (uint64_t)r;
    }
    return 0;
}

int file_open(const char *path, int *out, uint64_t *size, struct cairn_error *err)
{
    CLEANUP(fd_close) int fd = os_open(path, OS_READ | OS_NO_WAIT);
    struct os_info info;
    if (fd < 0 || os_info_fd(fd, &info))
        return cairn_fail_errno(err, "open %s", path);
    if (info.kind != OS_KIND_FILE)
        return cairn_fail(err, CAIRN_EFORMAT, "%s is %s, not a file", path,
                          info.kind == OS_KIND_FOLDER ? "a directory" : "a device or pipe");
    *size = info.size;
    *out = fd;
    fd = -1;
    return 0;
}

static int make_one(const char *path, mode_t mode)
{
    return os_make_dir(path, mode) && errno != EEXIST ? -1 : 0;
}

int file_settings_too_large(const char *path, struct cairn_error *err)
{
    return cairn_fail(err, CAIRN_EFORMAT, "%s: larger than 1 MiB, the limit for a configuration file", path);
}

int file_read_whole(const char *path, uint64_t most, char **text, size_t *n, struct cairn_error *err)
{
    CLEANUP(fd_close) int fd = -1;
    uint64_t size;
    if (file_open(path, &fd, &size, err))
        return -1;
    if (size > most)
        return cairn_fail(err, CAIRN_EFORMAT,
                          "%s: too large: %" PRIu64 " bytes, at most %" PRIu64 " are read", path, size, most);
    CLEANUP(mem_free) char *all = malloc((size_t)size + 1);
    if (!all)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory for %" PRIu64 " bytes", path, size);
    if (file_read_at(fd, path, all, (size_t)size, 0, err))
        return -1;
    all[size] = '\0';
    *text = TAKE(all);
    *n = (size_t)size;
    return 0;
}

int file_read_settings(const char *path, char **text, size_t *n, struct cairn_error *err)
{
    return file_read_whole(path, FILE_SETTINGS_MOST, text, n, err);
}

size_t file_read_tail(const char *path, char *into, size_t most)
{
    CLEANUP(fd_close) int fd = -1;
    uint64_t size;
    struct cairn_error ignored;
    if (file_open(path, &fd, &size, &ignored))
        return 0;
    size_t n = size < most ? (size_t)size : most;
    return file_read_at(fd, path, into, n, size - n, &ignored) ? 0 : n;
}

int file_make_dir(const char *path, mode_t mode, struct cairn_error *err)
{
    char part[PATH_MAX];
    int above = 0; /* the first error there */
    if ((size_t)snprintf(part, sizeof(part), "%s", path) >= sizeof(part)) {
        errno = ENAMETOOLONG;
        return cairn_fail_errno(err, "make the folder %s", path);
    }
    for (char *at = path_separator(part + 1); at; at = path_separator(at + 1)) {
        char separator = *at;
        *at = 0;
        if (make_one(part, mode) && !above)
            above = errno;
        *at = separator;
    }
    struct stat st;
    if (make_one(part, mode) || stat(part, &st)) {
        errno = errno == ENOENT && above ? above : errno;
        return cairn_fail_errno(err, "make the folder %s", path);
    }
    if (!S_ISDIR(st.st_mode)) {
        errno = ENOTDIR;
        return cairn_fail_errno(err, "make the folder %s", path);
    }
    return 0;
}

int file_names(const char *dir, struct arena *a, char ***names, size_t *n)
{
    CLEANUP(os_list_close) struct os_list *l = os_list_open(dir, 0);
    char **list = NULL;
    size_t count = 0;
    if (!l)
        return -1;
    for (const char *name; !fault_hit() && (name = os_list_next(l));)
        *ARENA_PUSH(a, list, count) = arena_strdup(a, name);
    if (errno) /* fail rather than return a partial list */
        return -1;
    *names = list;
    *n = count;
    return 0;
}
