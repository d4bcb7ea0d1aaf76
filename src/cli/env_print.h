/* SPDX-License-Identifier: Apache-2.0
 * Prints the planned environment as lines for a shell, and explanations of variables as text. */
#ifndef CAIRN_CLI_ENV_PRINT_H
#define CAIRN_CLI_ENV_PRINT_H

#include "base/shell_text.h"
#include "host/facts.h"
#include "report/env.h"
#include "rules/plan.h"

void env_print_shell(const struct facts *f, const struct plan *p, enum shell s);
void env_explain_text(const struct env_explanation *e);
void env_names_text(void); /* all known variables */

#endif
