/* SPDX-License-Identifier: Apache-2.0
 * The doctor's findings: the keys of `cairn doctor --json`, and the table of checks. */
#ifndef CAIRN_REPORT_DOCTOR_H
#define CAIRN_REPORT_DOCTOR_H

#include "base/json.h"
#include "rules/checks.h"
#include "run/probe.h"
#include <stdbool.h>

/* Which findings to show. */
struct doctor_view {
    const struct doctor *doctor;
    const struct probe_report *probe; /* NULL: no --probe */
    const char *only;                 /* a group; NULL: all */
    bool all;                         /* also checks that do not apply */
};
bool doctor_view_covers(const struct doctor_view *v, const struct doctor_line *line); /* its group is shown */
bool doctor_view_shows(const struct doctor_view *v, const struct doctor_line *line);

/* The final verdict: that of the probe if it ran, else the prediction. */
enum verdict doctor_verdict(const struct doctor_view *v);

/* The caller frees both. */
struct json *report_doctor(const struct doctor_view *v);
struct json *report_checks(const char *only); /* a group; NULL: all */

#endif
