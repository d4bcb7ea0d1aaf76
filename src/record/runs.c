/* SPDX-License-Identifier: Apache-2.0 */
#include "record/runs.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/own.h"
#include "base/str.h"
#include "os/file.h"
#include "os/list.h"
#include "os/process.h"
#include "record/series.h"
#include "os/path.h"
#include "os/info.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TAIL_BYTES = 64 << 10 };

static const char *const state_names[] = {
    [RUN_UNKNOWN] = "unknown", [RUN_RUNNING] = "running", [RUN_FINISHED] = "finished",
    [RUN_STOPPED] = "stopped", [RUN_CRASHED] = "crashed",
};

const char *run_state_name(enum run_state s)
{
    return state_names[s];
}

static enum run_state state_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(state_names); i++)
        if (str_eq(name, state_names[i]))
            return (enum run_state)i;
    return RUN_UNKNOWN;
}

/* 0: not known. */
static void add_count(struct json *o, const char *key, uint64_t v)
{
    if (v)
        json_add_int(o, key, (int64_t)v);
    else
        json_add_null(o, key);
}

static void add_time(struct json *o, const char *key, int64_t t)
{
    char text[32];
    struct tm tm;
    time_t at = (time_t)t;
    if (!t || !gmtime_r(&at, &tm)) {
        json_add_null(o, key);
        return;
    }
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
    json_add_text(o, key, text);
}

static int64_t parse_time(const char *text)
{
    struct tm tm = { 0 };
    const char *end = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
    return end ? (int64_t)timegm(&tm) : 0;
}

int run_info_write(const char *dir, const struct run_info *info, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(json_cleanup) struct json *o = json_new_object();
    json_add_int(o, "schema", 1);
    json_add_text(o, "name", info->name);
    json_add_text(o, "config_hash", info->config_hash);
    json_add_text(o, "model", info->model);
    add_count(o, "parameters", info->parameters);
    json_add_text(o, "device", info->device);
    json_add_text(o, "workaround", info->workaround);
    add_time(o, "started", info->started);
    add_time(o, "finished", info->finished);
    add_count(o, "pid", (uint64_t)info->pid);
    json_add_text(o, "state", state_names[info->state]);
    add_count(o, "steps", info->steps);
    add_count(o, "control_seq", info->control_seq);
    add_count(o, "stop_at_step", info->stop_at_step);
    json_add_text(o, "cairn_version", info->cairn_version);
    json_add_text(o, "folder", info->folder);
    CLEANUP(mem_free) char *line = json_to_string(o);
    const char *text = arena_printf(&a, "%s\n", line);
    return file_write(arena_printf(&a, "%s/run.json", dir), text, strlen(text), err);
}

static uint64_t whole(const struct json *v)
{
    uint64_t n = 0;
    json_to_u64(v, &n);
    return n;
}

int run_info_read(const char *dir, struct arena *a, struct run_info *out, struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *o = NULL;
    const char *path = arena_printf(a, "%s/run.json", dir);
    if (json_read_object(path, &o, err))
        return -1;
    *out = (struct run_info){
        .name = arena_strdup(a, json_text(json_get(o, "name"))),
        .config_hash = arena_strdup(a, json_text(json_get(o, "config_hash"))),
        .model = arena_strdup(a, json_text(json_get(o, "model"))),
        .device = arena_strdup(a, json_text(json_get(o, "device"))),
        .cairn_version = arena_strdup(a, json_text(json_get(o, "cairn_version"))),
        .workaround = arena_strdup(a, json_text(json_get(o, "workaround"))),
        .folder = arena_strdup(a, json_text(json_get(o, "folder"))),
        .parameters = whole(json_get(o, "parameters")),
        .steps = whole(json_get(o, "steps")),
        .control_seq = whole(json_get(o, "control_seq")),
        .stop_at_step = whole(json_get(o, "stop_at_step")),
        .started = parse_time(json_text(json_get(o, "started"))),
        .finished = parse_time(json_text(json_get(o, "finished"))),
        .pid = json_int(json_get(o, "pid"), 0),
        .state = state_of(json_text(json_get(o, "state"))),
    };
    return 0;
}

/* A process that started after the file was written is another one that reuses the PID. */
static bool is_alive(int64_t pid, int64_t written)
{
    if (pid <= 0 || pid > INT_MAX || !os_is_alive((pid_t)pid))
        return false;
    return os_process_start(pid) <= written + 2;
}

static int64_t time_of(const char *path)
{
    struct os_info info;
    return os_info(path, &info) ? 0 : info.modified_ns / 1000000000;
}

static void read_tail(const char *log, struct run_entry *row)
{
    CLEANUP(series_release) struct series s = { 0 };
    struct cairn_error ignored = { 0 };
    if (series_read_tail(log, TAIL_BYTES, &s, &ignored) || !s.n)
        return;
    row->done = s.point[s.n - 1].step;
    const struct step_record *last = series_last(&s, METRIC_LOSS);
    row->has_loss = last != NULL;
    row->loss = last ? last->value[METRIC_LOSS] : 0;
}

