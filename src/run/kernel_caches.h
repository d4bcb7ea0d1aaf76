/* SPDX-License-Identifier: Apache-2.0
 * Kernel caches of MIOpen and Triton, which may be stale after an update of driver or library.
 *
 * They are never deleted: a cache is renamed to a backup beside it, and the libraries make a new one.  A
 * folder that contains other files, or that is HOME, the working folder or a parent of one of them,
 * stays.  There only the library's own files (databases, folders named by a hash) are moved, to a backup
 * inside it. */
#ifndef CAIRN_RUN_KERNEL_CACHES_H
#define CAIRN_RUN_KERNEL_CACHES_H

#include "base/arena.h"
#include <stdbool.h>
#include <stddef.h>

struct cache_move {
    const char *from, *to;
};

/* Is there a cache that the libraries would use with this environment? */
bool kernel_caches_exist(const char *const *env);
/* Moves all of them; the list is in the arena.  *trouble is NULL, or the error. */
size_t kernel_caches_move(const char *const *env, struct arena *a, struct cache_move **out,
                          const char **trouble);

#endif
