/* SPDX-License-Identifier: Apache-2.0
 * One list of all runs on this machine, native and supervised, from the folders as they are. */
#ifndef CAIRN_RUN_RUN_LIST_H
#define CAIRN_RUN_RUN_LIST_H

#include "base/arena.h"
#include "base/error.h"
#include "record/runs.h"

struct run_list_options {
    bool native, supervised; /* the kinds that are wanted */
    const char *dir;         /* native runs in this folder; NULL: in the usual places */
    const char *state;       /* the folder that holds the journals; see state_dir */
};

/* Newest first.  What is damaged is listed with what could be read; a `dir` that is not there is an error. */
int run_list(const struct run_list_options *o, struct arena *a, struct run_entry **out, size_t *n,
             struct cairn_error *err);

#endif
