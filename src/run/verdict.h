/* SPDX-License-Identifier: Apache-2.0
 * Files of a finished journal: verdict.json and `env`. */
#ifndef CAIRN_RUN_VERDICT_H
#define CAIRN_RUN_VERDICT_H

#include "run/outputs.h"
#include "run/supervise.h"

/* verdict.json; the caller frees it. */
struct json *verdict_json(const struct supervise_result *r, const struct outputs *o, char *const *argv,
                          const struct facts *f);
/* Adds "torch": the PyTorch of the plan and how it was found; null without one. */
void verdict_add_torch(struct json *into, const struct facts *f);
/* The difference of two environments, as lines for a shell; the caller frees it. */
char *verdict_env_text(const char *const *before, const char *const *after);

#endif
