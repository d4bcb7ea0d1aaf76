/* SPDX-License-Identifier: Apache-2.0 */
#include "job/job_dir.h"

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "os/file.h"
#include "os/info.h"
#include "os/list.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONFIG_MOST = 8 << 20, JOB_MOST = FILE_SETTINGS_MOST, LOCK_BYTES = 512 };
static const char trash_name[] = ".cairn-trash";

const char *job_dir_path(const char *state, const char *uid, struct arena *a)
{
    return arena_printf(a, "%s/jobs/%s", state, uid);
}

const char *job_dir_attempt(const char *state, const struct job_row *row, struct arena *a)
{
    return arena_printf(a, "%s/jobs/%s/attempt-%lld", state, row->uid, (long long)row->attempt);
}

int job_dir_open(const char *state, const char *uid, bool make, struct own_dir *out, struct cairn_error *err)
{
    CLEANUP(own_dir_close) struct own_dir jobs = OWN_DIR_NONE;
    *out = (struct own_dir)OWN_DIR_NONE;
    if (own_dir_open(&jobs, PLACE_STATE, state, "jobs", make, err))
        return -1;
    if (!own_dir_enter(out, &jobs, uid, err))
        return 0;
    return make && errno == ENOENT ? own_dir_make(out, &jobs, uid, err) : -1;
}

const char *job_dir_config_name(const struct job_row *row)
{
    CLEANUP(json_cleanup) struct json *options = NULL;
    struct cairn_error ignored;
    if (!row->options || json_parse(row->options, strlen(row->options), &options, &ignored))
        return "config.yaml";
    const char *file = json_text(json_get(options, "file"));
    return file && str_ends(file, ".toml") ? "config.toml" : "config.yaml";
}

/* ---- job.json ---- */

static const struct {
    const char *key;
    size_t at;
} texts[] = {
    { "name", offsetof(struct job_row, name) },       { "argv", offsetof(struct job_row, argv) },
    { "cwd", offsetof(struct job_row, cwd) },         { "env", offsetof(struct job_row, env) },
    { "gpu", offsetof(struct job_row, gpu) },         { "options", offsetof(struct job_row, options) },
    { "parent", offsetof(struct job_row, parent) },   { "note", offsetof(struct job_row, note) },
    { "run_dir", offsetof(struct job_row, run_dir) },
};

static const char **text_of(struct job_row *row, size_t i)
{
    return (const char **)((char *)row + texts[i].at);
}

int job_dir_write(const char *state, const struct job_row *row, struct cairn_error *err)
{
    CLEANUP(own_dir_close) struct own_dir d = OWN_DIR_NONE;
    CLEANUP(json_cleanup) struct json *v = json_new_object();
    struct job_row copy = *row;
    json_add_int(v, "schema", 1);
    json_add_text(v, "uid", row->uid);
    json_add_text(v, "kind", job_kind_name(row->kind));
    json_add_int(v, "created", row->created);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        json_add_text(v, texts[i].key, *text_of(&copy, i));
    CLEANUP(mem_free) char *text = json_to_string(v);
    if (strlen(text) > JOB_MOST)
        return cairn_fail(err, CAIRN_EUSAGE, "command and environment of the job are longer than 1 MiB");
    if (job_dir_open(state, row->uid, true, &d, err) ||
        (row->config && own_file_write(&d, job_dir_config_name(row), row->config, strlen(row->config), err)))
        return -1;
    return own_file_write(&d, "job.json", text, strlen(text), err);
}

static const char *read_config(const char *dir, const struct job_row *row, struct arena *a)
{
    CLEANUP(mem_free) char *text = NULL;
    struct cairn_error ignored;
    size_t n;
    const char *path = arena_printf(a, "%s/%s", dir, job_dir_config_name(row));
    return file_read_whole(path, CONFIG_MOST, &text, &n, &ignored) ? NULL : arena_strdup(a, text);
}

int job_dir_parse(const char *path, const char *text, size_t n, struct arena *a, struct job_row *out,
                  struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *v = NULL;
    struct job_row row = { .gpu = "auto", .env = "{}", .options = "{}" };
    if (json_parse(text, n, &v, err))
        return cairn_wrap(err, "%s", path);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        const char *value = json_text(json_get(v, texts[i].key));
        if (value)
            *text_of(&row, i) = arena_strdup(a, value);
    }
    if (!row.name || !row.cwd || !job_kind_parse(json_text(json_get(v, "kind")), &row.kind))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: name, cwd or kind is missing", path);
    row.created = json_int(json_get(v, "created"), 0);
    *out = row;
    return 0;
}

