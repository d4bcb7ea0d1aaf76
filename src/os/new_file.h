/* SPDX-License-Identifier: Apache-2.0
 * A file that gets its name when it is complete.  If the file system supports it, the file has no name until
 * then, so that not even a killed process leaves a partial file; elsewhere it has a temporary name, and the
 * next writer of the same file removes the leftovers of a killed one. */
#ifndef CAIRN_OS_NEW_FILE_H
#define CAIRN_OS_NEW_FILE_H

#include <stdbool.h>

struct os_new_file {
    int fd;           /* -1: not open */
    int dir;          /* its folder, which belongs to the caller */
    const char *name; /* its final name there; owned by the caller */
    char *temp;       /* its temporary name; NULL: none */
};

/* The caller sets fd (to -1), dir and name of f.  The new file has the permissions of the file it will
 * replace if that belongs to the caller, but never set-id bits or write permission for others; else the umask
 * decides.  Here and below: -1 with errno. */
int os_new_file_create(struct os_new_file *f);
/* Gives it its name.  Without `replace`, fails with EEXIST if the name exists, even if it was created just
 * now. */
int os_new_file_name(struct os_new_file *f, bool replace);
/* Removes it if it has only its temporary name.  Does not close it. */
void os_new_file_discard(struct os_new_file *f);

#endif
