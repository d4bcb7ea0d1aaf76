/* SPDX-License-Identifier: Apache-2.0
 * Threads that wait for work: the CPU as a device.
 *
 * cpu_threads_run calls fn(context, piece) once for each piece, on all threads of the cpu_threads and the
 * caller's own, and returns when all are done.  Between calls the threads spin for a moment and then sleep,
 * so that a sequence of small kernels does not pay for waking them.  One cpu_threads_run at a time. */
#ifndef CAIRN_GPU_CPU_THREADS_H
#define CAIRN_GPU_CPU_THREADS_H

#include <stddef.h>

struct cpu_threads;

/* NULL if there is no memory; fewer threads than requested is not an error. */
struct cpu_threads *cpu_threads_new(int threads);
void cpu_threads_free(struct cpu_threads *c);
int cpu_threads_size(const struct cpu_threads *c); /* the caller's thread counts */
void cpu_threads_run(struct cpu_threads *c, size_t pieces, void (*fn)(void *context, size_t piece),
                     void *context);

#endif
