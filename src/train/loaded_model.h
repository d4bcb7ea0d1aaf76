/* SPDX-License-Identifier: Apache-2.0
 * A trained model with its tokenizer, opened for sampling.
 *
 * First it is found, which reads its configuration.  Then the caller may change that, opens the device that it names, and
 * opens the model, in a layout that fits into the device's memory. */
#ifndef CAIRN_TRAIN_LOADED_MODEL_H
#define CAIRN_TRAIN_LOADED_MODEL_H

#include "train/job.h"

struct loaded_model_options {
    /* A run, one of its checkpoints or a file of weights in one; a model's folder or file; a configuration, whose base is
     * meant; or, with `config`, LoRA files (FILE or FILE:STRENGTH). */
    const char *const *what;
    size_t n_what;
    const char *config;    /* the configuration, or the run, whose base the LoRA files are for; NULL: none */
    const char *dir;       /* for what is encoded for a model that is not a run's */
    const char *tokenizer; /* a tokenizer.json that overrides the model's; NULL: none */
    bool average;          /* the moving average (EMA) of a run's weights */
    const char *image;     /* for every prompt, instead of its own; NULL: none */
    const double *lora_scale; /* the same: strength of the LoRA */
    FILE *talk;
    const volatile sig_atomic_t *stop; /* Ctrl-C; may be NULL */
};

struct loaded_place {
    const char *run, *checkpoint; /* NULL: a model that is not a run's */
    const char *file;             /* of weights in the checkpoint, if one was asked for */
    const char *config;           /* the base of this configuration, with LoRAs; NULL: none of that */
    const char *const *loras;
    size_t n_loras;
};

struct loaded_model {
    struct arena arena;
    struct job_config config;     /* of the run; for a model, its shape and defaults */
    struct train_options options; /* the caller sets the device and its memory */
    struct job job;               /* has the task with the model and the tokenizer */
    struct loaded_place place;
    struct task_saved saved; /* what the options say of it */
    bool average;
    const char *weights; /* their file, or the folder if there are several */
    uint64_t step;       /* of the checkpoint; 0: not a checkpoint */
};

/* Call loaded_model_close even if one of them fails; the device stays open.  If place.config is set, the caller reads it
 * in between, because it may be the job of another trainer. */
int loaded_model_find(struct loaded_model *t, const struct loaded_model_options *o, struct cairn_error *err);
int loaded_model_open(struct loaded_model *t, struct cairn_error *err);
void loaded_model_close(struct loaded_model *t);

#endif
