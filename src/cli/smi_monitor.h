/* SPDX-License-Identifier: Apache-2.0
 * `cairn smi dmon` and `cairn smi pmon`: one line per GPU or process, repeatedly. */
#ifndef CAIRN_CLI_SMI_MONITOR_H
#define CAIRN_CLI_SMI_MONITOR_H

#include <stdbool.h>

/* argv[0] is "dmon" or "pmon".  linked: the program is called nvidia-smi. */
int smi_monitor(int argc, char **argv, bool linked);

#endif
