/* SPDX-License-Identifier: Apache-2.0
 * What MIOpen has left in the user's cache. */
#ifndef CAIRN_HOST_MIOPEN_CACHE_H
#define CAIRN_HOST_MIOPEN_CACHE_H

#include "host/facts.h"

/* Fills miopen_cache; looks at this machine only, since a captured tree is somebody else's home. */
void miopen_cache_read(struct facts *f);

#endif
