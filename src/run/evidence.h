/* SPDX-License-Identifier: Apache-2.0
 * What can be seen of a trainer that stands still, written down before it is stopped: where each of its processes
 * sleeps in the kernel, the memory, the GPU, and the kernel's last messages. */
#ifndef CAIRN_RUN_EVIDENCE_H
#define CAIRN_RUN_EVIDENCE_H

#include "base/str.h"
#include "run/gauge.h"
#include "run/tree.h"

/* Text of some pages at most; what may not be read (stack and dmesg often need root) is said to be so. */
void evidence_collect(const struct tree *t, const char *proc, const struct gauge *g, struct str *out);
/* The process has a handler for this signal (Python's faulthandler for SIGABRT). */
bool evidence_catches(const char *proc, int pid, int sig);

#endif
