/* SPDX-License-Identifier: Apache-2.0
 * Prints the doctor's findings as text. */
#ifndef CAIRN_CLI_DOCTOR_PRINT_H
#define CAIRN_CLI_DOCTOR_PRINT_H

#include "report/doctor.h"

/* verbose: every line, not only the findings. */
void doctor_print_text(const struct doctor_view *v, bool verbose);
/* The table of checks itself. */
void doctor_list_text(const char *only);

#endif
