/* SPDX-License-Identifier: Apache-2.0 */
#include "job/store.h"

#include "base/str.h"
#include "base/suggest.h"
#include "job/store_inside.h"
#include <string.h>

int store_add(struct store *s, const struct job_row *row, struct cairn_error *err)
{
    struct sql q = sql_begin(
        &s->db,
        "INSERT INTO job(uid, name, kind, config, argv, cwd, env, options, gpu, gpu_used, state, position,"
        "  attempt, pid, pid_start, boot_id, run_dir, exit_code, class, cause, parent, note, created,"
        "  started, finished)"
        " VALUES(?,?,?,?,?,?,?,?,?,?,?,"
        "  coalesce(?, (SELECT coalesce(max(position), 0) + 1 FROM job)),?,?,?,?,?,?,?,?,"
        "  (SELECT uid FROM job WHERE uid = ?),?,?,?,?)",
        err);
    sql_text(&q, row->uid);
    sql_text(&q, row->name);
    sql_text(&q, job_kind_name(row->kind));
    sql_text(&q, row->config);
    sql_text(&q, row->argv);
    sql_text(&q, row->cwd);
    sql_text(&q, row->env ? row->env : "{}");
    sql_text(&q, row->options ? row->options : "{}");
    sql_text(&q, row->gpu ? row->gpu : "auto");
    sql_text(&q, row->gpu_used);
    sql_text(&q, job_state_name(row->state));
    if (row->position > 0)
        sql_real(&q, row->position);
    else
        sql_text(&q, NULL);
    sql_int(&q, row->attempt);
    sql_int_or_null(&q, row->pid, !row->pid);
    sql_int_or_null(&q, row->pid_start, !row->pid_start);
    sql_text(&q, row->boot_id);
    sql_text(&q, row->run_dir);
    sql_int_or_null(&q, row->exit_code, !row->has_exit);
    sql_text(&q, row->class_id);
    sql_text(&q, row->cause);
    sql_text(&q, row->parent);
    sql_text(&q, row->note);
    sql_int(&q, row->created ? row->created : store_now_ms() / 1000);
    sql_int_or_null(&q, row->started, !row->started);
    sql_int_or_null(&q, row->finished, !row->finished);
    return sql_end(&q, NULL);
}

int store_get(struct store *s, const char *uid, struct arena *a, struct job_row *out, struct cairn_error *err)
{
    struct sql q = sql_begin(&s->db, "SELECT " STORE_COLUMNS " FROM job WHERE uid = ?", err);
    sql_text(&q, uid);
    bool found = sql_step(&q);
    if (found)
        store_row(&q, a, out);
    if (sql_end(&q, NULL))
        return -1;
    return found ? 0 : cairn_fail(err, CAIRN_EUSAGE, "there is no job %s", uid);
}

/* At most two, to see whether there is more than one. */
static int find_two(struct store *s, const char *where, const char *word, struct arena *a,
                    struct job_row two[2], size_t *n, struct cairn_error *err)
{
    struct sql q = sql_begin(
        &s->db,
        arena_printf(a, "SELECT " STORE_COLUMNS " FROM job WHERE %s ORDER BY uid DESC LIMIT 2", where), err);
    sql_text(&q, word);
    for (*n = 0; *n < 2 && sql_step(&q); ++*n)
        store_row(&q, a, &two[*n]);
    return sql_end(&q, NULL);
}

/* Names the nearest, if one is near. */
static int no_such_job(struct store *s, const char *word, struct arena *a, struct cairn_error *err)
{
    struct suggestion near = { .word = word };
    struct cairn_error ignored;
    struct sql q = sql_begin(&s->db, "SELECT name FROM job ORDER BY uid DESC LIMIT 1000", &ignored);
    while (sql_step(&q))
        suggest_try(&near, sql_column_text(&q, 0, a));
    sql_end(&q, NULL);
    cairn_fail(err, CAIRN_EUSAGE, "there is no job \"%s\"", word);
    return near.best ? cairn_hint(err, "did you mean %s? `cairn job list` lists the jobs", near.best)
                     : cairn_hint(err, "`cairn job list` lists the jobs");
}

