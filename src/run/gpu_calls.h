/* SPDX-License-Identifier: Apache-2.0
 * The last GPU calls of a trainer's processes, as the library inside them wrote them down (preload/record.h).
 *
 * May be read while they run, and after whatever ended them.  Everything in a result is in the arena. */
#ifndef CAIRN_RUN_GPU_CALLS_H
#define CAIRN_RUN_GPU_CALLS_H

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"
#include <stdbool.h>
#include <stdint.h>

enum { GPU_CALLS_MOST = 32, GPU_CALLS_MOST_PROCESSES = 8 }; /* that are told */

struct gpu_call {
    const char *function, *kernel; /* kernel: NULL unless it was launched here and its name is known */
    uint64_t size;                 /* bytes, or threads of a launch */
    int kind;                      /* of a copy, as HIP counts them; 0: it has none */
    int code;
    bool refused;           /* an allocation, by the guard */
    bool returned;          /* false: the process is inside, or died there */
    double took_s, begun_s; /* begun_s: how long ago */
    unsigned thread;
};

struct gpu_call_process {
    int pid;
    const char *library;   /* the runtime; "" when not known */
    uint64_t n_calls;      /* in its life */
    struct gpu_call *call; /* the last ones, oldest first; one that never returned stays among them */
    size_t n;
    uint64_t staged, staged_bytes, retried, told, refused, refused_bytes;
};

/* What one process had of some variables at its first GPU call: "NAME=value", or "NAME" where it was not set; ends with
 * NULL.  NULL: it made none, or nothing is recorded.  file: what the files of GPU calls begin with; or NULL. */
const char *const *gpu_calls_environment(const char *file, int pid, struct arena *a);

struct gpu_calls {
    struct gpu_call_process
        *process; /* those with a call that may explain an end first; then those that called last */
    size_t n;
    uint64_t refused,
        refused_bytes; /* allocations, by the guard, in those that it refused their last one that failed */
};

/* prefix as in CAIRN_PRELOAD_FILE; NULL: nothing is read. */
void gpu_calls_read(const char *prefix, struct arena *a, struct gpu_calls *out);
void gpu_calls_remove(const char *prefix);
/* When they become many: removes those of processes that are no more and have nothing to tell. */
void gpu_calls_tidy(const char *prefix);

/* The call that explains an end; NULL: none does.  One that failed, unless the process was stopped or killed where it stood:
 * then one that never returned, as long as it is no mere wait. */
const struct gpu_call *gpu_calls_culprit(const struct gpu_calls *c, bool stood_still);
/* One that staging could help: it is large, and said to go to the device.  To fetch something, as a trainer does with its
 * loss, is a wait for all that was launched before. */
bool gpu_calls_is_copy(const struct gpu_call *c);
/* The last launch of the culprit's process, or where that is NULL of the one that called last; NULL: its name is not known. */
const struct gpu_call *gpu_calls_last_kernel(const struct gpu_calls *c, const struct gpu_call *culprit);

/* "hipMemcpyWithStream of 512.0 MiB, never returned, begun 61.0 s ago" */
const char *gpu_calls_say(const struct gpu_call *c, struct arena *a);
/* "at::native::reduce_kernel" of what a C++ compiler made of it; other names as they are. */
const char *gpu_calls_readable(const char *kernel, struct arena *a);
void gpu_calls_text(const struct gpu_calls *c, struct str *out);
void gpu_calls_json(const struct gpu_calls *c, struct json *array);

#endif
