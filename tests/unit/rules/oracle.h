/* SPDX-License-Identifier: Apache-2.0
 * Looks for what cannot be right in a plan.
 *
 * The oracle takes the environment that results (the user's, less unset, plus set), reads it as the runtimes do,
 * with code of its own, and looks for contradictions.  It also plans again in that environment: a plan that was
 * followed leaves nothing to change. */
#ifndef CAIRN_TESTS_ORACLE_H
#define CAIRN_TESTS_ORACLE_H

#include "planning.h"

/* What is wrong with the plan; NULL: nothing.  Afterwards p holds the second plan. */
const char *oracle_flaw(struct planning *p);

#endif
