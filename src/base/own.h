/* SPDX-License-Identifier: Apache-2.0
 * The folders that are cairn's own: $XDG_STATE_HOME/cairn, $XDG_CACHE_HOME/cairn, and those below.
 *
 * cairn trusts their content: variables become a trainer's environment, kernels run on the GPU.  So a folder
 * is used only if it belongs to the effective user and nobody else can write to it.  Links from …/cairn on
 * down are not followed. Folders are created with mode 0700; if others can write to a folder of ours, that
 * permission is removed.  Code that cannot get such a folder says why, once, and goes on without. */
#ifndef CAIRN_BASE_OWN_H
#define CAIRN_BASE_OWN_H

#include "base/arena.h"
#include "base/error.h"
#include "os/file.h"
#include "os/path.h"
#include <stdbool.h>

struct own_dir {
    int fd;     /* -1: not open */
    char *path; /* for messages, and for calls that need a name */
};
#define OWN_DIR_NONE \
    {                \
        .fd = -1     \
    }

/* The parent of …/cairn.  NULL: the environment names none. */
const char *own_place(enum path_place kind, const char *const *env, struct arena *a);
/* The path of …/cairn, unchecked.  Fails if the environment names no place. */
int own_path(enum path_place kind, const char *const *env, struct arena *a, const char **out,
             struct cairn_error *err);
/* Whether the folder can be used: it is ours, or it does not exist and could be created. */
int own_check(enum path_place kind, const char *root, struct cairn_error *err);

/* The folder `below` ("kernels"; NULL: root itself) of root, a path to …/cairn.  Without `make`, a missing
 * one fails with errno ENOENT. */
int own_dir_open(struct own_dir *d, enum path_place kind, const char *root, const char *below, bool make,
                 struct cairn_error *err);
/* The same in $XDG_CACHE_HOME/cairn of this process, created if missing. */
int own_cache_open(struct own_dir *d, const char *below, struct cairn_error *err);
/* A new folder in d; fails with errno EEXIST if the name is taken. */
int own_dir_make(struct own_dir *out, const struct own_dir *d, const char *name, struct cairn_error *err);
/* A folder that exists in d.  Fails with errno ENOENT if there is none. */
int own_dir_enter(struct own_dir *out, const struct own_dir *d, const char *name, struct cairn_error *err);
/* Closes it; accepts one that is not open. */
void own_dir_close(struct own_dir *d);

/* A regular file in the folder that belongs to us, opened as os_open does and without following a link or
 * waiting for a pipe; OS_CREATE makes it 0600.  errno says why it failed: ENOENT if there is none. */
int own_file_open(const struct own_dir *d, const char *name, unsigned how, int *fd, struct cairn_error *err);
/* Replaces a small file atomically. */
int own_file_write(const struct own_dir *d, const char *name, const void *bytes, size_t n,
                   struct cairn_error *err);

#endif
