/* SPDX-License-Identifier: Apache-2.0
 * Starts native training on this machine: reads the configuration, prepares the folder of the run and the
 * environment of this process, opens the device, trains, and restarts if the device was lost. */
#ifndef CAIRN_START_TRAIN_H
#define CAIRN_START_TRAIN_H

#include "base/message_sink.h"
#include "start/read_config.h"
#include "train/train.h"

struct start_options {
    const char *file;          /* the configuration; NULL: */
    const char *const *musubi; /* the words of a command of musubi-tuner */
    size_t n_musubi;
    struct config_changes changes;
    const char
        *resume; /* DIR of a run to continue; "": the run that the configuration names; NULL: a new run */
    const char *name; /* of a run whose configuration names none; NULL: the file's */
    bool dry_run, debug;
    bool fit;            /* choose how memory is used (train/fit.h) */
    const char *profile; /* a file for a trace; NULL: none */
    const char *events;  /* a file, or "-", that gets one line of JSON per step; NULL: none */
    int hang_after_s;
    int argc; /* starts with the command's name; a restart uses the same */
    char **argv;
    FILE *talk;                          /* where the training reports its progress */
    const struct message_sink *messages; /* errors and notes */
    struct comm *comm;                   /* the ranks of the job; NULL: this process alone */
    bool (*is_stopped)(void);
    const volatile sig_atomic_t *stop;
};

struct start {
    const struct start_options *o;
    struct arena *arena;
    struct job_config config;
    struct train_options train;
};

/* Everything that precedes opening the device; does not block.  The options and the arena must outlive s. */
int start_prepare(struct start *s, const struct start_options *o, struct arena *a, struct cairn_error *err);
/* Trains.  Does not return if the device was lost and a new process takes over. */
int start_run(struct start *s, enum train_end *end, struct cairn_error *err);

#endif
