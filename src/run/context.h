/* SPDX-License-Identifier: Apache-2.0
 * The input of a diagnosis besides the log, in the journal: the GPUs, the PyTorch, the environment
 * variables and cairn's own observations.  With it `cairn diagnose` reaches the same diagnosis as `cairn
 * run`. */
#ifndef CAIRN_RUN_CONTEXT_H
#define CAIRN_RUN_CONTEXT_H

#include "base/json.h"
#include "rules/diagnose.h"

#define CONTEXT_FILE "context.json"

/* The caller frees it.  It has only the environment variables that cairn knows, so no passwords. */
struct json *context_json(const struct diagnose_context *ctx);
/* Overrides the facts with it and sets ctx, whose facts they become.  False: not such a file; nothing was
 * changed. */
bool context_take(const struct json *v, struct arena *a, struct facts *f, struct diagnose_context *ctx);

#endif
