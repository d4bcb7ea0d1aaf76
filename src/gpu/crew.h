/* SPDX-License-Identifier: Apache-2.0
 * Threads that wait for work: the CPU as a device.
 *
 * crew_run calls fn(context, piece) once for each piece, on all threads of the crew and the caller's own, and
 * returns when all are done.  Between calls the threads look for work for a moment and then sleep, so that a
 * run of small kernels does not pay for waking them.  One crew_run at a time. */
#ifndef CAIRN_GPU_CREW_H
#define CAIRN_GPU_CREW_H

#include <stddef.h>

struct crew;

/* NULL when memory is out; fewer threads than asked for are no error. */
struct crew *crew_new(int threads);
void crew_free(struct crew *c);
int crew_size(const struct crew *c); /* the caller's thread counts */
void crew_run(struct crew *c, size_t pieces, void (*fn)(void *context, size_t piece), void *context);

#endif
