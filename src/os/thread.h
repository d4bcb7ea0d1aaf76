/* SPDX-License-Identifier: Apache-2.0
 * Threads, and the CPUs they may use. */
#ifndef CAIRN_OS_THREAD_H
#define CAIRN_OS_THREAD_H

#include <pthread.h>

/* As pthread_create, but no signal is delivered to the new thread: a handler of Ctrl-C must not run in a
 * worker. 0, or the error's number. */
int os_thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg);
/* CPUs that this process may use, at least 1. */
int os_cpus(void);

#endif
