/* SPDX-License-Identifier: Apache-2.0
 * What a cache job did: the keys of `cairn cache --json`. */
#ifndef CAIRN_REPORT_CACHE_H
#define CAIRN_REPORT_CACHE_H

#include "base/json.h"
#include "encode/cache_stale.h"

/* The caller frees it. */
struct json *report_cache(const struct dataset *d, const struct cache_result *r,
                          const struct cache_stale *stale);

#endif
