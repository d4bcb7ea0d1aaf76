/* SPDX-License-Identifier: Apache-2.0 */
#include "job/sql.h"

#include "base/clock.h"
#include "base/str.h"
#include "os/info.h"
#include "os/path.h"
#include <poll.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { JOURNAL_LOOK_MS = 10 };

/* ---- statements ---- */

static int failed(struct sql_db *d, int code, struct cairn_error *err)
{
    const char *why = d->db ? sqlite3_errmsg(d->db) : sqlite3_errstr(code);
    bool damaged = (code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB;
    d->was_locked = (code & 0xff) == SQLITE_BUSY;
    cairn_fail(err, damaged ? CAIRN_EFORMAT : CAIRN_EIO, "%s: %s", d->path, why);
    switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return cairn_hint(err, "`cairn job rebuild` makes a new one from the folders of the jobs");
    case SQLITE_BUSY:
        return cairn_hint(err, "another program has locked it; try again");
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

static int open_with(struct sql_db *d, const char *name, int flags, struct cairn_error *err)
{
    sqlite3_close(d->db);
    d->db = NULL;
    int code = sqlite3_open_v2(name, &d->db, flags, NULL);
    if (code != SQLITE_OK)
        return failed(d, code, err);
    sqlite3_busy_timeout(d->db, d->busy_ms);
    return 0;
}

/* Opening reads nothing yet. */
static int read_something(struct sql_db *d, struct cairn_error *err)
{
    return sql_run(d, "SELECT count(*) FROM sqlite_schema", err);
}

/* On a read-only disk the jobs can still be listed.  SQLite reads its log of changes too, if the files beside
 * the database allow; else the database as it is, which lacks the last changes. */
static int open_read_only(struct sql_db *d, struct cairn_error *err)
{
    CLEANUP(str_release) struct str uri = { 0 };
    struct cairn_error ignored;
    d->read_only = true;
    if (!open_with(d, d->path, SQLITE_OPEN_READONLY, &ignored) && !read_something(d, &ignored))
        return 0;
    str_add(&uri, "file:");
    for (const char *p = d->path; *p; p++)
        if (*p == '?' || *p == '#' || *p == '%')
            str_addf(&uri, "%%%02x", (unsigned char)*p);
        else
            str_addn(&uri, p, 1);
    str_add(&uri, "?immutable=1");
    return open_with(d, uri.s, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, err) || read_something(d, err) ? -1
                                                                                                      : 0;
}

/* SQLite writes files beside the database: the folder has to be writable, too. */
static bool can_write(const char *path)
{
    CLEANUP(mem_free) char *folder = path_folder(path);
    return access(path, W_OK) == 0 && access(folder, W_OK) == 0;
}

static int open_file(struct sql_db *d, struct cairn_error *err)
{
    if (os_is_file(d->path) && !can_write(d->path))
        return open_read_only(d, err);
    return open_with(d, d->path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);
}

/* SQLite itself does not wait here: the switch reads first and writes then, and two programs that make the same
 * database would wait for each other. */
static int set_journal(struct sql_db *d, const char *pragma, struct cairn_error *err)
{
    for (double end = clock_s() + d->busy_ms / 1e3;; poll(NULL, 0, JOURNAL_LOOK_MS)) {
        d->was_locked = false;
        if (!sql_run(d, pragma, err))
            return 0;
        if (!d->was_locked || clock_s() >= end)
            return -1;
        *err = (struct cairn_error){ 0 };
    }
}

/* WAL needs memory that all programs share, which a network file system does not have. */
static int set_modes(struct sql_db *d, bool local, struct cairn_error *err)
{
    if (sql_run(d, "PRAGMA foreign_keys=ON", err))
        return -1;
    if (d->read_only)
        return 0;
    return set_journal(d, local ? "PRAGMA journal_mode=WAL" : "PRAGMA journal_mode=DELETE", err) ||
                   sql_run(d, "PRAGMA synchronous=FULL", err)
               ? -1
               : 0;
}

int sql_open(struct sql_db *d, const char *path, bool local, int busy_ms, struct cairn_error *err)
{
    *d = (struct sql_db){ .path = strdup(path), .busy_ms = busy_ms };
    if (!d->path)
        abort();
    if (!open_file(d, err) && !set_modes(d, local, err))
        return 0;
    sql_close(d);
    return -1;
}

int sql_check(struct sql_db *d, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct sql q = sql_begin(d, "PRAGMA quick_check(1)", err);
    const char *found = sql_step(&q) ? sql_column_text(&q, 0, &a) : NULL;
    if (sql_end(&q, NULL))
        return -1;
    return str_eq(found, "ok") ? 0 : cairn_fail(err, CAIRN_EFORMAT, "%s: %s", d->path, found ? found : "");
}

void sql_close(struct sql_db *d)
{
    sqlite3_close(d->db);
    free(d->path);
    *d = (struct sql_db){ 0 };
}
