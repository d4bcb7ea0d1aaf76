/* SPDX-License-Identifier: Apache-2.0
 * The trainers that --trainer knows: their names, and notes for using them on an AMD GPU. */
#ifndef CAIRN_RULES_TRAINERS_H
#define CAIRN_RULES_TRAINERS_H

#include "rules/env_rules.h"

struct trainer {
    const char *name;
    const char *aliases; /* separated by spaces; NULL: none */
};

/* By name or alias, ignoring case; NULL if unknown. */
const struct trainer *trainer_find(const char *name);
/* Row i; NULL after the last. */
const struct trainer *trainer_at(size_t i);
/* The name nearest to an unknown one; NULL if none is near. */
const char *trainer_nearest(const char *name);
/* Ends with a row whose text is NULL. */
const struct env_note *trainer_notes(void);

#endif
