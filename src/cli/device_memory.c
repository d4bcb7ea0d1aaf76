/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/device_memory.h"

#include "base/str.h"
#include "gpu/pool.h"
#include "host/memory.h"

extern char **environ;

/* What the kernel knows counts more than what the driver says: on shared memory it must leave something to Linux, and on
 * a card of its own it sees what the desktop holds.  0: not known. */
static uint64_t by_facts(const char *pci)
{
    const struct facts_options fo = { .env = (const char *const *)environ, .parts = FACTS_HARDWARE };
    struct cairn_error err = { 0 };
    CLEANUP(facts_release) struct facts f;
    if (!pci[0] || facts_read(&f, &fo, &err))
        return 0;
    for (size_t i = 0; i < f.n_gpus; i++) {
        const struct gpu_facts *g = &f.gpus[i];
        if (!g->pci.s || !str_eq(g->pci.s, pci) || !g->usable_bytes.from)
            continue;
        bool carved = g->kind == GPU_DISCRETE || memory_is_carve_out(g);
        int64_t usable = g->usable_bytes.v, left = carved ? usable : usable - memory_reserve(usable);
        return left > 0 ? (uint64_t)left : 0;
    }
    return 0;
}

void device_memory_apply(struct gpu *g)
{
    const uint64_t warm = (uint64_t)1 << 30;
    struct cairn_error ignored = { 0 };
    uint64_t free_bytes = 0, total;
    if (gpu_info(g)->api == GPU_API_HOST)
        return;
    uint64_t budget = by_facts(gpu_info(g)->pci);
    if (gpu_memory(g, &free_bytes, &total, &ignored))
        free_bytes = 0;
    uint64_t most = budget && budget < free_bytes ? budget : free_bytes;
    pool_set_budget(gpu_pool(g), budget);
    pool_warm(gpu_pool(g), warm < most / 2 ? warm : most / 2);
}
