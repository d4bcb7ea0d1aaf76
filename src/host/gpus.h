/* SPDX-License-Identifier: Apache-2.0
 * The list of GPUs: KFD's nodes joined with the DRM and PCI devices they are. */
#ifndef CAIRN_HOST_GPUS_H
#define CAIRN_HOST_GPUS_H

#include "host/facts.h"

/* Needs the host facts; fills gpus, default_gpu and the host's view of KFD. */
void gpus_read(struct facts *f);
/* Discrete before integrated, then usable memory; sets f->default_gpu. */
void gpus_choose_default(struct facts *f);

#endif
