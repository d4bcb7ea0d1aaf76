/* SPDX-License-Identifier: Apache-2.0
 * Keeps what a trainer prints: in a log file, and in a diagnoser that reads along.
 *
 * Bytes go into a ring of fixed size.  One thread writes them to the log and another feeds the diagnoser,
 * each at its own pace, so that neither a slow disk nor a long line holds the trainer up.  When the ring
 * is full the slower one is waited for, but no longer than a second: after that bytes are left out, and
 * the log says how many, until there is room again.
 *
 * The log is rotated at a fixed size: the first part is kept as "log.first", since it tells the versions;
 * of the rest the last two parts, "log.previous" and "log".  A log that cannot be written (a full disk) is
 * given up, the diagnoser goes on. */
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
    struct diagnoser *diagnoser; /* the recorder's until recorder_stop; may be NULL */
    uint64_t rotate_bytes;       /* 0: RECORDER_ROTATE_BYTES */
};
enum { RECORDER_ROTATE_BYTES = 32 << 20, RECORDER_RING_BYTES = 32 << 20 };

/* Starts the thread.  Files that cannot be opened are not an error: see recorder_trouble. */
int recorder_start(struct recorder **out, const struct recorder_options *o, struct cairn_error *err);
/* From any thread.  Where another writer comes into a line that has not ended, it is ended: Python without
 * buffers writes the end of a line by itself, and an error on the other stream would stand behind half a
 * line. */
void recorder_put(struct recorder *r, const void *writer, const char *bytes, size_t n);
bool recorder_saw_step(struct recorder *r);
/* The first thing that went wrong with a log file; NULL: nothing has.  Said once: the next call gives
 * NULL. */
const char *recorder_trouble(struct recorder *r);
/* Waits until all is written; returns how many bytes were left out. */
uint64_t recorder_stop(struct recorder *r);
void recorder_free(struct recorder *r); /* one that was stopped; NULL is fine */

#endif
