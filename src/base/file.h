/* SPDX-License-Identifier: Apache-2.0
 * Atomic writing: a temporary file beside the target replaces it only when all bytes are on disk.  And exact
 * reading. */
#ifndef CAIRN_BASE_FILE_H
#define CAIRN_BASE_FILE_H

#include "base/arena.h"
#include "base/error.h"
#include "os/new_file.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct file_out {
    struct os_new_file file; /* its fd is -1 while it is not open; its folder is open while path is set */
    char *path;              /* its final name */
    bool replace;            /* an existing file may be replaced */
};
#define FILE_OUT_NONE                    \
    {                                    \
        .file = { .fd = -1, .dir = -1 }, \
    }

/* Fails at once if path exists and replace is false, or is a directory.  size is reserved on the disk (0: not
 * known), so that a full disk is reported before hours of work.  os/new_file.h describes what remains if this
 * process is killed, and the permissions of the new file.  A link is replaced, not followed. */
int file_out_open(struct file_out *f, const char *path, uint64_t size, bool replace, struct cairn_error *err);
/* The same in an open folder; only the last part of path is used, the rest is for messages. */
int file_out_open_at(struct file_out *f, int dir, const char *path, uint64_t size, bool replace,
                     struct cairn_error *err);
/* Writes all bytes at an offset; several threads may write to different ranges at once. */
int file_out_write(struct file_out *f, const void *bytes, size_t n, uint64_t at, struct cairn_error *err);
/* Call it after writing these bytes: starts write-back now and then, without waiting, so that the commit has
 * little left to do. */
void file_out_start_flush(struct file_out *f, uint64_t at, uint64_t n);
/* Waits for these bytes and drops them from the page cache.  Both are optional: commit does what they did
 * not. */
void file_out_drop(struct file_out *f, uint64_t at, uint64_t n);
/* Flushes, renames, flushes the directory.  After a failure the target is unchanged, unless only the last
 * flush failed: then the complete new file is in place, and the message says so. */
int file_out_commit(struct file_out *f, struct cairn_error *err);
/* Removes an uncommitted file; accepts a closed or zeroed one. */
void file_out_close(struct file_out *f);
/* All of the above for a small file, which may replace another. */
int file_write(const char *path, const void *bytes, size_t n, struct cairn_error *err);
int file_write_at(int dir, const char *path, const void *bytes, size_t n, struct cairn_error *err);

/* Reads exactly n bytes at an offset; fewer is an error: the file is truncated. */
int file_read_at(int fd, const char *path, void *into, size_t n, uint64_t at, struct cairn_error *err);
/* From now on file_read_at bypasses the page cache for this descriptor (O_DIRECT), with any alignment.  Read
 * a MiB or more at a time, because there is no read-ahead.  False if the file system refuses: then nothing
 * changes. */
bool file_set_direct(int fd);
/* Opens a regular file read-only and returns its size. */
int file_open(const char *path, int *fd, uint64_t *size, struct cairn_error *err);
/* Reads a whole file, NUL-terminated; the caller frees it.  More than `most` bytes is an error. */
int file_read_whole(const char *path, uint64_t most, char **text, size_t *n, struct cairn_error *err);
/* The same for a configuration file. */
enum { FILE_SETTINGS_MOST = 1 << 20 };
int file_read_settings(const char *path, char **text, size_t *n, struct cairn_error *err);
int file_settings_too_large(const char *path, struct cairn_error *err);
/* The last bytes of a file, at most this many; returns how many, 0 also if it cannot be read. */
size_t file_read_tail(const char *path, char *into, size_t most);
/* Creates the folder and its missing parents. */
int file_make_dir(const char *path, mode_t mode, struct cairn_error *err);
/* The names in a folder, in any order, all or none; -1 with errno. */
int file_names(const char *dir, struct arena *a, char ***names, size_t *n);

#endif
