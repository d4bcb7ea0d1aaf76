/* SPDX-License-Identifier: Apache-2.0
 * The system around the GPU: kernel, distribution, module parameters, container, users and device nodes. */
#ifndef CAIRN_HOST_KERNEL_H
#define CAIRN_HOST_KERNEL_H

#include "host/facts.h"

void kernel_read(struct facts *f);
/* Mode, owner and whether this user may open it read-write. */
struct dev_node kernel_dev_node(struct facts *f, const char *path);

#endif
