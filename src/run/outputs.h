/* SPDX-License-Identifier: Apache-2.0
 * What a trainer wrote: the safetensors files that are younger than its start, scanned for numbers that
 * got lost.
 *
 * A cache of latents that is all zero trains without a word of complaint, so a run that ends well is not
 * yet a good one.  Looked at are the working folder and the folders that the command and its job files
 * (job_file.h) name; the walk is bounded, does not follow links, and ends at a number of files.  Unless
 * all files are asked for, it also ends after some time and some bytes. */
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
    size_t n_files; /* that were looked at */
    size_t n_left;  /* that were not, since the time, the bytes or the user's patience were over */
    bool cut;       /* there was more than the walk looks at */
    struct outputs_finding *damaged;
    size_t n_damaged;
};

enum { OUTPUTS_MOST_S = 60 };
static const uint64_t outputs_most_bytes = (uint64_t)32 << 30;

struct outputs_options {
    char *const *argv;
    struct timespec since;
    bool all; /* every safetensors file; otherwise those in folders of caches and latents */
    /* Both may be NULL.  stopped is asked now and then, from any thread; slow is called once, when it
     * takes a while. */
    bool (*stopped)(void *context);
    void (*slow)(void *context);
    void *context;
};

void outputs_check(const struct outputs_options *o, struct arena *a, struct outputs *out);

#endif
