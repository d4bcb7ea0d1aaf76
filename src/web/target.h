/* SPDX-License-Identifier: Apache-2.0
 * The target of a request, "/api/v1/jobs?state=active", in parts.
 *
 * Each part of the path is decoded once and on its own, so that an encoded slash cannot make two parts of one.
 * Refused: anything that does not begin with a slash, wrong escapes, text that is not UTF-8, control characters,
 * the parts "." and "..", and an encoded slash.  A path that ends with a slash has an empty last part. */
#ifndef CAIRN_WEB_TARGET_H
#define CAIRN_WEB_TARGET_H

#include "base/arena.h"
#include <stddef.h>

enum { TARGET_PARTS = 48, TARGET_PAIRS = 48 };

struct target_pair {
    const char *name, *value;
};

struct target {
    const char *part[TARGET_PARTS];
    size_t n_parts; /* "/" has none */
    struct target_pair pair[TARGET_PAIRS];
    size_t n_pairs;
};

/* NULL, or why it is refused.  The texts live in the arena. */
const char *target_parse(const char *raw, struct arena *a, struct target *out);
/* The value of the first pair of that name; NULL: there is none. */
const char *target_value(const struct target *t, const char *name);

#endif
