/* SPDX-License-Identifier: Apache-2.0 */
#include "smi/topo.h"

#include "host/links.h"

static const char *const names[] = {
    [GPU_LINK_UNKNOWN] = "N/A", [GPU_LINK_XGMI] = "XGMI", [GPU_LINK_SWITCH] = "PIX",
    [GPU_LINK_BRIDGES] = "PXB", [GPU_LINK_HOST] = "PHB",  [GPU_LINK_NODE] = "NODE",
    [GPU_LINK_SYSTEM] = "SYS",
};

static const char legend[] =
    "\nLegend:\n\n"
    "  X    = Self\n"
    "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)\n"
    "  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node\n"
    "  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)\n"
    "  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)\n"
    "  PIX  = Connection traversing at most a single PCIe bridge\n"
    "  XGMI = Connection over Infinity Fabric links between the GPUs\n";

static void add_matrix(struct str *out, const struct smi *s, const struct gpu_place *place)
{
    for (size_t i = 0; i < s->n_gpus; i++)
        str_addf(out, "\tGPU%zu", s->gpus[i].index);
    str_add(out, "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n");
    for (size_t i = 0; i < s->n_gpus; i++) {
        str_addf(out, "GPU%zu", s->gpus[i].index);
        for (size_t k = 0; k < s->n_gpus; k++)
            str_addf(out, "\t%s", i == k ? " X " : names[links_between(&place[i], &place[k])]);
        str_add(out, "\t");
        str_add_padded(out, place[i].cpus.s ? place[i].cpus.s : "N/A", 0);
        if (place[i].numa.from)
            str_addf(out, "\t%lld\t\tN/A\n", (long long)place[i].numa.v);
        else
            str_add(out, "\tN/A\t\tN/A\n");
    }
    str_add(out, legend);
}

void smi_topo_text(struct smi *s, struct str *out)
{
    struct arena *a = &s->facts.arena;
    struct gpu_place *place = ARENA_NEW(a, struct gpu_place, s->n_gpus);
    for (size_t i = 0; i < s->n_gpus; i++)
        links_read(&s->facts.root, a, s->gpus[i].facts, &place[i]);
    add_matrix(out, s, place);
}
