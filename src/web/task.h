/* SPDX-License-Identifier: Apache-2.0
 * Work that may take a while and cannot be split, such as fsync of a large file, on a thread of its own.
 *
 *     task_run(w->tasks, work, done, context)     work(context) on a thread, then done(context) in the loop
 *
 * Four at a time; others wait.  The context belongs to the thread between the two calls. */
#ifndef CAIRN_WEB_TASK_H
#define CAIRN_WEB_TASK_H

#include "base/error.h"
#include "web/loop.h"

enum { TASK_AT_ONCE = 4 };

struct tasks;
int tasks_open(struct loop *l, struct tasks **out, struct cairn_error *err);
/* Waits for those that run; `done` of none is called any more.  Accepts NULL. */
void tasks_close(struct tasks *t);

void task_run(struct tasks *t, void (*work)(void *context), void (*done)(void *context), void *context);

#endif
