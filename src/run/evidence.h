/* SPDX-License-Identifier: Apache-2.0
 * Evidence of a hang, written before the trainer is stopped: where each of its processes sleeps in the
 * kernel, memory, the GPU, and the last kernel messages. */
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
    const char *calls; /* prefix of the files of GPU calls; or NULL */
    const struct memory_monitor *monitor;
    bool stacks; /* get Python stacks from py-spy, if it is installed: takes a few seconds at most */
};

/* A few pages of text; says what could not be read (stack and dmesg often need root). */
void evidence_collect(const struct evidence *e, struct str *out);
/* Writes it to a file of the journal. */
void evidence_save(const struct evidence *e, struct journal *j, const char *name);
/* Does any of them have a GPU device node open, a GPU runtime mapped, or a recorded call?  Unknown if one
 * cannot be inspected. */
enum diagnose_gpu_use evidence_gpu_use(const struct tree *t, const char *proc, const char *calls);
/* Some of them pass their work to a container or another machine. */
bool evidence_leads_away(const struct tree *t);
/* The process has a handler for this signal (Python's faulthandler for SIGABRT). */
bool evidence_catches(const char *proc, int pid, int sig);

#endif
