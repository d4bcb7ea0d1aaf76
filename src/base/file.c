/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include "base/fault.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
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

/* That of the file to be replaced, if it is ours, without what would let others run or change the new one; else what the
 * umask gives.  The temporary has 0600. */
static mode_t new_file_mode(const struct file_out *f)
{
    struct stat st;
    if (!fstatat(f->dir, f->name, &st, 0) && st.st_uid == geteuid())
        return st.st_mode & 0775;
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

static int check_target(const struct file_out *f, struct cairn_error *err)
{
    struct stat st;
    const char *path = f->path;
    if (!*f->name)
        return cairn_fail(err, CAIRN_EUSAGE, "%s is a directory", path);
    if (fstatat(f->dir, f->name, &st, 0)) {
        if (errno != ENOENT)
            return cairn_fail_errno(err, "%s", path);
        return f->replace || fstatat(f->dir, f->name, &st, AT_SYMLINK_NOFOLLOW)
                   ? 0
                   : cairn_fail(err, CAIRN_EUSAGE, "%s exists: a link that leads nowhere", path);
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

char *file_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    return must(slash ? strndup(path, n ? n : 1) : strdup("."));
}

/* The user knows the file's name and its folder, not the temporary's. */
static int cannot_create(const char *path, struct cairn_error *err)
{
    int why = errno;
    CLEANUP(mem_free) char *folder = file_folder(path);
    cairn_fail_errno(err, "create %s", path);
    if (why == ENOENT)
        return cairn_hint(err, "make the folder first: mkdir -p '%s'", folder);
    if (why == EACCES || why == EROFS)
        return cairn_hint(err, "see who may write to '%s', or choose another folder", folder);
    return -1;
}

/* A name beside the target that nobody has, and what `make` makes of it; -1 with errno. */
static int make_temp(struct file_out *f, int (*make)(const struct file_out *f, const char *temp))
{
    enum { TRIES = 100 };
    for (int i = 0; i < TRIES; i++) {
        CLEANUP(mem_free) char *temp = NULL;
        uint32_t salt;
        struct timespec now;
        if (getrandom(&salt, sizeof(salt), GRND_NONBLOCK) != sizeof(salt)) {
            clock_gettime(CLOCK_MONOTONIC, &now);
            salt = (uint32_t)now.tv_nsec * 2654435761u + (uint32_t)getpid();
        }
        if (asprintf(&temp, "%s.%06x.tmp", f->name, salt & 0xffffff) < 0)
            must(NULL);
        int r = make(f, temp);
        if (r >= 0)
            f->temp = TAKE(temp);
        if (r >= 0 || errno != EEXIST)
            return r;
    }
    return -1;
}

/* The lock says that its writer is alive; where locks do not work, nobody takes the file for a leftover. */
static int create_temp(const struct file_out *f, const char *temp)
{
    int fd = openat(f->dir, temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0)
        flock(fd, LOCK_EX | LOCK_NB);
    return fd;
}

/* NAME.XXXXXX.tmp, as make_temp calls it. */
static bool is_temp_of(const struct file_out *f, const char *name)
{
    size_t n = strlen(f->name);
    return !strncmp(name, f->name, n) && name[n] == '.' && strspn(name + n + 1, "0123456789abcdef") == 6 &&
           !strcmp(name + n + 7, ".tmp");
}

static void remove_leftover(const struct file_out *f, const char *name)
{
    enum { NEW_S = 60 }; /* it may not have its lock yet */
    struct stat st;
    CLEANUP(fd_close) int fd = openat(f->dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        st.st_mtime < time(NULL) - NEW_S && !flock(fd, LOCK_EX | LOCK_NB))
        unlinkat(f->dir, name, 0);
}

/* What killed writers of this file have left; only where temporaries have names. */
static void remove_leftovers(const struct file_out *f)
{
    int dir = openat(f->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = dir < 0 ? NULL : fdopendir(dir);
    if (!d) {
        fd_close(&dir);
        return;
    }
    for (struct dirent *e; (e = readdir(d));)
        if (is_temp_of(f, e->d_name))
            remove_leftover(f, e->d_name);
    closedir(d);
}

static int link_temp(const struct file_out *f, const char *temp)
{
    char self[40];
    snprintf(self, sizeof(self), "/proc/self/fd/%d", f->fd);
    return linkat(AT_FDCWD, self, f->dir, temp, AT_SYMLINK_FOLLOW);
}

/* Without a name, where the file system can do that and /proc can give it one later. */
static int create(struct file_out *f)
{
    if (fault_hit())
        return -1;
    int fd = access("/proc/self/fd", X_OK) ? -1 : openat(f->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    remove_leftovers(f);
    return make_temp(f, create_temp);
}

int file_out_open_at(struct file_out *f, int dir, const char *path, uint64_t size, bool replace,
                     struct cairn_error *err)
{
    const char *slash = strrchr(path, '/');
    *f = (struct file_out){ .fd = -1, .dir = -1 };
    if (!*path)
        return cairn_fail(err, CAIRN_EUSAGE, "the new file has no name");
    CLEANUP(file_out_close)
    struct file_out new = { .fd = -1, .path = must(strdup(path)), .replace = replace };
    new.name = new.path + (slash ? slash + 1 - path : 0);
    new.dir = fcntl(dir, F_DUPFD_CLOEXEC, 0);
    if (new.dir < 0)
        return cannot_create(path, err);
    if (check_target(&new, err))
        return -1;
    new.fd = create(&new);
    if (new.fd < 0)
        return cannot_create(path, err);
    fchmod(new.fd, new_file_mode(&new));
    if (size && reserve(new.fd, size))
        return cairn_fail_errno(err, "reserve %llu bytes for %s", (unsigned long long)size, path);
    *f = new;
    new = (struct file_out){ .fd = -1 };
    return 0;
}

int file_out_open(struct file_out *f, const char *path, uint64_t size, bool replace, struct cairn_error *err)
{
    CLEANUP(mem_free) char *folder = file_folder(path);
    *f = (struct file_out){ .fd = -1, .dir = -1 };
    CLEANUP(fd_close) int dir = fault_hit() ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 && *path)
        return cannot_create(path, err);
    return file_out_open_at(f, dir, path, size, replace, err);
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

static int cannot_rename(const struct file_out *f, struct cairn_error *err)
{
    return cairn_fail_errno(err, "give %s its name", f->path);
}

/* Without replace the name is claimed by link(2), which fails if somebody has made the file meanwhile.  Only rename(2)
 * replaces a file, and it wants a name. */
static int take_name(struct file_out *f, struct cairn_error *err)
{
    if (fault_hit())
        return cannot_rename(f, err);
    if (!f->replace) {
        int r = f->temp ? linkat(f->dir, f->temp, f->dir, f->name, 0) : link_temp(f, f->name);
        if (!r && f->temp)
            unlinkat(f->dir, f->temp, 0);
        if (!r)
            return 0;
        if (errno == EEXIST)
            return cairn_fail_errno(err, "%s", f->path);
    }
    if (!f->temp && make_temp(f, link_temp))
        return cannot_rename(f, err);
    return renameat(f->dir, f->temp, f->dir, f->name) ? cannot_rename(f, err) : 0;
}

int file_out_commit(struct file_out *f, struct cairn_error *err)
{
    if (fault_hit() || fsync(f->fd))
        return cairn_fail_errno(err, "flush %s", f->path);
    if (take_name(f, err))
        return -1;
    free(f->temp);
    f->temp = NULL;
    int fd = f->fd;
    f->fd = -1;
    if (close(fd))
        return cairn_fail_errno(err, "close %s (the file is written)", f->path);
    if (fault_hit() || fsync(f->dir))
        return cairn_fail_errno(err, "flush the directory of %s (the file is written)", f->path);
    return 0;
}

void file_out_close(struct file_out *f)
{
    if (f->path) {
        fd_close(&f->fd);
        if (f->temp)
            unlinkat(f->dir, f->temp, 0);
        fd_close(&f->dir);
    }
    free(f->temp);
    free(f->path);
    *f = (struct file_out){ .fd = -1, .dir = -1 };
}

int file_write_at(int dir, const char *path, const void *bytes, size_t n, struct cairn_error *err)
{
    CLEANUP(file_out_close) struct file_out f = { .fd = -1 };
    if (file_out_open_at(&f, dir, path, 0, true, err) || file_out_write(&f, bytes, n, 0, err))
        return -1;
    return file_out_commit(&f, err);
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

int file_settings_too_large(const char *path, struct cairn_error *err)
{
    return cairn_fail(err, CAIRN_EFORMAT, "%s: larger than 1 MiB, which no file of settings is", path);
}

int file_read_settings(const char *path, char **text, size_t *n, struct cairn_error *err)
{
    CLEANUP(fd_close) int fd = -1;
    uint64_t size;
    if (file_open(path, &fd, &size, err))
        return -1;
    if (size > FILE_SETTINGS_MOST)
        return file_settings_too_large(path, err);
    CLEANUP(mem_free) char *all = malloc((size_t)size + 1);
    if (!all)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory to read it", path);
    if (file_read_at(fd, path, all, (size_t)size, 0, err))
        return -1;
    all[size] = '\0';
    *text = TAKE(all);
    *n = (size_t)size;
    return 0;
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
