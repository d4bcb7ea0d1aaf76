/* SPDX-License-Identifier: Apache-2.0
 * The folders of training runs: run.json, which says what a run is and how it stands, and the list of runs. */
#ifndef CAIRN_RECORD_RUNS_H
#define CAIRN_RECORD_RUNS_H

#include "base/arena.h"
#include "base/error.h"
#include <stdbool.h>
#include <stdint.h>

enum run_state {
    RUN_UNKNOWN, /* no run.json, or one that does not say */
    RUN_RUNNING,
    RUN_FINISHED,
    RUN_STOPPED, /* by the user, with a checkpoint to go on from */
    RUN_CRASHED, /* it says so, or says that it runs and its process is gone */
};
const char *run_state_name(enum run_state s);

/* Texts are NULL and numbers 0 where they are not known. */
struct run_info {
    const char *name, *config_hash, *model, *device, *cairn_version;
    const char *workaround; /* what was done otherwise since its device failed */
    uint64_t parameters, steps;
    int64_t started, finished; /* seconds since 1970 */
    int64_t pid;
    enum run_state state;
};

/* Replaces run.json, whole or not at all. */
int run_info_write(const char *dir, const struct run_info *info, struct cairn_error *err);
/* As it stands in the file. */
int run_info_read(const char *dir, struct arena *a, struct run_info *out, struct cairn_error *err);

struct run_row {
    const char *dir;
    struct run_info info; /* name is never NULL; state is true now, whatever the file says */
    uint64_t done;        /* steps */
    bool has_loss;
    double loss;     /* the last; may be no number */
    int64_t touched; /* when it was last written to, seconds since 1970 */
};

/* The runs in a folder, or that folder itself if it is one; NULL: those in ./runs and $XDG_STATE_HOME/cairn/train (or
 * ~/.local/state/cairn/train).  The one last written to comes last.  What is damaged is listed with what could be read.
 * A folder that is given and is not there is an error; *n may be 0. */
int runs_list(const char *dir, struct arena *a, struct run_row **out, size_t *n, struct cairn_error *err);
/* The run that a user means: a folder, a log.jsonl, or a name in one of those places. */
int runs_find(const char *what, struct arena *a, const char **dir, struct cairn_error *err);
/* What stands in run.json as its name, else the folder's. */
const char *runs_name(const char *dir, struct arena *a);

#endif
