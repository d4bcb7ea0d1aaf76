/* SPDX-License-Identifier: Apache-2.0
 * A training job from its configuration to its last checkpoint.
 *
 * Everything that affects the results is in the configuration; a run that is stopped and resumed computes the
 * same bits as one that was not.  Messages go to `talk`. */
#ifndef CAIRN_TRAIN_TRAIN_H
#define CAIRN_TRAIN_TRAIN_H

#include "base/str.h"
#include "dist/comm.h"
#include "gpu/gpu.h"
#include "train/config.h"
#include <signal.h>
#include <stdio.h>

/* A machine that is not this one, for which a plan is made. */
struct train_machine {
    struct gpu_info gpu;
    uint64_t host_bytes; /* available host memory; 0: not known */
};

struct train_options {
    struct job_config *config; /* read, but not filled in yet */
    const char *dir;           /* of the run */
    bool resume;               /* from the newest complete checkpoint in dir, if there is one */
    bool dry_run;        /* only print what would be done; the model is loaded, the data is not prepared */
    bool debug;          /* kernels check indices and values; slow */
    const char *profile; /* file for a trace of a few steps, after which the job ends; NULL: none */
    const char *version; /* of cairn */
    struct comm *comm;   /* the ranks of the job; NULL: this process alone */
    struct gpu *g;       /* the device, and why it was chosen */
    const char *why_device;
    const char *workaround; /* workaround in force since a device failed, as in run.json; NULL: none */
    const char *restarted;  /* why this process replaced another; NULL: it did not */
    /* Evidence about the machine while a step hangs, as one line and in full; called from another thread. */
    void (*evidence)(const struct gpu_info *g, struct str *brief, struct str *full);
    const struct train_machine *machine; /* only for a plan: the device opened is the CPU.  NULL: this one */
    uint64_t budget_bytes;               /* of the device's memory; 0: not known */
    uint64_t (*host_available)(void);    /* host memory available now, in bytes; 0: not known.  May be NULL */
    FILE *talk, *events;                 /* events: one line of JSON per step; may be NULL */
    bool (*is_stopped)(void);
    const volatile sig_atomic_t *stop; /* the same for work without steps, such as loading.  May be NULL */
};

/* TRAIN_TORN: out of memory in the middle of a step; a new process can continue from the last checkpoint. */
enum train_end { TRAIN_FINISHED, TRAIN_STOPPED, TRAIN_WAS_FINISHED, TRAIN_TORN };
int train_run(const struct train_options *o, enum train_end *end, struct cairn_error *err);

/* The memory a job needs, and the layout that makes it fit.  Nothing is allocated on the device for long, and no
 * data is prepared. */
struct train_plan_bytes {
    const char *name;
    uint64_t device_bytes, host_bytes;
};
/* Whether samples of a size fit. */
struct train_plan_size {
    size_t width, height, frames;
    bool fits;
    size_t fallbacks;  /* that make them fit */
    uint64_t streamed; /* blocks on the host then */
};
/* The most frames of the job's own size that fit, 0 if none; and those that fit without fallbacks. */
struct train_plan_frames {
    size_t width, height, most, most_plain;
};
struct train_plan {
    struct {
        const char *name;
        uint64_t device_bytes, host_bytes;
        struct train_plan_bytes of[8]; /* what it consists of, where that is known; the sums are the part's */
        size_t n_of;
    } parts[8];
    size_t n_parts;
    uint64_t device_bytes, host_bytes; /* sums */
    uint64_t peak_bytes;   /* that count against the budget: with the host's where memory is shared */
    uint64_t budget_bytes; /* 0: not known */
    uint64_t parameters, trained;
    uint64_t micro, micros; /* samples per micro-batch; micro-batches per step */
    bool recompute, optim_on_host, inputs_on_host;
    uint64_t blocks, streamed; /* blocks of frozen weights that can be offloaded; that are */
    const char *idle;          /* where the weights of the base not in use are: "device", "host" or "file" */
    const char *storage;
    char fallbacks[10][160]; /* fallbacks that make it fit, in order */
    size_t n_fallbacks;
    struct train_plan_size
        sizes[64]; /* by size, then frames.  None if the task has none, or the limit is unknown */
    size_t n_sizes;
    struct train_plan_frames frames;
    struct cairn_error lack; /* code set: it does not fit; the hint says what may help */
};
const struct gpu_info *train_device(const struct train_options *o);
int train_plan(const struct train_options *o, struct train_plan *out, struct cairn_error *err);

#endif
