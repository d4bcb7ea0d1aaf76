/* SPDX-License-Identifier: Apache-2.0 */
#include "job/rebuild.h"

#include "job/job_dir.h"
#include "job/outcome.h"
#include "os/file.h"
#include "os/info.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The lock of a job that runs knows more than its files. */
static void restore_running(const char *state, struct job_row *row, struct arena *a)
{
    bool began = row->attempt > 0;
    if (!job_dir_ask(state, row->uid, a, row))
        row->gpu_used = strcmp(row->gpu, "auto") == 0 ? "cpu" : row->gpu;
    row->state = began ? JOB_ACTIVE : JOB_STARTING;
}

static void restore_state(const char *state, struct job_row *row, struct arena *a)
{
    struct store_end end = { .state = JOB_DRAFT, .options = row->options };
    row->attempt = job_dir_last_attempt(state, row->uid);
    if (row->attempt)
        outcome_read(state, row, a, &end);
    row->run_dir = end.run_dir ? end.run_dir : row->run_dir;
    row->options = end.options;
    if (job_dir_is_held(state, row->uid)) {
        restore_running(state, row, a);
        return;
    }
    row->state = end.state;
    row->has_exit = end.has_exit;
    row->exit_code = end.exit_code;
    row->class_id = end.class_id;
    row->cause = end.cause;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int restore(const struct rebuild_source *from, struct store *s, const char *uid,
                   struct cairn_error *err)
{
    struct rebuild_result *out = from->result;
    struct arena *a = from->arena;
    struct job_row row;
    struct cairn_error why = { 0 };
    bool has;
    if (store_has(s, uid, &has, err))
        return -1;
    if (has)
        return 0;
    if (job_dir_read(from->state, uid, a, &row, &why)) {
        *ARENA_PUSH(a, out->skipped, out->n_skipped) = arena_printf(a, "left out: %s", why.msg);
        return 0;
    }
    restore_state(from->state, &row, a);
    out->n_jobs++;
    return store_add(s, &row, err);
}

int rebuild_rows(void *source, struct store *s, struct cairn_error *err)
{
    const struct rebuild_source *from = source;
    char **uids;
    size_t n;
    if (job_dir_list(from->state, from->arena, &uids, &n, err))
        return -1;
    if (n)
        qsort(uids, n, sizeof(*uids), by_name); /* parents before their clones */
    for (size_t i = 0; i < n; i++)
        if (restore(from, s, uids[i], err))
            return -1;
    return 0;
}

/* With the files that SQLite keeps beside it. */
static int move_old(const char *state, struct arena *a, const char **old, struct cairn_error *err)
{
    static const char *const endings[] = { "", "-wal", "-shm", "-journal" };
    const char *path = arena_printf(a, "%s/cairn.db", state),
               *to = arena_printf(a, "%s.old-%lld", path, (long long)time(NULL));
    for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
        const char *from = arena_printf(a, "%s%s", path, endings[i]);
        if (os_is_file(from) && os_rename(from, arena_printf(a, "%s%s", to, endings[i])))
            return cairn_fail_errno(err, "rename %s", from);
    }
    *old = to;
    return 0;
}

int rebuild(const char *state, struct arena *a, struct rebuild_result *out, struct cairn_error *err)
{
    CLEANUP(store_close_at) struct store *s = NULL;
    struct rebuild_source from = { .state = state, .arena = a, .result = out };
    const struct store_options o = { .state = state, .fill = rebuild_rows, .context = &from };
    struct cairn_error why = { 0 };
    *out = (struct rebuild_result){ 0 };
    if (!store_open(&o, a, &s, NULL, &why) && !store_check(s, &why)) {
        bool is_new = out->n_jobs || out->n_skipped; /* and filled */
        return is_new ? 0 : store_change(s, rebuild_rows, &from, err);
    }
    store_close(TAKE(s));
    if (why.code == CAIRN_EFORMAT)
        return move_old(state, a, &out->old, err) || store_open(&o, a, &s, NULL, err) ? -1 : 0;
    *err = why;
    return -1;
}
