/* SPDX-License-Identifier: Apache-2.0
 * Which chip is this: names of targets, and the tables that lead to them.
 *
 * What is known about a chip beyond its identity (support, formats, problems) is in rules/gfx_table. */
#ifndef CAIRN_HOST_CHIP_H
#define CAIRN_HOST_CHIP_H

#include "host/facts.h"
#include <stdbool.h>
#include <stdint.h>

enum { CHIP_NAME_MAX = 16 };

/* KFD's decimal number to LLVM's name: 90010 is gfx90a, 110501 is gfx1151 (minor and stepping are hex). */
bool chip_name_from_kfd(uint64_t gfx_target_version, char name[CHIP_NAME_MAX]);
/* "gfx1151" to major.minor.stepping (11, 5, 1); false for anything that is not such a name. */
bool chip_name_split(const char *name, int *major, int *minor, int *stepping);

/* The graphics block's hardware version, which is not the target (11.0.1 is gfx1103); NULL if not known. */
const char *chip_from_gc(int major, int minor, int revision);
/* NULL if the id is not in the table. */
const char *chip_from_device_id(uint64_t device_id);
/* By target, and by device id where a target exists in both kinds (MI300A). */
enum gpu_kind chip_kind(const char *gfx, struct num device_id);

#endif
