/* SPDX-License-Identifier: Apache-2.0
 * The output of `cairn plan` for people. */
#ifndef CAIRN_CLI_PLAN_PRINT_H
#define CAIRN_CLI_PLAN_PRINT_H

#include "train/train.h"

void plan_print(const struct train_plan *p, const struct train_options *o);

#endif
