/* SPDX-License-Identifier: Apache-2.0
 * A trained model with its tokenizer, opened for sampling. */
#ifndef CAIRN_TRAIN_LOADED_MODEL_H
#define CAIRN_TRAIN_LOADED_MODEL_H

#include "train/job.h"

struct loaded_model_options {
    const char
        *what; /* a run, one of its checkpoints or a file of weights in one, or a model's folder or file */
    const char *tokenizer; /* a tokenizer.json that overrides the model's; NULL: none */
    bool average;          /* the moving average (EMA) of a run's weights */
    /* Changes the run's configuration before the model is opened; NULL: nothing changes it. */
    int (*adjust)(void *ctx, struct job_config *c, struct cairn_error *err);
    void *ctx;
    struct gpu *g;
    uint64_t budget_bytes; /* of its memory; 0: not known */
    FILE *talk;
};

struct loaded_model {
    struct arena arena;
    struct job_config config; /* of the run; for a model, its shape and defaults */
    struct train_options options;
    struct job job;      /* has the task with the model and the tokenizer */
    const char *weights; /* their file, or the folder if there are several */
    uint64_t step;       /* of the checkpoint; 0: not a checkpoint */
};

/* Call loaded_model_close even if it fails. */
int loaded_model_open(struct loaded_model *t, const struct loaded_model_options *o, struct cairn_error *err);
void loaded_model_close(struct loaded_model *t);

#endif
