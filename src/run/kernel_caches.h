/* SPDX-License-Identifier: Apache-2.0
 * Kernel caches of MIOpen and Triton, which may hold what an older driver or library compiled.
 *
 * They are never deleted: a cache is renamed to a backup beside it, and the libraries make a new one.  A folder that holds
 * anything else, or that is HOME, the working folder or above one of them, stays where it is: there only what the library
 * itself writes (databases, folders named by a hash) is moved, into a backup within. */
#ifndef CAIRN_RUN_KERNEL_CACHES_H
#define CAIRN_RUN_KERNEL_CACHES_H

#include "base/arena.h"
#include <stdbool.h>
#include <stddef.h>

struct cache_move {
    const char *from, *to;
};

/* Is there a cache that this environment's libraries would use? */
bool kernel_caches_exist(const char *const *env);
/* Moves all of them; what was moved is in the arena.  *trouble is NULL, or what could not be moved and why. */
size_t kernel_caches_move(const char *const *env, struct arena *a, struct cache_move **out,
                          const char **trouble);

#endif
