/* SPDX-License-Identifier: Apache-2.0
 * A step that takes far longer than the others: while it still runs, evidence is written to slow.txt in the run's folder and
 * reported as the event slow-step.  A step on a GPU that does not end is given up (gpu/watch.h). */
#ifndef CAIRN_TRAIN_STEP_WATCH_H
#define CAIRN_TRAIN_STEP_WATCH_H

#include "gpu/gpu.h"
#include "record/step_record.h"
#include "train/pace.h"
#include <stdbool.h>

struct step_watch_options {
    struct gpu *g;
    const char *dir; /* of the run */
    /* More about the machine, in a line and at length; may be NULL. */
    void (*evidence)(const struct gpu_info *g, struct str *brief, struct str *full);
    /* Called from the watch's thread while the job's own is in its step. */
    void (*report)(void *to, const char *brief);
    void *to;
};

/* A job has one; all 0 at first. */
struct step_watch {
    struct step_watch_options o;
    struct pace pace;
    char what[32];                  /* "step 12" */
    const struct step_record *last; /* of the step before */
    bool is_slow;                   /* this step was reported */
    int n_reported;
};

/* Around the work of a step; nothing else of the job may be touched between. */
void step_watch_begin(struct step_watch *w, const struct step_watch_options *o, uint64_t step,
                      const struct step_record *last);
/* done: the step came to its end, after so many seconds. */
void step_watch_end(struct step_watch *w, bool done, double seconds);
/* The next steps are not like those before. */
void step_watch_reset(struct step_watch *w);

#endif
