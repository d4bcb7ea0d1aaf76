/* SPDX-License-Identifier: Apache-2.0
 * Which chip is this: the tables that lead to the name of a target.
 *
 * What is known about a chip beyond its identity (support, formats, problems) is in chip/gfx_table. */
#ifndef CAIRN_HOST_CHIP_H
#define CAIRN_HOST_CHIP_H

#include "host/facts.h"
#include <stdbool.h>
#include <stdint.h>

/* The graphics block's hardware version, which is not the target (11.0.1 is gfx1103); NULL if not known. */
const char *chip_from_gc(int major, int minor, int revision);
/* NULL if the id is not in the table. */
const char *chip_from_device_id(uint64_t device_id);
/* By target, and by device id where a target exists in both kinds (MI300A). */
enum gpu_kind chip_kind(const char *gfx, struct num device_id);

#endif
