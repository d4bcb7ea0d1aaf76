/* SPDX-License-Identifier: Apache-2.0
 * Progress of long work: one line on a terminal, rewritten in place.
 *
 * Amounts are bytes; then it is silent elsewhere.  Or things are counted, each of which may take long: then a plain line
 * comes every few seconds elsewhere.  Any thread may add; one of them writes the line. */
#ifndef CAIRN_BASE_PROGRESS_H
#define CAIRN_BASE_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct progress {
    FILE *out;        /* NULL: silent */
    const char *what; /* "convert"; belongs to the caller */
    const char *unit; /* what is counted, "step"; NULL: bytes */
    bool plain;       /* not on a terminal */
    uint64_t total;
    uint64_t done;                  /* atomic */
    double started, shown;          /* seconds of the monotonic clock */
    bool busy;                      /* atomic: a thread is writing the line */
    bool (*stopped)(void *context); /* whether to end early; called from any thread.  NULL: never */
    void *context;
};

/* Silent unless out is a terminal; it may be NULL. */
void progress_start(struct progress *p, FILE *out, const char *what, uint64_t total);
/* Of things.  out may be NULL. */
void progress_start_count(struct progress *p, FILE *out, const char *what, const char *unit, uint64_t total);
/* p may be NULL. */
void progress_add(struct progress *p, uint64_t bytes);
/* Whether the work should stop early, which makes it fail; p may be NULL. */
bool progress_is_stopped(const struct progress *p);
/* Erases the line, so that the next message starts on an empty one. */
void progress_end(struct progress *p);

/* The line for an amount done after some seconds: "convert  43%  12.3 of 28.6 GB  1.21 GB/s  0:13 left".  Of things, the
 * seconds are those since the first was done, which may take longer: "sample  step 7 of 20  1.53 s/step  0:20 left". */
void progress_text(const struct progress *p, uint64_t done, double seconds, char *buf, size_t size);

#endif
