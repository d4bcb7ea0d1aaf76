/* SPDX-License-Identifier: Apache-2.0
 * The state of a run and its messages; private to supervise.c and supervise_say.c. */
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
    char *const *original; /* the command, without options that resume it */
    char *const *argv;     /* of the next attempt */
    const char *const *env;
    const char *change, *resumed;
    bool trained; /* some attempt completed a step, which a restart from the beginning would lose */
    struct supervise_result result;
};

/* The last resort. */
static const struct plan_var supervise_no_gpu = { .name = "HIP_VISIBLE_DEVICES", .value = "-1" };

/* The GPU call that may explain the failure, or NULL. */
const struct gpu_call *supervise_culprit(const struct supervise_try *t);

void supervise_say_verdict(struct run *r, const struct supervise_try *t);
/* r->change and r->resumed describe the next attempt. */
void supervise_say_retry(struct run *r, const struct diagnose_fix *fix);
/* After the last attempt: what the user may try. */
void supervise_say_end(struct run *r, const struct diagnosis *d, const struct ladder_step *step,
                       const struct resume *resume);

#endif
