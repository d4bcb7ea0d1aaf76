/* SPDX-License-Identifier: Apache-2.0
 * The folder of a job, <state>/jobs/<uid>/:
 *     job.json         what the job is (see rebuild.h)
 *     config.yaml      its configuration as typed; config.toml for one of musubi-tuner
 *     lock             held by its supervisor, its guardian and its trainer, and so while any process of it is
 *                      left; says which attempt on which GPU it is, for rebuild.h
 *     attempt-N/       the journal of its Nth start (run/journal.h); "training" in it names the run's folder
 *     supervisor.log   what the supervisors said
 *
 * A job runs if and only if somebody holds its lock. */
#ifndef CAIRN_JOB_JOB_DIR_H
#define CAIRN_JOB_JOB_DIR_H

#include "base/arena.h"
#include "base/error.h"
#include "base/own.h"
#include "job/job_row.h"

/* Its path; it need not exist. */
const char *job_dir_path(const char *state, const char *uid, struct arena *a);
/* The same for the journal of an attempt. */
const char *job_dir_attempt(const char *state, const struct job_row *row, struct arena *a);

/* Opens it; with `make`, creates it if it is missing.  errno ENOENT: there is none. */
int job_dir_open(const char *state, const char *uid, bool make, struct own_dir *out, struct cairn_error *err);

/* Writes what the row says of the job itself: job.json and its configuration. */
int job_dir_write(const char *state, const struct job_row *row, struct cairn_error *err);
/* The name of its configuration's file. */
const char *job_dir_config_name(const struct job_row *row);
/* The text of a job.json; the row has no uid and no configuration.  The message begins with the path. */
int job_dir_parse(const char *path, const char *text, size_t n, struct arena *a, struct job_row *out,
                  struct cairn_error *err);
/* Reads job.json and the configuration again.  Strings are in the arena. */
int job_dir_read(const char *state, const char *uid, struct arena *a, struct job_row *out,
                 struct cairn_error *err);
/* The uids of all folders. */
int job_dir_list(const char *state, struct arena *a, char ***uids, size_t *n, struct cairn_error *err);
/* The highest attempt that has a folder; 0: none. */
int64_t job_dir_last_attempt(const char *state, const char *uid);
/* Moves the folder to <state>/jobs/.cairn-trash/, which the user may empty. */
int job_dir_trash(const char *state, const char *uid, struct cairn_error *err);

/* Whether somebody holds the lock.  Also true if that cannot be found out: a job that seems to run is harmless,
 * one that seems to have ended would be started again beside itself. */
bool job_dir_is_held(const char *state, const char *uid);
/* Whether there is a file to lock; a job that never began has none. */
bool job_dir_has_lock(const char *state, const char *uid);
/* Takes the lock for this process and the children that inherit the file.  *fd is -1 if another has it. */
int job_dir_hold(const struct own_dir *d, int *fd, struct cairn_error *err);
/* Writes into the lock what the row says of the attempt: number, GPU, process. */
void job_dir_tell(int lock, const struct job_row *row);
/* Reads that into the row; false if there is nothing. */
bool job_dir_ask(const char *state, const char *uid, struct arena *a, struct job_row *row);

#endif
