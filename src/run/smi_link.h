/* SPDX-License-Identifier: Apache-2.0
 * Our program under the name nvidia-smi, for one run: <run>/bin/nvidia-smi is a link to it, and <run>/bin
 * comes first in the trainer's PATH.  Nobody else's PATH has that folder, so what a killed run leaves
 * there does nothing, and goes with the run's folder. */
#ifndef CAIRN_RUN_SMI_LINK_H
#define CAIRN_RUN_SMI_LINK_H

#include "base/arena.h"
#include "base/error.h"
#include "host/facts.h"

/* Why the machine's own nvidia-smi, or its lack, is better left alone; NULL: nothing speaks against a
 * link. */
const char *smi_link_objection(const struct facts *f, struct arena *a);
/* env is the trainer's; *out is that with the changed PATH. */
int smi_link_make(const char *run, const struct root *r, const char *const *env, struct arena *a,
                  const char *const **out, struct cairn_error *err);
/* Accepts NULL, and a run without a link. */
void smi_link_remove(const char *run);

#endif
