/* SPDX-License-Identifier: Apache-2.0
 * Passes the trainer's output to a log file and to the diagnoser.
 *
 * Bytes go into a ring buffer.  One thread writes them to the log and another feeds the diagnoser, each at
 * its own pace, so that neither a slow disk nor a long line blocks the trainer.  If the ring is full, the
 * recorder waits for the slower thread, but at most one second.  After that it drops bytes until there is
 * space again, and the log says how many.
 *
 * The log is rotated at a fixed size: the first part is kept as "log.first", since it has the versions; of
 * the rest the last two parts, "log.previous" and "log"; "log.dropped" says how many bytes lay between them
 * (log_parts.h).  If the log cannot be written (full disk), only
 * the diagnoser continues. */
#ifndef CAIRN_RUN_RECORDER_H
#define CAIRN_RUN_RECORDER_H

#include "base/error.h"
#include "rules/diagnose.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct recorder; /* opaque */

struct recorder_options {
    const char *log;             /* appended to; NULL: no log */
    const char *copy;            /* a second file, never rotated; NULL: none */
    struct diagnoser *diagnoser; /* used by the recorder until recorder_stop; may be NULL */
    uint64_t rotate_bytes;       /* 0: RECORDER_ROTATE_BYTES */
};
enum { RECORDER_ROTATE_BYTES = 32 << 20, RECORDER_RING_BYTES = 32 << 20 };

/* Starts the threads.  If a file cannot be opened, that is no error: see recorder_trouble. */
int recorder_start(struct recorder **out, const struct recorder_options *o, struct cairn_error *err);
/* From any thread.  If another writer interrupts an unfinished line, a newline is added: unbuffered Python
 * writes the newline separately, and an error on the other stream would follow half a line. */
void recorder_put(struct recorder *r, const void *writer, const char *bytes, size_t n);
bool recorder_saw_step(struct recorder *r);
/* The first error of a log file, or NULL.  Returned once. */
const char *recorder_trouble(struct recorder *r);
/* Waits until all is written; returns the number of dropped bytes. */
uint64_t recorder_stop(struct recorder *r);
void recorder_free(struct recorder *r); /* after recorder_stop; r may be NULL */

#endif
