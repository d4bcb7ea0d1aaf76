/* SPDX-License-Identifier: Apache-2.0
 * Two watchers of a model's ops: one finds the first op whose output has a NaN or an infinity, one
 * measures how long each op takes.  Both wait for the device after each op. */
#ifndef CAIRN_NN_OP_TRACE_H
#define CAIRN_NN_OP_TRACE_H

#include "nn/nn.h"
#include <stdio.h>

struct nan_finder {
    struct nn_watcher watcher;
    bool found;
    char where[64], op[32];
    long long nan, infinite; /* how many of the n values of its output */
    size_t n;
    void *parts; /* on the device */
    size_t parts_bytes;
};
void nan_finder_init(struct nan_finder *f);
void nan_finder_release(struct nan_finder *f, struct gpu *g);

/* Time of each op by name, and of each single one for a trace that Perfetto opens. */
struct op_profile_row {
    char op[32];
    size_t calls;
    double seconds, flops, bytes;
};
struct op_profile {
    struct nn_watcher watcher;
    struct op_profile_row rows[64];
    size_t n;
    double last, first; /* monotonic seconds */
    FILE *trace;        /* may be NULL */
    bool any;
};
void op_profile_start(struct op_profile *p, FILE *trace);
/* The time until now belongs to no op. */
void op_profile_skip(struct op_profile *p);
void op_profile_end(struct op_profile *p); /* ends the trace; sorts rows by time, most first */

#endif
