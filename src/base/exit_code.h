/* SPDX-License-Identifier: Apache-2.0
 * The exit codes of every command. */
#ifndef CAIRN_BASE_EXIT_CODE_H
#define CAIRN_BASE_EXIT_CODE_H

#include "base/error.h"

enum exit_code {
    EXIT_FINE = 0,
    EXIT_TROUBLE = 1, /* it failed, or a check found a problem */
    EXIT_USAGE = 2,
    EXIT_LACKS = 3, /* this machine lacks something */
};

/* The exit code for an error's code. */
enum exit_code exit_code_of(const struct cairn_error *err);

#endif