int store_find(struct store *s, const char *word, struct arena *a, struct job_row *out,
               struct cairn_error *err)
{
    /* In this order, the first that finds something. */
    static const char *const ways[] = { "uid = ?1", "name = ?1", "substr(uid, -length(?1)) = ?1" };
    struct job_row two[2];
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        size_t n;
        if (!*word || find_two(s, ways[i], word, a, two, &n, err))
            return *word ? -1 : cairn_fail(err, CAIRN_EUSAGE, "the name of a job is empty");
        if (n == 2) {
            cairn_fail(err, CAIRN_EUSAGE, "\"%s\" names more than one job, such as %s and %s", word,
                       two[0].uid, two[1].uid);
            return cairn_hint(err, "give the ID of one");
        }
        if (n) {
            *out = two[0];
            return 0;
        }
    }
    return no_such_job(s, word, a, err);
}

int store_has(struct store *s, const char *uid, bool *has, struct cairn_error *err)
{
    struct sql q = sql_begin(&s->db, "SELECT 1 FROM job WHERE uid = ?", err);
    sql_text(&q, uid);
    *has = sql_step(&q);
    return sql_end(&q, NULL);
}

static int remove_row(struct store *s, const char *uid, const struct store_keeper *keeper, bool *removed,
                      struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct job_row row;
    if (store_get(s, uid, &a, &row, err))
        return -1;
    struct sql q = sql_begin(
        &s->db, "DELETE FROM job WHERE uid = ? AND state NOT IN('starting','active') AND pid IS NULL", err);
    sql_text(&q, uid);
    if (sql_end(&q, removed) || !*removed || !keeper)
        return q.failed ? -1 : 0;
    return keeper->keep(keeper->context, &row, err);
}

int store_remove(struct store *s, const char *uid, const struct store_keeper *keeper, bool *removed,
                 struct cairn_error *err)
{
    *removed = false;
    if (sql_begin_write(&s->db, err))
        return -1;
    return sql_commit(&s->db, remove_row(s, uid, keeper, removed, err), err);
}

int store_has_run(struct store *s, const char *run_dir, bool *has, struct cairn_error *err)
{
    struct sql q = sql_begin(&s->db, "SELECT 1 FROM job WHERE run_dir = ?", err);
    sql_text(&q, run_dir);
    *has = sql_step(&q);
    return sql_end(&q, NULL);
}

static int read_rows(struct sql *q, struct arena *a, struct job_row **out, size_t *n)
{
    *out = NULL;
    *n = 0;
    while (sql_step(q))
        store_row(q, a, ARENA_PUSH(a, *out, *n));
    return sql_end(q, NULL);
}

/* "'queued','paused'" */
static const char *state_list(unsigned states, struct arena *a)
{
    const char *list = "";
    for (int i = 0; i < JOB_N_STATES; i++)
        if (states & 1u << i)
            list = arena_printf(a, "%s%s'%s'", list, *list ? "," : "", job_state_name((enum job_state)i));
    return list;
}

int store_list(struct store *s, const struct store_query *q, struct arena *a, struct job_row **out, size_t *n,
               struct cairn_error *err)
{
    /* Of few states by their index; of all in the order of uid, so that LIMIT ends it. */
    const char *states = q->states ? arena_printf(a, "state IN(%s) AND ", state_list(q->states, a)) : "";
    const char *text = arena_printf(
        a,
        "SELECT " STORE_LIST_COLUMNS " FROM job WHERE %s(?1 IS NULL OR uid < ?1)"
        " AND (?2 IS NULL OR instr(lower(name || ' ' || coalesce(note, '') || ' ' || coalesce(argv, '') ||"
        " ' ' || uid), lower(?2)) > 0) ORDER BY uid DESC LIMIT ?3",
        states);
    struct sql st = sql_begin(&s->db, text, err);
    sql_text(&st, q->before);
    sql_text(&st, q->text);
    sql_int(&st, q->limit > 0 ? q->limit : -1);
    return read_rows(&st, a, out, n);
}

int store_queue(struct store *s, struct arena *a, struct job_row **out, size_t *n, struct cairn_error *err)
{
    struct sql q = sql_begin(&s->db,
                             "SELECT " STORE_LIST_COLUMNS
                             " FROM job WHERE state IN('queued','paused') ORDER BY position, uid",
                             err);
    return read_rows(&q, a, out, n);
}

int store_unsettled(struct store *s, struct arena *a, struct job_row **out, size_t *n,
                    struct cairn_error *err)
{
    struct sql q = sql_begin(
        &s->db,
        "SELECT " STORE_LIST_COLUMNS " FROM job WHERE state IN('starting','active') OR pid IS NOT NULL", err);
    return read_rows(&q, a, out, n);
}

