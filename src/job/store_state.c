/* SPDX-License-Identifier: Apache-2.0 */
#include "job/store.h"

#include "base/str.h"
#include "job/store_inside.h"
#include "os/process.h"

/* Every change names the states that it starts from, as bits. */
static const char *in_states(unsigned states, struct arena *a)
{
    const char *list = "state IN(''";
    for (int i = 0; i < JOB_N_STATES; i++)
        if (states & 1u << i)
            list = arena_printf(a, "%s,'%s'", list, job_state_name((enum job_state)i));
    return arena_printf(a, "%s)", list);
}

int store_enqueue(struct store *s, const char *uid, unsigned from, bool *changed, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct sql q = sql_begin(
        &s->db,
        arena_printf(
            &a,
            "UPDATE job SET position = CASE WHEN state = 'paused' THEN position"
            "  ELSE (SELECT coalesce(max(position), 0) + 1 FROM job) END,"
            " state = 'queued', want = NULL, claims = 0, exit_code = NULL, class = NULL, cause = NULL,"
            " finished = NULL WHERE uid = ? AND %s AND pid IS NULL",
            in_states(from, &a)),
        err);
    sql_text(&q, uid);
    return sql_end(&q, changed);
}

int store_set_state(struct store *s, const char *uid, unsigned from, enum job_state to, bool *changed,
                    struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct sql q = sql_begin(
        &s->db, arena_printf(&a, "UPDATE job SET state = ? WHERE uid = ? AND %s", in_states(from, &a)), err);
    sql_text(&q, job_state_name(to));
    sql_text(&q, uid);
    return sql_end(&q, changed);
}

int store_set_want(struct store *s, const char *uid, enum job_want want, struct cairn_error *err)
{
    struct sql q = sql_begin(&s->db,
                             "UPDATE job SET since = CASE WHEN want IS NULL THEN ? ELSE since END, want = ?"
                             " WHERE uid = ? AND state IN('starting','active')",
                             err);
    sql_int(&q, store_now_ms());
    sql_text(&q, job_want_name(want));
    sql_text(&q, uid);
    return sql_end(&q, NULL);
}

int store_set_cause(struct store *s, const char *uid, const char *cause, struct cairn_error *err)
{
    struct sql q = sql_begin(&s->db, "UPDATE job SET cause = ? WHERE uid = ?", err);
    sql_text(&q, cause);
    sql_text(&q, uid);
    return sql_end(&q, NULL);
}

/* ---- claiming ---- */

/* A job that ended but has a process still occupies its GPU. */
static int read_taken(struct store *s, struct arena *a, const char ***taken, size_t *n,
                      struct cairn_error *err)
{
    struct sql q = sql_begin(
        &s->db,
        "SELECT coalesce(gpu_used, 'cpu') FROM job WHERE state IN('starting','active') OR pid IS NOT NULL",
        err);
    *taken = NULL;
    *n = 0;
    while (sql_step(&q))
        *ARENA_PUSH(a, *taken, *n) = sql_column_text(&q, 0, a);
    return sql_end(&q, NULL);
}

static int take(struct store *s, const char *uid, const char *gpu, struct arena *a, struct job_row *out,
                struct cairn_error *err)
{
    struct sql q = sql_begin(&s->db,
                             "UPDATE job SET state = 'starting', gpu_used = ?, attempt = attempt + 1,"
                             " claims = claims + 1, since = ?, want = NULL, cause = NULL"
                             " WHERE uid = ? AND state = 'queued' RETURNING " STORE_COLUMNS,
                             err);
    sql_text(&q, gpu);
    sql_int(&q, store_now_ms());
    sql_text(&q, uid);
    if (sql_step(&q))
        store_row(&q, a, out);
    return sql_end(&q, NULL);
}

static int claim(struct store *s, const struct store_lanes *lanes, struct arena *a, struct job_row *out,
                 bool *found, struct cairn_error *err)
{
    const char **taken;
    struct job_row *rows;
    size_t n_taken, n;
    if (read_taken(s, a, &taken, &n_taken, err) || store_queue(s, a, &rows, &n, err))
        return -1;
    for (size_t i = 0; i < n; i++) {
        const char *gpu =
            rows[i].state == JOB_QUEUED ? lanes->choose(lanes->context, &rows[i], taken, n_taken) : NULL;
        if (!gpu && rows[i].state == JOB_QUEUED)
            *ARENA_PUSH(a, taken, n_taken) = rows[i].gpu;
        if (!gpu)
            continue;
        *found = true;
        return take(s, rows[i].uid, gpu, a, out, err);
    }
    return 0;
}

