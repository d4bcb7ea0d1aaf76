/* SPDX-License-Identifier: Apache-2.0
 * To preload: the clock of the day was set back by a day. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { DAY_S = 24 * 60 * 60 };

int clock_gettime(clockid_t clock, struct timespec *out)
{
    long r = syscall(SYS_clock_gettime, clock, out);
    if (!r && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        out->tv_sec -= DAY_S;
    return (int)r;
}

time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}
