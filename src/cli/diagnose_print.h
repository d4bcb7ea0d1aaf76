/* SPDX-License-Identifier: Apache-2.0
 * Prints a diagnosis as text. */
#ifndef CAIRN_CLI_DIAGNOSE_PRINT_H
#define CAIRN_CLI_DIAGNOSE_PRINT_H

#include "rules/diagnose.h"
#include "run/gpu_calls.h"

void diagnose_print_text(const struct diagnosis *d);
/* All of its processes. */
void diagnose_print_calls(const struct gpu_calls *c);

/* The classes. */
void diagnose_list_text(void);
void diagnose_list_markdown(void);

#endif
