/* SPDX-License-Identifier: Apache-2.0 */
#include "base/own.h"
#include "job/store_inside.h"
#include "os/file.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SCHEMA = 1, BUSY_MS = 5000 };

static const char schema[] =
    "CREATE TABLE job(uid TEXT PRIMARY KEY, name TEXT NOT NULL,"
    "  kind TEXT NOT NULL CHECK(kind IN('train','run','cache','sample')), config TEXT, argv TEXT,"
    "  cwd TEXT NOT NULL, env TEXT NOT NULL DEFAULT '{}', options TEXT NOT NULL DEFAULT '{}',"
    "  gpu TEXT NOT NULL DEFAULT 'auto', gpu_used TEXT,"
    "  state TEXT NOT NULL CHECK(state IN('draft','queued','starting','active','finished','failed',"
    "    'stopped','paused','lost')),"
    "  want TEXT CHECK(want IN('stop','pause','kill')), position REAL,"
    "  attempt INTEGER NOT NULL DEFAULT 0, claims INTEGER NOT NULL DEFAULT 0, since INTEGER,"
    "  pid INTEGER, pid_start INTEGER, boot_id TEXT, run_dir TEXT, exit_code INTEGER, class TEXT,"
    "  cause TEXT, parent TEXT REFERENCES job(uid) ON DELETE SET NULL, note TEXT,"
    "  created INTEGER NOT NULL, started INTEGER, finished INTEGER,"
    "  version INTEGER NOT NULL DEFAULT 1) STRICT;"
    "CREATE INDEX job_next ON job(state, position);"
    "CREATE TABLE dataset(name TEXT PRIMARY KEY, path TEXT NOT NULL UNIQUE,"
    "  caption_ext TEXT NOT NULL DEFAULT 'txt', created INTEGER NOT NULL) STRICT;"
    "CREATE TABLE setting(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;"
    "PRAGMA user_version=1;";

void store_row(struct sql *q, struct arena *a, struct job_row *out)
{
    int i = 0;
    struct job_row r = { 0 };
    r.uid = sql_column_text(q, i++, a);
    r.name = sql_column_text(q, i++, a);
    job_kind_parse(sql_column_text(q, i++, a), &r.kind);
    r.config = sql_column_text(q, i++, a);
    r.argv = sql_column_text(q, i++, a);
    r.cwd = sql_column_text(q, i++, a);
    r.env = sql_column_text(q, i++, a);
    r.options = sql_column_text(q, i++, a);
    r.gpu = sql_column_text(q, i++, a);
    r.gpu_used = sql_column_text(q, i++, a);
    job_state_parse(sql_column_text(q, i++, a), &r.state);
    r.want = job_want_parse(sql_column_text(q, i++, a));
    r.position = sql_column_real(q, i++);
    r.attempt = sql_column_int(q, i++);
    r.claims = sql_column_int(q, i++);
    r.since_ms = sql_column_int(q, i++);
    r.pid = sql_column_int(q, i++);
    r.pid_start = sql_column_int(q, i++);
    r.boot_id = sql_column_text(q, i++, a);
    r.run_dir = sql_column_text(q, i++, a);
    r.has_exit = !sql_column_is_null(q, i);
    r.exit_code = sql_column_int(q, i++);
    r.class_id = sql_column_text(q, i++, a);
    r.cause = sql_column_text(q, i++, a);
    r.parent = sql_column_text(q, i++, a);
    r.note = sql_column_text(q, i++, a);
    r.created = sql_column_int(q, i++);
    r.started = sql_column_int(q, i++);
    r.finished = sql_column_int(q, i++);
    r.version = sql_column_int(q, i++);
    *out = r;
}

int64_t store_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int read_version(struct store *s, int64_t *version, struct cairn_error *err)
{
    struct sql q = sql_begin(&s->db, "PRAGMA user_version", err);
    *version = sql_step(&q) ? sql_column_int(&q, 0) : 0;
    return sql_end(&q, NULL);
}

