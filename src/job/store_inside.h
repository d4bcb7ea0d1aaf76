/* SPDX-License-Identifier: Apache-2.0
 * Private to store.c, store_open.c and store_state.c. */
#ifndef CAIRN_JOB_STORE_INSIDE_H
#define CAIRN_JOB_STORE_INSIDE_H

#include "job/sql.h"
#include "job/store.h"
#include "os/info.h"

struct store {
    struct sql_db db;
    struct os_info file; /* when it was opened */
};

/* The columns of a row in the order of store_row; a list leaves out what can be large. */
#define STORE_ROW_(config, env)                                                                       \
    "uid, name, kind, " config ", argv, cwd, " env ", options, gpu, gpu_used, state, want, position," \
    " attempt, claims, since, pid, pid_start, boot_id, run_dir, exit_code, class, cause, parent,"     \
    " note, created, started, finished, version"
#define STORE_COLUMNS STORE_ROW_("config", "env")
#define STORE_LIST_COLUMNS STORE_ROW_("NULL", "NULL")
void store_row(struct sql *q, struct arena *a, struct job_row *out);

#endif
