/* SPDX-License-Identifier: Apache-2.0
 * The messages of `cairn run` before and after a run. */
#ifndef CAIRN_RUN_RUN_MESSAGES_H
#define CAIRN_RUN_RUN_MESSAGES_H

#include "base/message_sink.h"
#include "rules/checks.h"
#include "rules/plan.h"
#include "run/outputs.h"
#include "run/supervise.h"

/* Prints the findings that prevent training, and returns their number. */
size_t run_say_preflight(const struct doctor *d, const struct facts *f, bool strict, bool quiet,
                         const struct message_sink *m);
/* Which GPU, how much memory, which variables and why. */
struct run_summary {
    const char **line;
    size_t n;
    const char *again; /* one line for a user who has seen all of it; NULL: it is short anyway */
};
/* applied is false with --no-env. */
struct run_summary run_summarize(const struct facts *f, const struct plan *p, bool applied, struct arena *a);
void run_say_summary(const struct run_summary *s, bool again, const struct message_sink *m);
/* Exit status, peak memory and journal. */
void run_say_end(const struct supervise_result *r, char *const *argv, const struct journal *j,
                 const struct message_sink *m);
/* Result of the check of its outputs. */
void run_say_outputs(const struct outputs *o, bool quiet, const struct message_sink *m);

#endif
