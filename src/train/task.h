/* SPDX-License-Identifier: Apache-2.0
 * What a job trains on what: configuration keys, data, batches, samples.  The engine (job.h, train.h) sees only this and
 * nn/model.h, and knows neither tokens nor pixels.
 *
 * model.kind chooses the task.  A new kind is a file with a struct task_ops and a row of the table in task.c.
 *
 * The order of calls: open reads or prepares the data, if need be with networks of its own that are freed again; new_model
 * makes the model without memory, so that the engine can plan; fill_model gives it its numbers once the engine has allocated
 * it.  Everything that decides numbers depends on the configuration, the step and the place in the step alone, so that a
 * resumed run makes the same bits. */
#ifndef CAIRN_TRAIN_TASK_H
#define CAIRN_TRAIN_TASK_H

#include "nn/model.h"
#include "record/step_record.h"
#include "train/config.h"
#include <signal.h>
#include <stdio.h>

/* Where a line for the user goes. */
struct task_sink {
    void (*say)(void *to, const char *line);
    void *to;
};

struct task_env {
    struct job_config *config; /* filled in; a task may still put in what its data tell (a vocabulary) */
    struct nn *nn;
    const char *dir; /* of the run; "": there is none */
    FILE *talk;      /* for progress bars */
    struct task_sink sink;
    const volatile sig_atomic_t *stop; /* Ctrl-C while something long is prepared; may be NULL */
    struct arena *arena;               /* lives as long as the task */
};

/* A model that was saved, for samples without training. */
struct task_saved {
    const char *dir;       /* of the run, or of the model's files */
    bool is_run;           /* then the configuration is the run's */
    const char *tokenizer; /* a file that the user names; NULL: what belongs to the model */
};

struct task {
    const struct task_ops *ops;
    struct task_env env;
    struct model *model;

    /* Set by open or new_model. */
    double step_units;  /* the loss of a step is a mean over so many units */
    enum metric speed;  /* METRIC_TOKENS_PER_S: step_units per second; METRIC_S_PER_IT: seconds per step */
    size_t extent;      /* positions of the largest sample: tokens, latent cells */
    size_t hidden_size; /* numbers per position: with extent, how much work a sample is */

    bool data_failed; /* set by put where the data cannot be read any more */
};

struct task_ops {
    const struct config_schema *schema; /* its kind is the word for model.kind */

    /* Before anything is open: what the files in model.path say of the shape, then config_fill. */
    int (*resolve)(struct job_config *c, const struct task_env *e, struct cairn_error *err);
    int (*open)(const struct task_env *e, struct task **out, struct cairn_error *err);
    /* Without data. */
    int (*open_saved)(const struct task_env *e, const struct task_saved *s, struct task **out,
                      struct cairn_error *err);
    void (*close)(struct task *t); /* with the model; after the workspaces */
    int (*new_model)(struct task *t, struct cairn_error *err);
    int (*fill_model)(struct task *t, struct cairn_error *err); /* from model.path, or new */

    /* Which set of the model a step trains.  NULL: always the first. */
    size_t (*set_of_step)(const struct task *t, uint64_t step);
    /* Micro-batch `micro` of a step, n samples, into a slot. */
    int (*put)(struct task *t, struct work *w, size_t slot, uint64_t step, size_t micro, size_t n,
               struct cairn_error *err);
    /* For the validation loss: how many samples there are; batch `index` of n of them into slot 0, from the first again
     * where there are fewer.  val_samples may be NULL: there are none. */
    uint64_t (*val_samples)(const struct task *t);
    int (*put_val)(struct task *t, struct work *w, uint64_t index, size_t n, struct cairn_error *err);

    /* What making samples takes beside the training, at its peak.  The memory may be kept until sample_close; a task that
     * frees it at the end of each sample has nothing open, and sample_close does nothing. */
    struct work_bytes (*sample_bytes)(const struct task *t);
    /* Makes samples and writes them below dir (the run's samples/); `text` gets what a person may read in a terminal. */
    int (*sample)(struct task *t, const char *dir, uint64_t step, struct str *text, struct cairn_error *err);
    void (*sample_close)(struct task *t);
    bool (*sample_is_open)(const struct task *t);

    /* What later commands need and the checkpoints do not hold: into the run's folder.  May be NULL. */
    int (*keep)(const struct task *t, struct cairn_error *err);
    /* "gpt 6x384", for run.json and lists. */
    const char *(*label)(const struct task *t, struct arena *a);
    /* Says the lines of the summary at the start, each "label     text". */
    void (*summary)(const struct task *t);
    /* What a user may change when nothing more can be offloaded or shrunk; one line. */
    const char *shrink_hint;
};

/* The task of model.kind. */
const struct task_ops *task_of(const struct job_config *c);
/* One more kind, for a program that brings its own.  Before any configuration is read. */
void task_add(const struct task_ops *ops);

void task_say(const struct task_env *e, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