int job_dir_read(const char *state, const char *uid, struct arena *a, struct job_row *out,
                 struct cairn_error *err)
{
    CLEANUP(mem_free) char *text = NULL;
    size_t n;
    struct job_row row;
    const char *dir = job_dir_path(state, uid, a), *path = arena_printf(a, "%s/job.json", dir);
    if (file_read_settings(path, &text, &n, err) || job_dir_parse(path, text, n, a, &row, err))
        return -1;
    row.uid = arena_strdup(a, uid);
    row.config = read_config(dir, &row, a);
    *out = row;
    return 0;
}

/* ---- folders ---- */

int job_dir_list(const char *state, struct arena *a, char ***uids, size_t *n, struct cairn_error *err)
{
    char **names;
    size_t found;
    *uids = NULL;
    *n = 0;
    const char *dir = arena_printf(a, "%s/jobs", state);
    if (file_names(dir, a, &names, &found))
        return errno == ENOENT ? 0 : cairn_fail_errno(err, "list %s", dir);
    for (size_t i = 0; i < found; i++)
        if (job_uid_is_valid(names[i]))
            *ARENA_PUSH(a, *uids, *n) = names[i];
    return 0;
}

int64_t job_dir_last_attempt(const char *state, const char *uid)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(os_list_close) struct os_list *l = os_list_open(job_dir_path(state, uid, &a), 0);
    int64_t last = 0;
    for (const char *name; l && (name = os_list_next(l));) {
        long long number;
        if (sscanf(name, "attempt-%lld", &number) == 1 && number > last)
            last = number;
    }
    return last;
}

int job_dir_trash(const char *state, const char *uid, struct cairn_error *err)
{
    CLEANUP(own_dir_close) struct own_dir jobs = OWN_DIR_NONE, trash = OWN_DIR_NONE;
    if (own_dir_open(&jobs, PLACE_STATE, state, "jobs", true, err))
        return -1;
    if (own_dir_enter(&trash, &jobs, trash_name, err) &&
        (errno != ENOENT || own_dir_make(&trash, &jobs, trash_name, err)))
        return -1;
    if (os_rename_at(jobs.fd, uid, trash.fd, uid) && errno != ENOENT)
        return cairn_fail_errno(err, "move %s/%s to %s", jobs.path, uid, trash.path);
    return 0;
}

/* ---- the lock ---- */

bool job_dir_is_held(const char *state, const char *uid)
{
    CLEANUP(own_dir_close) struct own_dir d = OWN_DIR_NONE;
    CLEANUP(fd_close) int fd = -1;
    struct cairn_error ignored;
    if (job_dir_open(state, uid, false, &d, &ignored) || own_file_open(&d, "lock", OS_READ, &fd, &ignored))
        return errno != ENOENT;
    return os_is_held(fd) != 0;
}

bool job_dir_has_lock(const char *state, const char *uid)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    return os_is_file(arena_printf(&a, "%s/lock", job_dir_path(state, uid, &a)));
}

int job_dir_hold(const struct own_dir *d, int *fd, struct cairn_error *err)
{
    int lock;
    *fd = -1;
    if (own_file_open(d, "lock", OS_READ | OS_WRITE | OS_CREATE, &lock, err))
        return -1;
    if (!os_hold(lock)) {
        *fd = lock;
        return 0;
    }
    int why = errno;
    close(lock);
    errno = why;
    return why == EAGAIN || why == EACCES ? 0 : cairn_fail_errno(err, "lock %s/lock", d->path);
}

/* It helps only if the database is lost, so a failure is no reason to stop. */
void job_dir_tell(int lock, const struct job_row *row)
{
    CLEANUP(json_cleanup) struct json *v = json_new_object();
    json_add_int(v, "attempt", row->attempt);
    json_add_text(v, "gpu", row->gpu_used);
    json_add_int(v, "pid", row->pid);
    json_add_int(v, "pid_start", row->pid_start);
    json_add_text(v, "boot_id", row->boot_id);
    CLEANUP(mem_free) char *text = json_to_string(v);
    char padded[LOCK_BYTES + 1]; /* covers what the attempt before wrote */
    snprintf(padded, sizeof(padded), "%-*s\n", LOCK_BYTES - 1, text);
    (void)!os_write_at(lock, padded, LOCK_BYTES, 0);
}

bool job_dir_ask(const char *state, const char *uid, struct arena *a, struct job_row *row)
{
    CLEANUP(json_cleanup) struct json *v = NULL;
    struct cairn_error ignored;
    if (json_read_object(arena_printf(a, "%s/lock", job_dir_path(state, uid, a)), &v, &ignored))
        return false;
    row->attempt = json_int(json_get(v, "attempt"), 0);
    row->gpu_used = arena_strdup(a, json_text(json_get(v, "gpu")));
    row->pid = json_int(json_get(v, "pid"), 0);
    row->pid_start = json_int(json_get(v, "pid_start"), 0);
    row->boot_id = arena_strdup(a, json_text(json_get(v, "boot_id")));
    return row->attempt > 0 && row->gpu_used;
}
