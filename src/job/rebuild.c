/* SPDX-License-Identifier: Apache-2.0 */
#include "job/rebuild.h"

#include "job/job_dir.h"
#include "job/outcome.h"
#include "job/store.h"
#include "os/file.h"
#include "os/info.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* With the files that SQLite keeps beside it. */
static int move_old(const char *state, struct arena *a, const char **old, struct cairn_error *err)
{
    static const char *const endings[] = { "", "-wal", "-shm", "-journal" };
    const char *path = arena_printf(a, "%s/cairn.db", state),
               *to = arena_printf(a, "%s.old-%lld", path, (long long)time(NULL));
    if (!os_is_file(path))
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
        const char *from = arena_printf(a, "%s%s", path, endings[i]);
        if (os_is_file(from) && os_rename(from, arena_printf(a, "%s%s", to, endings[i])))
            return cairn_fail_errno(err, "rename %s", from);
    }
    *old = to;
    return 0;
}

/* A job that runs is active; one that began has ended as its files say; any other is a draft, since nobody
 * knows whether it was to run. */
static void restore_state(const char *state, struct job_row *row, struct arena *a)
{
    struct store_end end;
    row->attempt = job_dir_last_attempt(state, row->uid);
    if (!row->attempt) {
        row->state = JOB_DRAFT;
        return;
    }
    outcome_read(state, row, a, &end);
    row->run_dir = end.run_dir;
    row->options = end.options;
    row->state = job_dir_is_held(state, row->uid) ? JOB_ACTIVE : end.state;
    if (row->state == JOB_ACTIVE)
        return;
    row->has_exit = end.has_exit;
    row->exit_code = end.exit_code;
    row->class_id = end.class_id;
    row->cause = end.cause;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int rebuild(const char *state, struct arena *a, struct rebuild_result *out, struct cairn_error *err)
{
    CLEANUP(store_close_at) struct store *s = NULL;
    char **uids;
    size_t n;
    *out = (struct rebuild_result){ 0 };
    if (job_dir_list(state, a, &uids, &n, err) || move_old(state, a, &out->old, err) ||
        store_open(state, a, &s, NULL, err))
        return -1;
    if (n)
        qsort(uids, n, sizeof(*uids), by_name); /* parents before their clones */
    for (size_t i = 0; i < n; i++) {
        struct job_row row;
        struct cairn_error why = { 0 };
        if (job_dir_read(state, uids[i], a, &row, &why)) {
            *ARENA_PUSH(a, out->skipped, out->n_skipped) = arena_printf(a, "left out: %s", why.msg);
            continue;
        }
        restore_state(state, &row, a);
        if (store_add(s, &row, err))
            return -1;
        out->n_jobs++;
    }
    return 0;
}
