/* SPDX-License-Identifier: Apache-2.0
 * A log as lines, whatever wrote it: bytes in any pieces in, clean text out.
 *
 * A carriage return starts its line anew, as a progress bar does, so each state of the bar is given on
 * its own, with the number of the line that it is part of.  Escape sequences of terminals are taken
 * out, and typographic quotes become plain ones.  UTF-16 with its mark, which PowerShell writes,
 * becomes UTF-8.  A piece is at most LOG_PIECE bytes: a longer one is given in parts that overlap, so
 * that what is looked for is not cut in two.  Memory is bounded by that.  Bytes are not otherwise
 * judged: they may be no UTF-8, and may hold zeros. */
#ifndef CAIRN_RULES_LOG_LINES_H
#define CAIRN_RULES_LOG_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LOG_PIECE = 16384, LOG_OVERLAP = 512 };

enum log_encoding { LOG_START, LOG_BYTES, LOG_UTF16LE, LOG_UTF16BE };

struct log_lines {
    /* Both are set by the owner.  text is not NUL-terminated. */
    void (*piece)(void *to, uint64_t line, const char *text, size_t n);
    void *to;
    /* The rest is private; zero. */
    uint64_t line; /* whole lines before this one */
    enum log_encoding encoding;
    unsigned char odd[4]; /* bytes of a character that is not complete */
    size_t n_odd;
    size_t n_held; /* bytes of a piece that is not complete */
    char held[LOG_PIECE];
    char plain[LOG_PIECE]; /* a piece without its escapes */
};

void log_lines_feed(struct log_lines *l, const char *bytes, size_t n);
/* Gives the last piece, if it had no line feed, and makes ready for another file. */
void log_lines_end(struct log_lines *l);

#endif
