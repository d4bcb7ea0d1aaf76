/* SPDX-License-Identifier: Apache-2.0
 * A file that gets its name when it is whole.  Where the file system can, it has no name until then, so that not even a
 * killed process leaves a part of it behind; elsewhere it has a temporary one, and the next writer of the same file
 * removes what a killed one has left. */
#ifndef CAIRN_OS_NEW_FILE_H
#define CAIRN_OS_NEW_FILE_H

#include <stdbool.h>

struct os_new_file {
    int fd;           /* -1: not open */
    int dir;          /* its folder, which belongs to the caller */
    const char *name; /* what it will be called there; the caller's */
    char *temp;       /* what it is called now; NULL: it has no name */
};

/* fd, dir and name of f are the caller's to set, fd to -1.  The new file has the permissions of the one it will replace if
 * that is the caller's own, but never a set-id bit or everybody's leave to write; else what the umask gives.
 * Here and below: -1 with errno. */
int os_new_file_create(struct os_new_file *f);
/* Gives it its name.  Without `replace` that fails with EEXIST where the name is taken, by whomever and however lately. */
int os_new_file_name(struct os_new_file *f, bool replace);
/* Removes it if it has no more than its temporary name.  Does not close it. */
void os_new_file_discard(struct os_new_file *f);

#endif
