/* SPDX-License-Identifier: Apache-2.0
 * The JSON of jobs, kept from one list to the next: of a job that neither runs nor changed it is not made again.
 *
 * A text is known by a hash of all that it says (job_told_hash), so that nothing has to be taken out when a job
 * changes; an old one makes room for a new one.  It belongs to the loop. */
#ifndef CAIRN_WEB_JOB_TEXTS_H
#define CAIRN_WEB_JOB_TEXTS_H

#include "base/str.h"
#include "job/job_row.h"
#include <stddef.h>

enum { JOB_TEXTS_MOST = 8192 };

struct job_texts {
    struct job_text *slot; /* JOB_TEXTS_MOST of them, once there is one */
    size_t made;           /* texts that were not known */
};

void job_texts_release(struct job_texts *t);
/* Adds the JSON of a job as report_job makes it; `state` is the state folder. */
void job_texts_add(struct job_texts *t, const char *state, const struct job_row *row, struct str *out);

#endif
