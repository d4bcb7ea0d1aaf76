/* SPDX-License-Identifier: Apache-2.0
 * The log of a journal, read as one text although it was rotated (recorder.h): log.first, log.previous, log.
 *
 * Offsets count every byte that was ever written, so that they stay as they are when a part between the first and
 * the last two is dropped.  There the text has one line that says how much is missing; it takes the place of the last
 * dropped bytes. */
#ifndef CAIRN_RUN_LOG_PARTS_H
#define CAIRN_RUN_LOG_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { LOG_PARTS = 3 };

struct log_parts {
    int fd[LOG_PARTS]; /* -1: there is no such part */
    uint64_t size[LOG_PARTS];
    uint64_t dropped; /* bytes between the first part and the second */
    char line[96];    /* that says so */
    size_t line_n;
    uint64_t total;
};

/* Closed, for CLEANUP. */
#define LOG_PARTS_NONE       \
    {                        \
        .fd = { -1, -1, -1 } \
    }

/* path: that of "log".  A log that does not exist has no bytes.  -1 with errno: it cannot be read. */
int log_parts_open(struct log_parts *p, const char *path);
void log_parts_close(struct log_parts *p);

/* The first offset from this one on that has text; the end if there is none. */
uint64_t log_parts_at(const struct log_parts *p, uint64_t offset);
/* How many bytes follow an offset of log_parts_at without a hole, at most n. */
uint64_t log_parts_length(const struct log_parts *p, uint64_t offset, uint64_t n);
/* Reads them; fewer only if the file became shorter.  -1 with errno. */
ssize_t log_parts_read(const struct log_parts *p, uint64_t offset, char *to, size_t n);
/* The part that has all of them, and where; -1: they lie in several. */
int log_parts_find(const struct log_parts *p, uint64_t offset, uint64_t n, uint64_t *at);

/* For the recorder, before a part of so many bytes is dropped.  Failing means that offsets will shift: no reason to
 * stop. */
void log_parts_drop(const char *path, uint64_t bytes);

#endif
