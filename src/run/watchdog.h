/* SPDX-License-Identifier: Apache-2.0
 * Does a trainer still move?  A pure judgement of samples, taken about once a second.
 *
 * It hangs when for `after_s` seconds it printed nothing, its processes used next to no CPU time, and the
 * GPU was either idle or pinned at 100 % with its memory in use unchanged.  A GPU of which nothing is
 * known counts as idle. Compiling kernels is silent for minutes, but it keeps a CPU busy. */
#ifndef CAIRN_RUN_WATCHDOG_H
#define CAIRN_RUN_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

struct watch_sample {
    double now_s;
    uint64_t output_bytes;
    uint64_t cpu_ticks; /* of the whole tree */
    int ticks_per_s;
    int64_t busy_percent; /* of the GPU; -1: not known */
    int64_t gpu_bytes;    /* in use; -1: not known */
};

struct watchdog {
    double after_s; /* 0: never */
    double since_s; /* when it was last seen to move */
    struct watch_sample last;
    bool begun;
};

void watchdog_init(struct watchdog *w, double after_s);
/* True when it hangs. */
bool watchdog_feed(struct watchdog *w, const struct watch_sample *s);
/* Standing still was right until now (it was stopped, it waits for an answer): count anew. */
void watchdog_rest(struct watchdog *w);

#endif
