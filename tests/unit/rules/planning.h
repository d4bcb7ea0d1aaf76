/* SPDX-License-Identifier: Apache-2.0
 * A captured machine, a PyTorch put into it by hand, a user's environment, and the plan for all that.
 *
 * Everything is in the arena of the facts or in `arena`; planning_release frees it.  Must not be moved. */
#ifndef CAIRN_TESTS_PLANNING_H
#define CAIRN_TESTS_PLANNING_H

#include "host/facts.h"
#include "rules/plan.h"

enum { MOST_ENV = 64 };

struct planning {
    struct facts facts;
    struct torch_facts torch;
    struct arena arena;
    const char *env[MOST_ENV];
    size_t n_env;
    struct plan_options options;
    struct plan plan;
};

/* Every capture below tests/data, in the order of their names: what random trials try must not hang on the file system.
 * Returns the sum of what `each` does. */
size_t planning_captures(size_t (*each)(const char *capture, void *context), void *context);
/* Reads a capture below tests/data; NULL starts without a GPU.  False if it cannot be read. */
bool planning_open(struct planning *p, const char *capture);
void planning_release(struct planning *p);

/* "2.9.1+rocm6.4" as pytorch.org builds it; "+cpu" and "+cu128" are such builds; NULL: no PyTorch. */
void planning_torch(struct planning *p, const char *version);
/* The targets it was compiled for, with spaces between, in place of pytorch.org's. */
void planning_targets(struct planning *p, const char *targets);
void planning_env(struct planning *p, const char *assignment);
/* A file of NAME=value lines below tests/data/env; false if it cannot be read. */
bool planning_env_file(struct planning *p, const char *name);
/* The plan; what was there before is forgotten.  0 or -1 as plan_build. */
int planning_run(struct planning *p, struct cairn_error *err);

/* The value that the plan sets, or NULL. */
const char *planning_set(const struct planning *p, const char *name);
/* Why it is removed or kept; NULL: it is not. */
const char *planning_unset(const struct planning *p, const char *name);
const char *planning_keep(const struct planning *p, const char *name);
/* Is there a warning with this in it? */
bool planning_warns(const struct planning *p, const char *part);

#endif
