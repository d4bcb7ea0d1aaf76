/* SPDX-License-Identifier: Apache-2.0
 * A kind of job: configuration keys, data, batches, samples.  The engine (job.h, train.h) sees only this
 * interface and nn/model.h, and knows neither tokens nor pixels.
 *
 * model.kind chooses the task.  A new kind is a file with a struct task_ops and a word in the list of task.c.
 *
 * Order of calls: open reads or prepares the data, possibly with networks of its own that it frees again
 * (with env.only_plan, only what the model's size depends on);
 * new_model creates the model without memory, so that the engine can plan; fill_model loads or initializes
 * the weights once the engine has allocated them.  All results depend only on the configuration, the step and
 * the position within the step, so that a resumed run computes the same bits. */
#ifndef CAIRN_TRAIN_TASK_H
#define CAIRN_TRAIN_TASK_H

#include "base/hash.h"
#include "base/message_sink.h"
#include "nn/model.h"
#include "record/step_record.h"
#include "train/config.h"
#include <signal.h>
#include <stdio.h>

struct task_env {
    struct job_config *config; /* filled in; a task may add what its data decide (a vocabulary) */
    struct nn *nn;
    const char *dir;                   /* of the run; "": none */
    FILE *talk;                        /* for progress bars */
    struct message_sink sink;          /* for lines; tasks only say */
    const volatile sig_atomic_t *stop; /* Ctrl-C while something long is prepared; may be NULL */
    struct arena *arena;               /* lives as long as the task */
    bool only_plan;                    /* no step follows: the memory is wanted, not the data */
    uint64_t budget_bytes;             /* of the device's memory; 0: not known */
    uint64_t host_bytes;               /* of the host's; the same */
    const char *version;               /* of cairn; NULL: not told */
};

/* A model that was saved, for samples without training: that of a run, the base of a configuration with LoRAs of files, or
 * neither. */
struct task_saved {
    const char *dir; /* of the run, or of the model's files; of a configuration: for what is encoded */
    bool is_run;     /* then the configuration is the run's */
    bool is_config;  /* the model has no LoRA of its own */
    const char *const *loras; /* "FILE" or "FILE:STRENGTH" */
    size_t n_loras;
    const char *tokenizer;    /* a file named by the user; NULL: the model's own */
    const char *image;        /* for every prompt, instead of its own; NULL: none */
    const double *lora_scale; /* the same: strength of the LoRA */
};

/* s_per_it: seconds per step; tokens_per_s: step_units per second. */
enum task_speed { TASK_S_PER_IT, TASK_TOKENS_PER_S };

struct task {
    const struct task_ops *ops;
    struct task_env env;
    struct model *model;

    /* Set by open or new_model. */
    double step_units;     /* units (tokens, pixels) per step; the loss is their mean */
    enum task_speed speed; /* what the log says of it */
    size_t extent;         /* positions of the largest sample: tokens, latent cells */
    size_t hidden_size;    /* values per position: with extent, how much work a sample is */
    bool sample_alone;     /* samples need so much memory that the workspace of a step is closed for them */

    bool no_first_sample; /* none before the first step */

    /* Validation samples belong to quarters of the timesteps in turn, train.batch samples to each. */
    bool has_quarters;

    bool data_failed; /* set by put and task_use_base if the data or the model's files became unreadable */
};

/* Sizes of pictures that people train with, for the table of a plan.  Every frames_step frames after the first are
 * `positions` more of a sample's extent. */
enum { TASK_PICTURES = 8, TASK_FRAMES = 8 };
struct task_pictures {
    struct task_picture {
        size_t width, height;
        size_t positions;
    } sizes[TASK_PICTURES];
    size_t n_sizes;
    size_t own; /* index of the job's own size */
    size_t frames[TASK_FRAMES];
    size_t n_frames;
    size_t frames_step, frames_most;
};

/* Every function is there unless its comment says NULL.  put runs inside a watched step: it must not use env.sink.
 * env.arena lives as long as the job: not for work that repeats. */
struct task_ops {
    const struct config_schema *schema; /* its kind is the word for model.kind */

    /* Before anything is open: takes the shape from the files in model.path, then calls config_fill. */
    int (*resolve)(struct job_config *c, const struct task_env *e, struct cairn_error *err);
    int (*open)(const struct task_env *e, struct task **out, struct cairn_error *err);
    /* Without data. */
    int (*open_saved)(const struct task_env *e, const struct task_saved *s, struct task **out,
                      struct cairn_error *err);
    void (*close)(struct task *t); /* with the model; after the workspaces */
    int (*new_model)(struct task *t, struct cairn_error *err);
    int (*fill_model)(struct task *t, struct cairn_error *err); /* from model.path, or new weights */
    /* The file that a set of LoRAs starts from.  NULL: lora.path. */
    const char *(*lora_path)(const struct task *t, size_t set);

