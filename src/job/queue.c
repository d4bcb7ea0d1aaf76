/* SPDX-License-Identifier: Apache-2.0 */
#include "job/queue.h"

#include "base/json.h"
#include "base/str.h"
#include "job/job_dir.h"
#include "job/outcome.h"
#include "job/store_inside.h"
#include "os/file.h"
#include "os/path.h"
#include "os/process.h"
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* A supervisor takes its lock within milliseconds; on a machine that swaps, within seconds. */
enum { CLAIM_MS = 10000, MOST_CLAIMS = 3 };

int queue_open(const struct queue_options *o, struct queue *out, struct cairn_error *err)
{
    *out = (struct queue){ .o = *o };
    if (!store_open(o->state, &out->arena, &out->store, &out->note, err))
        return 0;
    arena_release(&out->arena);
    return -1;
}

void queue_close(struct queue *q)
{
    store_close(q->store);
    arena_release(&q->arena);
    *q = (struct queue){ 0 };
}

/* ---- adding ---- */

/* "train.py" of `python3 train.py --x`, "echo hello" of `sh -c 'echo hello'`, else the command. */
static const char *name_of_command(const char *argv, struct arena *a)
{
    enum { MOST = 40 };
    CLEANUP(json_cleanup) struct json *v = NULL;
    struct cairn_error ignored;
    if (!argv || json_parse(argv, strlen(argv), &v, &ignored))
        return "job";
    for (size_t i = 0; i < json_length(v); i++) {
        const char *word = json_text(json_at(v, i));
        if (word && (str_ends(word, ".py") || str_ends(word, ".yaml") || str_ends(word, ".toml")))
            return arena_strdup(a, path_name(word));
    }
    const char *first = json_text(json_at(v, 0)), *script = json_text(json_at(v, 2));
    if (str_eq(json_text(json_at(v, 1)), "-c") && script && *script)
        return strlen(script) <= MOST ? arena_strdup(a, script)
                                      : arena_printf(a, "%.*s...", MOST - 3, script);
    return first && *first ? arena_strdup(a, path_name(first)) : "job";
}

int queue_add(struct queue *q, const struct job_row *wish, bool start, struct arena *a, struct job_row *out,
              struct cairn_error *err)
{
    char uid[JOB_UID_SIZE];
    struct job_row row = *wish;
    job_uid_make(uid);
    row.uid = arena_strdup(a, uid);
    row.name = wish->name && *wish->name ? wish->name : name_of_command(wish->argv, a);
    row.gpu = wish->gpu ? wish->gpu : "auto";
    row.env = wish->env ? wish->env : "{}";
    row.options = wish->options ? wish->options : "{}";
    row.created = store_now_ms() / 1000;
    row.state = start ? JOB_QUEUED : JOB_DRAFT;
    /* The folder first: a row without one could not run. */
    if (job_dir_write(q->o.state, &row, err))
        return -1;
    if (store_add(q->store, &row, err)) {
        struct cairn_error ignored;
        job_dir_trash(q->o.state, uid, &ignored);
        return -1;
    }
    return store_get(q->store, uid, a, out, err);
}

/* Options of the job itself, without what its attempts left there. */
static const char *fresh_options(const char *options, struct arena *a)
{
    CLEANUP(json_cleanup) struct json *was = NULL, *now = json_new_object();
    struct cairn_error ignored;
    if (options && !json_parse(options, strlen(options), &was, &ignored))
        for (struct json_member m = json_first(was); m.key; m = json_next(was, m))
            if (strcmp(m.key, "last") != 0)
                json_add_copy(now, m.key, m.value);
    CLEANUP(mem_free) char *text = json_to_string(now);
    return arena_strdup(a, text);
}

int queue_clone(struct queue *q, const char *uid, struct arena *a, struct job_row *out,
                struct cairn_error *err)
{
    struct job_row from;
    if (store_get(q->store, uid, a, &from, err))
        return -1;
    const struct job_row wish = {
        .name = from.name,
        .kind = from.kind,
        .config = from.config,
        .argv = from.argv,
        .cwd = from.cwd,
        .env = from.env,
        .options = fresh_options(from.options, a),
        .gpu = from.gpu,
        .parent = from.uid,
    };
    return queue_add(q, &wish, false, a, out, err);
}

int queue_edit(struct queue *q, const char *uid, int64_t version, const struct store_edit *e, bool *conflict,
               struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct job_row row;
    bool changed;
    *conflict = false;
    if (store_edit(q->store, uid, version, e, &changed, err) || store_get(q->store, uid, &a, &row, err))
        return -1;
    if (changed)
        return job_dir_write(q->o.state, &row, err);
    if (job_state_is_running(row.state)) {
        cairn_fail(err, CAIRN_EUSAGE, "job %s runs", uid);
        return cairn_hint(err, "stop it first, or clone it and edit the copy");
    }
    *conflict = true;
    cairn_fail(err, CAIRN_EUSAGE, "job %s was changed meanwhile: it has version %lld, not %lld", uid,
               (long long)row.version, (long long)version);
    return cairn_hint(err, "look at it again, then repeat the change");
}

int queue_remove(struct queue *q, const char *uid, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct job_row row;
    if (store_get(q->store, uid, &a, &row, err))
        return -1;
    if (job_state_is_running(row.state) || job_dir_is_held(q->o.state, uid)) {
        cairn_fail(err, CAIRN_EUSAGE, "job %s runs", uid);
        return cairn_hint(err, "stop it first: cairn job stop %s", uid);
    }
    if (store_remove(q->store, uid, err))
        return -1;
    return job_dir_trash(q->o.state, uid, err);
}