/* Two programs may come here at once: the second finds the tables. */
static int make_tables(struct store *s, const struct store_options *o, struct cairn_error *err)
{
    int64_t version;
    if (sql_begin_write(&s->db, err))
        return -1;
    int r = read_version(s, &version, err);
    if (!r && !version)
        r = sql_run(&s->db, schema, err) || (o->fill && o->fill(o->context, s, err)) ? -1 : 0;
    return sql_commit(&s->db, r, err);
}

static int check_version(struct store *s, const struct store_options *o, struct cairn_error *err)
{
    int64_t version;
    if (read_version(s, &version, err))
        return -1;
    if (!version && s->db.read_only)
        return cairn_fail(err, CAIRN_EIO, "%s is empty, and its folder is read-only", s->db.path);
    if (!version && make_tables(s, o, err))
        return -1;
    if (version <= SCHEMA)
        return 0;
    cairn_fail(err, CAIRN_EUSAGE, "%s was written by a newer cairn (schema %lld)", s->db.path,
               (long long)version);
    return cairn_hint(err, "use that version, or set XDG_STATE_HOME to another folder");
}

/* What own_file_open checks, without opening it: closing a file drops the locks that other connections of this
 * process have on it. */
static bool is_ours(const struct own_dir *d)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct stat st;
    return !lstat(arena_printf(&a, "%s/cairn.db", d->path), &st) && S_ISREG(st.st_mode) &&
           st.st_uid == geteuid() && st.st_nlink == 1 && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* SQLite makes files with the permissions of the umask; this one holds commands and environments.  If only the
 * file or the folder is read-only, the jobs can still be listed. */
static int make_private(const struct own_dir *d, struct cairn_error *err)
{
    CLEANUP(fd_close) int fd = -1;
    if (is_ours(d))
        return 0;
    if (!own_file_open(d, "cairn.db", OS_READ | OS_WRITE | OS_CREATE, &fd, err))
        return 0;
    bool read_only = errno == EROFS || errno == EACCES;
    return read_only && !own_file_open(d, "cairn.db", OS_READ, &fd, err) ? 0 : -1;
}

static const char *note_about(const struct store *s, bool local, struct arena *a)
{
    if (s->db.read_only)
        return arena_printf(a, "%s is read-only: jobs are listed, but cannot be changed", s->db.path);
    return local ? NULL
                 : arena_printf(a,
                                "%s is on a network file system: the queue works for the programs of one "
                                "machine only",
                                s->db.path);
}

int store_open(const struct store_options *o, struct arena *a, struct store **out, const char **note,
               struct cairn_error *err)
{
    CLEANUP(own_dir_close) struct own_dir d = OWN_DIR_NONE;
    if (own_dir_open(&d, PLACE_STATE, o->state, NULL, true, err) || make_private(&d, err))
        return -1;
    CLEANUP(store_close_at) struct store *s = calloc(1, sizeof(*s));
    if (!s)
        abort();
    bool local = os_is_local(d.path);
    if (sql_open(&s->db, arena_printf(a, "%s/cairn.db", d.path), local, o->busy_ms ? o->busy_ms : BUSY_MS,
                 err) ||
        check_version(s, o, err))
        return -1;
    if (os_info(s->db.path, &s->file))
        return cairn_fail_errno(err, "stat %s", s->db.path);
    if (note)
        *note = note_about(s, local, a);
    *out = TAKE(s);
    return 0;
}

bool store_is_read_only(const struct store *s)
{
    return s->db.read_only;
}

bool store_was_locked(const struct store *s)
{
    return s->db.was_locked;
}

bool store_is_current(const struct store *s)
{
    struct os_info now;
    return os_info(s->db.path, &now) ? errno != ENOENT : os_info_is_same(&s->file, &now);
}

int store_change(struct store *s, int (*change)(void *context, struct store *s, struct cairn_error *err),
                 void *context, struct cairn_error *err)
{
    if (sql_begin_write(&s->db, err))
        return -1;
    return sql_commit(&s->db, change(context, s, err), err);
}

int store_check(struct store *s, struct cairn_error *err)
{
    return sql_check(&s->db, err);
}

void store_close(struct store *s)
{
    if (!s)
        return;
    sql_close(&s->db);
    free(s);
}

void store_close_at(struct store **s)
{
    store_close(*s);
}
