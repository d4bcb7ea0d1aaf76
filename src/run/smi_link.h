/* SPDX-License-Identifier: Apache-2.0
 * cairn as nvidia-smi, for one run: <run>/bin/nvidia-smi is a link to cairn, and <run>/bin comes first in
 * the trainer's PATH.  No other PATH has that folder, so a link that a killed run left has no effect, and
 * is removed with the run's folder. */
#ifndef CAIRN_RUN_SMI_LINK_H
#define CAIRN_RUN_SMI_LINK_H

#include "base/arena.h"
#include "base/error.h"
#include "host/facts.h"

/* Why the link must not be made; NULL: it may. */
const char *smi_link_objection(const struct facts *f, struct arena *a);
/* env is the trainer's; *out has the changed PATH. */
int smi_link_make(const char *run, const struct root *r, const char *const *env, struct arena *a,
                  const char *const **out, struct cairn_error *err);
/* Accepts NULL, and a run without a link. */
void smi_link_remove(const char *run);

#endif
