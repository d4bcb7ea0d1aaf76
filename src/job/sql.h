/* SPDX-License-Identifier: Apache-2.0
 * A database file and its statements.  The only module that uses SQLite. */
#ifndef CAIRN_JOB_SQL_H
#define CAIRN_JOB_SQL_H

#include "base/arena.h"
#include "base/error.h"
#include <stdbool.h>
#include <stdint.h>

struct sqlite3;
struct sqlite3_stmt;

struct sql_db {
    struct sqlite3 *db;
    char *path;
    int busy_ms;
    bool was_locked; /* why the last statement that failed did */
    bool read_only;  /* the disk is; or the permissions of the file or its folder are */
};

/* Opens or creates it, for reading only if it cannot be written.  `local`: its file system is this machine's
 * own and has shared memory.  busy_ms: how long to wait for another program that writes.  Errors about a damaged
 * file have the code CAIRN_EFORMAT. */
int sql_open(struct sql_db *d, const char *path, bool local, int busy_ms, struct cairn_error *err);
void sql_close(struct sql_db *d);
/* Fails with CAIRN_EFORMAT if the file is damaged. */
int sql_check(struct sql_db *d, struct cairn_error *err);

/* A statement with its parameters.  A text that is NULL is bound as NULL. */
struct sql {
    struct sql_db *db;
    struct sqlite3_stmt *st;
    struct cairn_error *err;
    int n;       /* parameters that are bound */
    bool failed; /* err is set */
};
struct sql sql_begin(struct sql_db *d, const char *text, struct cairn_error *err);
void sql_text(struct sql *q, const char *v);
void sql_int(struct sql *q, int64_t v);
void sql_int_or_null(struct sql *q, int64_t v, bool is_null);
void sql_real(struct sql *q, double v);
/* True: there is a row. */
bool sql_step(struct sql *q);
const char *sql_column_text(struct sql *q, int i, struct arena *a); /* NULL for NULL */
int64_t sql_column_int(struct sql *q, int i);                       /* 0 for NULL */
double sql_column_real(struct sql *q, int i);
bool sql_column_is_null(struct sql *q, int i);
/* Ends the statement: 0, or -1 with the error.  *changed (or NULL): whether a row was changed. */
int sql_end(struct sql *q, bool *changed);
/* Statements without parameters and results. */
int sql_run(struct sql_db *d, const char *text, struct cairn_error *err);

/* From here to sql_commit nobody else writes. */
int sql_begin_write(struct sql_db *d, struct cairn_error *err);
/* Commits if `result` is 0, else takes everything back; returns the result. */
int sql_commit(struct sql_db *d, int result, struct cairn_error *err);

#endif