static int edit(struct store *s, const char *uid, int64_t version, const struct store_edit *e,
                const struct store_keeper *keeper, bool *changed, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct job_row row;
    struct sql q =
        sql_begin(&s->db,
                  "UPDATE job SET name = coalesce(?, name), note = coalesce(?, note),"
                  " config = coalesce(?, config), argv = coalesce(?, argv), gpu = coalesce(?, gpu),"
                  " options = coalesce(?, options), version = version + 1"
                  " WHERE uid = ? AND (? = 0 OR version = ?)"
                  " AND state NOT IN('starting','active')",
                  err);
    sql_text(&q, e->name);
    sql_text(&q, e->note);
    sql_text(&q, e->config);
    sql_text(&q, e->argv);
    sql_text(&q, e->gpu);
    sql_text(&q, e->options);
    sql_text(&q, uid);
    sql_int(&q, version);
    sql_int(&q, version);
    if (sql_end(&q, changed) || !*changed || !keeper)
        return q.failed ? -1 : 0;
    return store_get(s, uid, &a, &row, err) || keeper->keep(keeper->context, &row, err) ? -1 : 0;
}

int store_edit(struct store *s, const char *uid, int64_t version, const struct store_edit *e,
               const struct store_keeper *keeper, bool *changed, struct cairn_error *err)
{
    *changed = false;
    if (sql_begin_write(&s->db, err))
        return -1;
    return sql_commit(&s->db, edit(s, uid, version, e, keeper, changed, err), err);
}

/* ---- order ---- */

/* NULL: at the end. */
static int set_position(struct store *s, const char *uid, const double *position, struct cairn_error *err)
{
    struct sql q = sql_begin(&s->db,
                             "UPDATE job SET position = coalesce(?, (SELECT max(position) + 1 FROM job))"
                             " WHERE uid = ?",
                             err);
    if (position)
        sql_real(&q, *position);
    else
        sql_text(&q, NULL);
    sql_text(&q, uid);
    return sql_end(&q, NULL);
}

/* Queued, paused and running jobs get the numbers 1, 2, 3 …, in their order: a job that runs now and is paused
 * later comes back to its place. */
static int renumber(struct store *s, struct cairn_error *err)
{
    return sql_run(&s->db,
                   "UPDATE job SET position = n FROM (SELECT uid AS u, row_number() OVER"
                   "  (ORDER BY position, uid) AS n FROM job"
                   "  WHERE state IN('queued','paused','starting','active')) WHERE uid = u",
                   err);
}

static int place_before(struct store *s, const char *uid, const char *before, struct arena *a,
                        struct cairn_error *err)
{
    struct job_row row, next = { 0 };
    if (renumber(s, err) || store_get(s, uid, a, &row, err) ||
        (before && store_get(s, before, a, &next, err)))
        return -1;
    const struct job_row *both[] = { &row, before ? &next : NULL };
    for (int i = 0; i < 2 && both[i]; i++)
        if (both[i]->state != JOB_QUEUED && both[i]->state != JOB_PAUSED) {
            cairn_fail(err, CAIRN_EUSAGE, "job %s is %s, and so has no place in the queue", both[i]->uid,
                       job_state_name(both[i]->state));
            return cairn_hint(err, "`cairn job list --state queued` lists the jobs that wait");
        }
    const double place = next.position - 0.5;
    return set_position(s, uid, before ? &place : NULL, err);
}

int store_move(struct store *s, const char *uid, const char *before, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    if (sql_begin_write(&s->db, err))
        return -1;
    int r = str_eq(uid, before) ? 0 : place_before(s, uid, before, &a, err);
    return sql_commit(&s->db, r, err);
}

/* ---- settings ---- */

int store_setting(struct store *s, const char *key, struct arena *a, const char **out,
                  struct cairn_error *err)
{
    struct sql q = sql_begin(&s->db, "SELECT value FROM setting WHERE key = ?", err);
    sql_text(&q, key);
    *out = sql_step(&q) ? sql_column_text(&q, 0, a) : NULL;
    return sql_end(&q, NULL);
}

int store_set_setting(struct store *s, const char *key, const char *value, struct cairn_error *err)
{
    struct sql q = sql_begin(&s->db, "INSERT OR REPLACE INTO setting(key, value) VALUES(?, ?)", err);
    sql_text(&q, key);
    sql_text(&q, value);
    return sql_end(&q, NULL);
}