int store_claim(struct store *s, const struct store_lanes *lanes, struct arena *a, struct job_row *out,
                bool *found, struct cairn_error *err)
{
    *found = false;
    if (sql_begin_write(&s->db, err))
        return -1;
    return sql_commit(&s->db, claim(s, lanes, a, out, found, err), err);
}

int store_unclaim(struct store *s, const char *uid, int64_t attempt, bool counts, struct cairn_error *err)
{
    struct sql q = sql_begin(&s->db,
                             "UPDATE job SET state = 'queued', attempt = attempt - 1, gpu_used = NULL,"
                             " pid = NULL, cause = NULL, claims = claims - ?"
                             " WHERE uid = ? AND attempt = ? AND state = 'starting' AND want IS NULL",
                             err);
    sql_int(&q, counts ? 0 : 1);
    sql_text(&q, uid);
    sql_int(&q, attempt);
    return sql_end(&q, NULL);
}

/* ---- the life of an attempt ---- */

int store_set_process(struct store *s, const char *uid, int64_t attempt, const struct os_process_id *me,
                      bool *changed, struct cairn_error *err)
{
    struct sql q = sql_begin(&s->db,
                             "UPDATE job SET pid = ?, pid_start = ?, boot_id = ?"
                             " WHERE uid = ? AND attempt = ? AND state = 'starting'",
                             err);
    sql_int(&q, me->pid);
    sql_int(&q, (int64_t)me->start);
    sql_text(&q, me->boot);
    sql_text(&q, uid);
    sql_int(&q, attempt);
    return sql_end(&q, changed);
}

int store_set_active(struct store *s, const char *uid, int64_t attempt, bool *changed,
                     struct cairn_error *err)
{
    struct sql q =
        sql_begin(&s->db,
                  "UPDATE job SET state = 'active', claims = 0, cause = NULL, started = ?, finished = NULL"
                  " WHERE uid = ? AND attempt = ? AND state = 'starting' AND want IS NULL",
                  err);
    sql_int(&q, store_now_ms() / 1000);
    sql_text(&q, uid);
    sql_int(&q, attempt);
    return sql_end(&q, changed);
}

int store_set_run_dir(struct store *s, const char *uid, const char *run_dir, struct cairn_error *err)
{
    struct sql q = sql_begin(&s->db, "UPDATE job SET run_dir = ? WHERE uid = ?", err);
    sql_text(&q, run_dir);
    sql_text(&q, uid);
    return sql_end(&q, NULL);
}

int store_set_end(struct store *s, const char *uid, int64_t attempt, const struct store_end *e, bool *changed,
                  struct cairn_error *err)
{
    struct sql q = sql_begin(&s->db,
                             "UPDATE job SET state = ?, want = NULL, exit_code = ?, class = ?, cause = ?,"
                             " run_dir = coalesce(?, run_dir), options = coalesce(?, options), finished = ?,"
                             " pid = CASE WHEN ? THEN pid ELSE NULL END"
                             " WHERE uid = ? AND attempt = ? AND state IN('starting','active')",
                             err);
    sql_text(&q, job_state_name(e->state));
    sql_int_or_null(&q, e->exit_code, !e->has_exit);
    sql_text(&q, e->class_id);
    sql_text(&q, e->cause);
    sql_text(&q, e->run_dir);
    sql_text(&q, e->options);
    sql_int(&q, store_now_ms() / 1000);
    sql_int(&q, e->keep_process);
    sql_text(&q, uid);
    sql_int(&q, attempt);
    return sql_end(&q, changed);
}

int store_forget_process(struct store *s, const char *uid, struct cairn_error *err)
{
    struct sql q = sql_begin(
        &s->db, "UPDATE job SET pid = NULL WHERE uid = ? AND state NOT IN('starting','active')", err);
    sql_text(&q, uid);
    return sql_end(&q, NULL);
}
