/* SPDX-License-Identifier: Apache-2.0
 * The machine as pages see it: its report, its figures once a second while somebody watches, and ten minutes of them.
 *
 * A driver that hangs may stop whoever reads its files.  So a thread of its own reads, and the server waits for its
 * results, never for the driver.  Without watchers it looks every five seconds, and then only at what lets an idle
 * card fall asleep. */
#ifndef CAIRN_WEB_MACHINE_H
#define CAIRN_WEB_MACHINE_H

#include "base/error.h"
#include "web/events.h"
#include "web/loop.h"
#include "web/request.h"

enum { MACHINE_SLOW_S = 5, MACHINE_PATIENCE_S = 10 };

struct machine;

/* root: of a captured machine; NULL: this one. */
int machine_open(struct loop *l, struct events *e, const char *root, struct machine **out,
                 struct cairn_error *err);
/* After the requests are gone; accepts NULL. */
void machine_close(struct machine *m);

/* Answers with the report of `cairn gpu --json`, and in "live" the figures of this moment. */
void machine_answer(struct machine *m, struct request *r);
/* Answers with the figures of the last seconds, and has them taken once a second for a while. */
void machine_answer_history(struct machine *m, struct request *r, int seconds);

#endif
