/* SPDX-License-Identifier: Apache-2.0
 * How much of a device's memory a job may use on this machine. */
#ifndef CAIRN_START_DEVICE_MEMORY_H
#define CAIRN_START_DEVICE_MEMORY_H

#include "gpu/gpu.h"

struct facts;
struct gpu_facts;
struct host_facts;

/* The kernel's figures, not the driver's: with shared memory some must be left to Linux, and on a discrete
 * card the kernel sees what the desktop uses.  0: unknown; 1: nothing is left. */
uint64_t device_memory_of(const struct gpu_facts *g);
/* The same for the GPU at a PCI address. */
uint64_t device_memory_budget(const struct facts *f, const char *pci);
/* Sets the budget of the device's pool, at most `limit` (0: no limit); the CPU has no such pool.
 * Returns the bytes that a job may plan with; 0: unknown. */
uint64_t device_memory_apply(struct gpu *g, uint64_t limit);

/* Available host memory, limited by the cgroup; 0: unknown, 1: none. */
uint64_t device_memory_host(void);
uint64_t device_memory_host_of(const struct host_facts *h);

#endif
