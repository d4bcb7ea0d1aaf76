/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/id_index.h"

#include "base/cleanup.h"
#include <limits.h>
#include <stdlib.h>

/* counts[id + 1] is how often id occurs. */
static int count_ids(const int *ids, size_t n_ids, int limit, int *counts, size_t *n, struct cairn_error *err)
{
    for (size_t i = 0; i < n_ids; i++) {
        if (ids[i] < 0 || ids[i] >= limit)
            return cairn_fail(err, CAIRN_EFORMAT, "id %zu is %d, which is outside the table of %d", i, ids[i],
                              limit);
        *n += !counts[ids[i] + 1]++;
    }
    return 0;
}

int id_index_build(struct arena *a, const int *ids, size_t n_ids, int limit, struct id_index *out,
                   struct cairn_error *err)
{
    if (n_ids > INT_MAX)
        return cairn_fail(err, CAIRN_EFORMAT, "%zu ids are too many for an index", n_ids);
    CLEANUP(mem_free) int *place = calloc((size_t)limit + 1, sizeof(*place));
    size_t n = 0;
    if (!place)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for a table of %d", limit);
    if (count_ids(ids, n_ids, limit, place, &n, err))
        return -1;
    *out = (struct id_index){ n, arena_alloc(a, n * sizeof(int)), arena_alloc(a, (n + 1) * sizeof(int)),
                              arena_alloc(a, n_ids * sizeof(int)) };
    size_t list = 0;
    for (int id = 0; id < limit; id++) {
        if (place[id + 1]) {
            out->ids[list] = id;
            out->first[list++] = place[id];
        }
        place[id + 1] += place[id]; /* from counts to first places */
    }
    out->first[n] = (int)n_ids;
    for (size_t i = 0; i < n_ids; i++)
        out->members[place[ids[i]]++] = (int)i;
    return 0;
}
