/* SPDX-License-Identifier: Apache-2.0
 * Replaces an 8-bit optimizer if bitsandbytes has no code for the chip: only through an option that the
 * command already has and whose values cairn knows. */
#ifndef CAIRN_RUN_OPTIMIZER_H
#define CAIRN_RUN_OPTIMIZER_H

#include "base/arena.h"

struct optimizer_change {
    char **argv;      /* NULL: the command selects no 8-bit optimizer that cairn can replace */
    const char *text; /* the change and its cost */
};
struct optimizer_change optimizer_replace(char *const *argv, struct arena *a);

#endif
