/* SPDX-License-Identifier: Apache-2.0
 * Watches for a step that takes far longer than the others.  While it still runs, evidence is appended to
 * slow.txt in the run's folder and reported as the event slow-step.  A step on a GPU that does not end is
 * aborted (gpu/watch.h). */
#ifndef CAIRN_TRAIN_STEP_WATCH_H
#define CAIRN_TRAIN_STEP_WATCH_H

#include "gpu/gpu.h"
#include "record/step_record.h"
#include "train/step_times.h"
#include <stdbool.h>

struct step_watch_options {
    struct gpu *g;
    const char *dir; /* of the run */
    /* Adds evidence about the machine, as one line and in full; may be NULL. */
    void (*evidence)(const struct gpu_info *g, struct str *brief, struct str *full);
    /* Called from the watch thread while the job's thread is in its step. */
    void (*report)(void *to, const char *brief);
    void *to;
    double work; /* of this step, above 0 */
};

/* One per job; initially all zero. */
struct step_watch {
    struct step_watch_options o;
    struct step_times times;
    char what[32];                  /* "step 12" */
    const struct step_record *last; /* of the previous step */
    bool is_slow;                   /* this step was reported */
    int n_reported;
};

/* Called around the work of a step; nothing else of the job may be touched in between. */
void step_watch_begin(struct step_watch *w, const struct step_watch_options *o, uint64_t step,
                      const struct step_record *last);
/* done: the step completed, in this many seconds. */
void step_watch_end(struct step_watch *w, bool done, double seconds);
/* Forgets the durations so far: the next steps differ from the previous ones. */
void step_watch_reset(struct step_watch *w);

#endif
