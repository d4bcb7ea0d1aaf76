/* SPDX-License-Identifier: Apache-2.0
 * Rows of runs that ended, kept from one list to the next, so that a list reads only what changed.
 *
 * A run is known by its folder and by the mark of its files, which differs when one of them does.  Between
 * adopt_memory_begin and adopt_memory_end each run that still exists is got or put; the others are forgotten.  One
 * thread at a time. */
#ifndef CAIRN_JOB_ADOPT_MEMORY_H
#define CAIRN_JOB_ADOPT_MEMORY_H

#include "base/arena.h"
#include "job/job_row.h"
#include <stddef.h>

struct adopt_memory {
    struct adopt_known *known;
    size_t n, room;
    size_t sorted; /* so many of them, by folder; those behind are new in this list */
};

void adopt_memory_release(struct adopt_memory *m);

void adopt_memory_begin(struct adopt_memory *m);
/* A row in `a`; false: not known, or its files have changed. */
bool adopt_memory_get(struct adopt_memory *m, const char *dir, uint64_t mark, struct arena *a,
                      struct job_row *out);
/* Takes the row of a run that ended, with its mark. */
void adopt_memory_put(struct adopt_memory *m, const struct job_row *row);
void adopt_memory_end(struct adopt_memory *m);

#endif
