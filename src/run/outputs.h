/* SPDX-License-Identifier: Apache-2.0
 * What a trainer wrote: the safetensors files that are younger than its start, scanned for numbers that got lost.
 *
 * A cache of latents that is all zero trains without a word of complaint, so a run that ends well is not yet a good
 * one.  Looked at are the working folder and the folders that the command and its job files
 * (job_file.h) name; the walk is bounded, does not follow
 * links, and ends at a number of files. */
#ifndef CAIRN_RUN_OUTPUTS_H
#define CAIRN_RUN_OUTPUTS_H

#include "base/arena.h"
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

struct outputs_finding {
    const char *path;
    const char *verdict; /* "all-zero" */
    const char *why, *todo;
};

struct outputs {
    size_t n_files; /* that were looked at */
    bool cut;       /* there was more than the walk looks at */
    struct outputs_finding *damaged;
    size_t n_damaged;
};

/* all: every safetensors file; otherwise those in folders of caches and latents. */
void outputs_check(char *const *argv, struct timespec since, bool all, struct arena *a, struct outputs *out);

#endif
