/* SPDX-License-Identifier: Apache-2.0
 * The state of a training job: its task with data and model, optimizers, a workspace, files.
 *
 * job.c opens and closes it, job_memory.c fits it into memory, job_control.c reads what others ask of it,
 * steps.c runs its steps, evaluation.c measures its validation loss, ranks.c shares it with other processes, train.c runs it from
 * start to end. */
#ifndef CAIRN_TRAIN_JOB_H
#define CAIRN_TRAIN_JOB_H

#include "record/control.h"
#include "record/run_log.h"
#include "record/runs.h"
#include "record/ticker.h"
#include "train/checkpoint.h"
#include "train/grad_tree.h"
#include "train/memory_plan.h"
#include "train/schedule.h"
#include "train/step_watch.h"
#include "train/train.h"

enum { JOB_FALLBACKS = 10 };

/* Memory: planned, allocated, and the fallbacks applied. */
struct job_memory {
    struct memory_job job;
    struct memory_plan plan; /* of the current layout */
    uint64_t used_bytes[MEMORY_PARTS];
    uint64_t tree_bytes;                             /* of the gradients' */
    bool optim_pinned, blocks_pinned, inputs_pinned; /* do not fit into host memory */
    size_t blocks_fallback;        /* which fallback offloads blocks, counted from 1; 0: none */
    struct memory_evicted evicted; /* moves back when memory is free again */
    bool warned_fragmented, warned_stuck, host_was_short;
    uint64_t host_peak_bytes;                     /* most host memory available so far */
    double host_checked_s;                        /* time of the last check */
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
    struct grad_tree *tree; /* dist.reduce exact; else NULL */
    struct run_log *log;
    struct checkpoints *checkpoints;
    struct checkpoint_state state; /* after the last complete step */
    struct schedule schedule;
    struct ticker ticker;
    struct step_watch watch;
    struct job_memory memory;
    bool quiet;     /* the caller reports the fallbacks at the start */
    bool only_plan; /* no step follows */
    char config_hash[33];
    bool other_config; /* not that of the resumed run */
    const char *why_storage;

    /* For the next line of the log. */
    const char *event; /* NULL: none */
    char note[512];
    double work_left; /* of the steps to come, where a task says how much work each is */
    double switch_s;  /* spent since the last line on bringing the weights of a base; 0: none */

    struct control control;
    uint64_t stop_at; /* the step after which an order stops the run; 0: none */

    /* Several ranks. */
    struct control_order order; /* of rank 0, for the end of this step */
    bool agreed;                /* there was a vote */
    bool stopping;              /* one of the ranks was asked to stop */
    bool others_sample;         /* rank 0 makes samples after this step */
    struct gpu_staging bucket;  /* through which a device's arrays pass */
    int64_t started;            /* seconds since 1970 */

    uint64_t saved_step; /* of the last checkpoint, whether it could be written or not */
    bool unsaved;        /* worth saving the same step again */
    bool torn;           /* memory ran out after some of a step's weights were updated */
    bool averaged; /* the device refused to take the trained weights back after a sample of their average */
    bool warned_dequant, warned_quant;
};

/* ---- job.c: in this order.  job_close accepts a half-open one. ---- */

int job_resolve(struct job *j, struct cairn_error *err); /* the configuration, with the shape of model.path */
void job_set_start(struct job *j);                       /* at step 0, laid out as the configuration says */
/* The device's ops, the task with its data, and the model without memory. */
int job_open_task(struct job *j, struct cairn_error *err);
/* The same for a saved model, without data, with a layout that fits for samples. */
int job_open_saved(struct job *j, const struct task_saved *s, struct cairn_error *err);
/* Loads the model and its optimizers from a checkpoint (NULL: from model.path, or new weights). */
int job_load(struct job *j, const char *from, struct cairn_error *err);
/* Loads a saved model: a file for each set, or NULL: all from model.path. */
int job_load_saved(struct job *j, const char *const *files, struct cairn_error *err);
/* Opens the workspace of a step, with fallbacks if memory is short. */
int job_open_work(struct job *j, struct cairn_error *err);
/* Generates samples, prints them and saves them with the run.  `to` is not used. */
int job_sample(struct job *j, void *to, struct cairn_error *err);
void job_close(struct job *j);

struct task_env job_task_env(struct job *j);
/* The set that the next step trains. */
size_t job_set(const struct job *j);
size_t job_micros(const struct job *j); /* micro-batches per step, of this rank */
struct checkpoint_model job_checkpoint_model(struct job *j);

