/* SPDX-License-Identifier: Apache-2.0
 * What a log says of errors that no table knows: the exception at the end of a Python traceback, and
 * lines that look like an error.
 *
 * A traceback's last line stands in the column in which the traceback began, whatever prefix a launcher
 * wrote before both. */
#ifndef CAIRN_RULES_LOG_TRACE_H
#define CAIRN_RULES_LOG_TRACE_H

#include "rules/issue_rules.h"

struct log_trace {
    bool open;     /* its last line has not come */
    size_t column; /* where it began */
    bool seen;     /* there was one */
    bool cut;      /* the file ended within the last one */
};

/* A header or a frame begins at a place of a piece. */
void log_trace_begin(struct log_trace *t, const char *s, size_t at);
/* To be called with each piece while it is open. */
struct log_find log_trace_line(struct log_trace *t, const char *s, size_t n);
/* A word such as "Error:" ends an exception's name. */
struct log_find log_trace_exception(const struct log_trace *t, const char *s, size_t n, size_t at);
/* The name of an exception, without its message, begins at a place of a piece. */
struct log_find log_trace_type(const char *s, size_t n, size_t at);
/* The message of an exception whose name is not told begins at a place of a piece. */
struct log_find log_trace_message(const char *s, size_t n, size_t at);
/* Does a line speak of a GPU or what it runs on? */
bool log_trace_speaks_of_gpu(const char *s, size_t n);
/* A word that errors are told with. */
struct log_find log_trace_word(const char *s, size_t n, size_t at);

#endif
