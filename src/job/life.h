/* SPDX-License-Identifier: Apache-2.0
 * What life.c knows of resuming, for the other files of the queue. */
#ifndef CAIRN_JOB_LIFE_H
#define CAIRN_JOB_LIFE_H

#include "base/arena.h"
#include "job/job_row.h"
#include "run/resume.h"

/* How the command of a job would go on, seen from the working folder of the job. */
void life_find_resume(const struct job_row *row, struct arena *a, struct resume *out);

#endif
