/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints of a run: RUN/checkpoints/step-N/, which hold the weights, the optimizer's state and
 * state.json.
 *
 * A checkpoint is written under a temporary name, flushed, and renamed when it is complete.  state.json is
 * written last and has the size and hash of every file, so damage is detected.  `latest` links to the newest
 * checkpoint.
 *
 * Saving copies everything from the device to the host; a thread writes the copy while training goes on. */
#ifndef CAIRN_TRAIN_CHECKPOINT_H
#define CAIRN_TRAIN_CHECKPOINT_H

#include "train/memory_plan.h"

/* What a run needs to resume with the same bits; the position in the data follows from the step. */
struct checkpoint_state {
    uint64_t step;                                       /* steps done */
    uint64_t applied[MODEL_SETS], attempted[MODEL_SETS]; /* steps of each set's optimizer: not skipped, all */
    double loss_scale;
    uint64_t scale_good; /* steps since the scale changed */
    struct job_layout layout;
    double best_val;           /* NaN: none yet */
    uint64_t waited;           /* evaluations since best_val */
    bool eval_due, sample_due; /* at this step, and not done yet */
    char config[33];           /* hash of the keys that affect the results */
};

struct checkpoint_model {
    struct model *model;
    const char *base;                /* base model of a LoRA, recorded in its file */
    struct optim *optim[MODEL_SETS]; /* of each set */
};

struct checkpoints;
/* In the folder of a run.  Removes incomplete checkpoints of an earlier process.  keep 0: keep all. */
int checkpoints_open(const char *run_dir, size_t keep, bool async, struct checkpoints **out,
                     struct cairn_error *err);
/* Called for every checkpoint once it is complete, with its folder, maybe in another thread; the run goes on if it
 * fails. */
struct checkpoint_watcher {
    int (*complete)(void *to, const char *path, uint64_t step, struct cairn_error *err);
    void *to;
};
void checkpoints_watch(struct checkpoints *c, struct checkpoint_watcher watcher);
/* Waits for a checkpoint that is being written. */
void checkpoints_close(struct checkpoints *c);

/* Returns once the copy is made and the device may continue.  An error of the writing thread is returned by
 * the next call or by checkpoints_wait; older checkpoints stay intact. */
int checkpoints_save(struct checkpoints *c, const struct checkpoint_model *m,
                     const struct checkpoint_state *s, struct cairn_error *err);
/* Waits until everything is on disk.  *step: the newest complete checkpoint, 0 if none was written. */
int checkpoints_wait(struct checkpoints *c, uint64_t *step, struct cairn_error *err);

/* The newest complete checkpoint; -1 with CAIRN_ELACK when there is none.  Incomplete ones are skipped;
 * `skipped` is called for each, with the reason. */
int checkpoints_newest(const char *run_dir, struct arena *a, char **path, struct checkpoint_state *out,
                       void (*skipped)(void *to, const char *path, const char *why), void *to,
                       struct cairn_error *err);
/* Loads weights and optimizer state from a checkpoint's folder. */
int checkpoints_load(const char *path, const struct checkpoint_model *m, const struct checkpoint_state *s,
                     struct cairn_error *err);

#endif
