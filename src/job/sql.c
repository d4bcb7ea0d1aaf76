/* SPDX-License-Identifier: Apache-2.0 */
#include "job/sql.h"

#include "base/str.h"
#include "os/info.h"
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUSY_MS = 5000 };

/* ---- statements ---- */

static int failed(struct sql_db *d, int code, struct cairn_error *err)
{
    const char *why = d->db ? sqlite3_errmsg(d->db) : sqlite3_errstr(code);
    cairn_fail(err, CAIRN_EIO, "%s: %s", d->path, why);
    switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return cairn_hint(err, "`cairn job rebuild` makes a new one from the folders of the jobs");
    case SQLITE_BUSY:
        return cairn_hint(err, "another program has locked it for %d s; try again", BUSY_MS / 1000);
    case SQLITE_FULL:
        return cairn_hint(err, "make room on the disk");
    case SQLITE_READONLY:
        return cairn_hint(err, "set XDG_STATE_HOME to a folder that you can write to");
    default:
        return -1;
    }
}

struct sql sql_begin(struct sql_db *d, const char *text, struct cairn_error *err)
{
    struct sql q = { .db = d, .err = err };
    int code = sqlite3_prepare_v2(d->db, text, -1, &q.st, NULL);
    q.failed = code != SQLITE_OK;
    if (q.failed)
        failed(d, code, err);
    return q;
}

void sql_text(struct sql *q, const char *v)
{
    q->n++;
    if (!q->failed && v)
        sqlite3_bind_text(q->st, q->n, v, -1, SQLITE_TRANSIENT);
}

void sql_int(struct sql *q, int64_t v)
{
    q->n++;
    if (!q->failed)
        sqlite3_bind_int64(q->st, q->n, v);
}

void sql_int_or_null(struct sql *q, int64_t v, bool is_null)
{
    if (is_null)
        q->n++;
    else
        sql_int(q, v);
}

void sql_real(struct sql *q, double v)
{
    q->n++;
    if (!q->failed)
        sqlite3_bind_double(q->st, q->n, v);
}

bool sql_step(struct sql *q)
{
    if (q->failed)
        return false;
    int code = sqlite3_step(q->st);
    if (code == SQLITE_ROW)
        return true;
    q->failed = code != SQLITE_DONE;
    if (q->failed)
        failed(q->db, code, q->err);
    return false;
}

int sql_end(struct sql *q, bool *changed)
{
    while (sql_step(q))
        ;
    if (changed)
        *changed = !q->failed && sqlite3_changes(q->db->db) > 0;
    sqlite3_finalize(q->st);
    q->st = NULL;
    return q->failed ? -1 : 0;
}

int sql_run(struct sql_db *d, const char *text, struct cairn_error *err)
{
    int code = sqlite3_exec(d->db, text, NULL, NULL, NULL);
    return code == SQLITE_OK ? 0 : failed(d, code, err);
}

int sql_begin_write(struct sql_db *d, struct cairn_error *err)
{
    return sql_run(d, "BEGIN IMMEDIATE", err);
}

int sql_commit(struct sql_db *d, int result, struct cairn_error *err)
{
    if (!result && !sql_run(d, "COMMIT", err))
        return 0;
    struct cairn_error ignored;
    sql_run(d, "ROLLBACK", &ignored);
    return -1;
}

const char *sql_column_text(struct sql *q, int i, struct arena *a)
{
    return arena_strdup(a, (const char *)sqlite3_column_text(q->st, i));
}

int64_t sql_column_int(struct sql *q, int i)
{
    return sqlite3_column_int64(q->st, i);
}

double sql_column_real(struct sql *q, int i)
{
    return sqlite3_column_double(q->st, i);
}

bool sql_column_is_null(struct sql *q, int i)
{
    return sqlite3_column_type(q->st, i) == SQLITE_NULL;
}

/* ---- opening ---- */

/* On a read-only disk the jobs can still be listed. */
static int open_read_only(struct sql_db *d, struct cairn_error *err)
{
    CLEANUP(str_release) struct str uri = { 0 };
    str_add(&uri, "file:");
    for (const char *p = d->path; *p; p++)
        if (*p == '?' || *p == '#' || *p == '%')
            str_addf(&uri, "%%%02x", (unsigned char)*p);
        else
            str_addn(&uri, p, 1);
    str_add(&uri, "?immutable=1");
    sqlite3_close(d->db);
    d->db = NULL;
    d->read_only = true;
    int code = sqlite3_open_v2(uri.s, &d->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
    return code == SQLITE_OK ? 0 : failed(d, code, err);
}

static int open_file(struct sql_db *d, struct cairn_error *err)
{
    int code = sqlite3_open_v2(d->path, &d->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    if (code == SQLITE_OK && (access(d->path, W_OK) == 0))
        return 0;
    if (os_is_file(d->path))
        return open_read_only(d, err);
    return failed(d, code, err);
}

/* WAL needs memory that all programs share, which a network file system does not have. */
static int set_modes(struct sql_db *d, bool local, struct cairn_error *err)
{
    sqlite3_busy_timeout(d->db, BUSY_MS);
    if (sql_run(d, "PRAGMA foreign_keys=ON", err))
        return -1;
    if (d->read_only)
        return 0;
    return sql_run(d, local ? "PRAGMA journal_mode=WAL" : "PRAGMA journal_mode=DELETE", err) ||
                   sql_run(d, "PRAGMA synchronous=FULL", err)
               ? -1
               : 0;
}

int sql_open(struct sql_db *d, const char *path, bool local, struct cairn_error *err)
{
    *d = (struct sql_db){ .path = strdup(path) };
    if (!d->path)
        abort();
    if (!open_file(d, err) && !set_modes(d, local, err))
        return 0;
    sql_close(d);
    return -1;
}

void sql_close(struct sql_db *d)
{
    sqlite3_close(d->db);
    free(d->path);
    *d = (struct sql_db){ 0 };
}
