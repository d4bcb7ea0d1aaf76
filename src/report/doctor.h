/* SPDX-License-Identifier: Apache-2.0
 * What the doctor found: the keys of `cairn doctor --json`, and the table of checks. */
#ifndef CAIRN_REPORT_DOCTOR_H
#define CAIRN_REPORT_DOCTOR_H

#include "base/json.h"
#include "rules/checks.h"
#include "run/probe.h"
#include <stdbool.h>

/* Which part of the findings is wanted. */
struct doctor_view {
    const struct doctor *doctor;
    const struct probe_report *probe; /* NULL: not asked for */
    const char *only;                 /* a group; NULL: all */
    bool all;                         /* also what does not apply */
};
bool doctor_view_covers(const struct doctor_view *v,
                        const struct doctor_line *line); /* its group is wanted */
bool doctor_view_shows(const struct doctor_view *v, const struct doctor_line *line);

/* What counts in the end: what was found where the probe ran, else what is predicted. */
enum verdict doctor_verdict(const struct doctor_view *v);

/* The caller frees both. */
struct json *report_doctor(const struct doctor_view *v);
struct json *report_checks(const char *only); /* a group; NULL: all */

#endif
