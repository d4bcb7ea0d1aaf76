/* SPDX-License-Identifier: Apache-2.0
 * A thread that copies the trainer's output to cairn's stdout or stderr and to the recorder.  A blocked
 * reader blocks the trainer, as it would without cairn, but never cairn itself.
 *
 * If the reader has left (head), the trainer's pipe is closed too, so that it gets SIGPIPE as usual. */
#ifndef CAIRN_RUN_PUMP_H
#define CAIRN_RUN_PUMP_H

#include "base/error.h"
#include "run/recorder.h"
#include <stdbool.h>
#include <stdint.h>

struct pump; /* opaque */

/* Owns `from` and reads it to its end; `to` is borrowed.  done is an eventfd that counts pumps that have
 * ended. */
int pump_start(struct pump **out, int from, int to, struct recorder *r, int done, struct cairn_error *err);
uint64_t pump_bytes(const struct pump *p); /* so far */
/* errno of a failed write, unless the reader has left; further output still goes to the recorder. */
int pump_error(const struct pump *p);
bool pump_reader_left(const struct pump *p);
/* It is writing, perhaps to a blocked reader. */
bool pump_is_held_up(const struct pump *p);
/* Ends when the pipe is empty: no more output will come. */
void pump_hurry(struct pump *p);
/* Waits for its end and frees it; p may be NULL. */
void pump_join(struct pump *p);

#endif
