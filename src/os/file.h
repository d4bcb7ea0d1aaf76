/* SPDX-License-Identifier: Apache-2.0
 * System calls on files and folders: the only place in src/ that opens, renames and removes them, and so the
 * only place to port to another system.
 *
 * A function that fails returns -1 (or NULL) with errno set; base/file.h and base/own.h add messages.  All
 * but those that remove or lock ask fault_hit() first.  Descriptors are never inherited by a child and never
 * become the controlling terminal.  `dir` is an open folder. */
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
    OS_CREATE = 1 << 3, /* created if missing */
    OS_NEW = 1 << 4,    /* created; fails with EEXIST if it exists */
    OS_TRUNCATE = 1 << 5,
    OS_PRIVATE = 1 << 6, /* a new file is accessible to its owner only; otherwise the umask decides */
    OS_NO_LINK = 1 << 7, /* fails with ELOOP (ENOTDIR for a folder) if the last part of the path is a link */
    OS_NO_WAIT = 1 << 8, /* does not wait for the other end of a pipe */
    OS_FOLDER = 1 << 9,  /* fails with ENOTDIR unless it is a folder */
    OS_PLACE = 1 << 10,  /* O_PATH: only a reference to the file or folder; neither read nor written */
};
int os_open(const char *path, unsigned how);
int os_open_at(int dir, const char *path, unsigned how);
/* The same as a stream. */
FILE *os_stream(const char *path, unsigned how);
/* From now on the stream writes to this file, which is created or truncated. */
int os_stream_into(FILE *f, const char *path);
/* Opens /dev/null. */
int os_open_null(void);
/* Reads the start of a kernel file, such as one in /proc, NUL-terminated; returns the length.  Without fault
 * injection: it may be called for every process of the machine, any of which may disappear at any time. */
ssize_t os_read_start(const char *path, char *buf, size_t size);
/* Opens a path below a folder that acts as /: links cannot leave it, if the kernel supports that (Linux
 * 5.6). */
int os_open_inside(int dir, const char *path, unsigned how);
/* Opens a path below a folder, for a path that a stranger gave: neither "..", an absolute path nor a link can
 * leave the folder (EXDEV), and no link of /proc is followed.  Before Linux 5.6 no link is followed at all. */
int os_open_beneath(int dir, const char *path, unsigned how);
/* What it does there: one part after the other, none of them a link. */
int os_walk_beneath(int dir, const char *path, unsigned how);
/* An unnamed file for reading and writing that disappears when it is closed: in $TMPDIR, or in memory if that
 * fails; or always in memory.  `about` is the name of the latter in the system's lists. */
int os_open_unnamed(const char *about);
int os_open_memory(const char *about);

/* ---- bytes ---- */

/* Reserves space; also returns 0 if the file system cannot. */
int os_reserve(int fd, uint64_t size);
ssize_t os_read_at(int fd, void *into, size_t n, uint64_t at);
ssize_t os_write_at(int fd, const void *bytes, size_t n, uint64_t at);
/* fsync, of a file or a folder. */
int os_sync(int fd);
/* Starts to write these bytes to the disk, without waiting. */
void os_start_flush(int fd, uint64_t at, uint64_t n);
/* Waits for these bytes and drops them from the page cache. */
void os_drop(int fd, uint64_t at, uint64_t n);

/* Bypasses the page cache (O_DIRECT): memory, offset and length must be multiples of the disk's block size,
 * which is at most OS_BLOCK. */
enum { OS_BLOCK = 4096 };
bool os_is_direct(int fd);
int os_set_direct(int fd, bool direct);

/* ---- names ---- */

int os_make_dir(const char *path, mode_t mode);
int os_make_dir_at(int dir, const char *name, mode_t mode);
/* Creates a folder accessible to its owner only; replaces the XXXXXX at the end of the path. */
int os_make_temp_dir(char *path);
/* Creates a symbolic link to target; on a system without links, a file that contains the target. */
int os_make_link(const char *target, const char *path);
/* A second name of the same file; fails where the file system has none. */
int os_make_hard_link(const char *from, const char *to);
/* Reads the target of a link, NUL-terminated; returns its length, which is less than size. */
ssize_t os_read_link(const char *path, char *target, size_t size);
ssize_t os_read_link_at(int dir, const char *name, char *target, size_t size);

/* Replaces a file of the new name. */
int os_rename(const char *from, const char *to);
int os_rename_at(int from_dir, const char *from, int to_dir, const char *to);
/* Fails with EEXIST if the new name exists. */
int os_rename_new_at(int from_dir, const char *from, int to_dir, const char *to);
/* Atomically exchanges two existing names; fails if the file system cannot. */
int os_exchange(const char *one, const char *other);
int os_remove(const char *path);
int os_remove_at(int dir, const char *name);
int os_remove_dir(const char *path);
int os_remove_dir_at(int dir, const char *name);
/* Removes a folder and the files in it, but no subfolders.  Does not follow links: if it is a link, the link
 * is removed. Also returns 0 if it did not exist. */
int os_remove_folder(const char *path);
int os_remove_folder_at(int dir, const char *name);

/* Size of the file system of a path, in bytes; total is 0 if it has no limit. */
struct os_disk {
    uint64_t total, free; /* free: for this user */
};
int os_disk(const char *path, struct os_disk *out);
int os_disk_fd(int fd, struct os_disk *out);

/* False for a network file system, where locks and shared memory may not work. */
bool os_is_local(const char *path);

/* An exclusive lock, held until the file is closed.  Without `wait`, fails with EWOULDBLOCK if another holds
 * it.  Some network file systems have no locks. */
int os_lock(int fd, bool wait);

/* A lock that belongs to the open file, and so to every process that inherited it: it is free when the last
 * of them has closed the file, however they ended.  Fails with EAGAIN if another open file has it. */
int os_hold(int fd);
/* Whether another open file holds it; takes nothing.  1, 0, or -1 with errno. */
int os_is_held(int fd);

#endif
