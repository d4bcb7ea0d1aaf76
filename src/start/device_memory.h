/* SPDX-License-Identifier: Apache-2.0
 * How much of a device's memory a job may take, by what is known of this machine. */
#ifndef CAIRN_START_DEVICE_MEMORY_H
#define CAIRN_START_DEVICE_MEMORY_H

#include "gpu/gpu.h"

struct facts;

/* What the kernel knows counts more than what the driver says: on shared memory it must leave something to Linux, and on
 * a card of its own it sees what the desktop holds.  0: not known; 1: nothing is left. */
uint64_t device_memory_budget(const struct facts *f, const char *pci);
/* Sets the budget of the device's pool, which is at most `limit` (0: no such limit); the CPU's is left alone.
 * Returns what a job may plan with; 0: not known. */
uint64_t device_memory_apply(struct gpu *g, uint64_t limit);

/* What the host has left now, by the kernel and by the limit of a cgroup; 0: not known, 1: nothing. */
uint64_t device_memory_host(void);

#endif
