/* SPDX-License-Identifier: Apache-2.0
 * What can be seen of a trainer that stands still, written down before it is stopped: where each of its processes
 * sleeps in the kernel, the memory, the GPU, and the kernel's last messages. */
#ifndef CAIRN_RUN_EVIDENCE_H
#define CAIRN_RUN_EVIDENCE_H

#include "base/str.h"
#include "rules/diagnose.h"
#include "run/memory_monitor.h"
#include "run/journal.h"
#include "run/tree.h"

struct evidence {
    const struct tree *tree;
    const char *proc;  /* normally "/proc" */
    const char *calls; /* what the files of GPU calls begin with; or NULL */
    const struct memory_monitor *monitor;
    bool stacks; /* ask py-spy, where it is installed, for the stacks of Python: takes some seconds at most */
};

/* Text of some pages at most; what may not be read (stack and dmesg often need root) is said to be so. */
void evidence_collect(const struct evidence *e, struct str *out);
/* The same as a file of the journal. */
void evidence_save(const struct evidence *e, struct journal *j, const char *name);
/* Has any of them a GPU's device node open, a GPU's runtime mapped, or a call recorded?  Not known where one may not be looked
 * at. */
enum diagnose_gpu_use evidence_gpu_use(const struct tree *t, const char *proc, const char *calls);
/* Some of them hand their work on to where nothing can be seen from here. */
bool evidence_leads_away(const struct tree *t);
/* The process has a handler for this signal (Python's faulthandler for SIGABRT). */
bool evidence_catches(const char *proc, int pid, int sig);

#endif
