/* SPDX-License-Identifier: Apache-2.0 */
#include "os/thread.h"

#include <sched.h>
#include <signal.h>
#include <string.h>

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

static int sharers = 1; /* processes that have the same CPUs */

int os_cpus(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
    return n < sharers ? 1 : n / sharers;
}

void os_cpu_mask(uint64_t mask[OS_CPU_WORDS])
{
    cpu_set_t set;
    memset(mask, 0, OS_CPU_WORDS * sizeof(*mask));
    if (sched_getaffinity(0, sizeof(set), &set))
        return;
    for (int i = 0; i < OS_CPU_WORDS * 64; i++)
        mask[i / 64] |= (uint64_t)(CPU_ISSET(i, &set) != 0) << i % 64;
}

void os_share_cpus(int processes)
{
    sharers = processes > 1 ? processes : 1;
}
