/* SPDX-License-Identifier: Apache-2.0
 * Where a shared library would be opened from, told from the files alone: nothing is loaded.
 *
 * The places are the dynamic loader's, in its order: LD_LIBRARY_PATH, the folders of /etc/ld.so.conf, the system's own;
 * then the folder that the caller would try.  The loader's cache is not read, so that a library that was installed
 * without ldconfig is found here and not there. */
#ifndef CAIRN_HOST_SONAME_H
#define CAIRN_HOST_SONAME_H

#include "host/facts.h"
#include "host/root.h"

/* The first name (NULL ends them) that is anywhere, as the loader is asked: each name in all of its places, then each in
 * `folder` (may be NULL).  NULL: none is there.  Memory is the arena's. */
const char *soname_find(const struct root *r, struct arena *a, const struct facts *f,
                        const char *const *names, const char *folder);

#endif
