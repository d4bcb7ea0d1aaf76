/* SPDX-License-Identifier: Apache-2.0
 * Lines that a terminal or an editor broke: what may belong together, as one text.
 *
 * A broken line is long, and the next one begins in the middle of a sentence or word, without the prefix of a
 * new entry.  Lines that only look so do no harm: the joined text is read beside its lines, not in place of
 * them.  Fixed size: of a text that does not fit, the start is kept. */
#ifndef CAIRN_RULES_LOG_JOIN_H
#define CAIRN_RULES_LOG_JOIN_H

#include <stdbool.h>
#include <stddef.h>

enum { LOG_JOIN = 1536, LOG_JOIN_START = 5 };

/* Broken within a word, as terminals do, or at a blank, as editors do. */
enum log_break { LOG_BREAK_WORD, LOG_BREAK_BLANK, LOG_N_BREAKS };

struct log_join {
    char text[LOG_N_BREAKS][LOG_JOIN];
    size_t n[LOG_N_BREAKS];
    char start[LOG_JOIN_START]; /* of the last line: two entries of one program begin alike */
    bool open;                  /* the last line may be broken */
};

/* To be called with each line; wanted: what the lines before told of is not complete. True: text holds the line, together
 * with those that it may continue. */
bool log_join_line(struct log_join *j, const char *s, size_t n, bool wanted);

#endif