    /* Which set of the model a step trains.  NULL: always the first. */
    size_t (*set_of_step)(const struct task *t, uint64_t step);
    /* Which base of the model a step uses, and which a batch of put_val does.  NULL: a step may use them all.  Only with
     * them can two bases take turns on the device; then sample calls task_use_base before its passes. */
    size_t (*base_of_step)(const struct task *t, uint64_t step);
    size_t (*base_of_val)(const struct task *t, uint64_t index, size_t n);
    /* Fills the blocks of a base again, as fill_model did.  NULL: it cannot. */
    int (*reload_base)(struct task *t, size_t base, struct cairn_error *err);
    /* How much work a step is, in any unit, above 0.  NULL: all are alike. */
    double (*step_cost)(const struct task *t, uint64_t step);
    /* Micro-batch `micro` of a step, n samples, into a slot. */
    int (*put)(struct task *t, struct work *w, size_t slot, uint64_t step, size_t micro, size_t n,
               struct cairn_error *err);
    /* For the validation loss: how many samples there are; batch `index` of n of them into slot 0, from the
     * first again where there are fewer.  val_samples may be NULL: there are none. */
    uint64_t (*val_samples)(const struct task *t);
    int (*put_val)(struct task *t, struct work *w, uint64_t index, size_t n, struct cairn_error *err);

    /* Adds what the data are, so that several ranks can tell whether theirs are the same. */
    void (*add_data)(const struct task *t, struct hash *h);

    /* Peak memory that sampling needs besides training; with sample_alone, besides the weights.  It may stay allocated until sample_close; for a task
     * that frees it after each sample, sample_close does nothing. */
    struct work_bytes (*sample_bytes)(const struct task *t);
    /* Generates samples and writes them below dir (the run's samples/); `text` gets what the terminal
     * shows. */
    int (*sample)(struct task *t, const char *dir, uint64_t step, struct str *text, struct cairn_error *err);
    void (*sample_close)(struct task *t);
    bool (*sample_is_open)(const struct task *t);

    /* Saves in the run's folder what later commands need and checkpoints do not hold.  May be NULL. */
    int (*keep)(const struct task *t, struct cairn_error *err);
    /* Whether a checkpoint is due after a step, besides those of checkpoint.every.  NULL: none is. */
    bool (*is_save_due)(const struct task *t, uint64_t step);
    /* A checkpoint of a step is complete, or was found when the run resumed: puts the files for other programs in place.
     * Maybe in another thread: it must not use env.arena.  NULL: there are none. */
    int (*publish)(const struct task *t, const char *checkpoint, uint64_t step, struct cairn_error *err);
    /* How other programs use the result, for the last lines: "copy FILE to ...".  NULL: there is nothing to say. */
    const char *(*use)(const struct task *t, bool finished, struct arena *a);
    /* "gpt 6x384", for run.json and lists. */
    const char *(*label)(const struct task *t, struct arena *a);
    /* Prints the lines of the summary at the start, each "label     text". */
    void (*summary)(const struct task *t);
    /* What a base of several is called: "low-noise expert".  NULL: there is one. */
    const char *(*base_name)(const struct task *t, size_t base);
    /* NULL: samples have no such sizes. */
    void (*pictures)(const struct task *t, struct task_pictures *out);
    /* What the user can change when no fallback is left, in training and in sampling alone; one line each. */
    const char *shrink_hint, *sample_shrink_hint;
    /* The command that tries the result, followed by the run's folder: "cairn sample".  NULL: there is none. */
    const char *try_command;
};

/* The task of model.kind. */
const struct task_ops *task_of(const struct job_config *c);
/* Adds a kind, for a program that brings its own.  Call it before any configuration is read. */
void task_add(const struct task_ops *ops);

/* Makes a base ready for passes.  *seconds: how long it took to bring its weights; 0: they were there. */
int task_use_base(struct task *t, size_t base, double *seconds, struct cairn_error *err);

/* Free on the device and in its pool, of what the job may use; 0: not known. */
uint64_t task_free_bytes(const struct task_env *e);

/* "12.9 k", "124.4 M", "14.3 B". */
const char *task_count_text(struct arena *a, uint64_t n);
/* For checkpoints_newest; env is a struct task_env. */
void task_say_skipped(void *env, const char *path, const char *why);

#endif
