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
    const char *torch;      /* the directory that holds the loaded torch; NULL: none is loaded yet */
    const char *const *env; /* "NAME=value", of known names, in the order of the process */
};

enum { OBSERVE_MOST = 64 };
struct observe {
    struct arena *a; /* what is seen is kept here */
    int seen[OBSERVE_MOST];
    size_t n_seen;
    int trainer; /* the process that is on the GPU; 0: none yet */
    bool has_torch;
    double start, next; /* of the looks */
    void (*notice)(void *context, const struct observed *o);
    void *context;
};

/* Looks at the processes of a run and calls `notice` for each Python that is new, and when one is seen on the GPU. */
void observe_look(struct observe *o, const struct tree *t, const char *proc);
/* The same for all below a process, where it is time: often at first, since much of a start is over soon, and a trainer
 * that fails may be gone.  Returns when to come again; o may be NULL. */
double observe_tick(struct observe *o, int root, double now);
/* A new attempt: nothing was seen yet. */
void observe_begin(struct observe *o);

#endif
