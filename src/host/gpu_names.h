/* SPDX-License-Identifier: Apache-2.0
 * Marketing names.  A name never decides behaviour; the target does. */
#ifndef CAIRN_HOST_GPU_NAMES_H
#define CAIRN_HOST_GPU_NAMES_H

#include "host/facts.h"

/* amdgpu.ids (device and revision), then pci.ids (device), then the built-in table. If pci.ids lists several
 * products at once, the table comes first; its rows also distinguish chips with the same id by their compute
 * units. Unknown if none has it. */
struct text gpu_name_find(const struct root *r, struct arena *a, struct num device_id, struct num revision,
                          struct num compute_units);

#endif
