/* SPDX-License-Identifier: Apache-2.0
 * How much of a device's memory a job may take, by what is known of this machine. */
#ifndef CAIRN_CLI_DEVICE_MEMORY_H
#define CAIRN_CLI_DEVICE_MEMORY_H

#include "gpu/gpu.h"

struct facts;

/* What the kernel knows counts more than what the driver says: on shared memory it must leave something to Linux, and on
 * a card of its own it sees what the desktop holds.  0: not known; 1: nothing is left. */
uint64_t device_memory_budget(const struct facts *f, const char *pci);
/* Sets the budget of the device's pool and warms it.  The CPU's is left alone. */
void device_memory_apply(struct gpu *g);

#endif
