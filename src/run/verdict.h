/* SPDX-License-Identifier: Apache-2.0
 * What the journal of a run holds in the end: verdict.json, and the file `env`. */
#ifndef CAIRN_RUN_VERDICT_H
#define CAIRN_RUN_VERDICT_H

#include "run/outputs.h"
#include "run/supervise.h"

/* verdict.json; the caller frees it. */
struct json *verdict_json(const struct supervise_result *r, const struct outputs *o, char *const *argv,
                          const struct facts *f);
/* Which PyTorch was planned for, and how it was found: "torch" of an object; null without one. */
void verdict_add_torch(struct json *into, const struct facts *f);
/* What makes one environment of another, as lines for a shell; the caller frees it. */
char *verdict_env_text(const char *const *before, const char *const *after);

#endif
