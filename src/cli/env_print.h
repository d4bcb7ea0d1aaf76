/* SPDX-License-Identifier: Apache-2.0
 * How a plan looks: as lines for a shell, as JSON, and variable by variable. */
#ifndef CAIRN_CLI_ENV_PRINT_H
#define CAIRN_CLI_ENV_PRINT_H

#include "base/shell_text.h"
#include "host/facts.h"
#include "rules/plan.h"

void env_print_shell(const struct facts *f, const struct plan *p, enum shell s);
void env_print_json(const struct plan *p);

/* All that is known about one variable, and what the plan does with it here; false: nothing is known. */
bool env_explain(const char *name, const struct facts *f, const struct plan *p, bool json);
void env_explain_all(bool json);

#endif
