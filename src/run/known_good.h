/* SPDX-License-Identifier: Apache-2.0
 * What worked: the changes of an environment after which a trainer ran on this machine, kept in
 * <state>/known-good.json and used first the next time.
 *
 * An entry is for one machine and one trainer, and holds as long as PyTorch, ROCm, kernel and GPU are those it was
 * found with.  Several runs may read and write at once: writers wait for each other, and the file is replaced whole. */
#ifndef CAIRN_RUN_KNOWN_GOOD_H
#define CAIRN_RUN_KNOWN_GOOD_H

#include "base/arena.h"
#include "base/error.h"
#include "host/facts.h"
#include "rules/plan.h"
#include <stdbool.h>
#include <stddef.h>

/* For what an entry holds; text is "" where something is not known. */
struct known_good_key {
    const char *machine, *trainer, *torch, *rocm, *kernel, *gfx;
};

struct known_good {
    const char *trainer, *date, *class_id; /* class_id: of the failure that it cured */
    struct plan_var *set;
    size_t n_set;
    const char **unset;
    size_t n_unset;
};

/* trainer NULL: any, for known_good_list. */
void known_good_key_for(const struct facts *f, const struct gpu_facts *gpu, const char *trainer,
                        struct arena *a, struct known_good_key *out);
/* Every entry that holds for this key, the newest last; a file that is not there or damaged has none. */
size_t known_good_list(const char *state, const struct known_good_key *key, struct arena *a,
                       struct known_good **out);
/* Adds or replaces the entry of this machine and trainer. */
int known_good_keep(const char *state, const struct known_good_key *key, const struct known_good *entry,
                    struct cairn_error *err);
int known_good_forget(const char *state, const struct known_good_key *key, struct cairn_error *err);

/* "HSA_OVERRIDE_GFX_VERSION=10.3.0, without HSA_ENABLE_SDMA" */
const char *known_good_text(const struct known_good *g, struct arena *a);
/* Makes an entry part of a plan; what the user asked for by name (--with, --keep) stays. */
void known_good_apply(const struct known_good *g, const struct facts *f, const struct plan_options *o,
                      struct arena *a, struct plan *p);

/* What `cairn run` has learned on this machine: part of the plan for that trainer, and a hint to it for any other. */
void known_good_add(const struct facts *f, const struct plan_options *o, struct arena *a, struct plan *p);

#endif
