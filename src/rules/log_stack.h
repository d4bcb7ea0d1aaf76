/* SPDX-License-Identifier: Apache-2.0
 * The stack that a crash left in the log: Python's frames by faulthandler, and the call of a library
 * below them. */
#ifndef CAIRN_RULES_LOG_STACK_H
#define CAIRN_RULES_LOG_STACK_H

#include <stdbool.h>
#include <stddef.h>

enum { LOG_STACK_FRAMES = 2, LOG_STACK_TEXT = 112 };

struct log_stack {
    bool open; /* frames follow */
    size_t n;
    char frame[LOG_STACK_FRAMES]
              [LOG_STACK_TEXT]; /* "torch/nn/modules/linear.py line 125 in forward", innermost first */
    const char *call, *library; /* "rocblas_create_handle", "rocBLAS"; NULL: none is named */
};

/* "… (most recent call first)" begins the stack of a thread. */
void log_stack_begin(struct log_stack *t, const char *s, size_t n);
/* A frame at a place of a piece; those of a traceback are passed by. */
void log_stack_frame(struct log_stack *t, const char *s, size_t n, size_t at);
/* A call with which a library starts is at a place of a piece. */
void log_stack_see_call(struct log_stack *t, const char *s, size_t n, size_t at);

#endif
