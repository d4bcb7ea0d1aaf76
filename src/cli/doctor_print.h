/* SPDX-License-Identifier: Apache-2.0
 * The doctor's report on a terminal and as JSON. */
#ifndef CAIRN_CLI_DOCTOR_PRINT_H
#define CAIRN_CLI_DOCTOR_PRINT_H

#include "run/probe.h"
#include "rules/checks.h"
#include <stdbool.h>

struct doctor_view {
    const struct doctor *doctor;
    const struct probe_report *probe; /* NULL: not asked for */
    const char *only;                 /* a group; NULL: all */
    bool verbose;                     /* every line, not only the findings */
    bool all;                         /* also what does not apply */
};

/* What counts in the end: what was found where the probe ran, else what is predicted. */
enum verdict doctor_verdict(const struct doctor_view *v);

void doctor_print_text(const struct doctor_view *v);
void doctor_print_json(const struct doctor_view *v);
/* The table of checks itself. */
void doctor_list_text(const char *only);
void doctor_list_json(const char *only);

#endif
