/* SPDX-License-Identifier: Apache-2.0
 * The folders that are cairn's own: $XDG_STATE_HOME/cairn, $XDG_CACHE_HOME/cairn, and those below.
 *
 * What lies there is believed: variables for a trainer become its environment, kernels run on the GPU.  So a folder
 * counts only if it belongs to the effective user and nobody else may write to it.  From …/cairn on down no link is
 * followed.  Folders are made with mode 0700; one of ours that others may write to loses that permission.  Whoever
 * cannot have such a folder says why, once, and does without. */
#ifndef CAIRN_BASE_OWN_H
#define CAIRN_BASE_OWN_H

#include "base/arena.h"
#include "base/error.h"
#include "os/file.h"
#include "os/path.h"
#include <stdbool.h>

struct own_dir {
    int fd;     /* -1: not open */
    char *path; /* for messages, and for those who need a name */
};
#define OWN_DIR_NONE \
    {                \
        .fd = -1     \
    }

/* Where programs keep such things: the folder that …/cairn is in.  NULL: the environment names none. */
const char *own_place(enum path_place kind, const char *const *env, struct arena *a);
/* The path of …/cairn; nobody has looked at it.  Fails when the environment names no place. */
int own_path(enum path_place kind, const char *const *env, struct arena *a, const char **out,
             struct cairn_error *err);
/* Whether the folder can be used: it is ours, or it is not there and could be made. */
int own_check(enum path_place kind, const char *root, struct cairn_error *err);

/* The folder `below` ("kernels"; NULL: root itself) of root, a path to …/cairn.  Without `make` one that is not there is
 * a failure with errno ENOENT. */
int own_dir_open(struct own_dir *d, enum path_place kind, const char *root, const char *below, bool make,
                 struct cairn_error *err);
/* The same of this process's own $XDG_CACHE_HOME/cairn, made where it is not there. */
int own_cache_open(struct own_dir *d, const char *below, struct cairn_error *err);
/* A new folder in d; fails with errno EEXIST if the name is taken. */
int own_dir_make(struct own_dir *out, const struct own_dir *d, const char *name, struct cairn_error *err);
/* Closes it; accepts one that is not open. */
void own_dir_close(struct own_dir *d);

/* A regular file in the folder that belongs to us, opened as os_open does and without following a link or waiting
 * for a pipe; OS_CREATE makes it 0600.  errno tells why not: ENOENT where there is none. */
int own_file_open(const struct own_dir *d, const char *name, unsigned how, int *fd, struct cairn_error *err);
/* A whole small file, replaced at once. */
int own_file_write(const struct own_dir *d, const char *name, const void *bytes, size_t n,
                   struct cairn_error *err);

#endif
