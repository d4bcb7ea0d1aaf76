/* SPDX-License-Identifier: Apache-2.0
 * The database of jobs, <state>/cairn.db: which jobs there are, in which order, and what the user wants of
 * them.
 *
 * Every change is one short transaction, and one that depends on the state of a row names that state, so
 * that two programs never both think that they made it.  The content can be rebuilt from the folders of the
 * jobs (rebuild.h): losing the file loses the order and nothing else.  A store belongs to one thread. */
#ifndef CAIRN_JOB_STORE_H
#define CAIRN_JOB_STORE_H

#include "base/arena.h"
#include "base/error.h"
#include "job/job_row.h"

struct store;

struct store_options {
    const char *state; /* the folder that it is in */
    int busy_ms;       /* how long to wait for another program that writes; 0: 5 s */
    /* Adds the first rows of a new database, before anybody else sees it; NULL: none. */
    int (*fill)(void *context, struct store *s, struct cairn_error *err);
    void *context; /* of fill */
};
/* Opens it, and creates it if it is missing.  A damaged file is an error (CAIRN_EFORMAT) with the command that
 * rebuilds it.  *note (or NULL): what the user should know once, such as a slow network file system; in the
 * arena. */
int store_open(const struct store_options *o, struct arena *a, struct store **out, const char **note,
               struct cairn_error *err);
/* Nothing can be changed. */
bool store_is_read_only(const struct store *s);
/* After a failure: another program had locked the database, so that trying again may help. */
bool store_was_locked(const struct store *s);
/* False: the file was removed or replaced since it was opened. */
bool store_is_current(const struct store *s);
/* Reads all of it; fails with CAIRN_EFORMAT if it is damaged. */
int store_check(struct store *s, struct cairn_error *err);
/* Calls `change` in one transaction, which is taken back if it fails. */
int store_change(struct store *s, int (*change)(void *context, struct store *s, struct cairn_error *err),
                 void *context, struct cairn_error *err);
void store_close(struct store *s);
void store_close_at(struct store **s); /* for CLEANUP */

int64_t store_now_ms(void);

/* A new row; the caller made its uid.  Position 0 means the end of the queue. */
int store_add(struct store *s, const struct job_row *row, struct cairn_error *err);
/* Fails with CAIRN_EUSAGE if there is none. */
int store_get(struct store *s, const char *uid, struct arena *a, struct job_row *out,
              struct cairn_error *err);
/* The row that a user means: a uid, the unique end of one, or a unique name. */
int store_find(struct store *s, const char *word, struct arena *a, struct job_row *out,
               struct cairn_error *err);
/* Whether there is a row with this uid. */
int store_has(struct store *s, const char *uid, bool *has, struct cairn_error *err);
/* Gets a row that is changed or removed and says whether it can be so: if it fails, that is taken back.  NULL where one
 * may be given: no one is asked. */
struct store_keeper {
    int (*keep)(void *context, const struct job_row *row, struct cairn_error *err);
    void *context;
};
/* *removed: false if it runs or has a process left. */
int store_remove(struct store *s, const char *uid, const struct store_keeper *keeper, bool *removed,
                 struct cairn_error *err);
/* Whether the folder is that of a job's training. */
int store_has_run(struct store *s, const char *run_dir, bool *has, struct cairn_error *err);

struct store_query {
    unsigned states;    /* bit 1 << state for each state; 0: all */
    const char *text;   /* part of the name, the note, the command or the uid; NULL: any */
    const char *before; /* only jobs made before this one; NULL: all */
    int limit;          /* 0: all */
};
/* The newest first.  Rows of this and the next two functions have no config and no env. */
int store_list(struct store *s, const struct store_query *q, struct arena *a, struct job_row **out, size_t *n,
               struct cairn_error *err);
/* Queued and paused jobs in the order of the queue. */
int store_queue(struct store *s, struct arena *a, struct job_row **out, size_t *n, struct cairn_error *err);

/* Jobs that run, or that ended and left a process. */
int store_unsettled(struct store *s, struct arena *a, struct job_row **out, size_t *n,
                    struct cairn_error *err);

/* What the user may change.  NULL: stays. */
struct store_edit {
    const char *name, *note, *config, *argv, *gpu, *options;
};
/* `version` must be the row's (0: any).  *changed: false if it is not, or if the job runs.  `keep` gets the new
 * row. */
int store_edit(struct store *s, const char *uid, int64_t version, const struct store_edit *e,
               const struct store_keeper *keeper, bool *changed, struct cairn_error *err);
/* Moves a job that is queued or paused, before another; NULL: to the end. */
int store_move(struct store *s, const char *uid, const char *before, struct cairn_error *err);

/* ---- states.  *changed (or NULL): whether the row was in one of the states `from` (bits 1 << state) ---- */

/* draft or an ended state to queued, at the end of the queue unless it keeps its place. */
int store_enqueue(struct store *s, const char *uid, unsigned from, bool *changed, struct cairn_error *err);
int store_set_state(struct store *s, const char *uid, unsigned from, enum job_state to, bool *changed,
                    struct cairn_error *err);
int store_set_want(struct store *s, const char *uid, enum job_want want, struct cairn_error *err);
/* What a starting job waits for; NULL: nothing. */
int store_set_cause(struct store *s, const char *uid, const char *cause, struct cairn_error *err);

/* What claim decides for each queued job in turn: the GPUs that it gets, or NULL to leave it in the queue.
 * `taken` are the values of gpu_used of the jobs that run, and what the jobs before it in the queue wait for:
 * a job that needs two GPUs must not wait forever because others take each as it becomes free. */
struct store_lanes {
    const char *(*choose)(void *context, const struct job_row *job, const char *const *taken, size_t n_taken);
    void *context;
};
/* Claims the next job that can start.  *out is valid if *found. */
int store_claim(struct store *s, const struct store_lanes *lanes, struct arena *a, struct job_row *out,
                bool *found, struct cairn_error *err);
/* The supervisor of that attempt has the lock of the job. */
struct os_process_id;
int store_set_process(struct store *s, const char *uid, int64_t attempt, const struct os_process_id *me,
                      bool *changed, struct cairn_error *err);
/* It starts the trainer. */
int store_set_active(struct store *s, const char *uid, int64_t attempt, bool *changed,
                     struct cairn_error *err);
/* How an attempt ended. */
struct store_end {
    enum job_state state;
    bool has_exit;
    int64_t exit_code;
    const char *class_id, *cause, *run_dir, *options;
    bool keep_process; /* processes may be left: its GPU stays taken until its lock is free */
};
int store_set_end(struct store *s, const char *uid, int64_t attempt, const struct store_end *e, bool *changed,
                  struct cairn_error *err);
int store_set_run_dir(struct store *s, const char *uid, const char *run_dir, struct cairn_error *err);
/* A claim without a supervisor goes back to the queue.  Without `counts` it was not the job's fault. */
int store_unclaim(struct store *s, const char *uid, int64_t attempt, bool counts, struct cairn_error *err);
/* No process of it is left. */
int store_forget_process(struct store *s, const char *uid, struct cairn_error *err);

/* ---- settings: queue.paused, queue.wait_idle (queue.h) ---- */

/* NULL: not set. */
int store_setting(struct store *s, const char *key, struct arena *a, const char **out,
                  struct cairn_error *err);
int store_set_setting(struct store *s, const char *key, const char *value, struct cairn_error *err);

#endif
