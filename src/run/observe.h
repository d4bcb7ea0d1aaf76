/* SPDX-License-Identifier: Apache-2.0
 * What a trainer really has, as /proc shows it: the PyTorch that it loaded, and the variables that it was started with.
 *
 * A start script may set variables of its own and start another Python than the one that was planned for.  Of the
 * environment only names of cairn's own table are read, and only of processes of this user. */
#ifndef CAIRN_RUN_OBSERVE_H
#define CAIRN_RUN_OBSERVE_H

#include "base/arena.h"
#include "run/tree.h"
#include <stdbool.h>

struct observed {
    int pid;
    bool on_gpu;            /* PyTorch or HIP is loaded: the trainer itself.  Else some Python of the run */
    bool called;            /* it made GPU calls, and env is what it had at the first */
    const char *torch;      /* the directory that holds the loaded torch; NULL: none is loaded yet */
    const char *const *env; /* "NAME=value", of known names, in the order of the process */
};

enum { OBSERVE_MOST = 64, OBSERVE_NOTICES = 32 };
enum observe_stage { OBSERVE_NEW, OBSERVE_PYTHON, OBSERVE_LOADED, OBSERVE_CALLED };
struct observe_process {
    int pid;
    enum observe_stage stage; /* what was noticed of it */
    bool has_torch;
    const char *const *env;
};
struct observe {
    struct arena *a;   /* what is seen is kept here */
    const char *calls; /* what the files of GPU calls begin with; NULL: there are none */
    struct observe_process process[OBSERVE_MOST];
    size_t n_processes;
    size_t n_notices[OBSERVE_CALLED + 1]; /* of each stage, so that many helpers do not hide the trainer */
    double start, next;                   /* of the looks */
    void (*notice)(void *context, const struct observed *o);
    void *context;
};

/* Looks at the processes of a run and calls `notice` for each Python that is new, when one has loaded PyTorch or HIP, and
 * when it made its first GPU call: what it then had is in the file of its calls, and a program may have changed it. */
void observe_look(struct observe *o, const struct tree *t, const char *proc);
/* The same for all below a process, where it is time: often at first, since much of a start is over soon, and a trainer
 * that fails may be gone.  Returns when to come again; o may be NULL. */
double observe_tick(struct observe *o, int root, double now);
/* A new attempt: nothing was seen yet. */
void observe_begin(struct observe *o);

#endif
