/* SPDX-License-Identifier: Apache-2.0 */
#include "os/file.h"

#include "os/fault.h"
#include "os/path.h"
#include "os/list.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

static int system_flags(unsigned how)
{
    static const struct {
        unsigned how;
        int flag;
    } flags[] = {
        { OS_APPEND, O_APPEND },    { OS_CREATE, O_CREAT },     { OS_NEW, O_CREAT | O_EXCL },
        { OS_TRUNCATE, O_TRUNC },   { OS_NO_LINK, O_NOFOLLOW }, { OS_NO_WAIT, O_NONBLOCK },
        { OS_FOLDER, O_DIRECTORY }, { OS_PLACE, O_PATH },
    };
    int out = O_CLOEXEC;
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        out |= how & flags[i].how ? flags[i].flag : 0;
    if (how & OS_PLACE) /* O_PATH allows no other flags */
        return out;
    bool writes = how & (OS_WRITE | OS_APPEND);
    return out | O_NOCTTY | (!writes ? O_RDONLY : how & OS_READ ? O_RDWR : O_WRONLY);
}

int os_open_at(int dir, const char *path, unsigned how)
{
    return fault_hit() ? -1 : openat(dir, path, system_flags(how), how & OS_PRIVATE ? 0600 : 0666);
}

int os_open(const char *path, unsigned how)
{
    return os_open_at(AT_FDCWD, path, how);
}

int os_open_null(void)
{
    return os_open("/dev/null", OS_READ | OS_WRITE);
}

ssize_t os_read_start(const char *path, char *buf, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);
    int why = errno;
    if (fd >= 0)
        close(fd);
    buf[n > 0 ? n : 0] = '\0';
    errno = why;
    return n;
}

FILE *os_stream(const char *path, unsigned how)
{
    int fd = os_open(path, how);
    FILE *f = fd < 0 ? NULL : fdopen(fd, how & OS_APPEND ? "a" : how & OS_WRITE ? "w" : "r");
    if (fd >= 0 && !f)
        close(fd);
    return f;
}

int os_stream_into(FILE *f, const char *path)
{
    return fault_hit() || !freopen(path, "we", f) ? -1 : 0;
}

/* Before Linux 5.6 only relative links stay inside. */
int os_open_inside(int dir, const char *path, unsigned how)
{
    if (fault_hit())
        return -1;
    int flags = system_flags(how);
    struct open_how inside = { .flags = (uint64_t)flags, .resolve = RESOLVE_IN_ROOT };
    int fd = (int)syscall(SYS_openat2, dir, path, &inside, sizeof(inside));
    return fd < 0 && errno == ENOSYS ? openat(dir, path + strspn(path, "/"), flags) : fd;
}

int os_walk_beneath(int dir, const char *path, unsigned how)
{
    char name[NAME_MAX + 1];
    size_t n = strcspn(path, "/");
    const char *rest = path + n + strspn(path + n, "/");
    if (!n || (n == 2 && !memcmp(path, "..", 2)) || n >= sizeof(name)) {
        errno = n >= sizeof(name) ? ENAMETOOLONG : EXDEV;
        return -1;
    }
    memcpy(name, path, n);
    name[n] = '\0';
    if (!*rest)
        return openat(dir, name, system_flags(how) | O_NOFOLLOW, how & OS_PRIVATE ? 0600 : 0666);
    int next = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0)
        return -1;
    int fd = os_walk_beneath(next, rest, how), why = errno;
    close(next);
    errno = why;
    return fd;
}

