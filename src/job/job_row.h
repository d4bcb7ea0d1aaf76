/* SPDX-License-Identifier: Apache-2.0
 * A job of the queue, as a row of the database describes it. */
#ifndef CAIRN_JOB_JOB_ROW_H
#define CAIRN_JOB_JOB_ROW_H

#include <stdbool.h>
#include <stdint.h>

enum job_kind {
    JOB_TRAIN,  /* `cairn train` with a configuration */
    JOB_RUN,    /* any command, under `cairn run` */
    JOB_CACHE,  /* `cairn cache` */
    JOB_SAMPLE, /* `cairn sample` */
};

enum job_state {
    JOB_DRAFT,
    JOB_QUEUED,
    JOB_STARTING, /* claimed; its supervisor starts, or waits for the GPU */
    JOB_ACTIVE,
    JOB_FINISHED,
    JOB_FAILED,
    JOB_STOPPED, /* by the user */
    JOB_PAUSED,  /* by the user, and keeps its place in the queue */
    JOB_LOST,    /* its supervisor ended without a verdict: power loss, kill -9 */
    JOB_N_STATES,
};

/* What the user asked a running job to do. */
enum job_want { JOB_WANT_NOTHING, JOB_WANT_STOP, JOB_WANT_PAUSE, JOB_WANT_KILL };

const char *job_kind_name(enum job_kind k);
const char *job_state_name(enum job_state s);
const char *job_want_name(enum job_want w); /* NULL for JOB_WANT_NOTHING */
bool job_kind_parse(const char *name, enum job_kind *out);
bool job_state_parse(const char *name, enum job_state *out);
enum job_want job_want_parse(const char *name);

/* How long its trainer may take to save and end when it is asked to stop: native training finishes its step. */
int job_kind_grace_s(enum job_kind k);
/* Has a supervisor, or should have. */
bool job_state_is_running(enum job_state s);
/* Finished, failed, stopped or lost. */
bool job_state_has_ended(enum job_state s);

enum { JOB_UID_SIZE = 17 }; /* with its NUL */

/* Unknown strings are NULL, unknown numbers 0, times are seconds since 1970. */
struct job_row {
    const char *uid, *name;
    enum job_kind kind;
    const char *config; /* the text of the configuration, as typed */
    const char *argv;   /* the command, as a JSON array */
    const char *cwd, *env /* a JSON object */, *options /* a JSON object; see command.h */;
    const char *gpu;      /* the wish: "auto", "cpu", "0" or "0,1" */
    const char *gpu_used; /* what it got when it was claimed, in the same form without "auto" */
    enum job_state state;
    enum job_want want;
    double position;
    int64_t attempt;        /* 1 for the first start */
    int64_t claims;         /* in a row without a supervisor that came */
    int64_t since_ms;       /* when it was claimed, or asked to stop */
    int64_t pid, pid_start; /* of the supervisor */
    const char *boot_id;
    const char *run_dir; /* of native training */
    bool has_exit;
    int64_t exit_code;
    const char *class_id, *cause; /* why it failed, or what it waits for */
    const char *parent;           /* the job that it is a clone of */
    const char *note;
    int64_t created, started, finished;
    int64_t version; /* counts edits */
    bool adopted;    /* a run that was started elsewhere (adopt.h); it has no row */
    uint64_t mark;   /* of one that ended: changes with its files; else 0 */
};

/* A new name, unique, that sorts by the time of its making. */
void job_uid_make(char out[JOB_UID_SIZE]);
/* The same for a given time and content, always the same. */
void job_uid_of(int64_t time_ms, const char *content, char out[JOB_UID_SIZE]);
/* 16 characters of [0-9a-z]. */
bool job_uid_is_valid(const char *uid);

#endif
