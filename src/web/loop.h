/* SPDX-License-Identifier: Apache-2.0
 * The one loop of the server: waits for descriptors and timers, and calls a function for each.
 *
 * One thread.  A function that is called may add and remove anything, itself included. */
#ifndef CAIRN_WEB_LOOP_H
#define CAIRN_WEB_LOOP_H

#include "base/error.h"

struct loop;
struct loop_timer;

int loop_open(struct loop **out, struct cairn_error *err);
/* Accepts NULL; what was added is forgotten, not closed. */
void loop_close(struct loop *l);

/* Calls ready(context) whenever the descriptor has something to read or to write, or is closed. */
void loop_read(struct loop *l, int fd, void (*ready)(void *context), void *context);
void loop_write(struct loop *l, int fd, void (*ready)(void *context), void *context);
/* Before the descriptor is closed; one that was never added is fine. */
void loop_forget(struct loop *l, int fd);

/* Once, after that many seconds; the timer is then gone. */
struct loop_timer *loop_after(struct loop *l, double seconds, void (*fire)(void *context), void *context);
/* Again and again. */
struct loop_timer *loop_every(struct loop *l, double seconds, void (*fire)(void *context), void *context);
/* Accepts NULL; not for a timer of loop_after that has fired. */
void loop_cancel(struct loop *l, struct loop_timer *t);

/* Before each wait: what it returns, in milliseconds, is the longest wait; -1: any. */
void loop_before_wait(struct loop *l, int (*before)(void *context), void *context);

/* Until loop_stop. */
int loop_run(struct loop *l, struct cairn_error *err);
void loop_stop(struct loop *l);

#endif
