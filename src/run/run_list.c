/* SPDX-License-Identifier: Apache-2.0 */
#include "run/run_list.h"

#include "run/history.h"

int run_list(const struct run_list_options *o, struct arena *a, struct run_entry **out, size_t *n,
             struct cairn_error *err)
{
    struct run_entry *native = NULL, *supervised = NULL;
    size_t n_native = 0, n_supervised = 0;
    if (o->native && runs_list(o->dir, a, &native, &n_native, err))
        return -1;
    if (o->supervised)
        n_supervised = history_read(o->state, a, &supervised);
    *out = ARENA_NEW(a, struct run_entry, n_native + n_supervised);
    *n = 0;
    /* Both are in order, the native ones oldest first. */
    for (size_t i = 0; n_native || i < n_supervised;)
        if (i == n_supervised || (n_native && native[n_native - 1].touched >= supervised[i].touched))
            (*out)[(*n)++] = native[--n_native];
        else
            (*out)[(*n)++] = supervised[i++];
    return 0;
}
