/* SPDX-License-Identifier: Apache-2.0
 * A step that takes far longer than its fellows: while it still goes on, what can be found out is written to slow.txt in
 * the run's folder, and told as the event slow-step; when it goes on not ending, a GPU's is given up (gpu/watch.h). */
#ifndef CAIRN_TRAIN_SLOW_H
#define CAIRN_TRAIN_SLOW_H

#include "train/pace.h"
#include <stdbool.h>

struct job;

/* A job has one; all 0 at first. */
struct slow {
    struct pace pace;
    char what[32]; /* "step 12" */
    bool is;       /* this step was told as slow */
    int told;      /* so many were */
};

/* Around the work of a step; nothing else of the job may be touched between. */
void slow_begin(struct job *j);
/* done: the step came to its end, after so many seconds. */
void slow_end(struct job *j, bool done, double seconds);
/* The next steps are not like those before. */
void slow_forget(struct job *j);

#endif