static bool is_run(const char *dir, struct arena *a)
{
    return !access(arena_printf(a, "%s/run.json", dir), F_OK) ||
           !access(arena_printf(a, "%s/log.jsonl", dir), F_OK);
}

static const char *folder_name(const char *dir, struct arena *a)
{
    CLEANUP(mem_free) char *whole_path = realpath(dir, NULL);
    return arena_strdup(a, path_name(whole_path ? whole_path : dir));
}

const char *runs_name(const char *dir, struct arena *a)
{
    struct run_info info = { 0 };
    struct cairn_error ignored = { 0 };
    return !run_info_read(dir, a, &info, &ignored) && info.name && *info.name ? info.name
                                                                              : folder_name(dir, a);
}

static struct run_entry entry_of(const char *dir, struct arena *a)
{
    return (struct run_entry){ .kind = RUN_NATIVE, .dir = arena_strdup(a, dir), .id = folder_name(dir, a) };
}

void runs_read(struct run_entry *row, struct arena *a)
{
    struct cairn_error ignored = { 0 };
    const char *log = arena_printf(a, "%s/log.jsonl", row->dir);
    int64_t written = time_of(arena_printf(a, "%s/run.json", row->dir)), logged = time_of(log);
    run_info_read(row->dir, a, &row->info, &ignored);
    const struct run_info *info = &row->info;
    row->name = info->name && *info->name ? info->name : row->id;
    row->state = info->state == RUN_RUNNING && !is_alive(info->pid, written) ? RUN_CRASHED : info->state;
    row->touched = logged > written ? logged : written;
    row->started = info->started;
    int64_t end = info->finished ? info->finished : row->touched;
    row->seconds = info->started && end > info->started ? (double)(end - info->started) : 0;
    read_tail(log, row);
}

struct rows {
    struct arena *a;
    bool reads; /* not only which there are */
    struct run_entry *row;
    struct os_info *folder; /* of each */
    size_t n;
};

static bool is_listed(const struct rows *rows, const struct os_info *folder)
{
    for (size_t i = 0; i < rows->n; i++)
        if (os_info_is_same(folder, &rows->folder[i]))
            return true;
    return false;
}

static void add_run(struct rows *rows, const char *dir)
{
    struct os_info folder;
    size_t n = rows->n;
    if (!is_run(dir, rows->a) || os_info(dir, &folder) || is_listed(rows, &folder))
        return;
    struct run_entry row = entry_of(dir, rows->a);
    if (rows->reads)
        runs_read(&row, rows->a);
    *ARENA_PUSH(rows->a, rows->folder, n) = folder;
    *ARENA_PUSH(rows->a, rows->row, rows->n) = row;
}

static int add_runs_in(struct rows *rows, const char *dir, struct cairn_error *err)
{
    CLEANUP(os_list_close) struct os_list *l = os_list_open(dir, 0);
    if (!l)
        return cairn_fail_errno(err, "open %s", dir);
    for (const char *name; (name = os_list_next(l));)
        if (name[0] != '.')
            add_run(rows, arena_printf(rows->a, "%s/%s", dir, name));
    return 0;
}

/* The two places; the second is NULL if the environment names none. */
static void usual_places(struct arena *a, const char *places[2])
{
    struct cairn_error ignored;
    const char *state;
    places[0] = "runs";
    places[1] = own_path(PLACE_STATE, (const char *const *)environ, a, &state, &ignored)
                    ? NULL
                    : arena_printf(a, "%s/train", state);
}

static int compare_rows(const void *a, const void *b)
{
    const struct run_entry *x = a, *y = b;
    int order = (x->touched > y->touched) - (x->touched < y->touched);
    return order ? order : str_compare_natural(x->dir, y->dir);
}

int runs_list(const char *dir, struct arena *a, struct run_entry **out, size_t *n, struct cairn_error *err)
{
    struct rows rows = { .a = a, .reads = true };
    const char *places[2];
    struct cairn_error ignored = { 0 };
    if (dir && is_run(dir, a)) {
        add_run(&rows, dir);
    } else if (dir) {
        if (add_runs_in(&rows, dir, err))
            return -1;
    } else {
        usual_places(a, places);
        for (int i = 0; i < 2; i++)
            if (places[i])
                add_runs_in(&rows, places[i], &ignored);
    }
    if (rows.n)
        qsort(rows.row, rows.n, sizeof(*rows.row), compare_rows);
    *out = rows.row;
    *n = rows.n;
    return 0;
}

/* ---- the register: a link to each run, in $XDG_STATE_HOME/cairn/trainings ---- */

enum { MOST_REGISTERED = 500 };
static const char register_name[] = "trainings";

static const char *register_path(struct arena *a)
{
    struct cairn_error ignored;
    const char *state;
    return own_path(PLACE_STATE, (const char *const *)environ, a, &state, &ignored)
               ? NULL
               : arena_printf(a, "%s/%s", state, register_name);
}

