/* SPDX-License-Identifier: Apache-2.0
 * Prints the results of `cairn selftest` as a table for bug reports. */
#ifndef CAIRN_CLI_SELFTEST_PRINT_H
#define CAIRN_CLI_SELFTEST_PRINT_H

#include "report/selftest.h"

void selftest_print(const struct selftest *t);

#endif
