/* SPDX-License-Identifier: Apache-2.0
 * The trainers that --trainer knows: their names, and what to say to somebody who uses one on an AMD GPU. */
#ifndef CAIRN_RULES_TRAINERS_H
#define CAIRN_RULES_TRAINERS_H

#include "rules/env_rules.h"

struct trainer {
    const char *name;
    const char *aliases; /* with spaces between; NULL: none */
};

/* By name or alias, whatever the case; NULL if it is not known. */
const struct trainer *trainer_find(const char *name);
/* Row i; NULL behind the last. */
const struct trainer *trainer_at(size_t i);
/* The nearest name to one that is not known; NULL if none is near. */
const char *trainer_nearest(const char *name);
/* Ends with a row whose text is NULL. */
const struct env_note *trainer_notes(void);

#endif
