/* SPDX-License-Identifier: Apache-2.0
 * The last GPU calls of a trainer's processes, as recorded by the preload library (preload/record.h).
 *
 * Can be read while they run and after any kind of death.  Everything in a result is in the arena. */
#ifndef CAIRN_RUN_GPU_CALLS_H
#define CAIRN_RUN_GPU_CALLS_H

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"
#include <stdbool.h>
#include <stdint.h>

enum { GPU_CALLS_MOST = 32, GPU_CALLS_MOST_PROCESSES = 8 }; /* that are reported */

struct gpu_call {
    const char *function, *kernel; /* kernel: NULL unless the call is a launch and its name is known */
    uint64_t size;                 /* bytes, or threads of a launch */
    int kind;                      /* hipMemcpyKind of a copy; 0: none */
    int code;
    bool refused;           /* an allocation that the guard refused */
    bool returned;          /* false: the process is inside, or died there */
    double took_s, begun_s; /* begun_s: how long ago */
    unsigned thread;
};

struct gpu_call_process {
    int pid;
    const char *library;   /* the runtime; "" if unknown */
    uint64_t n_calls;      /* in total */
    struct gpu_call *call; /* the last ones, oldest first; includes calls that never returned */
    size_t n;
    uint64_t staged, staged_bytes, retried, told, refused, refused_bytes;
};

/* Some environment variables of a process at its first GPU call: "NAME=value", or "NAME" if not set;
 * NULL-terminated. NULL: no call, or no record.  file: prefix of the files of GPU calls; or NULL. */
const char *const *gpu_calls_environment(const char *file, int pid, struct arena *a);

struct gpu_calls {
    struct gpu_call_process
        *process; /* first those with a call that may explain the failure, then those that called last */
    size_t n;
    uint64_t refused, refused_bytes; /* by the guard, in processes whose last failed allocation it refused */
};

/* prefix as in CAIRN_PRELOAD_FILE; NULL: reads nothing. */
void gpu_calls_read(const char *prefix, struct arena *a, struct gpu_calls *out);
void gpu_calls_remove(const char *prefix);
/* If there are many: removes the files of processes that ended without a failed call. */
void gpu_calls_tidy(const char *prefix);

/* The call that explains the failure, or NULL: one that failed or, if the process was stopped or killed,
 * one that never returned and is not just a wait. */
const struct gpu_call *gpu_calls_culprit(const struct gpu_calls *c, bool stood_still);
/* A copy that staging could help: large, and to the device.  A copy from the device, such as reading the
 * loss, waits for all launches before it. */
bool gpu_calls_is_copy(const struct gpu_call *c);
/* The last launch of the culprit's process or, without a culprit, of the process that called last; NULL:
 * its name is unknown. */
const struct gpu_call *gpu_calls_last_kernel(const struct gpu_calls *c, const struct gpu_call *culprit);

/* "hipMemcpyWithStream of 512.0 MiB, never returned, called 61.0 s ago" */
const char *gpu_calls_say(const struct gpu_call *c, struct arena *a);
/* Demangles the front of a C++ name, "at::native::reduce_kernel"; other names stay unchanged. */
const char *gpu_calls_readable(const char *kernel, struct arena *a);
void gpu_calls_text(const struct gpu_calls *c, struct str *out);
void gpu_calls_json(const struct gpu_calls *c, struct json *array);

#endif