/* ---- the queue as a whole ---- */

static const char paused_key[] = "queue.paused";

int queue_set_paused(struct queue *q, bool paused, struct cairn_error *err)
{
    return store_set_setting(q->store, paused_key, paused ? "true" : "false", err);
}

int queue_is_paused(struct queue *q, bool *paused, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    const char *value;
    if (store_setting(q->store, paused_key, &a, &value, err))
        return -1;
    *paused = str_eq(value, "true");
    return 0;
}

/* Nobody holds the lock of a job that should run. */
static int heal_running(struct queue *q, const struct job_row *row, struct arena *a, struct cairn_error *err)
{
    struct store_end end;
    int64_t waited = store_now_ms() - row->since_ms;
    if (row->state == JOB_STARTING && row->want == JOB_WANT_NOTHING) {
        /* It may not have come to its lock yet.  A clock that was set back must not keep it waiting. */
        if (!row->pid && waited >= 0 && waited < CLAIM_MS)
            return 0;
        if (row->claims < MOST_CLAIMS)
            return store_unclaim(q->store, row->uid, row->attempt, NULL, err);
        end = (struct store_end){ .state = JOB_FAILED,
                                  .cause = arena_printf(a, "its supervisor did not start, %d times in a row",
                                                        MOST_CLAIMS) };
    } else
        outcome_read(q->o.state, row, a, &end);
    return store_set_end(q->store, row->uid, row->attempt, &end, NULL, err);
}

int queue_heal(struct queue *q, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct job_row *rows;
    size_t n;
    if (store_is_read_only(q->store))
        return 0;
    if (store_unsettled(q->store, &a, &rows, &n, err))
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (job_dir_is_held(q->o.state, rows[i].uid))
            continue;
        if (job_state_is_running(rows[i].state) ? heal_running(q, &rows[i], &a, err)
                                                : store_forget_process(q->store, rows[i].uid, err))
            return -1;
    }
    return 0;
}

/* ---- starting ---- */

static bool is_taken(const char *lane, const char *const *taken, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_list_has(taken[i], ',', lane))
            return true;
    return false;
}

static bool any_is_taken(const char *lanes, const char *const *taken, size_t n)
{
    char lane[32];
    for (const char *at = lanes; *at; at += strspn(at, ",")) {
        size_t len = strcspn(at, ",");
        snprintf(lane, sizeof(lane), "%.*s", (int)len, at);
        if (is_taken(lane, taken, n))
            return true;
        at += len;
    }
    return false;
}

/* The first free GPU, the one that cairn would choose before the others; without a GPU the CPU. */
static const char *choose_any(struct queue *q, const char *const *taken, size_t n)
{
    const struct facts *f = q->o.facts;
    size_t usable = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < f->n_gpus; i++) {
            if (!f->gpus[i].rocm_capable || f->gpus[i].hip_index < 0 || pass != ((int)i != f->default_gpu))
                continue;
            const char *lane = arena_printf(&q->arena, "%d", f->gpus[i].hip_index);
            usable++;
            if (!is_taken(lane, taken, n))
                return lane;
        }
    return usable || is_taken("cpu", taken, n) ? NULL : "cpu";
}

static const char *choose(void *context, const struct job_row *job, const char *const *taken, size_t n)
{
    struct queue *q = context;
    if (str_eq(job->gpu, "auto"))
        return choose_any(q, taken, n);
    return any_is_taken(job->gpu, taken, n) ? NULL : arena_strdup(&q->arena, job->gpu);
}

/* The supervisor is this program, apart from the caller's session. */
static int start_supervisor(struct queue *q, const struct job_row *row, struct cairn_error *err)
{
    CLEANUP(own_dir_close) struct own_dir d = OWN_DIR_NONE;
    CLEANUP(fd_close) int log = -1;
    CLEANUP(fd_close) int null = os_open_null();
    char program[PATH_MAX];
    const char *argv[] = { "cairn", "job", "exec", row->uid, q->o.root ? "--root" : NULL, q->o.root, NULL };
    if (null < 0 || path_program(program, sizeof(program)))
        return cairn_fail_errno(err, "find this program");
    if (job_dir_open(q->o.state, row->uid, true, &d, err) ||
        own_file_open(&d, "supervisor.log", OS_APPEND | OS_CREATE, &log, err))
        return -1;
    if (os_spawn_apart(program, argv, (const int[]){ null, log, log }))
        return cairn_fail_errno(err, "start the supervisor of job %s", row->uid);
    return 0;
}

/* A job whose supervisor cannot start must not keep the others waiting. */
static int start_or_fail(struct queue *q, const struct job_row *row, struct cairn_error *err)
{
    struct cairn_error why = { 0 };
    if (!start_supervisor(q, row, &why))
        return 0;
    const struct store_end end = { .state = JOB_FAILED, .cause = why.msg };
    return store_set_end(q->store, row->uid, row->attempt, &end, NULL, err);
}

int queue_advance(struct queue *q, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    const struct store_lanes lanes = { .choose = choose, .context = q };
    struct job_row row;
    bool paused, found;
    if (store_is_read_only(q->store))
        return 0;
    if (queue_is_paused(q, &paused, err))
        return -1;
    do {
        if (paused)
            return 0;
        if (store_claim(q->store, &lanes, &a, &row, &found, err) || (found && start_or_fail(q, &row, err)))
            return -1;
    } while (found);
    return 0;
}
