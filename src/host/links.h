/* SPDX-License-Identifier: Apache-2.0
 * How GPUs are connected to each other and to the CPUs: the position of each in the PCI tree, and the links
 * between them that KFD reports. */
#ifndef CAIRN_HOST_LINKS_H
#define CAIRN_HOST_LINKS_H

#include "host/facts.h"
#include "host/root.h"

/* From near to far. */
enum gpu_link {
    GPU_LINK_UNKNOWN,
    GPU_LINK_XGMI,    /* Infinity Fabric, without PCIe */
    GPU_LINK_SWITCH,  /* at most one PCIe bridge on either side */
    GPU_LINK_BRIDGES, /* several, below the host bridge */
    GPU_LINK_HOST,    /* through the host bridge they share */
    GPU_LINK_NODE,    /* through two host bridges of a NUMA node */
    GPU_LINK_SYSTEM,  /* from one NUMA node to another */
};

struct gpu_place {
    const struct gpu_facts *gpu;
    const char *path; /* "/sys/devices/pci0000:00/0000:00:01.1/…"; NULL if it does not exist */
    struct text cpus; /* "0-15": those near it */
    struct num numa;  /* unknown where the machine has no NUMA nodes */
    int64_t *xgmi;    /* KFD nodes that it reaches without PCIe */
    size_t n_xgmi;
};

void links_read(const struct root *r, struct arena *a, const struct gpu_facts *g, struct gpu_place *out);
enum gpu_link links_between(const struct gpu_place *a, const struct gpu_place *b);

#endif
