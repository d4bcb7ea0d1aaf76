/* SPDX-License-Identifier: Apache-2.0
 * What the diagnosis of an attempt goes by, in the journal: the GPUs, the PyTorch, the variables that matter and what cairn
 * itself saw.  `cairn diagnose` reads it back, and so says of a journal what `cairn run` said of the run. */
#ifndef CAIRN_RUN_CONTEXT_H
#define CAIRN_RUN_CONTEXT_H

#include "base/json.h"
#include "rules/diagnose.h"

#define CONTEXT_FILE "context.json"

/* The caller frees it.  Of the environment only variables go in that cairn knows: nobody's passwords. */
struct json *context_json(const struct diagnose_context *ctx);
/* Puts it into the facts, which keep what is not in it, and into the context, whose facts they become.  False: it is no
 * such file, and nothing was changed. */
bool context_take(const struct json *v, struct arena *a, struct facts *f, struct diagnose_context *ctx);

#endif
