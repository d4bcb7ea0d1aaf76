/* SPDX-License-Identifier: Apache-2.0
 * The job of another trainer, as keys of our own schema.
 *
 * A reader of such a job (foreign_toolkit.h, …) collects the keys with foreign_add, and in notes what it
 * leaves out because it changes nothing.  What would change the result and cannot be done is the reader's
 * error.  The datasets stay in the file of the other trainer: data.path names it. */
#ifndef CAIRN_TRAIN_FOREIGN_H
#define CAIRN_TRAIN_FOREIGN_H

#include "train/config.h"

struct foreign_key {
    const char *key, *value; /* ours; the value as after --set KEY= */
    const char *place;       /* "job.yaml:12:5" or "--learning_rate"; NULL: the other trainer's default */
    const char *from;        /* "train.lr"; NULL: the same */
};

struct foreign_job {
    const char *program; /* "ai-toolkit" */
    const char *file;    /* NULL: a command line */
    struct foreign_key *keys;
    size_t n_keys;
    const char **notes;
    size_t n_notes;
    /* Weights that the job names and that are nowhere on this machine, for a message; NULL: all are there. */
    const char *missing, *missing_remedy;
    /* After an error: the job is right, but cairn cannot do what it asks. */
    bool refused;
};

/* All strings are copied to the arena.  A key that is added again gets the new value. */
void foreign_add(struct foreign_job *j, struct arena *a, const char *key, const char *value,
                 const char *place, const char *from);
/* The same for a key whose value is a list. */
void foreign_add_list(struct foreign_job *j, struct arena *a, const char *key, const char *const *items,
                      size_t n, const char *place, const char *from);
void foreign_note(struct foreign_job *j, struct arena *a, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* The value of one of our keys; NULL: the job does not have it. */
const char *foreign_value(const struct foreign_job *j, const char *key);

/* Sets the keys, and c->foreign to a copy of the job, whose strings are those of the job.  Errors name the place and
 * the key of the other trainer. */
int foreign_apply(struct job_config *c, const struct foreign_job *j, struct cairn_error *err);
/* A file of our own schema with these keys, in the order of its sections. */
void foreign_write(const struct foreign_job *j, struct str *yaml);

#endif
