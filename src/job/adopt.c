/* SPDX-License-Identifier: Apache-2.0 */
#include "job/adopt.h"

#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"
#include "job/adopt_memory.h"
#include "os/file.h"
#include "os/info.h"
#include "os/process.h"
#include "record/runs.h"
#include "run/history.h"
#include "run/journal.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum job_state state_of(const struct run_entry *e)
{
    switch (e->state) {
    case RUN_RUNNING:
        return JOB_ACTIVE;
    case RUN_FINISHED:
        return JOB_FINISHED;
    case RUN_STOPPED:
        return JOB_STOPPED;
    case RUN_CRASHED:
        return e->kind == RUN_SUPERVISED && e->ended ? JOB_FAILED : JOB_LOST;
    default:
        return JOB_LOST;
    }
}

/* The first event of a journal has the process and the command. */
static void read_start(const struct run_entry *e, struct arena *a, struct job_row *row)
{
    char text[64 << 10];
    CLEANUP(json_cleanup) struct json *start = NULL;
    struct cairn_error ignored;
    if (os_read_start(arena_printf(a, "%s/events.jsonl", e->dir), text, sizeof(text)) < 0 ||
        json_parse(text, strcspn(text, "\n"), &start, &ignored))
        return;
    row->pid = json_int(json_get(start, "pid"), 0);
    row->cwd = arena_strdup(a, json_text(json_get(start, "cwd")));
    const struct json *command = json_get(start, "command");
    if (json_is_array(command)) {
        CLEANUP(mem_free) char *argv = json_to_string(command);
        row->argv = arena_strdup(a, argv);
    }
}

static struct job_row row_of(const struct run_entry *e, struct arena *a)
{
    char uid[JOB_UID_SIZE];
    job_uid_of(e->started * 1000, e->dir, uid);
    struct job_row row = {
        .uid = arena_strdup(a, uid),
        .name = e->name ? e->name : e->id,
        .kind = e->kind == RUN_NATIVE ? JOB_TRAIN : JOB_RUN,
        .env = "{}",
        .options = "{}",
        .gpu = "auto",
        .state = state_of(e),
        .attempt = 1,
        .run_dir = e->dir,
        .class_id = e->verdict,
        .created = e->started,
        .started = e->started,
        .adopted = true,
        .version = 1,
    };
    if (row.state != JOB_ACTIVE)
        row.finished = e->touched;
    if (e->kind == RUN_NATIVE) {
        row.pid = e->info.pid;
        row.cwd = e->info.folder ? e->info.folder : e->dir;
        row.gpu = e->info.device && str_starts(e->info.device, "cpu") ? "cpu" : "auto";
    } else {
        read_start(e, a, &row);
        row.has_exit = e->ended;
        row.exit_code = e->code;
    }
    return row;
}

static int newest_first(const void *a, const void *b)
{
    return strcmp(((const struct job_row *)b)->uid, ((const struct job_row *)a)->uid);
}

/* Changes with its files: a run that ended writes none. */
static uint64_t mark_of(const struct run_entry *e, struct arena *a)
{
    static const char *const files[][2] = {
        [RUN_NATIVE] = { "run.json", "log.jsonl" }, [RUN_SUPERVISED] = { "events.jsonl", "verdict.json" }
    };
    struct hash h;
    uint64_t out[2];
    hash_init(&h);
    for (int i = 0; i < 2; i++) {
        struct os_info info;
        if (os_info(arena_printf(a, "%s/%s", e->dir, files[e->kind][i]), &info))
            info = (struct os_info){ 0 };
        hash_add_u64(&h, info.size);
        hash_add_u64(&h, (uint64_t)info.modified_ns);
        hash_add_u64(&h, info.device);
        hash_add_u64(&h, info.number);
    }
    hash_end(&h, out);
    return out[0] | 1;
}

static struct job_row read_run(struct adopt_memory *m, struct run_entry *e, struct arena *a)
{
    struct job_row row;
    uint64_t mark = mark_of(e, a);
    if (m && adopt_memory_get(m, e->dir, mark, a, &row))
        return row;
    if (e->kind == RUN_NATIVE)
        runs_read(e, a);
    else
        history_read_runs(e, 1, a);
    row = row_of(e, a);
    if (row.state == JOB_ACTIVE)
        return row;
    row.mark = mark;
    if (m)
        adopt_memory_put(m, &row);
    return row;
}

int adopt_list(struct adopt_memory *m, const char *state, struct arena *a, struct job_row **out, size_t *n,
               struct cairn_error *err)
{
    struct run_entry *native, *supervised;
    size_t n_native, n_supervised = history_list(state, a, &supervised);
    *out = NULL;
    *n = 0;
    if (runs_registered(a, &native, &n_native, err))
        return -1;
    if (m)
        adopt_memory_begin(m);
    for (size_t i = 0; i < n_native; i++)
        *ARENA_PUSH(a, *out, *n) = read_run(m, &native[i], a);
    for (size_t i = 0; i < n_supervised; i++)
        *ARENA_PUSH(a, *out, *n) = read_run(m, &supervised[i], a);
    if (m)
        adopt_memory_end(m);
    if (*n)
        qsort(*out, *n, sizeof(**out), newest_first);
    return 0;
}

/* As store_find does: a uid, a name, the end of a uid; the newest if several fit. */
bool adopt_find(struct adopt_memory *m, const char *state, const char *word, struct arena *a,
                struct job_row *out)
{
    struct job_row *rows;
    size_t n;
    struct cairn_error ignored;
    if (adopt_list(m, state, a, &rows, &n, &ignored))
        return false;
    for (int way = 0; way < 3 && *word; way++)
        for (size_t i = 0; i < n; i++)
            if (way == 0   ? str_eq(rows[i].uid, word)
                : way == 1 ? str_eq(rows[i].name, word)
                           : str_ends(rows[i].uid, word)) {
                *out = rows[i];
                return true;
            }
    return false;
}

void adopt_progress(const struct job_row *row, struct job_progress *out)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    const char *training = row->kind == JOB_TRAIN ? row->run_dir : journal_training(row->run_dir, &a);
    if (training)
        job_progress_of_run(training, out);
    else
        job_progress_of_log(arena_printf(&a, "%s/log", row->run_dir), out);
}

/* A shell script starts its background commands so. */
static bool ignores_interrupts(int64_t pid)
{
    char path[64], text[4096];
    unsigned long long mask = 0;
    snprintf(path, sizeof(path), "/proc/%lld/status", (long long)pid);
    os_read_start(path, text, sizeof(text));
    const char *line = strstr(text, "SigIgn:");
    return line && sscanf(line, "SigIgn: %llx", &mask) == 1 && mask >> (SIGINT - 1) & 1;
}

int adopt_stop(const struct job_row *row, struct cairn_error *err)
{
    struct os_process_id id;
    if (row->state != JOB_ACTIVE || !os_process_id((pid_t)row->pid, &id))
        return 0; /* it has ended */
    if (os_signal(&id, ignores_interrupts(row->pid) ? SIGTERM : SIGINT) && errno != ESRCH)
        return cairn_fail_errno(err, "signal process %lld of run %s", (long long)row->pid, row->name);
    return 0;
}
