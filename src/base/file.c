/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include "base/fault.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The disk gets this much at once: smaller orders cost more than they bring. */
enum { FLUSH_BYTES = 8 << 20 };

static char *must(char *s)
{
    if (!s) {
        fputs("cairn: out of memory\n", stderr);
        abort();
    }
    return s;
}

/* That of the file to be replaced, else what the user's umask gives a new one; mkostemps gives 0600. */
static mode_t new_file_mode(const char *path)
{
    struct stat st;
    if (!stat(path, &st))
        return st.st_mode & 07777;
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

static int check_target(const char *path, bool replace, struct cairn_error *err)
{
    struct stat st;
    if (!*path)
        return cairn_fail(err, CAIRN_EUSAGE, "the new file has no name");
    if (stat(path, &st) && errno != ENOENT)
        return cairn_fail_errno(err, "%s", path);
    if (stat(path, &st))
        return replace || lstat(path, &st)
                   ? 0
                   : cairn_fail(err, CAIRN_EUSAGE, "%s exists: a link that leads nowhere", path);
    if (S_ISDIR(st.st_mode))
        return cairn_fail(err, CAIRN_EUSAGE, "%s is a directory", path);
    if (replace && S_ISREG(st.st_mode))
        return 0;
    if (!S_ISREG(st.st_mode))
        return cairn_fail(err, CAIRN_EUSAGE, "%s is not a regular file", path);
    cairn_fail(err, CAIRN_EUSAGE, "%s exists", path);
    return cairn_hint(err, "--force replaces it");
}

/* The system call and not posix_fallocate, which on a file system without reservation writes to every block: such
 * a file system finds out later. */
static int reserve(int fd, uint64_t size)
{
    int r;
    do {
        r = fault_hit() ? -1 : fallocate(fd, 0, 0, (off_t)size);
    } while (r && errno == EINTR);
    return r && errno != EOPNOTSUPP && errno != ENOSYS ? -1 : 0;
}

/* "." for a bare name. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    return must(slash ? strndup(path, n ? n : 1) : strdup("."));
}

/* The user knows the file's name and its folder, not the temporary's. */
static int cannot_create(const char *path, struct cairn_error *err)
{
    int why = errno;
    CLEANUP(mem_free) char *folder = folder_of(path);
    cairn_fail_errno(err, "create %s", path);
    if (why == ENOENT)
        return cairn_hint(err, "make the folder first: mkdir -p '%s'", folder);
    if (why == EACCES || why == EROFS)
        return cairn_hint(err, "see who may write to '%s', or choose another folder", folder);
    return -1;
}

int file_out_open(struct file_out *f, const char *path, uint64_t size, bool replace, struct cairn_error *err)
{
    *f = (struct file_out){ .fd = -1, .replace = replace };
    if (check_target(path, replace, err))
        return -1;
    char *temp;
    if (asprintf(&temp, "%s.XXXXXX.tmp", path) < 0)
        must(NULL);
    int fd = fault_hit() ? -1 : mkostemps(temp, 4, O_CLOEXEC);
    if (fd < 0) {
        free(temp);
        return cannot_create(path, err);
    }
    *f = (struct file_out){ fd, must(strdup(path)), temp, replace };
    fchmod(fd, new_file_mode(path));
    if (size && reserve(fd, size)) {
        cairn_fail_errno(err, "reserve %llu bytes for %s", (unsigned long long)size, path);
        file_out_close(f);
        return -1;
    }
    return 0;
}

int file_out_write(struct file_out *f, const void *bytes, size_t n, uint64_t at, struct cairn_error *err)
{
    const char *p = bytes;
    while (n) {
        ssize_t w = fault_hit() ? -1 : pwrite(f->fd, p, n, (off_t)at);
        if (w < 0 && errno == EINTR)
            continue;
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
        sync_file_range(f->fd, (off_t)first, (off_t)(end - first), SYNC_FILE_RANGE_WRITE);
}

void file_out_drop(struct file_out *f, uint64_t at, uint64_t n)
{
    sync_file_range(f->fd, (off_t)at, (off_t)n,
                    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    posix_fadvise(f->fd, (off_t)at, (off_t)n, POSIX_FADV_DONTNEED);
}

static int open_directory(const char *path, int *out, struct cairn_error *err)
{
    CLEANUP(mem_free) char *dir = folder_of(path);
    *out = fault_hit() ? -1 : open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *out < 0 ? cairn_fail_errno(err, "open directory %s", dir) : 0;
}

/* Without replace the name is claimed by link(2), which fails if somebody has made the file meanwhile. */
static int take_name(struct file_out *f, struct cairn_error *err)
{
    if (fault_hit())
        return cairn_fail_errno(err, "rename %s to %s", f->temp, f->path);
    if (!f->replace && !link(f->temp, f->path)) {
        unlink(f->temp);
        return 0;
    }
    if (!f->replace && errno == EEXIST)
        return cairn_fail_errno(err, "%s", f->path);
    return rename(f->temp, f->path) ? cairn_fail_errno(err, "rename %s to %s", f->temp, f->path) : 0;
}

int file_out_commit(struct file_out *f, struct cairn_error *err)
{
    int fd = f->fd;
    CLEANUP(fd_close) int directory = -1;
    if (open_directory(f->path, &directory, err))
        return -1;
    if (fault_hit() || fsync(fd))
        return cairn_fail_errno(err, "flush %s", f->path);
    f->fd = -1;
    if (close(fd))
        return cairn_fail_errno(err, "close %s", f->path);
    if (take_name(f, err))
        return -1;
    free(f->temp);
    f->temp = NULL;
    if (fault_hit() || fsync(directory))
        return cairn_fail_errno(err, "flush the directory of %s (the file is written)", f->path);
    return 0;
}

void file_out_close(struct file_out *f)
{
    if (f->temp) {
        fd_close(&f->fd);
        unlink(f->temp);
    }
    free(f->temp);
    free(f->path);
    *f = (struct file_out){ .fd = -1 };
}

int file_write(const char *path, const void *bytes, size_t n, struct cairn_error *err)
{
    CLEANUP(file_out_close) struct file_out f = { .fd = -1 };
    if (file_out_open(&f, path, 0, true, err) || file_out_write(&f, bytes, n, 0, err))
        return -1;
    return file_out_commit(&f, err);
}

static ssize_t read_some(int fd, void *into, size_t n, uint64_t at)
{
    ssize_t r;
    do {
        r = fault_hit() ? -1 : pread(fd, into, n, (off_t)at);
    } while (r < 0 && errno == EINTR);
    return r;
}

static int read_failed(ssize_t r, const char *path, uint64_t at, size_t n, struct cairn_error *err)
{
    if (r < 0)
        return cairn_fail_errno(err, "read %s at byte %llu", path, (unsigned long long)at);
    return cairn_fail(err, CAIRN_EFORMAT, "%s is cut short: at byte %llu, %zu more were expected", path,
                      (unsigned long long)at, n);
}

/* Memory, offset and length of a direct read must be multiples of the disk's block, which is no more than this. */
enum { BLOCK_BYTES = 4096, DIRECT_BYTES = 4 << 20 };

bool file_set_direct(int fd)
{
    void *block = aligned_alloc(BLOCK_BYTES, BLOCK_BYTES);
    int flags = fcntl(fd, F_GETFL);
    bool set = block && flags >= 0 && !fault_hit() && !fcntl(fd, F_SETFL, flags | O_DIRECT);
    /* Some file systems take the flag and refuse to read. */
    if (set && read_some(fd, block, BLOCK_BYTES, 0) < 0) {
        fcntl(fd, F_SETFL, flags);
        set = false;
    }
    free(block);
    return set;
}

static size_t whole_blocks(size_t n)
{
    return n < DIRECT_BYTES ? (n + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES : DIRECT_BYTES;
}

/* Whole blocks into memory of our own, of which the wanted part is copied. */
static int read_direct(int fd, const char *path, char *into, size_t n, uint64_t at, struct cairn_error *err)
{
    size_t room = whole_blocks(at % BLOCK_BYTES + n);
    CLEANUP(mem_free) char *blocks = aligned_alloc(BLOCK_BYTES, room);
    if (!blocks)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory for %zu bytes", path, room);
    while (n) {
        size_t skip = at % BLOCK_BYTES;
        ssize_t r = read_some(fd, blocks, whole_blocks(skip + n), at - skip);
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
    if (n && fcntl(fd, F_GETFL) & O_DIRECT)
        return read_direct(fd, path, into, n, at, err);
    while (n) {
        ssize_t r = read_some(fd, p, n, at);
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
    CLEANUP(fd_close) int fd = fault_hit() ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fault_hit() || fstat(fd, &st))
        return cairn_fail_errno(err, "open %s", path);
    if (!S_ISREG(st.st_mode))
        return cairn_fail(err, CAIRN_EFORMAT, "%s is %s, not a file", path,
                          S_ISDIR(st.st_mode) ? "a directory" : "a device or pipe");
    *size = (uint64_t)st.st_size;
    *out = fd;
    fd = -1;
    return 0;
}

static int make_one(const char *path, mode_t mode)
{
    return fault_hit() ? -1 : mkdir(path, mode) && errno != EEXIST ? -1 : 0;
}

int file_make_dir(const char *path, mode_t mode, struct cairn_error *err)
{
    char part[PATH_MAX];
    int above = 0; /* the first that was wrong there */
    if ((size_t)snprintf(part, sizeof(part), "%s", path) >= sizeof(part)) {
        errno = ENAMETOOLONG;
        return cairn_fail_errno(err, "make the folder %s", path);
    }
    for (char *at = strchr(part + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = 0;
        if (make_one(part, mode) && !above)
            above = errno;
        *at = '/';
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
