/* SPDX-License-Identifier: Apache-2.0
 * Memory and load of the GPU and memory of the host while a trainer runs.
 *
 * The files are in the same tree as those of the facts, so a captured tree works too.  If the GPU shares
 * the host's memory, OOM freezes the machine; memory_monitor_guard says when to stop the trainer before
 * that.  It is the second line of defense: the preload library keeps the trainer within its limit, but
 * other processes use memory too. */
#ifndef CAIRN_RUN_MEMORY_MONITOR_H
#define CAIRN_RUN_MEMORY_MONITOR_H

#include "base/json.h"
#include "host/facts.h"
#include "rules/diagnose.h"
#include <stdbool.h>
#include <stdint.h>

struct memory_monitor_reading { /* -1: unknown */
    int64_t host_available_bytes, vram_used_bytes, gtt_used_bytes, busy_percent;
};

/* Number of OOM kills since the machine, or our cgroup, started.  -1: unknown. */
struct memory_monitor_kills {
    int64_t machine, cgroup;
};

struct memory_monitor {
    const struct root *root;
    char dir[256];                           /* of the GPU's files; "": unknown */
    int64_t reserve_bytes;                   /* memory to keep for the host; 0: no guard */
    int64_t guard_bytes;                     /* memory that must stay available: half of it */
    int low;                                 /* readings below it in a row */
    struct memory_monitor_reading now, peak; /* peak.host_available_bytes is the minimum */
    struct diagnose_memory memory;           /* of this attempt */
    struct memory_monitor_kills before;      /* this attempt */
};

/* gpu may be NULL.  Takes the first reading. */
void memory_monitor_init(struct memory_monitor *g, const struct facts *f, const struct gpu_facts *gpu);
/* Call it before an attempt: takes a reading and sets the guard.  If memory is already short, the reserve
 * would stop the trainer at once, so the guard is then a quarter of the available memory; the preload
 * library leaves half of it. */
void memory_monitor_begin(struct memory_monitor *g);
void memory_monitor_read(struct memory_monitor *g);
/* The host is about to run out of memory: below the guard in two readings, or below half of it in one. */
bool memory_monitor_guard(const struct memory_monitor *g);
/* Call it after an attempt: fills in the OOM kills meanwhile. */
void memory_monitor_end(struct memory_monitor *g);
/* VRAM and GTT in use; -1: unknown. */
int64_t memory_monitor_gpu_bytes(const struct memory_monitor_reading *r);
void memory_monitor_json(const struct memory_monitor_reading *r, struct json *into);
void memory_monitor_memory_json(const struct diagnose_memory *m, struct json *into);
/* Reads it back; v NULL: no data. */
struct diagnose_memory memory_monitor_memory_of(const struct json *v);

#endif
