/* SPDX-License-Identifier: Apache-2.0 */
#include "start/device_memory.h"

#include "base/str.h"
#include "gpu/pool.h"
#include "host/memory.h"

extern char **environ;

uint64_t device_memory_of(const struct gpu_facts *g)
{
    if (!g->usable_bytes.from)
        return 0;
    bool carved = g->kind == GPU_DISCRETE || memory_is_carve_out(g);
    int64_t usable = g->usable_bytes.v, left = carved ? usable : usable - memory_reserve(usable);
    return left > 0 ? (uint64_t)left : 1;
}

uint64_t device_memory_budget(const struct facts *f, const char *pci)
{
    for (size_t i = 0; i < f->n_gpus; i++)
        if (str_eq(f->gpus[i].pci.s, pci) && f->gpus[i].usable_bytes.from)
            return device_memory_of(&f->gpus[i]);
    return 0;
}

uint64_t device_memory_host_of(const struct host_facts *h)
{
    int64_t there = h->memory_available_bytes.v;
    int64_t left = h->cgroup_limit_bytes.from ? h->cgroup_limit_bytes.v - h->cgroup_used_bytes.v : there;
    there = left < there ? left : there;
    if (!h->memory_available_bytes.from)
        return 0;
    return there > 0 ? (uint64_t)there : 1;
}

static uint64_t by_facts(const char *pci)
{
    const struct facts_options fo = { .env = (const char *const *)environ, .parts = FACTS_HARDWARE };
    struct cairn_error err = { 0 };
    CLEANUP(facts_release) struct facts f;
    return !pci[0] || facts_read(&f, &fo, &err) ? 0 : device_memory_budget(&f, pci);
}

uint64_t device_memory_host(void)
{
    const struct facts_options fo = { .env = (const char *const *)environ };
    struct cairn_error err = { 0 };
    CLEANUP(facts_release) struct facts f;
    return facts_read(&f, &fo, &err) ? 0 : device_memory_host_of(&f.host);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return !a || (b && b < a) ? b : a;
}

uint64_t device_memory_apply(struct gpu *g, uint64_t limit)
{
    struct cairn_error ignored = { 0 };
    uint64_t there = 0, total;
    if (gpu_info(g)->api == GPU_API_HOST) {
        there = device_memory_host();
        return least(there - (uint64_t)memory_reserve((int64_t)there), limit);
    }
    uint64_t budget = least(by_facts(gpu_info(g)->pci), limit);
    if (gpu_memory(g, &there, &total, &ignored))
        there = 0;
    pool_set_budget(gpu_pool(g), budget);
    return least(budget, there);
}
