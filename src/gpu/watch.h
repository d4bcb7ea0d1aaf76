/* SPDX-License-Identifier: Apache-2.0
 * Watches calls of GPU libraries that may never return.
 *
 * A wait for the device can fail after the limit (device.c does that).  A call that hangs inside the driver
 * cannot be cancelled: the watch reports it from a thread of its own, and the callback ends the process.
 * Calls and work of one thread at a time are watched. */
#ifndef CAIRN_GPU_WATCH_H
#define CAIRN_GPU_WATCH_H

#include "base/error.h"
#include <stdbool.h>

/* Once in a process.  `stuck` is called at most once, from the watch's thread. */
int watch_start(int limit_s, void (*stuck)(const struct cairn_error *why), struct cairn_error *err);
int watch_limit_s(void); /* 0: no limit */

/* Around a call; both texts stay as they are until it returns.  Time in which the whole process stood still
 * (a debugger, a stopped job) does not count, neither here nor below. */
void watch_enter(const char *who, const char *what);
void watch_leave(void);

/* Work with limits of its own, such as a step of training. */
struct watch_work {
    const char *what;     /* "step 12"; stays as it is until the end */
    double slow_s, end_s; /* after these `slow` and `stuck` are called; 0: never */
    /* Once, from the watch's thread; the end of the work waits for it.  call: what the driver was asked for
     * and has not answered; NULL: it is in no call. */
    void (*slow)(void *to, double spent_s, const char *call);
    void *to;
};
void watch_work_begin(const struct watch_work *w);
void watch_work_end(void);

/* After an abandoned wait the process must not end through the runtime's own cleanup, which would wait
 * too. */
void watch_note_hang(void);
bool watch_saw_hang(void);

extern const char watch_hint[]; /* what to do about a device that does not answer */

#endif
