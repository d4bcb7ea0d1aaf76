/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/device_memory.h"

#include "base/str.h"
#include "gpu/pool.h"
#include "host/memory.h"

extern char **environ;

uint64_t device_memory_budget(const struct facts *f, const char *pci)
{
    for (size_t i = 0; i < f->n_gpus; i++) {
        const struct gpu_facts *g = &f->gpus[i];
        if (!str_eq(g->pci.s, pci) || !g->usable_bytes.from)
            continue;
        bool carved = g->kind == GPU_DISCRETE || memory_is_carve_out(g);
        int64_t usable = g->usable_bytes.v, left = carved ? usable : usable - memory_reserve(usable);
        return left > 0 ? (uint64_t)left : 1;
    }
    return 0;
}

static uint64_t by_facts(const char *pci)
{
    const struct facts_options fo = { .env = (const char *const *)environ, .parts = FACTS_HARDWARE };
    struct cairn_error err = { 0 };
    CLEANUP(facts_release) struct facts f;
    return !pci[0] || facts_read(&f, &fo, &err) ? 0 : device_memory_budget(&f, pci);
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