/* If there are too many: first links to runs that are gone, which may be on a disk that is not mounted now; then
 * the oldest ones. */
static void clean_register(const char *dir, struct arena *a)
{
    struct run_entry *rows;
    char **names;
    size_t n, n_rows;
    struct cairn_error ignored;
    if (file_names(dir, a, &names, &n) || n < MOST_REGISTERED)
        return;
    for (size_t i = 0; i < n; i++)
        if (!os_is_folder(arena_printf(a, "%s/%s", dir, names[i])))
            os_remove(arena_printf(a, "%s/%s", dir, names[i]));
    if (!runs_list(dir, a, &rows, &n_rows, &ignored))
        for (size_t i = 0; i + MOST_REGISTERED <= n_rows; i++)
            os_remove(rows[i].dir);
}

static const char *link_of(const char *folder, const char *run, struct arena *a)
{
    return arena_printf(a, "%s/%s-%08x", folder, path_name(run), (unsigned)hash_bytes(run, strlen(run)));
}

void runs_unregister(const char *dir)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(mem_free) char *full = realpath(dir, NULL);
    const char *folder = register_path(&a);
    if (full && folder)
        os_remove(link_of(folder, full, &a));
}

void runs_register(const char *dir)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(own_dir_close) struct own_dir d = OWN_DIR_NONE;
    CLEANUP(mem_free) char *full = realpath(dir, NULL);
    struct cairn_error ignored;
    const char *state;
    if (!full || own_path(PLACE_STATE, (const char *const *)environ, &a, &state, &ignored) ||
        own_dir_open(&d, PLACE_STATE, state, register_name, true, &ignored))
        return;
    clean_register(d.path, &a);
    (void)!os_make_link(full, link_of(d.path, full, &a));
}

int runs_registered(struct arena *a, struct run_entry **out, size_t *n, struct cairn_error *err)
{
    const char *dir = register_path(a);
    struct rows rows = { .a = a };
    *out = NULL;
    *n = 0;
    if (!dir || !os_is_folder(dir))
        return 0;
    if (add_runs_in(&rows, dir, err))
        return -1;
    for (size_t i = 0; i < rows.n; i++) { /* not the link's */
        CLEANUP(mem_free) char *full = realpath(rows.row[i].dir, NULL);
        if (full)
            rows.row[i].dir = arena_strdup(a, full);
    }
    *out = rows.row;
    *n = rows.n;
    return 0;
}

/* ---- the trash ---- */

/* A new folder .cairn-trash/20261118-143000, with -2 and so on if that exists. */
static const char *new_trash(const char *above, struct arena *a)
{
    const char *trash = arena_printf(a, "%s/.cairn-trash", above);
    char stamp[32];
    time_t now = time(NULL);
    struct tm t;
    strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", localtime_r(&now, &t));
    if (os_make_dir(trash, 0777) && errno != EEXIST)
        return NULL;
    for (int i = 1; i < 100; i++) {
        const char *path =
            i == 1 ? arena_printf(a, "%s/%s", trash, stamp) : arena_printf(a, "%s/%s-%d", trash, stamp, i);
        if (!os_make_dir(path, 0777))
            return path;
        if (errno != EEXIST)
            return NULL;
    }
    return NULL;
}

int runs_trash(const char *dir, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(mem_free) char *full = realpath(dir, NULL);
    if (!full || !is_run(full, &a))
        return 0;
    CLEANUP(mem_free) char *above = path_folder(full);
    const char *to = new_trash(above, &a);
    if (!to || os_rename(full, arena_printf(&a, "%s/%s", to, path_name(full))))
        return cairn_fail_errno(err, "move %s to %s/.cairn-trash", full, above);
    return 0;
}

int runs_find(const char *what, struct arena *a, const char **dir, struct cairn_error *err)
{
    static const char name[] = "/log.jsonl";
    const char *places[2], *at;
    size_t len = strlen(what);
    struct stat st;
    if (is_run(what, a)) {
        while (len > 1 && what[len - 1] == '/')
            len--;
        *dir = arena_strndup(a, what, len);
        return 0;
    }
    if ((str_ends(what, name) || !strcmp(what, name + 1)) && !stat(what, &st)) {
        *dir = len > strlen(name) ? arena_strndup(a, what, len - strlen(name)) : ".";
        return 0;
    }
    usual_places(a, places);
    for (int i = 0; i < 2 && !strchr(what, '/'); i++)
        if (places[i] && is_run(at = arena_printf(a, "%s/%s", places[i], what), a)) {
            *dir = at;
            return 0;
        }
    if (!stat(what, &st))
        return cairn_fail(err, CAIRN_EFORMAT, "%s is not a run's folder: it has no log.jsonl", what);
    cairn_fail(err, CAIRN_EIO, "no run named %s", what);
    return cairn_hint(err, "cairn plot alone lists the runs");
}