int os_open_beneath(int dir, const char *path, unsigned how)
{
    if (fault_hit())
        return -1;
    uint64_t mode = how & (OS_CREATE | OS_NEW) ? (how & OS_PRIVATE ? 0600 : 0666) : 0;
    struct open_how inside = { .flags = (uint64_t)system_flags(how),
                               .mode = mode,
                               .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
    int fd, tries = 0;
    do { /* EAGAIN: a name on the way was changed meanwhile */
        fd = (int)syscall(SYS_openat2, dir, path, &inside, sizeof(inside));
    } while (fd < 0 && errno == EAGAIN && tries++ < 16);
    return fd < 0 && errno == ENOSYS ? os_walk_beneath(dir, path, how) : fd;
}

int os_open_memory(const char *about)
{
    return fault_hit() ? -1 : memfd_create(about, MFD_CLOEXEC);
}

int os_open_unnamed(const char *about)
{
    const char *told = getenv("TMPDIR");
    if (fault_hit())
        return -1;
    int fd = open(told && path_is_absolute(told) ? told : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return fd < 0 ? memfd_create(about, MFD_CLOEXEC) : fd;
}

/* ---- bytes ---- */

/* The system call, not posix_fallocate, which writes to every block on a file system without reservation.
 * There, a full disk is noticed later. */
int os_reserve(int fd, uint64_t size)
{
    int r;
    do {
        r = fault_hit() ? -1 : fallocate(fd, 0, 0, (off_t)size);
    } while (r && errno == EINTR);
    return r && errno != EOPNOTSUPP && errno != ENOSYS ? -1 : 0;
}

ssize_t os_read_at(int fd, void *into, size_t n, uint64_t at)
{
    ssize_t r;
    do {
        r = fault_hit() ? -1 : pread(fd, into, n, (off_t)at);
    } while (r < 0 && errno == EINTR);
    return r;
}

ssize_t os_write_at(int fd, const void *bytes, size_t n, uint64_t at)
{
    ssize_t w;
    do {
        w = fault_hit() ? -1 : pwrite(fd, bytes, n, (off_t)at);
    } while (w < 0 && errno == EINTR);
    return w;
}

int os_sync(int fd)
{
    return fault_hit() ? -1 : fsync(fd);
}

void os_start_flush(int fd, uint64_t at, uint64_t n)
{
    sync_file_range(fd, (off_t)at, (off_t)n, SYNC_FILE_RANGE_WRITE);
}

void os_drop(int fd, uint64_t at, uint64_t n)
{
    sync_file_range(fd, (off_t)at, (off_t)n,
                    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    posix_fadvise(fd, (off_t)at, (off_t)n, POSIX_FADV_DONTNEED);
}

bool os_is_direct(int fd)
{
    return fcntl(fd, F_GETFL) & O_DIRECT;
}

int os_set_direct(int fd, bool direct)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || (direct && fault_hit()))
        return -1;
    return fcntl(fd, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT);
}

/* ---- names ---- */

int os_make_dir_at(int dir, const char *name, mode_t mode)
{
    return fault_hit() ? -1 : mkdirat(dir, name, mode);
}

int os_make_dir(const char *path, mode_t mode)
{
    return os_make_dir_at(AT_FDCWD, path, mode);
}

int os_make_temp_dir(char *path)
{
    return fault_hit() || !mkdtemp(path) ? -1 : 0;
}

int os_make_link(const char *target, const char *path)
{
    return fault_hit() ? -1 : symlink(target, path);
}

int os_make_hard_link(const char *from, const char *to)
{
    return fault_hit() ? -1 : link(from, to);
}

ssize_t os_read_link_at(int dir, const char *name, char *target, size_t size)
{
    ssize_t n = fault_hit() ? -1 : readlinkat(dir, name, target, size);
    if (n < 0)
        return -1;
    if ((size_t)n >= size) {
        errno = ENAMETOOLONG;
        return -1;
    }
    target[n] = '\0';
    return n;
}

ssize_t os_read_link(const char *path, char *target, size_t size)
{
    return os_read_link_at(AT_FDCWD, path, target, size);
}

int os_rename_at(int from_dir, const char *from, int to_dir, const char *to)
{
    return fault_hit() ? -1 : renameat(from_dir, from, to_dir, to);
}

int os_rename_new_at(int from_dir, const char *from, int to_dir, const char *to)
{
    if (fault_hit())
        return -1;
    int r = renameat2(from_dir, from, to_dir, to, RENAME_NOREPLACE);
    if (!r || (errno != EINVAL && errno != ENOSYS))
        return r;
    r = linkat(from_dir, from, to_dir, to, 0); /* a file system without that flag */
    return r ? -1 : unlinkat(from_dir, from, 0);
}

int os_rename(const char *from, const char *to)
{
    return os_rename_at(AT_FDCWD, from, AT_FDCWD, to);
}

int os_exchange(const char *one, const char *other)
{
    return fault_hit() ? -1 : renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE);
}

int os_remove_at(int dir, const char *name)
{
    return unlinkat(dir, name, 0);
}

int os_remove(const char *path)
{
    return os_remove_at(AT_FDCWD, path);
}

int os_remove_dir_at(int dir, const char *name)
{
    return unlinkat(dir, name, AT_REMOVEDIR);
}

int os_remove_dir(const char *path)
{
    return os_remove_dir_at(AT_FDCWD, path);
}

/* errno says why it was not opened as a folder, unless it is a link. */
static int remove_link(int dir, const char *name)
{
    struct stat st;
    int why = errno;
    if (!fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISLNK(st.st_mode))
        return os_remove_at(dir, name);
    errno = why;
    return -1;
}

int os_remove_folder_at(int dir, const char *name)
{
    int r = 0, why = 0;
    struct os_list *l = os_list_of(openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!l)
        return errno == ENOENT ? 0 : remove_link(dir, name);
    for (const char *below; (below = os_list_next(l));)
        if (os_remove_at(os_list_dir(l), below)) {
            why = errno;
            r = -1;
        }
    os_list_close(&l);
    errno = why;
    return r ? -1 : os_remove_dir_at(dir, name);
}

int os_remove_folder(const char *path)
{
    return os_remove_folder_at(AT_FDCWD, path);
}

static int fill_disk(int failed, const struct statvfs *fs, struct os_disk *out)
{
    if (failed)
        return -1;
    *out = (struct os_disk){ (uint64_t)fs->f_blocks * fs->f_frsize, (uint64_t)fs->f_bavail * fs->f_frsize };
    return 0;
}

int os_disk(const char *path, struct os_disk *out)
{
    struct statvfs fs;
    return fill_disk(fault_hit() || statvfs(path, &fs), &fs, out);
}

int os_disk_fd(int fd, struct os_disk *out)
{
    struct statvfs fs;
    return fill_disk(fault_hit() || fstatvfs(fd, &fs), &fs, out);
}

bool os_is_local(const char *path)
{
    static const unsigned long remote[] = { 0x6969 /* NFS */,      0x517b /* SMB */,
                                            0xff534d42 /* CIFS */, 0xfe534d42 /* SMB2 */,
                                            0x01021997 /* 9P */,   0x0bd00bd0 /* Lustre */,
                                            0x00c36400 /* Ceph */, 0x5346414f /* AFS */ };
    struct statfs st;
    if (statfs(path, &st))
        return true;
    for (size_t i = 0; i < sizeof(remote) / sizeof(remote[0]); i++)
        if ((unsigned long)st.f_type == remote[i])
            return false;
    return true;
}

int os_lock(int fd, bool wait)
{
    return flock(fd, LOCK_EX | (wait ? 0 : LOCK_NB));
}

int os_hold(int fd)
{
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    return fcntl(fd, F_OFD_SETLK, &whole);
}

int os_is_held(int fd)
{
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    return fcntl(fd, F_OFD_GETLK, &whole) ? -1 : whole.l_type != F_UNLCK;
}
