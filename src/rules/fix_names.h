/* SPDX-License-Identifier: Apache-2.0
 * The variables that a fix of the tables sets or removes.  cairn accepts only these from a file of an earlier
 * run. */
#ifndef CAIRN_RULES_FIX_NAMES_H
#define CAIRN_RULES_FIX_NAMES_H

#include <stdbool.h>

/* Never one by which the loader, a shell or Python finds code, whatever the tables say. */
bool fix_name_is_set(const char *name);
bool fix_name_is_unset(const char *name);

#endif
