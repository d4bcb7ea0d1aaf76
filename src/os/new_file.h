/* SPDX-License-Identifier: Apache-2.0
 * A file that gets its name when it is whole.  Where the file system can, it has no name until then, so that not even a
 * killed process leaves a part of it behind; elsewhere it has a temporary one, and the next writer of the same file
 * removes what a killed one has left. */
#ifndef CAIRN_OS_NEW_FILE_H
#define CAIRN_OS_NEW_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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

/* Sets space aside; 0 also where the file system cannot. */
int os_reserve(int fd, uint64_t size);
ssize_t os_read_at(int fd, void *into, size_t n, uint64_t at);
ssize_t os_write_at(int fd, const void *bytes, size_t n, uint64_t at);
/* Waits until what was written, or what was named in a folder, is on the disk. */
int os_sync(int fd);
/* Starts to write these bytes to the disk, without waiting. */
void os_start_flush(int fd, uint64_t at, uint64_t n);
/* Waits for these bytes and takes them out of the page cache. */
void os_drop(int fd, uint64_t at, uint64_t n);

/* Reads past the page cache: memory, offset and length are then multiples of the disk's block, which is no more than
 * OS_BLOCK. */
enum { OS_BLOCK = 4096 };
bool os_is_direct(int fd);
int os_set_direct(int fd, bool direct);

#endif
