/* SPDX-License-Identifier: Apache-2.0
 * The state of a run, and what it tells the user; private to supervise.c and supervise_say.c. */
#ifndef CAIRN_RUN_SUPERVISE_WORK_H
#define CAIRN_RUN_SUPERVISE_WORK_H

#include "run/ladder.h"
#include "run/resume.h"
#include "run/supervise.h"

struct run {
    const struct supervise_options *o;
    struct arena *a;
    struct ladder ladder;
    struct memory_monitor monitor;
    struct actual actual;
    struct plan plan;      /* of the next attempt */
    char *const *original; /* the command, before any state to resume from was added */
    char *const *argv;     /* of the next attempt */
    const char *const *env;
    const char *change, *resumed;
    bool trained; /* some attempt made a step: starting from the beginning would lose it */
    struct supervise_result result;
};

/* The last resort. */
static const struct plan_var supervise_no_gpu = { .name = "HIP_VISIBLE_DEVICES", .value = "-1" };

/* The GPU call that may explain the end; or NULL. */
const struct gpu_call *supervise_culprit(const struct supervise_try *t);

void supervise_say_verdict(struct run *r, const struct supervise_try *t);
/* r->change and r->resumed are those of the attempt that comes. */
void supervise_say_retry(struct run *r, const struct diagnose_fix *fix);
/* There is no further attempt: what a person may try. */
void supervise_say_end(struct run *r, const struct diagnosis *d, const struct ladder_step *step,
                       const struct resume *resume);

#endif
