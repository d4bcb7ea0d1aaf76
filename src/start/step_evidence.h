/* SPDX-License-Identifier: Apache-2.0
 * The state of the machine while a training step hangs: load, clock, temperature and memory of the GPU if
 * the kernel reports them, load, memory and pressure of the host, and where the threads of this process
 * wait. */
#ifndef CAIRN_START_STEP_EVIDENCE_H
#define CAIRN_START_STEP_EVIDENCE_H

#include "base/str.h"

/* Adds "; GPU 99 % busy, …" to brief and lines to full.  root NULL: this machine; pci may be empty.  A
 * driver that does not respond within 2 s is reported as such. */
void step_evidence(const char *root, const char *pci, struct str *brief, struct str *full);

#endif
