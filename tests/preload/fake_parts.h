/* SPDX-License-Identifier: Apache-2.0
 * What the two parts of fake_runtime.h have in common: fake_memory.c and fake_runtime.c. */
#ifndef CAIRN_TESTS_PRELOAD_FAKE_PARTS_H
#define CAIRN_TESTS_PRELOAD_FAKE_PARTS_H

#include "fake_runtime.h"
#include <pthread.h>
#include <stdbool.h>

enum { MOST = 32768, PAGE = 4096 };

struct piece {
    char *at;
    size_t n;
    bool pinned, live, mapping; /* mappings in a row are one place */
    bool pooled, idle;          /* idle: the pool has it */
};

extern pthread_mutex_t lock;
extern size_t pinned_for_copy, n_ops;
extern void *captured; /* a stream */
extern _Atomic bool capturing, capture_broken;
extern __thread int last_error;

/* Of FAKE_HIP. */
long option(const char *name, long otherwise);
/* The code, which is the last error then. */
int done(int code);
bool is_device(const void *p);
/* Where we see it ourselves. */
char *seen(const void *p);
struct piece *find(const void *p, bool pinned);
/* Something is not given back. */
bool is_kept(void);
/* While somebody captures, some calls are not for those who do not know what they do. */
bool is_forbidden(void);

#endif
