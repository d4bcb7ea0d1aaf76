/* SPDX-License-Identifier: Apache-2.0
 * The series that were asked for last, each by the path of its log.
 *
 * The cache belongs to the loop.  A series that was borrowed may be used on another thread, between series_lock and
 * series_unlock; it stays until it is given back.  Series that nobody asked for during five minutes go. */
#ifndef CAIRN_WEB_SERIES_CACHE_H
#define CAIRN_WEB_SERIES_CACHE_H

#include "web/loop.h"
#include "web/run_series.h"

enum { SERIES_CACHE_MOST = 8, SERIES_CACHE_IDLE_S = 300, SERIES_CACHE_BYTES = 256 << 20 };

struct series_cache;
struct shared_series;

struct series_cache *series_cache_open(struct loop *l);
/* After all were given back, or their users are gone; accepts NULL. */
void series_cache_close(struct series_cache *c);

struct shared_series *series_borrow(struct series_cache *c, const char *path);
void series_give_back(struct series_cache *c, struct shared_series *s);
/* How many series there are. */
size_t series_cache_count(const struct series_cache *c);

/* On any thread. */
struct run_series *series_lock(struct shared_series *s);
void series_unlock(struct shared_series *s);

#endif
