/* SPDX-License-Identifier: Apache-2.0
 * Runs work in pieces on all cores.
 *
 * parallel_for calls fn(context, piece) once for each piece 0 … n-1, on up to `threads` threads (the caller's
 * is one of them; 0 means as many as this process may use).  It returns when all are done.  Pieces are handed
 * out in order; fn must not care on which thread it runs.  When a piece fails (returns -1), no new ones are
 * started, and the error is that of the lowest failing piece that ran. */
#ifndef CAIRN_BASE_THREAD_H
#define CAIRN_BASE_THREAD_H

#include "base/error.h"
#include <stddef.h>

int parallel_for(size_t n, int threads, int (*fn)(void *context, size_t piece, struct cairn_error *err),
                 void *context, struct cairn_error *err);
int parallel_threads(void); /* CPUs this process may use, at least 1 */

#endif
