/* SPDX-License-Identifier: Apache-2.0
 * The folders of training runs: run.json, which describes a run and its state, and the list of native runs.
 * run/run_list.h lists all kinds. */
#ifndef CAIRN_RECORD_RUNS_H
#define CAIRN_RECORD_RUNS_H

#include "base/arena.h"
#include "base/error.h"
#include <stdbool.h>
#include <stdint.h>

enum run_state {
    RUN_UNKNOWN, /* no run.json, or no state in it */
    RUN_RUNNING,
    RUN_FINISHED,
    RUN_STOPPED, /* by the user, with a checkpoint to resume from */
    RUN_CRASHED, /* the file says so, or says "running" and the process is gone */
};
const char *run_state_name(enum run_state s);

/* Unknown strings are NULL and unknown numbers 0. */
struct run_info {
    const char *name, *config_hash, *model, *device, *cairn_version;
    const char *workaround; /* in force since its device failed */
    const char *folder;     /* that of the relative paths in its config.yaml */
    uint64_t parameters, steps;
    uint64_t control_seq;      /* the last order of control.json that was obeyed */
    uint64_t stop_at_step;     /* where one says that the run stops, if it has not yet */
    int64_t started, finished; /* seconds since 1970 */
    int64_t pid;
    enum run_state state;
};

/* Replaces run.json atomically. */
int run_info_write(const char *dir, const struct run_info *info, struct cairn_error *err);
/* Reads the file as it is. */
int run_info_read(const char *dir, struct arena *a, struct run_info *out, struct cairn_error *err);

/* Native: `cairn train` made it, and its folder has run.json.  Supervised: another trainer under `cairn run`,
 * whose folder has events.jsonl and, in the end, verdict.json. */
enum run_kind { RUN_NATIVE, RUN_SUPERVISED };

/* A run of either kind, as its folder describes it.  Unknown strings are NULL and unknown numbers 0. */
struct run_entry {
    enum run_kind kind;
    const char *id;   /* the folder's name */
    const char *name; /* native: never NULL; supervised: the command, in one line */
    const char *dir;
    enum run_state state; /* the current state, whatever the file says; RUN_CRASHED for a failed trainer */
    int64_t started;      /* seconds since 1970 */
    int64_t touched;      /* last write; supervised: when it ended, else when it started */
    double seconds;       /* from start to end; supervised: all attempts together */
    const char *verdict;  /* the class of its last diagnosis */

    /* native */
    struct run_info info; /* as run.json has it */
    uint64_t done;        /* steps */
    bool has_loss;
    double loss; /* the last; may be NaN or Inf */

    /* supervised */
    const char *started_text; /* as in the journal: "2026-11-15T06:05:35Z" */
    const char *change;       /* of its last attempt */
    bool ended;               /* it has a verdict */
    int64_t code, attempts;
};

/* Makes a run known to runs_registered, wherever its folder is.  Does nothing if that fails: training goes on. */
void runs_register(const char *dir);
/* Forgets it again: it belongs to somebody who lists it. */
void runs_unregister(const char *dir);
/* All runs that were registered and still exist, with kind, id and dir alone; runs_read reads the rest of one. */
int runs_registered(struct arena *a, struct run_entry **out, size_t *n, struct cairn_error *err);
void runs_read(struct run_entry *row, struct arena *a);

/* Moves the folder of a run, if it is one, to .cairn-trash/TIME/ beside it. */
int runs_trash(const char *dir, struct cairn_error *err);

/* The native runs in a folder, or that folder itself if it is one; NULL: those in ./runs and
 * $XDG_STATE_HOME/cairn/train (or ~/.local/state/cairn/train).  Sorted by last write, the newest last.  A
 * damaged run is listed with what could be read. A given folder that does not exist is an error; *n may be
 * 0. */
int runs_list(const char *dir, struct arena *a, struct run_entry **out, size_t *n, struct cairn_error *err);
/* The run that a user means: a folder, a log.jsonl, or a name in one of those places. */
int runs_find(const char *what, struct arena *a, const char **dir, struct cairn_error *err);
/* The name in run.json, else the folder's. */
const char *runs_name(const char *dir, struct arena *a);

#endif
