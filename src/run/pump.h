/* SPDX-License-Identifier: Apache-2.0
 * Carries bytes from the trainer to where they belong and shows them to the recorder, on a thread of its
 * own: a reader that does not read holds up the trainer, as it would without us, but never us.
 *
 * When the reader has left (head), the trainer's end is closed as well, so that it learns of it in the
 * usual way. */
#ifndef CAIRN_RUN_PUMP_H
#define CAIRN_RUN_PUMP_H

#include "base/error.h"
#include "run/recorder.h"
#include <stdbool.h>
#include <stdint.h>

struct pump; /* opaque */

/* Takes over `from`, and reads it until its end; `to` is borrowed.  done is an eventfd that counts the
 * pumps that have ended. */
int pump_start(struct pump **out, int from, int to, struct recorder *r, int done, struct cairn_error *err);
uint64_t pump_bytes(const struct pump *p); /* so far */
/* errno, if the reader takes no more for another reason than having left; what comes is recorded all the
 * same. */
int pump_error(const struct pump *p);
bool pump_reader_left(const struct pump *p);
/* It waits for a reader that does not read, or is just writing. */
bool pump_is_held_up(const struct pump *p);
/* No more is to come: what is in the pipe is still carried, then it ends. */
void pump_hurry(struct pump *p);
/* Waits for its end and frees it; NULL is fine. */
void pump_join(struct pump *p);

#endif