/* Prints a line for the user. */
void job_say(struct job *j, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Records an event and a note for the next line of the log.  The caller also prints it. */
void job_event(struct job *j, const char *event, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Writes a line to log.jsonl and to --json-events. */
void job_log(struct job *j, const struct step_record *m);
/* Memory in use: of the device, or of the process on the CPU. */
uint64_t job_memory_bytes(const struct job *j);
void job_summary(struct job *j);

/* ---- job_memory.c ---- */

/* Chooses the layout: as configured, then fallbacks until it fits.  job_fit_again starts from the current
 * layout. */
int job_fit(struct job *j, struct cairn_error *err);
int job_fit_again(struct job *j, struct cairn_error *err);
/* Makes the device's pool allocate large blocks ahead of use. */
void job_warm_pool(struct job *j);

/* After an OOM: applies the next fallback and moves allocated parts; the caller must reopen the workspace.
 * Fails with CAIRN_ENOMEM and `why` when no fallback is left. */
int job_fallback(struct job *j, const struct cairn_error *why, struct cairn_error *err);
/* Calls fn; on OOM, applies a fallback and calls it again. */
int job_retry_smaller(struct job *j, int (*fn)(struct job *j, void *to, struct cairn_error *err), void *to,
                      struct cairn_error *err);
/* Transfers that the device refused so far. */
uint64_t job_refused_transfers(const struct job *j);
/* After a refused transfer at the start: offloads the next part that can be.  Each checkpoint tries to move
 * it back. false: no part is left. */
bool job_offload_next(struct job *j, const struct cairn_error *why);
/* After an error at the start: if host memory was too small for the offloaded parts, places them on the
 * device.  false: the error has another cause. */
bool job_cancel_offload(struct job *j, const struct cairn_error *why);
/* The same for the inputs of the blocks, when the workspace was opened. */
bool job_cancel_inputs(struct job *j, const struct cairn_error *why);
/* Moves parts offloaded in the middle of the run back to the device, if memory is free again. */
int job_restore(struct job *j, struct cairn_error *err);
/* Warns once if device memory is fragmented. */
void job_warn_fragmented(struct job *j);
/* True once each time the host runs short of memory. */
bool job_host_is_short(struct job *j);
/* Adds the pool's and the copies' metrics. */
void job_record_memory(const struct job *j, struct step_record *m);
/* Print the planned memory; at the end, the memory used. */
void job_say_plan(struct job *j);
void job_say_used(struct job *j);

/* ---- job_control.c ---- */

/* Goes on where an earlier process of a resumed run was. */
void job_open_control(struct job *j);
/* After a step: what control.json newly asks to be done after it; seq 0: nothing. */
struct control_order job_next_order(struct job *j);
/* Logs an order that was obeyed. */
void job_log_order(struct job *j, const struct control_order *order);
/* Whether an order stops the run here.  Where it ends by itself, it does not. */
bool job_is_stop_due(const struct job *j);

/* ---- ranks.c: what the ranks of a job do together; with one rank, all of it succeeds at once ---- */

bool job_is_first_rank(const struct job *j);
size_t job_first_micro(const struct job *j); /* of a step, that this rank computes */
size_t job_all_micros(const struct job *j);
void job_watch_ranks(struct job *j);
void job_say_ranks(struct job *j);
/* Fails if the batches cannot be shared, or the ranks were not started alike. */
int job_check_ranks(struct job *j, struct cairn_error *err);
/* Both fail if those of another rank differ from rank 0's. */
int job_compare_devices(struct job *j, struct cairn_error *err);
int job_compare_data(struct job *j, struct cairn_error *err);
/* Rank 0's state, and what it found. */
struct job_start {
    bool resumes, is_finished;
};
int job_share_start(struct job *j, struct job_start *start, struct cairn_error *err);
/* Around work that the first rank of each machine does for the others, which find it in files: before it, and when it is
 * done. */
int job_wait_for_turn(struct job *j, bool done, struct cairn_error *err);
/* Trained weights and state of the optimizers, from rank 0. */
int job_share_model(struct job *j, struct cairn_error *err);
/* Fails if they differ. */
int job_compare_weights(struct job *j, struct cairn_error *err);
/* After a step's passes.  *again: a rank had no memory, or has smaller micro-batches now: all repeat the passes. */
int job_vote(struct job *j, bool no_memory, bool *again, struct cairn_error *err);
int job_sum_grads(struct job *j, struct cairn_error *err);
/* Numbers that are 0 on all ranks but one. */
int job_merge(struct job *j, double *numbers, size_t n, struct cairn_error *err);
/* The first text of a rank that is not empty, and that rank. */
int job_first_text(struct job *j, char *text, size_t size);
/* " on rank 2"; "" with one rank. */
const char *job_rank_text(struct job *j, int rank);
/* Tells the others why this rank ends. */
void job_fail_ranks(struct job *j, const struct cairn_error *why);

/* ---- train.c ---- */

/* Writes run.json. */
int job_write_info(struct job *j, enum run_state state, struct cairn_error *err);

/* ---- evaluation.c ---- */

/* The validation loss of all batches, and by quarter of the timesteps; NaN: there are none. */
enum { EVALUATION_QUARTERS = METRIC_VAL_LOSS_Q4 - METRIC_VAL_LOSS_Q1 + 1 };
struct evaluation {
    double loss, quarter[EVALUATION_QUARTERS];
};
uint64_t job_val_samples(const struct job *j);
/* `to` is a struct evaluation. */
int job_evaluate(struct job *j, void *to, struct cairn_error *err);

/* ---- steps.c ---- */

/* The pass of a micro-batch of this rank in the next step. */
struct model_pass job_pass(const struct job *j, size_t micro, bool learn);
/* Brings the weights of a base, if those of another were in use before; that time is not the step's. */
int job_use_base(struct job *j, size_t base, struct cairn_error *err);

/* Runs from the step of j->state to the last, with evaluations, samples and checkpoints. */
int job_run_steps(struct job *j, enum train_end *end, struct cairn_error *err);
/* Makes samples; a full disk costs only them. */
int job_try_sample(struct job *j, struct cairn_error *err);
/* Profiles every op of a few steps; saves nothing. */
int job_profile(struct job *j, struct cairn_error *err);
/* After a failure: saves a last checkpoint if the weights are known to be intact. */
void job_save_after_failure(struct job *j, const struct cairn_error *why);

#endif
