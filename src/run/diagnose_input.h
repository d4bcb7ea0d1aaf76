/* SPDX-License-Identifier: Apache-2.0
 * The input of `cairn diagnose`: logs, journals of `cairn run`, and records of GPU calls. */
#ifndef CAIRN_RUN_DIAGNOSE_INPUT_H
#define CAIRN_RUN_DIAGNOSE_INPUT_H

#include "base/message_sink.h"
#include "rules/diagnose.h"
#include "run/gpu_calls.h"

/* Receives what was read. */
struct diagnose_input {
    struct diagnoser *diagnoser;
    struct diagnose_context *context;
    struct facts *facts;
    bool wants_machine; /* the user named a machine, PyTorch or chip, which overrides that of a journal */
    const struct message_sink *messages;
};

/* A log ("-": standard input), the folder of a journal, or the name of a run. */
int diagnose_input_read(const struct diagnose_input *in, const char *path, struct arena *a,
                        struct cairn_error *err);
bool diagnose_input_is_calls(const char *path);
/* Adds those of the files that are records of GPU calls to c. */
int diagnose_input_calls(int n, char **paths, struct arena *a, struct gpu_calls *c, struct cairn_error *err);

#endif
