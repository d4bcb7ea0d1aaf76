/* SPDX-License-Identifier: Apache-2.0
 * What a trainer really runs with, from /proc: the PyTorch that it loaded and its environment variables.
 *
 * A start script may set variables and start another Python than planned.  Only variables in cairn's table
 * are read, and only of this user's processes. */
#ifndef CAIRN_RUN_OBSERVE_H
#define CAIRN_RUN_OBSERVE_H

#include "base/arena.h"
#include "run/tree.h"
#include <stdbool.h>

struct observed {
    int pid;
    bool on_gpu;            /* PyTorch or HIP is loaded: the trainer itself, not a helper */
    bool called;            /* it made GPU calls; env is that of the first call */
    const char *torch;      /* the directory that holds the loaded torch; NULL: none is loaded yet */
    const char *const *env; /* "NAME=value" of known names, in the order of the process */
};

enum { OBSERVE_MOST = 64, OBSERVE_NOTICES = 32 };
enum observe_stage { OBSERVE_NEW, OBSERVE_PYTHON, OBSERVE_LOADED, OBSERVE_CALLED };
struct observe_process {
    int pid;
    enum observe_stage stage; /* the last one that was reported */
    bool has_torch;
    const char *const *env;
};
struct observe {
    struct arena *a;   /* owns the observations */
    const char *calls; /* prefix of the files of GPU calls; NULL: none */
    struct observe_process process[OBSERVE_MOST];
    size_t n_processes;
    size_t n_notices[OBSERVE_CALLED + 1]; /* of each stage, so that many helpers do not hide the trainer */
    double start, next;                   /* times of the first and the next scan */
    void (*notice)(void *context, const struct observed *o);
    void *context;
};

/* Scans the processes of a run and calls `notice` for each new Python process, when it has loaded PyTorch
 * or HIP, and when it made its first GPU call: the file of its calls has its environment then, which it
 * may have changed. */
void observe_look(struct observe *o, const struct tree *t, const char *proc);
/* The same for all descendants of a process, if it is time: often at first, since start scripts and
 * failing trainers end soon.  Returns the time of the next scan; o may be NULL. */
double observe_tick(struct observe *o, int root, double now);
/* Forgets all observations, for a new attempt. */
void observe_begin(struct observe *o);

#endif
