/* SPDX-License-Identifier: Apache-2.0
 * Errors: one idiom.
 *
 * A function that can fail returns 0 or -1.  On failure it fills the caller's error with a message that names
 * the object. Callers add context or pass it on; only cli prints.  The struct lives on the caller's stack, so
 * that errors can be reported without memory. */
#ifndef CAIRN_BASE_ERROR_H
#define CAIRN_BASE_ERROR_H

#include "base/cleanup.h"

enum cairn_code {
    CAIRN_OK,
    CAIRN_EIO,     /* a system call failed: open, read, spawn */
    CAIRN_EFORMAT, /* a file or a value is malformed */
    CAIRN_EUSAGE,  /* the user asked for something that does not exist */
    CAIRN_ELACK,   /* this machine lacks something */
    CAIRN_ENOMEM,
    CAIRN_EDEVICE, /* a GPU, its driver or a GPU library failed: a new process may succeed */
};

struct cairn_error {
    enum cairn_code code;
    char msg[512];  /* lower case, no full stop, names the object */
    char hint[256]; /* what to do about it; may be empty */
};

/* Both set the error and always return -1, so that a failure is one line: return cairn_fail(…). */
int cairn_fail(struct cairn_error *err, enum cairn_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Adds ": strerror(errno)". */
int cairn_fail_errno(struct cairn_error *err, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Puts "context: " before the message of an error that is already set; keeps its code and its hint.  Returns
 * -1. */
int cairn_wrap(struct cairn_error *err, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Adds the remedy to an error that is already set; returns -1. */
int cairn_hint(struct cairn_error *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Lets the compiler see that a failure is -1, so that it does not warn about unset outputs. */
#define cairn_fail(...)          \
    ({                           \
        cairn_fail(__VA_ARGS__); \
        -1;                      \
    })
#define cairn_fail_errno(...)          \
    ({                                 \
        cairn_fail_errno(__VA_ARGS__); \
        -1;                            \
    })
#define cairn_wrap(...)          \
    ({                           \
        cairn_wrap(__VA_ARGS__); \
        -1;                      \
    })
#define cairn_hint(...)          \
    ({                           \
        cairn_hint(__VA_ARGS__); \
        -1;                      \
    })

#endif
