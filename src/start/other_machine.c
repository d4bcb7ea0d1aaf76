/* SPDX-License-Identifier: Apache-2.0 */
#include "start/other_machine.h"
#include "base/str.h"
#include "host/memory.h"
#include "start/device_memory.h"
#include <stdio.h>
#include <string.h>

extern char **environ;

bool other_machine_is_given(const struct other_machine *m)
{
    return m->root || m->gfx || m->memory_bytes;
}

/* The one that would train, or the first whose chip is known: a tree without KFD has no other. */
static const struct gpu_facts *choose_gpu(const struct facts *f)
{
    if (f->default_gpu >= 0)
        return &f->gpus[f->default_gpu];
    for (size_t i = 0; i < f->n_gpus; i++)
        if (f->gpus[i].gfx.s)
            return &f->gpus[i];
    return NULL;
}

static void describe_gpu(const struct gpu_facts *g, uint64_t bytes, struct gpu_info *out)
{
    const struct gfx_chip *chip = g ? gfx_find(g->gfx.s) : NULL;
    bool named = g && g->name.s && !str_eq(g->gfx.from, "--gfx");
    *out = (struct gpu_info){
        .api = GPU_API_HIP,
        .name = "hip:0",
        .chip = chip,
        .total_bytes = bytes,
        .wave = chip ? chip->wave : 0,
        .unified = g && g->kind == GPU_INTEGRATED,
    };
    snprintf(out->title, sizeof(out->title), "%s",
             named  ? g->name.s
             : chip ? chip->codename
                    : "a GPU with memory of its own");
    snprintf(out->arch, sizeof(out->arch), "%s", g && g->gfx.s ? g->gfx.s : "");
    snprintf(out->pci, sizeof(out->pci), "%s", g && g->pci.s ? g->pci.s : "");
}

static int lacks_memory(const struct other_machine *m, struct cairn_error *err)
{
    if (m->root)
        cairn_fail(err, CAIRN_EUSAGE, "%s does not say how much memory the GPU has", m->root);
    else
        cairn_fail(err, CAIRN_EUSAGE, "--gfx %s does not say how much memory the GPU has", m->gfx);
    return cairn_hint(err, "add --memory GB");
}

static int read_machine(const struct other_machine *m, bool cpu, struct facts *f, struct train_machine *out,
                        uint64_t *budget, struct cairn_error *err)
{
    const struct facts_options fo = { .root = m->root,
                                      .env = (const char *const *)environ,
                                      .parts = FACTS_HARDWARE };
    if (facts_read(f, &fo, err) || (m->gfx && facts_set_gfx(f, m->gfx, err)))
        return -1;
    const struct gpu_facts *g = choose_gpu(f);
    bool known = m->root || (g && !m->gfx); /* else it is some machine with such a GPU */
    uint64_t host = known ? device_memory_host_of(&f->host) : 0;
    if (!host && m->root && f->host.memory_total_bytes.from)
        host = (uint64_t)f->host.memory_total_bytes.v;
    if (m->root && !g && !cpu)
        return cairn_fail(err, CAIRN_ELACK, "%s has no GPU that is known", m->root);
    *budget = m->memory_bytes ? m->memory_bytes
              : !m->root      ? 0
              : cpu && host   ? host - (uint64_t)memory_reserve((int64_t)host)
              : !cpu          ? device_memory_of(g)
                              : 0;
    if (!*budget)
        return lacks_memory(m, err);
    describe_gpu(g, *budget, &out->gpu);
    out->host_bytes = host;
    return 0;
}

int other_machine_open(const struct other_machine *m, const struct job_config *c, struct arena *a,
                       struct train_options *o, struct cairn_error *err)
{
    CLEANUP(facts_release) struct facts f = { 0 };
    struct train_machine *machine = ARENA_NEW(a, struct train_machine, 1);
    bool cpu = str_eq(c->train.device, "cpu");
    uint64_t limit = (uint64_t)(c->memory.limit * (1 << 30));
    if (read_machine(m, cpu, &f, machine, &o->budget_bytes, err) || gpu_open("cpu", &o->g, err))
        return -1;
    if (cpu)
        machine->gpu = *gpu_info(o->g);
    if (limit && limit < o->budget_bytes)
        o->budget_bytes = limit;
    o->machine = machine;
    o->why_device = m->root ? arena_printf(a, "as in %s", m->root) : "as requested";
    return 0;
}
