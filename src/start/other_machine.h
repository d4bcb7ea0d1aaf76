/* SPDX-License-Identifier: Apache-2.0
 * A machine that is not this one, for a plan: from a captured tree, or by its chip and memory. */
#ifndef CAIRN_START_OTHER_MACHINE_H
#define CAIRN_START_OTHER_MACHINE_H

#include "train/train.h"

struct other_machine {
    const char *root;      /* captured tree; NULL: none */
    const char *gfx;       /* its chip; NULL: as the tree says */
    uint64_t memory_bytes; /* of the device; 0: as the tree says */
};
bool other_machine_is_given(const struct other_machine *m);
/* Opens the CPU in place of the device, and fills in the fields of o that describe it.  With train.device: cpu
 * the job is one for that machine's CPU.  CAIRN_EUSAGE if the tree does not say how much memory there is. */
int other_machine_open(const struct other_machine *m, const struct job_config *c, struct arena *a,
                       struct train_options *o, struct cairn_error *err);

#endif
