/* SPDX-License-Identifier: Apache-2.0 */
#include "os/new_file.h"

#include "os/fault.h"
#include "os/list.h"
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The mode of the file to be replaced, if it is ours, without set-id bits and write permission for others;
 * else the umask decides.  The temporary file has 0600. */
static mode_t new_file_mode(const struct os_new_file *f)
{
    struct stat st;
    if (!fstatat(f->dir, f->name, &st, 0) && st.st_uid == geteuid())
        return st.st_mode & 0775;
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

static uint32_t random_salt(void)
{
    uint32_t salt;
    struct timespec now;
    if (getrandom(&salt, sizeof(salt), GRND_NONBLOCK) == sizeof(salt))
        return salt;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint32_t)now.tv_nsec * 2654435761u + (uint32_t)getpid();
}

/* Finds an unused name beside the target and calls `make` with it. */
static int make_temp(struct os_new_file *f, int (*make)(const struct os_new_file *f, const char *temp))
{
    enum { TRIES = 100 };
    for (int i = 0; i < TRIES; i++) {
        char *temp;
        if (asprintf(&temp, "%s.%06x.tmp", f->name, random_salt() & 0xffffff) < 0) {
            errno = ENOMEM;
            return -1;
        }
        int r = make(f, temp), why = errno;
        if (r >= 0)
            f->temp = temp;
        else
            free(temp);
        errno = why;
        if (r >= 0 || why != EEXIST)
            return r;
    }
    return -1;
}

/* The lock shows that the writer is alive; where locks do not work, the file is never removed as a
 * leftover. */
static int create_temp(const struct os_new_file *f, const char *temp)
{
    int fd = openat(f->dir, temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0)
        flock(fd, LOCK_EX | LOCK_NB);
    return fd;
}

/* NAME.XXXXXX.tmp, as make_temp calls it. */
static bool is_temp_of(const struct os_new_file *f, const char *name)
{
    size_t n = strlen(f->name);
    return !strncmp(name, f->name, n) && name[n] == '.' && strspn(name + n + 1, "0123456789abcdef") == 6 &&
           !strcmp(name + n + 7, ".tmp");
}

static void remove_leftover(const struct os_new_file *f, const char *name)
{
    enum { NEW_S = 60 }; /* a newer one may not have its lock yet */
    struct stat st;
    int fd = openat(f->dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        st.st_mtime < time(NULL) - NEW_S && !flock(fd, LOCK_EX | LOCK_NB))
        unlinkat(f->dir, name, 0);
    close(fd);
}

/* Removes leftovers of killed writers of this file; only if temporary files have names. */
static void remove_leftovers(const struct os_new_file *f)
{
    struct os_list *l = os_list_of(openat(f->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (const char *name; l && (name = os_list_next(l));)
        if (is_temp_of(f, name))
            remove_leftover(f, name);
    os_list_close(&l);
}

static int link_temp(const struct os_new_file *f, const char *temp)
{
    char self[40];
    snprintf(self, sizeof(self), "/proc/self/fd/%d", f->fd);
    return linkat(AT_FDCWD, self, f->dir, temp, AT_SYMLINK_FOLLOW);
}

/* An unnamed file, if the file system supports that and /proc can name it later. */
int os_new_file_create(struct os_new_file *f)
{
    if (fault_hit())
        return -1;
    f->temp = NULL;
    if (!access("/proc/self/fd", X_OK))
        f->fd = openat(f->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (f->fd < 0) {
        remove_leftovers(f);
        f->fd = make_temp(f, create_temp);
    }
    if (f->fd < 0)
        return -1;
    fchmod(f->fd, new_file_mode(f));
    return 0;
}

/* Without replace, link(2) claims the name, and fails if the file was created meanwhile.  Only rename(2)
 * replaces a file, and it needs a name. */
int os_new_file_name(struct os_new_file *f, bool replace)
{
    if (fault_hit())
        return -1;
    if (!replace) {
        int r = f->temp ? linkat(f->dir, f->temp, f->dir, f->name, 0) : link_temp(f, f->name);
        if (!r)
            os_new_file_discard(f);
        if (!r || errno == EEXIST)
            return r;
    }
    if ((!f->temp && make_temp(f, link_temp)) || renameat(f->dir, f->temp, f->dir, f->name))
        return -1;
    free(f->temp);
    f->temp = NULL;
    return 0;
}

void os_new_file_discard(struct os_new_file *f)
{
    if (f->temp)
        unlinkat(f->dir, f->temp, 0);
    free(f->temp);
    f->temp = NULL;
}
