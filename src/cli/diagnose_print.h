/* SPDX-License-Identifier: Apache-2.0
 * How a diagnosis looks: for a person, and as JSON. */
#ifndef CAIRN_CLI_DIAGNOSE_PRINT_H
#define CAIRN_CLI_DIAGNOSE_PRINT_H

#include "base/json.h"
#include "rules/diagnose.h"
#include "run/calls.h"

void diagnose_print_text(const struct diagnosis *d);
/* The caller owns it.  `cairn run` keeps the same object in its journal. */
struct json *diagnose_json(const struct diagnosis *d);
/* Every process of it, however many there are. */
void diagnose_print_calls(const struct calls *c);
void diagnose_calls_json(const struct calls *c, struct json *list);

/* The classes. */
void diagnose_list_text(void);
void diagnose_list_json(void);
void diagnose_list_markdown(void);

#endif
