/* SPDX-License-Identifier: Apache-2.0
 * How much of a device's memory a job may take, by what is known of this machine. */
#ifndef CAIRN_CLI_DEVICE_MEMORY_H
#define CAIRN_CLI_DEVICE_MEMORY_H

#include "gpu/gpu.h"

/* Sets the budget of the device's pool and warms it.  The CPU's is left alone. */
void device_memory_apply(struct gpu *g);

#endif
