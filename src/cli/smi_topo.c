/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/smi_topo.h"

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/smi_run.h"
#include "host/links.h"
#include <stdio.h>

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

static void print_matrix(const struct smi *s, const struct gpu_place *place)
{
    for (size_t i = 0; i < s->n_gpus; i++)
        printf("\tGPU%zu", s->gpus[i].index);
    puts("\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID");
    for (size_t i = 0; i < s->n_gpus; i++) {
        printf("GPU%zu", s->gpus[i].index);
        for (size_t k = 0; k < s->n_gpus; k++)
            printf("\t%s", i == k ? " X " : names[links_between(&place[i], &place[k])]);
        putchar('\t');
        print_padded(stdout, place[i].cpus.s ? place[i].cpus.s : "N/A", 0);
        if (place[i].numa.from)
            printf("\t%lld\t\tN/A\n", (long long)place[i].numa.v);
        else
            puts("\tN/A\t\tN/A");
    }
    fputs(legend, stdout);
}

static int show(const struct smi_target *t)
{
    CLEANUP(smi_release) struct smi s;
    int code = smi_begin(&s, t);
    if (code)
        return code;
    struct arena *a = &s.facts.arena;
    struct gpu_place *place = ARENA_NEW(a, struct gpu_place, s.n_gpus);
    for (size_t i = 0; i < s.n_gpus; i++)
        links_read(&s.facts.root, a, s.gpus[i].facts, &place[i]);
    print_matrix(&s, place);
    return EXIT_FINE;
}

int smi_topo(int argc, char **argv, bool linked)
{
    static char name[] = "smi topo";
    struct smi_target target = { 0 };
    bool matrix = false;
    const struct opt_row rows[] = {
        OPT_FLAG('m', "matrix", &matrix, "how each GPU reaches each other one"),
        SMI_OPT_ROOT(&target),
        OPT_END,
    };
    const struct opt_usage usage = {
        .synopsis = "cairn smi topo -m",
        .about = "Shows how the GPUs are connected, and which CPUs are near them, as nvidia-smi does.",
    };
    argv[0] = name;
    int r = options_parse_as(argc, argv, rows, &usage, NULL, linked ? smi_refuse_word : NULL);
    if (r != OPTIONS_GO)
        return r;
    return matrix ? show(&target) : smi_refuse_together(name, "wants -m", linked);
}
