/* SPDX-License-Identifier: Apache-2.0
 * The list of training runs. */
#ifndef CAIRN_CLI_TRAIN_LIST_H
#define CAIRN_CLI_TRAIN_LIST_H

#include <stdbool.h>

/* Prints the runs in dir; NULL: in the default folders.  Returns the exit code. */
int train_list(const char *dir, bool json);

#endif
