/* SPDX-License-Identifier: Apache-2.0 */
#include "os/list.h"

#include "os/file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* A list is the system's own DIR under another name. */
static DIR *inside(const struct os_list *l)
{
    return (DIR *)l;
}

struct os_list *os_list_of(int dir)
{
    DIR *d = dir < 0 ? NULL : fdopendir(dir);
    if (dir >= 0 && !d) {
        int why = errno;
        close(dir);
        errno = why;
    }
    return (struct os_list *)d;
}

struct os_list *os_list_open_at(int dir, const char *path, unsigned how)
{
    return os_list_of(os_open_at(dir, path, OS_READ | OS_FOLDER | how));
}

struct os_list *os_list_open(const char *path, unsigned how)
{
    return os_list_open_at(AT_FDCWD, path, how);
}

const char *os_list_next(struct os_list *l)
{
    for (;;) {
        errno = 0;
        struct dirent *e = readdir(inside(l));
        if (!e)
            return NULL;
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            return e->d_name;
    }
}

int os_list_dir(const struct os_list *l)
{
    return dirfd(inside(l));
}

void os_list_close(struct os_list **l)
{
    if (*l)
        closedir(inside(*l));
    *l = NULL;
}
