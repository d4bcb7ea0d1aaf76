/* SPDX-License-Identifier: Apache-2.0
 * A directory that Python imports from (site-packages, dist-packages): what is installed in it, by name.
 *
 * Listed once; all questions are answered from the names.  Memory is the arena's; the root must outlive
 * it. */
#ifndef CAIRN_HOST_PYTHON_SITE_H
#define CAIRN_HOST_PYTHON_SITE_H

#include "base/arena.h"
#include "host/facts.h"
#include "host/root.h"

struct python_site {
    const struct root *root;
    struct arena *a;
    const char *path;
    char **names;
    size_t n;
    bool unreadable; /* it exists but could not be listed: what it lacks is unknown */
};

/* A directory that cannot be listed is an empty one. */
void python_site_read(struct python_site *s, const struct root *root, struct arena *a, const char *path);
bool python_site_has(const struct python_site *s, const char *name);
/* Is there certainly no such path below it? False if unknown. */
bool python_site_lacks(const struct python_site *s, const char *relative);
/* "<site>/<name>" */
const char *python_site_path(const struct python_site *s, const char *name);
/* The version of an installed distribution, from the name of its metadata ("torch-2.9.1+rocm6.4.dist-info");
 * unknown if it is not installed.  Case and the signs - _ . do not matter in names. */
struct text python_site_version(const struct python_site *s, const char *distribution);
/* Calls back for each distribution whose normalised name starts with `start`; rest is what follows that,
 * info the path of the metadata directory. */
void python_site_each(const struct python_site *s, const char *start,
                      void (*visit)(void *context, const char *rest, size_t len, const char *info),
                      void *context);

#endif
