/* SPDX-License-Identifier: Apache-2.0
 * What `cairn run` says around a run: all of it on stderr, since stdout is the trainer's. */
#ifndef CAIRN_CLI_RUN_PRINT_H
#define CAIRN_CLI_RUN_PRINT_H

#include "rules/checks.h"
#include "rules/plan.h"
#include "run/outputs.h"
#include "run/supervise.h"

/* The findings that stop training; how many there were. */
size_t run_print_preflight(const struct doctor *d, const struct facts *f, bool strict, bool quiet);
/* Which GPU, how much memory, which variables and why. */
struct run_summary {
    const char **line;
    size_t n;
    const char *again; /* all of it in one line, for who has read it; NULL: there is not much to say */
};
/* applied is false with --no-env. */
struct run_summary run_summarize(const struct facts *f, const struct plan *p, bool applied, struct arena *a);
void run_print_summary(const struct run_summary *s, bool again);
/* Which PyTorch was planned for, and how it was found: "torch" of an object; null without one. */
void run_add_torch(struct json *into, const struct facts *f);
/* How it ended. */
void run_print_end(const struct supervise_result *r, char *const *argv, const struct journal *j);
/* What a look at its outputs found. */
void run_print_outputs(const struct outputs *o, bool quiet);
/* What makes one environment of another, as lines for a shell. */
char *run_env_text(const char *const *before, const char *const *after);
/* verdict.json; the caller frees it. */
struct json *run_verdict_json(const struct supervise_result *r, const struct outputs *o, char *const *argv,
                              const struct facts *f);

#endif
