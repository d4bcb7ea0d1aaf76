/* SPDX-License-Identifier: Apache-2.0
 * `cairn smi topo -m`: how the GPUs are connected. */
#ifndef CAIRN_CLI_SMI_TOPO_H
#define CAIRN_CLI_SMI_TOPO_H

#include <stdbool.h>

/* argv[0] is "topo".  linked: the program is called nvidia-smi. */
int smi_topo(int argc, char **argv, bool linked);

#endif
