/* SPDX-License-Identifier: Apache-2.0
 * What `cairn selftest` found, as a table to paste into a report and as JSON. */
#ifndef CAIRN_CLI_SELFTEST_PRINT_H
#define CAIRN_CLI_SELFTEST_PRINT_H

#include "report/selftest.h"

void selftest_print(const struct selftest *t);

#endif
