/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints of a run: RUN/checkpoints/step-N/, which hold the weights, the optimizer's state and state.json.
 *
 * A checkpoint is written beside the others under another name, flushed, and renamed when it is whole; state.json, which
 * is written last, has the size and the hash of every file.  So one that can be seen under its name is whole, and one
 * that was damaged later is known as such.  `latest` links to the newest.
 *
 * Taking one copies everything from the device to the host; a thread writes it while training goes on. */
#ifndef CAIRN_TRAIN_CHECKPOINT_H
#define CAIRN_TRAIN_CHECKPOINT_H

#include "train/memory_plan.h"

/* What a run must know to go on with the same bits; the place in the data follows from the step. */
struct checkpoint_state {
    uint64_t step;                                       /* steps done */
    uint64_t applied[MODEL_SETS], attempted[MODEL_SETS]; /* steps of each set's optimizer */
    double loss_scale;
    uint64_t scale_good; /* steps since the scale changed */
    struct job_layout layout;
    double best_val;           /* NaN: none yet */
    uint64_t waited;           /* evaluations since it was found */
    bool eval_due, sample_due; /* at this step, and not done yet */
    char config[33];           /* hash of what decides the numbers */
};

struct checkpoint_model {
    struct model *model;
    const char *base;                /* what LoRA was trained on, for its file */
    struct optim *optim[MODEL_SETS]; /* of each set */
};

struct checkpoints;
/* In the folder of a run; removes what an earlier process left half done.  keep 0: all. */
int checkpoints_open(const char *run_dir, size_t keep, bool async, struct checkpoints **out,
                     struct cairn_error *err);
/* Waits for the one that is being written. */
void checkpoints_close(struct checkpoints *c);

/* Returns when the device may go on.  An error of the thread comes from the next call, or from checkpoints_wait; older
 * checkpoints are as they were then. */
int checkpoints_save(struct checkpoints *c, const struct checkpoint_model *m,
                     const struct checkpoint_state *s, struct cairn_error *err);
/* Until all is on the disk.  *step: the newest that is whole, 0 if none was written. */
int checkpoints_wait(struct checkpoints *c, uint64_t *step, struct cairn_error *err);

/* The newest whole one; -1 with CAIRN_ELACK when there is none.  Torn ones are passed over, and `skipped` called with
 * each and the reason. */
int checkpoints_newest(const char *run_dir, struct arena *a, char **path, struct checkpoint_state *out,
                       void (*skipped)(void *to, const char *path, const char *why), void *to,
                       struct cairn_error *err);
/* Weights and optimizer from a checkpoint's folder. */
int checkpoints_load(const char *path, const struct checkpoint_model *m, const struct checkpoint_state *s,
                     struct cairn_error *err);

#endif
