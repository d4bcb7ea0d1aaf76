/* SPDX-License-Identifier: Apache-2.0
 * Small macros that every file uses: scoped cleanup, transfer of ownership, array length. */
#ifndef CAIRN_BASE_CLEANUP_H
#define CAIRN_BASE_CLEANUP_H

#include <stddef.h>

/* CLEANUP(fn) T x = …;  calls fn(&x) when x leaves its scope, by whatever return. */
#define CLEANUP(fn) __attribute__((cleanup(fn)))

/* Transfers ownership: *out = TAKE(p);  leaves NULL in p for the cleanup. */
#define TAKE(p)                     \
    ({                              \
        __typeof__(p) taken_ = (p); \
        (p) = NULL;                 \
        taken_;                     \
    })

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define PRINTF_LIKE(fmt, first) __attribute__((format(printf, fmt, first)))

/* For `CLEANUP(fd_close) int fd`; accepts -1. */
void fd_close(int *fd);
/* For `CLEANUP(mem_free) char *p`. */
void mem_free(void *pointer_to_pointer);

#endif
