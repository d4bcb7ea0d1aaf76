/* SPDX-License-Identifier: Apache-2.0
 * What `cairn run` says around a run. */
#ifndef CAIRN_RUN_RUN_MESSAGES_H
#define CAIRN_RUN_RUN_MESSAGES_H

#include "base/message_sink.h"
#include "rules/checks.h"
#include "rules/plan.h"
#include "run/outputs.h"
#include "run/supervise.h"

/* The findings that stop training; how many there were. */
size_t run_say_preflight(const struct doctor *d, const struct facts *f, bool strict, bool quiet,
                         const struct message_sink *m);
/* Which GPU, how much memory, which variables and why. */
struct run_summary {
    const char **line;
    size_t n;
    const char *again; /* all of it in one line, for who has read it; NULL: there is not much to say */
};
/* applied is false with --no-env. */
struct run_summary run_summarize(const struct facts *f, const struct plan *p, bool applied, struct arena *a);
void run_say_summary(const struct run_summary *s, bool again, const struct message_sink *m);
/* How it ended. */
void run_say_end(const struct supervise_result *r, char *const *argv, const struct journal *j,
                 const struct message_sink *m);
/* What the check of its outputs found. */
void run_say_outputs(const struct outputs *o, bool quiet, const struct message_sink *m);

#endif
