/* SPDX-License-Identifier: Apache-2.0
 * How full things are while a trainer runs: the GPU's memory and load, and the host's memory.
 *
 * The files lie beside those that the facts came from, so a captured tree can be watched as well.  On a machine where the
 * GPU shares the host's memory, running out of it freezes everything; memory_monitor_guard says when to stop before that.  It is the
 * second line: the library inside the trainer fills memory up to the reserve, and other processes come and go. */
#ifndef CAIRN_RUN_MEMORY_MONITOR_H
#define CAIRN_RUN_MEMORY_MONITOR_H

#include "base/json.h"
#include "host/facts.h"
#include "rules/diagnose.h"
#include <stdbool.h>
#include <stdint.h>

struct memory_monitor_reading { /* -1: not known */
    int64_t host_available_bytes, vram_used_bytes, gtt_used_bytes, busy_percent;
};

/* How often the kernel has killed for memory since the machine, or our cgroup, started.  -1: not known. */
struct memory_monitor_kills {
    int64_t machine, cgroup;
};

struct memory_monitor {
    const struct root *root;
    char dir[256];                           /* of the GPU's files; "": not known */
    int64_t reserve_bytes;                   /* what the host should keep; 0: no guard */
    int64_t guard_bytes;                     /* what must stay free now: half of it */
    int low;                                 /* readings below it in a row */
    struct memory_monitor_reading now, peak; /* peak.host_available_bytes is the least that was left */
    struct diagnose_memory memory;           /* of this attempt */
    struct memory_monitor_kills before;      /* it */
};

/* gpu may be NULL.  Takes the first reading. */
void memory_monitor_init(struct memory_monitor *g, const struct facts *f, const struct gpu_facts *gpu);
/* An attempt begins: takes a reading and sets the guard.  Where memory is short already, the reserve would stop it at
 * once, so until there is more again a quarter of what is free has to do; the library leaves half of it. */
void memory_monitor_begin(struct memory_monitor *g);
void memory_monitor_read(struct memory_monitor *g);
/* The host's memory is about to run out: below the guard in two readings, or below half of it in one. */
bool memory_monitor_guard(const struct memory_monitor *g);
/* The attempt is over: fills in what the kernel has killed meanwhile. */
void memory_monitor_end(struct memory_monitor *g);
/* Bytes in use on the GPU, both kinds; -1: not known. */
int64_t memory_monitor_gpu_bytes(const struct memory_monitor_reading *r);
void memory_monitor_json(const struct memory_monitor_reading *r, struct json *into);
void memory_monitor_memory_json(const struct diagnose_memory *m, struct json *into);
/* The same back again; v NULL: nothing was watched. */
struct diagnose_memory memory_monitor_memory_of(const struct json *v);

#endif
