/* SPDX-License-Identifier: Apache-2.0
 * Another optimizer where bitsandbytes has no code for the chip: only by an option that the command already has, and
 * whose values are known. */
#ifndef CAIRN_RUN_OPTIMIZER_H
#define CAIRN_RUN_OPTIMIZER_H

#include "base/arena.h"

struct optimizer_change {
    char **argv;      /* NULL: the command selects no 8-bit optimizer in a way that we know */
    const char *text; /* what is changed and what that costs */
};
struct optimizer_change optimizer_replace(char *const *argv, struct arena *a);

#endif
