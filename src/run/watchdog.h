/* SPDX-License-Identifier: Apache-2.0
 * Detects a hang, as a pure function of samples taken about once per second.
 *
 * A trainer hangs if for `after_s` seconds it printed nothing, its processes used almost no CPU time, and
 * the GPU was either idle or at 100 % with unchanged memory use.  An unknown GPU counts as idle.
 * Compiling kernels prints nothing for minutes, but keeps a CPU busy. */
#ifndef CAIRN_RUN_WATCHDOG_H
#define CAIRN_RUN_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

struct watch_sample {
    double now_s;
    uint64_t output_bytes;
    uint64_t cpu_ticks; /* of the whole tree */
    int ticks_per_s;
    int64_t busy_percent; /* of the GPU; -1: unknown */
    int64_t gpu_bytes;    /* in use; -1: unknown */
};

struct watchdog {
    double after_s; /* 0: never */
    double since_s; /* time of the last progress */
    struct watch_sample last;
    bool begun;
};

void watchdog_init(struct watchdog *w, double after_s);
/* True if it hangs. */
bool watchdog_feed(struct watchdog *w, const struct watch_sample *s);
/* Starts counting again: there was a good reason to be idle (stopped, waiting for input). */
void watchdog_rest(struct watchdog *w);

#endif
