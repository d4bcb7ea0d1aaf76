/* SPDX-License-Identifier: Apache-2.0
 * Environment changes with which a trainer worked on this machine, saved in <state>/known-good.json and
 * applied from the start in the next run.
 *
 * An entry is for one machine and one trainer, and is valid for the same PyTorch, ROCm, kernel and GPU.
 * Several runs may read and write at the same time: writers take a lock, and the file is replaced
 * atomically. */
#ifndef CAIRN_RUN_KNOWN_GOOD_H
#define CAIRN_RUN_KNOWN_GOOD_H

#include "base/arena.h"
#include "base/error.h"
#include "host/facts.h"
#include "rules/plan.h"
#include <stdbool.h>
#include <stddef.h>

/* What an entry is valid for; unknown texts are "". */
struct known_good_key {
    const char *machine, *trainer, *torch, *rocm, *kernel, *gfx;
};

struct known_good {
    const char *trainer, *date, *class_id; /* class_id: of the failure that it fixed */
    struct plan_var *set;
    size_t n_set;
    const char **unset;
    size_t n_unset;
};

/* trainer NULL: any, for known_good_list. */
void known_good_key_for(const struct facts *f, const struct gpu_facts *gpu, const char *trainer,
                        struct arena *a, struct known_good_key *out);
/* All entries that are valid for this key, the newest last; none if the file is missing or damaged. */
size_t known_good_list(const char *state, const struct known_good_key *key, struct arena *a,
                       struct known_good **out);
/* Adds or replaces the entry of this machine and trainer. */
int known_good_keep(const char *state, const struct known_good_key *key, const struct known_good *entry,
                    struct cairn_error *err);
int known_good_forget(const char *state, const struct known_good_key *key, struct cairn_error *err);

/* "HSA_OVERRIDE_GFX_VERSION=10.3.0, without HSA_ENABLE_SDMA" */
const char *known_good_text(const struct known_good *g, struct arena *a);
/* Adds an entry to a plan; variables of --with and --keep stay unchanged. */
void known_good_apply(const struct known_good *g, const struct facts *f, const struct plan_options *o,
                      struct arena *a, struct plan *p);

/* Adds what `cairn run` has learned on this machine: to the plan for that trainer, as a hint for any
 * other. */
void known_good_add(const struct facts *f, const struct plan_options *o, struct arena *a, struct plan *p);

#endif
