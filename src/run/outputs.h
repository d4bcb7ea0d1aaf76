/* SPDX-License-Identifier: Apache-2.0
 * Scans the safetensors files that a trainer wrote for damaged values.
 *
 * Training on a cache of latents that is all zero gives no error, so exit status 0 is not enough.  The scan
 * covers the working folder and the folders that the command and its job files (job_file.h) name.  It does
 * not follow links and has a limit on the number of files, and without --check-outputs also on time and
 * bytes. */
#ifndef CAIRN_RUN_OUTPUTS_H
#define CAIRN_RUN_OUTPUTS_H

#include "base/arena.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct outputs_finding {
    const char *path;
    const char *verdict; /* "all-zero" */
    const char *why, *todo;
};

struct outputs {
    size_t n_files; /* checked */
    size_t n_left;  /* skipped because of the limits or Ctrl-C */
    bool cut;       /* there were more files than the limit */
    struct outputs_finding *damaged;
    size_t n_damaged;
};

enum { OUTPUTS_MOST_S = 60 };
static const uint64_t outputs_most_bytes = (uint64_t)32 << 30;

struct outputs_options {
    char *const *argv;
    struct timespec since;
    bool all; /* every safetensors file; otherwise those in folders of caches and latents */
    /* Both may be NULL.  stopped is polled from any thread; slow is called once if it takes a while. */
    bool (*stopped)(void *context);
    void (*slow)(void *context);
    void *context;
};

void outputs_check(const struct outputs_options *o, struct arena *a, struct outputs *out);

#endif
