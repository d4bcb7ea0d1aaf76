/* SPDX-License-Identifier: Apache-2.0
 * One list of all runs on this machine, native and supervised. */
#ifndef CAIRN_RUN_RUN_LIST_H
#define CAIRN_RUN_RUN_LIST_H

#include "base/arena.h"
#include "base/error.h"
#include "record/runs.h"

struct run_list_options {
    bool native, supervised; /* the kinds to list */
    const char *dir;         /* native runs in this folder; NULL: in the default folders */
    const char *state;       /* the folder with the journals; see state_dir */
};

/* Newest first.  Damaged runs are listed with what could be read; a missing `dir` is an error. */
int run_list(const struct run_list_options *o, struct arena *a, struct run_entry **out, size_t *n,
             struct cairn_error *err);

#endif
