/* SPDX-License-Identifier: Apache-2.0
 * A training job from its configuration to its last checkpoint.
 *
 * Everything that decides the numbers is in the configuration; a run that is stopped and resumed makes the same bits as one
 * that was not.  What is said goes to `talk`. */
#ifndef CAIRN_TRAIN_TRAIN_H
#define CAIRN_TRAIN_TRAIN_H

#include "base/str.h"
#include "gpu/gpu.h"
#include "train/config.h"
#include <signal.h>
#include <stdio.h>

struct train_options {
    struct job_config *config; /* read and set, but not filled in yet */
    const char *dir;           /* of the run */
    bool resume;               /* from the newest whole checkpoint in dir, if there is one */
    bool dry_run;              /* only say what would be done */
    bool debug;                /* kernels check their indices and numbers; slow */
    const char *profile;       /* a file for a trace of a few steps, after which it ends; NULL: none */
    const char *version;       /* of cairn */
    struct gpu *g;             /* the device, and why it was chosen */
    const char *why_device;
    const char
        *workaround; /* what is done otherwise since a device failed, as run.json names it; NULL: nothing */
    const char *restarted; /* why this process goes on in place of another; NULL: it does not */
    /* What can be told of the machine while a step does not end, in a line and at length; from another thread. */
    void (*evidence)(const struct gpu_info *g, struct str *brief, struct str *full);
    uint64_t budget_bytes;            /* of the device's memory; 0: not known */
    uint64_t (*host_available)(void); /* bytes of the host's, now; 0: not known.  May be NULL */
    FILE *talk, *events;              /* events: a line of JSON for each step; may be NULL */
    bool (*is_stopped)(void);
    const volatile sig_atomic_t *stop; /* the same for what has no steps: loading.  May be NULL */
};

/* TRAIN_TORN: it failed for want of memory in the middle of a step, and a new process may do it from the last checkpoint. */
enum train_end { TRAIN_FINISHED, TRAIN_STOPPED, TRAIN_WAS_FINISHED, TRAIN_TORN };
int train_run(const struct train_options *o, enum train_end *end, struct cairn_error *err);

/* What a job would take, and how it would be laid out to fit.  None of that is allocated; a task whose data are prepared
 * on the device takes what it needs for that, and frees it. */
struct train_plan {
    struct {
        const char *name;
        uint64_t device_bytes, host_bytes;
    } parts[8];
    size_t n_parts;
    uint64_t device_bytes, host_bytes; /* sums */
    uint64_t budget_bytes;             /* 0: not known */
    uint64_t parameters, trained;
    uint64_t micro, micros; /* samples of a micro-batch; how many of them a step */
    bool recompute, optim_on_host, blocks_on_host;
    const char *storage;
    char fallbacks[8][160]; /* what was done to make it fit, in order */
    size_t n_fallbacks;
    struct cairn_error lack; /* code set: it does not fit, and what might help */
};
int train_plan(const struct train_options *o, struct train_plan *out, struct cairn_error *err);

#endif
