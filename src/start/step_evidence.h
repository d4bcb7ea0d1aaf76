/* SPDX-License-Identifier: Apache-2.0
 * What the machine looks like while a step of training does not end: the GPU's load, clock, temperature and memory
 * where the kernel tells them, the host's load, memory and pressure, and where this process's threads are. */
#ifndef CAIRN_START_STEP_EVIDENCE_H
#define CAIRN_START_STEP_EVIDENCE_H

#include "base/str.h"

/* Adds to both: "; GPU 99 % busy, …" to brief, lines to full.  root NULL is this machine; pci may be empty.  A driver that
 * does not answer is waited for 2 s, and that is told then. */
void step_evidence(const char *root, const char *pci, struct str *brief, struct str *full);

#endif
