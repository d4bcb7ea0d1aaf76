/* SPDX-License-Identifier: Apache-2.0
 * Files and folders as the system has them: the one place of src/ that opens, renames and removes them, and so the
 * one place to give a second half for another system.
 *
 * A function that fails returns -1 (or NULL) with errno set; base/file.h and base/own.h put messages around them.  All
 * but those that remove or lock ask fault_hit() first.  What is opened is never inherited by a child and never
 * becomes the controlling terminal.  `dir` is an open folder. */
#ifndef CAIRN_OS_FILE_H
#define CAIRN_OS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum os_open {
    OS_READ = 1 << 0,
    OS_WRITE = 1 << 1,
    OS_APPEND = 1 << 2, /* writes, each time at the end */
    OS_CREATE = 1 << 3, /* made where it is not there */
    OS_NEW = 1 << 4,    /* made; fails with EEXIST where it is there */
    OS_TRUNCATE = 1 << 5,
    OS_PRIVATE = 1 << 6, /* a new file is for its owner alone; without it the umask decides */
    OS_NO_LINK = 1 << 7, /* fails with ELOOP (ENOTDIR for a folder) if the last part of the path is a link */
    OS_NO_WAIT = 1 << 8, /* does not wait for the other end of a pipe */
    OS_FOLDER = 1 << 9,  /* fails with ENOTDIR unless it is a folder */
    OS_PLACE = 1 << 10,  /* only to name what lies there or below it; neither read nor written */
};
int os_open(const char *path, unsigned how);
int os_open_at(int dir, const char *path, unsigned how);
/* The same as a stream. */
FILE *os_stream(const char *path, unsigned how);
/* From now on the stream writes into this file, made or emptied. */
int os_stream_into(FILE *f, const char *path);
/* What takes everything and has nothing to read. */
int os_open_null(void);
/* The beginning of a file of the kernel's, such as one of /proc, with a NUL behind: how much was read.  The fault seam is
 * not asked: it may be called for every process of the machine, and what is told of one may go at any time. */
ssize_t os_read_start(const char *path, char *buf, size_t size);
/* A path inside a folder that is taken for /: no link leads out of it, where the kernel can see to that (Linux 5.6). */
int os_open_inside(int dir, const char *path, unsigned how);
/* A file without a name, to be read and written, that goes when it is closed: among the temporary files of the system
 * ($TMPDIR), and in memory where that cannot be; or always in memory.  `about` names the latter in the system's lists. */
int os_open_unnamed(const char *about);
int os_open_memory(const char *about);

/* ---- bytes ---- */

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

/* ---- names ---- */

int os_make_dir(const char *path, mode_t mode);
int os_make_dir_at(int dir, const char *name, mode_t mode);
/* A new folder for its owner alone; the XXXXXX at the end of the path become its name. */
int os_make_temp_dir(char *path);
/* A link of that name to target; on a system without links, a file that holds the target. */
int os_make_link(const char *target, const char *path);
/* Where a link leads: its length, less than size, with a NUL behind. */
ssize_t os_read_link(const char *path, char *target, size_t size);
ssize_t os_read_link_at(int dir, const char *name, char *target, size_t size);

/* What has the new name is replaced. */
int os_rename(const char *from, const char *to);
int os_rename_at(int from_dir, const char *from, int to_dir, const char *to);
/* Both are there and change names at once; fails where the file system cannot. */
int os_exchange(const char *one, const char *other);
int os_remove(const char *path);
int os_remove_at(int dir, const char *name);
int os_remove_dir(const char *path);
int os_remove_dir_at(int dir, const char *name);
/* A folder and the files in it, but no folder below it.  No link is followed: one in its place goes itself.  0 also if
 * there was none. */
int os_remove_folder(const char *path);
int os_remove_folder_at(int dir, const char *name);

/* The file system that a path lies on, in bytes; total is 0 where it has no limit. */
struct os_disk {
    uint64_t total, free; /* free: for this user */
};
int os_disk(const char *path, struct os_disk *out);

/* Only one open file has the lock, until it is closed.  Without `wait`, EWOULDBLOCK says that another has it; some network
 * file systems have no locks. */
int os_lock(int fd, bool wait);

#endif
