/* SPDX-License-Identifier: Apache-2.0
 * All that a training job has open: its task with data and model, optimizers, a workspace, files.
 *
 * job.c opens and closes it, job_memory.c fits it into memory, steps.c does its steps, train.c runs it from start to end. */
#ifndef CAIRN_TRAIN_JOB_H
#define CAIRN_TRAIN_JOB_H

#include "record/run_log.h"
#include "record/ticker.h"
#include "train/checkpoint.h"
#include "train/memory_plan.h"
#include "train/schedule.h"
#include "train/step_watch.h"
#include "train/train.h"

enum { JOB_FALLBACKS = 8 };

/* Memory: what is planned, what was taken, and what had to be done. */
struct job_memory {
    struct memory_job job;
    struct memory_plan plan; /* of the layout as it is now */
    uint64_t taken_bytes[MEMORY_PARTS];
    bool optim_pinned, blocks_pinned; /* the host has no room for them */
    bool optim_forced,
        blocks_forced; /* offloaded in the middle of a run: they come back when there is room */
    int n_evictions;   /* how often that happened */
    bool warned_fragmented, warned_stuck, host_was_short;
    uint64_t host_peak_bytes;                     /* the most that was available on the host */
    double host_checked_s;                        /* when it was asked last */
    char fallbacks[JOB_FALLBACKS][FALLBACK_TEXT]; /* in order */
    size_t n_fallbacks;
};

struct job {
    const struct train_options *o;
    struct job_config *c;
    struct arena arena;
    struct nn nn;
    struct task *task;
    struct optim *optim[MODEL_SETS]; /* one per set of the model */
    struct work *work;
    struct run_log *log;
    struct checkpoints *checkpoints;
    struct checkpoint_state state; /* as of the last step that is done */
    struct schedule schedule;
    struct ticker ticker;
    struct step_watch watch;
    struct job_memory memory;
    bool quiet; /* fallbacks of the start are reported by somebody else */
    char config_hash[33];
    bool other_config; /* than the run that is resumed had */
    const char *why_storage;

    /* For the next line of the log. */
    const char *event; /* NULL: none */
    char note[512];

    uint64_t saved_step; /* of the last checkpoint, whether it could be written or not */
    bool unsaved;        /* another try at the same step is worth it */
    bool torn;           /* memory ran out after some of a step's weights were updated */
    bool warned_dequant;
};

/* ---- job.c: in this order.  job_close accepts a half-open one. ---- */

int job_resolve(struct job *j, struct cairn_error *err); /* the configuration, with the shape of model.path */
void job_set_start(struct job *j);                       /* at step 0, laid out as the configuration says */
/* The device's ops, the task with its data, and the model without memory. */
int job_open_task(struct job *j, struct cairn_error *err);
/* The same for a saved model, without data; its weights are allocated and not filled. */
int job_open_saved(struct job *j, const struct task_saved *s, struct cairn_error *err);
/* The model and its optimizers, with the numbers of a checkpoint (NULL: of model.path, or new). */
int job_load(struct job *j, const char *from, struct cairn_error *err);
/* A workspace for the passes of a step; with fallbacks where memory is short. */
int job_open_work(struct job *j, struct cairn_error *err);
/* Samples of the model as it is: said, and kept with the run.  `to` is not used. */
int job_sample(struct job *j, void *to, struct cairn_error *err);
void job_close(struct job *j);

struct task_env job_task_env(struct job *j);
/* The set that the next step trains. */
size_t job_set(const struct job *j);
size_t job_micros(const struct job *j); /* micro-batches of a step */
struct checkpoint_model job_checkpoint_model(struct job *j);

/* Says a line. */
void job_say(struct job *j, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Something happened: the next line of the log has it, with the note.  The caller says it too. */
void job_event(struct job *j, const char *event, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* A line to log.jsonl and to --json-events. */
void job_log(struct job *j, const struct step_record *m);
/* What the process or the device holds now. */
uint64_t job_memory_bytes(const struct job *j);
void job_summary(struct job *j);

/* ---- job_memory.c ---- */

/* Chooses the layout: what the configuration wants, then fallbacks until it fits.  job_fit_again begins with the layout as
 * it is. */
int job_fit(struct job *j, struct cairn_error *err);
int job_fit_again(struct job *j, struct cairn_error *err);
/* Has the device's pool take large blocks at once. */
void job_warm_pool(struct job *j);

/* After an out-of-memory: applies the next fallback and moves what is live; the workspace must be opened again.
 * CAIRN_ENOMEM with `why` when there is none left. */
int job_fallback(struct job *j, const struct cairn_error *why, struct cairn_error *err);
/* Does it, and again after a fallback while memory is short. */
int job_retry_smaller(struct job *j, int (*fn)(struct job *j, void *to, struct cairn_error *err), void *to,
                      struct cairn_error *err);
/* Transfers that the device refused so far. */
uint64_t job_refused_transfers(const struct job *j);
/* After one more at the start: the next part that can be offloaded is, until a checkpoint finds that it can come over.
 * false: there is none. */
bool job_offload_next(struct job *j, const struct cairn_error *why);
/* After an error at the start: the host has no room for parts that should be offloaded, so they stay.  false: another
 * error. */
bool job_cancel_offload(struct job *j, const struct cairn_error *why);
/* What was offloaded in the middle of the run comes back where there is room again. */
int job_restore(struct job *j, struct cairn_error *err);
/* Warns once of memory that is free in small holes only. */
void job_warn_fragmented(struct job *j);
/* True once each time the host has next to no memory left. */
bool job_host_is_short(struct job *j);
/* The pool's figures, and the copies that went another way. */
void job_record_memory(const struct job *j, struct step_record *m);
/* What is planned; and, at the end, what was taken. */
void job_say_plan(struct job *j);
void job_say_taken(struct job *j);

/* ---- steps.c ---- */

/* From the step of j->state to the last, with evaluations, samples and checkpoints. */
int job_run_steps(struct job *j, enum train_end *end, struct cairn_error *err);
/* A few steps with a profile of every op; nothing is saved. */
int job_profile(struct job *j, struct cairn_error *err);
/* After a failure: a last checkpoint where the numbers are known to be sound. */
void job_save_after_failure(struct job *j, const struct cairn_error *why);

#endif
