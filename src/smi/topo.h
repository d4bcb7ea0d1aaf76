/* SPDX-License-Identifier: Apache-2.0
 * `nvidia-smi topo -m`: the connection of each pair of GPUs. */
#ifndef CAIRN_SMI_TOPO_H
#define CAIRN_SMI_TOPO_H

#include "base/str.h"
#include "smi/smi.h"

void smi_topo_text(struct smi *s, struct str *out);

#endif
