/* SPDX-License-Identifier: Apache-2.0
 * Threads, and the CPUs they may use. */
#ifndef CAIRN_OS_THREAD_H
#define CAIRN_OS_THREAD_H

#include <pthread.h>
#include <stdint.h>

/* As pthread_create, but no signal is delivered to the new thread: a handler of Ctrl-C must not run in a
 * worker. 0, or the error's number. */
int os_thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg);
/* From now on the working folder of this thread is its own: chdir no longer changes that of the others.  -1 with
 * errno. */
int os_thread_own_folder(void);
/* CPUs that this process may use, at least 1. */
int os_cpus(void);
/* The same as bits; and from now on, a share of them: so many processes use the same ones. */
enum { OS_CPU_WORDS = 16 };
void os_cpu_mask(uint64_t mask[OS_CPU_WORDS]);
void os_share_cpus(int processes);

#endif
