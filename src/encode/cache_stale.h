/* SPDX-License-Identifier: Apache-2.0
 * Caches that no item of the dataset uses: of media that were removed, or have another size or other frames now.
 *
 * Only files in the dataset's cache folders count that are caches of Wan by their name and by their metadata.  The caches of
 * an item with a problem are kept: the problem may be solved. */
#ifndef CAIRN_ENCODE_CACHE_STALE_H
#define CAIRN_ENCODE_CACHE_STALE_H

#include "encode/cache_job.h"

struct cache_stale {
    const char **paths;
    size_t n, removed;
    uint64_t bytes; /* of all n */
};

/* The paths are in the arena. */
int cache_stale_list(const struct cache_job *job, struct arena *a, struct cache_stale *out,
                     struct cairn_error *err);
int cache_stale_remove(struct cache_stale *s, struct cairn_error *err);

#endif
