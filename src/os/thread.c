/* SPDX-License-Identifier: Apache-2.0 */
#include "os/thread.h"

#include <sched.h>
#include <signal.h>

int os_thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = pthread_create(thread, NULL, fn, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}

int os_thread_own_folder(void)
{
    return unshare(CLONE_FS);
}

int os_cpus(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
    return n < 1 ? 1 : n;
}
