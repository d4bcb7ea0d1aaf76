/* SPDX-License-Identifier: Apache-2.0
 * Files that are whole or not there: writing goes to a temporary beside the target, which replaces it only when
 * all bytes are on the disk.  And reading exactly what was asked for. */
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
    char *path;              /* what it will be called */
    bool replace;            /* an existing file may be replaced */
};
#define FILE_OUT_NONE                    \
    {                                    \
        .file = { .fd = -1, .dir = -1 }, \
    }

/* Fails at once if path exists and replace is false, or is a directory.  size is reserved on the disk (0: not
 * known), so that a full disk is said before hours of work.  What is left if this process is killed, and the permissions
 * of the new file: os/new_file.h.  A link is replaced, not followed. */
int file_out_open(struct file_out *f, const char *path, uint64_t size, bool replace, struct cairn_error *err);
/* The same in a folder that is open; of path only the last part counts, the rest is for messages. */
int file_out_open_at(struct file_out *f, int dir, const char *path, uint64_t size, bool replace,
                     struct cairn_error *err);
/* Writes all of it at an offset; several threads may write to different places at once. */
int file_out_write(struct file_out *f, const void *bytes, size_t n, uint64_t at, struct cairn_error *err);
/* After a write of these bytes: sets the disk to work, now and then and without waiting, so that the commit finds little
 * left to do. */
void file_out_start_flush(struct file_out *f, uint64_t at, uint64_t n);
/* Waits for these bytes and lets the page cache forget them.  Both only help: what they cannot do, commit does. */
void file_out_drop(struct file_out *f, uint64_t at, uint64_t n);
/* Flushes, renames, flushes the directory.  After a failure the target is as it was, unless it is that last flush
 * that failed: then the new file is in place, whole, and the message says so. */
int file_out_commit(struct file_out *f, struct cairn_error *err);
/* Removes what was written of a file that was not committed; accepts a closed or zeroed one. */
void file_out_close(struct file_out *f);
/* All of that with a file that is small, and may replace another. */
int file_write(const char *path, const void *bytes, size_t n, struct cairn_error *err);
int file_write_at(int dir, const char *path, const void *bytes, size_t n, struct cairn_error *err);

/* Reads exactly n bytes at an offset; less is an error that says the file is cut short. */
int file_read_at(int fd, const char *path, void *into, size_t n, uint64_t at, struct cairn_error *err);
/* From now on file_read_at reads this descriptor past the page cache (O_DIRECT), whatever the alignment of what is asked
 * for; best in pieces of a MiB or more, as nothing reads ahead.  False if the file system refuses: then nothing changes. */
bool file_set_direct(int fd);
/* A regular file, read-only, and its size. */
int file_open(const char *path, int *fd, uint64_t *size, struct cairn_error *err);
/* All of a file, with a NUL behind; to be freed.  More than `most` bytes is an error. */
int file_read_whole(const char *path, uint64_t most, char **text, size_t *n, struct cairn_error *err);
/* The same with a file of settings. */
enum { FILE_SETTINGS_MOST = 1 << 20 };
int file_read_settings(const char *path, char **text, size_t *n, struct cairn_error *err);
int file_settings_too_large(const char *path, struct cairn_error *err);
/* The folder and those above it, where they are not there. */
int file_make_dir(const char *path, mode_t mode, struct cairn_error *err);
/* The names in a folder, in any order, all or none; -1 with errno. */
int file_names(const char *dir, struct arena *a, char ***names, size_t *n);

#endif
