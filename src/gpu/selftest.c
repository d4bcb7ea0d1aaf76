/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/selftest.h"

#include "gpu/pool.h"
#include <stdlib.h>

static int test_open(const struct selftest_options *o, struct selftests *all, struct gpu *g,
                     struct selftest *t, struct cairn_error *err)
{
    bool wrong = false;
    t->info = *gpu_info(g);
    if (check_all(g, o->only, o->is_stopped, &t->results, &t->n, err))
        return -1;
    t->lost = gpu_lost(g);
    for (size_t i = 0; i < t->n; i++)
        wrong |= !t->results[i].ok;
    /* A device that has failed already has nothing to add. */
    t->has_conversions = !o->only && !o->is_stopped() && !wrong;
    if (t->has_conversions && conversions_run(g, t->conversions, err))
        return -1;
    for (int i = 0; i < CONVERSIONS; i++)
        for (int p = 0; p < CONVERSION_PATHS; p++)
            wrong |= t->conversions[i].wrong[p] != 0;
    t->wrong = wrong;
    all->wrong |= wrong;
    return 0;
}

static int test_device(const struct selftest_options *o, struct selftests *t, const char *name,
                       struct cairn_error *err)
{
    struct gpu *g;
    if (gpu_open(name, &g, err))
        return -1;
    /* Each array by itself, so that what a kernel writes beside it is not another array's. */
    pool_set_direct(gpu_pool(g));
    int code = o->debug ? gpu_set_debug(g, err) : 0;
    if (!code)
        code = test_open(o, t, g, ARENA_PUSH(&t->arena, t->device, t->n), err);
    gpu_close(g);
    return code;
}

int selftest_run(const struct selftest_options *o, struct selftests *t, struct cairn_error *err)
{
    struct gpu_info *infos;
    char **reasons;
    size_t n, n_reasons;
    if (o->device)
        return test_device(o, t, o->device, err);
    gpu_list(&t->arena, &infos, &n, &reasons, &n_reasons);
    for (size_t i = 0; i < n && !o->is_stopped(); i++)
        if (test_device(o, t, infos[i].name, err))
            return -1;
    return 0;
}

void selftest_release(struct selftests *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->device[i].results);
    arena_release(&t->arena);
}
