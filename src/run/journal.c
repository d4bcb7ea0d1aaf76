/* SPDX-License-Identifier: Apache-2.0 */
#include "run/journal.h"

#include "os/fault.h"
#include "base/file.h"
#include "base/own.h"
#include "base/str.h"
#include "host/root.h"
#include "run/smi_link.h"
#include "os/file.h"
#include "os/process.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { YOUNG_S = 24 * 3600 };

static void utc(const char *format, char *buf, size_t size)
{
    time_t now = time(NULL);
    struct tm tm;
    gmtime_r(&now, &tm);
    strftime(buf, size, format, &tm);
}

/* Keeps the first reason only. */
static void troubled(struct journal *j, const char *what, const struct cairn_error *err)
{
    if (j->trouble.code)
        return;
    j->trouble = *err;
    cairn_wrap(&j->trouble, "%s", what);
}
static const char journal_is_not_kept[] = "the journal is not written";

/* <time>-<pid>, with a letter if that name exists. */
static int make_new(const struct own_dir *runs, struct own_dir *out, struct cairn_error *err)
{
    char stamp[32], name[64];
    int r = -1;
    utc("%Y%m%dT%H%M%SZ", stamp, sizeof(stamp));
    snprintf(name, sizeof(name), "%s-%d", stamp, (int)getpid());
    size_t n = strlen(name);
    for (char more = 'a'; (r = own_dir_make(out, runs, name, err)) && errno == EEXIST && more <= 'z'; more++)
        snprintf(name + n, sizeof(name) - n, "%c", more);
    return r;
}

/* Takes the folder over. */
static int use_dir(struct journal *j, struct own_dir *d, struct cairn_error *err)
{
    CLEANUP(fd_close) int fd = -1;
    if (own_file_open(d, "events.jsonl", OS_APPEND | OS_CREATE, &fd, err))
        return -1;
    j->events = fault_hit() ? NULL : fdopen(fd, "a");
    if (!j->events)
        return cairn_fail_errno(err, "open %s/events.jsonl", d->path);
    fd = -1;
    j->dir = d->path;
    j->fd = d->fd;
    *d = (struct own_dir)OWN_DIR_NONE;
    return 0;
}

static int make_dir(struct journal *j, const char *state, struct cairn_error *err)
{
    CLEANUP(own_dir_close) struct own_dir runs = OWN_DIR_NONE, d = OWN_DIR_NONE;
    if (own_dir_open(&runs, PLACE_STATE, state, "runs", true, err) || make_new(&runs, &d, err))
        return -1;
    return use_dir(j, &d, err);
}

static int open_copy(struct journal *j, const char *copy, struct cairn_error *err)
{
    *j = (struct journal){ 0 };
    if (!copy)
        return 0;
    j->copy = os_stream(copy, OS_WRITE | OS_CREATE | OS_TRUNCATE);
    return j->copy ? 0 : cairn_fail_errno(err, "open %s", copy);
}

int journal_open(struct journal *j, const char *state, const char *copy, struct cairn_error *err)
{
    struct cairn_error why = { 0 };
    if (open_copy(j, copy, err))
        return -1;
    if (state && make_dir(j, state, &why))
        troubled(j, journal_is_not_kept, &why);
    return 0;
}

int journal_open_in(struct journal *j, const struct own_dir *dir, const char *copy, struct cairn_error *err)
{
    struct cairn_error why = { 0 };
    if (open_copy(j, copy, err))
        return -1;
    CLEANUP(own_dir_close) struct own_dir d = { fcntl(dir->fd, F_DUPFD_CLOEXEC, 0), strdup(dir->path) };
    if (use_dir(j, &d, &why))
        troubled(j, journal_is_not_kept, &why);
    return 0;
}

void journal_close(struct journal *j)
{
    if (j->events)
        fclose(j->events);
    if (j->copy)
        fclose(j->copy);
    if (j->dir)
        close(j->fd);
    free(j->dir);
    *j = (struct journal){ 0 };
}

char *journal_path(const struct journal *j, const char *name)
{
    char *path = NULL;
    if (j->dir && asprintf(&path, "%s/%s", j->dir, name) < 0)
        abort();
    return path;
}

struct json *journal_event(const char *name)
{
    char now[32];
    utc("%Y-%m-%dT%H:%M:%SZ", now, sizeof(now));
    struct json *v = json_new_object();
    json_add_text(v, "event", name);
    json_add_text(v, "time", now);
    return v;
}

/* "BOOT TICKS"; false if /proc cannot be read. */
static bool process_mark(int64_t pid, char out[96])
{
    struct os_process_id id;
    if (!os_process_id((pid_t)pid, &id))
        return false;
    snprintf(out, 96, "%s %llu", id.boot, (unsigned long long)id.start);
    return true;
}

void journal_add_process(struct json *start)
{
    char mark[96];
    json_add_int(start, "pid", getpid());
    if (process_mark(getpid(), mark))
        json_add_text(start, "process", mark);
}

bool journal_is_running(const struct json *start)
{
    char mark[96];
    int64_t pid = json_int(json_get(start, "pid"), 0);
    const char *was = json_text(json_get(start, "process"));
    if (pid <= 0 || pid > INT32_MAX || !os_is_alive((pid_t)pid))
        return false;
    return !was || !process_mark(pid, mark) || !strcmp(mark, was);
}

static void add_line(struct journal *j, FILE **f, const char *line, const char *trouble)
{
    if (!*f || (!fault_hit() && fprintf(*f, "%s\n", line) >= 0 && !fflush(*f)))
        return;
    struct cairn_error err = { 0 };
    cairn_fail_errno(&err, "write the run's events");
    troubled(j, trouble, &err);
    fclose(*f);
    *f = NULL;
}

void journal_add(struct journal *j, struct json *event)
{
    CLEANUP(mem_free) char *line = json_to_string(event);
    add_line(j, &j->events, line, journal_is_not_kept);
    add_line(j, &j->copy, line, "the file of --json-events is incomplete");
    json_free(event);
}

void journal_write_text(struct journal *j, const char *name, const char *text)
{
    CLEANUP(mem_free) char *path = journal_path(j, name);
    struct cairn_error err = { 0 };
    if (path && file_write_at(j->fd, path, text, strlen(text), &err))
        troubled(j, journal_is_not_kept, &err);
}

void journal_write(struct journal *j, const char *name, const struct json *v)
{
    CLEANUP(str_release) struct str text = { 0 };
    CLEANUP(mem_free) char *line = json_to_string(v);
    str_add(&text, line);
    str_add(&text, "\n");
    journal_write_text(j, name, text.s);
}

void journal_tell_outer(const struct journal *j, const char *outer)
{
    CLEANUP(mem_free) char *path = NULL;
    if (asprintf(&path, "%s/inner", outer) < 0)
        abort();
    CLEANUP(fd_close) int fd = os_open(path, OS_APPEND | OS_CREATE | OS_PRIVATE | OS_NO_LINK);
    if (fd >= 0) /* the outer run may be gone */
        dprintf(fd, "%s\n", j->dir ? j->dir : "");
}

bool journal_has_inner(const struct journal *j)
{
    CLEANUP(mem_free) char *path = journal_path(j, "inner");
    return path && !access(path, F_OK);
}

static const char training_file[] = "training";

/* One line per start, so that not even a crash in between loses the name. */
void journal_tell_training(const char *outer, const char *run_dir)
{
    CLEANUP(mem_free) char *path = NULL, *full = realpath(run_dir, NULL);
    if (asprintf(&path, "%s/%s", outer, training_file) < 0)
        abort();
    CLEANUP(fd_close) int fd = os_open(path, OS_APPEND | OS_CREATE | OS_PRIVATE | OS_NO_LINK);
    if (fd >= 0 && full) /* the outer run may be gone */
        dprintf(fd, "%s\n", full);
}

const char *journal_training(const char *dir, struct arena *a)
{
    CLEANUP(mem_free) char *text = NULL;
    struct cairn_error ignored;
    size_t n;
    if (file_read_settings(path_join(a, dir, training_file), &text, &n, &ignored))
        return NULL;
    while (n && text[n - 1] == '\n')
        text[--n] = '\0';
    const char *last = strrchr(text, '\n');
    return n ? arena_strdup(a, last ? last + 1 : text) : NULL;
}

const struct cairn_error *journal_trouble(struct journal *j)
{
    if (!j->trouble.code || j->trouble_said)
        return NULL;
    j->trouble_said = true;
    return &j->trouble;
}

/* "20260131T120000Z-4711": when it began and who ran it. */
static bool may_go(const struct root *here, const char *dir, const char *name)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(json_cleanup) struct json *start = NULL;
    struct cairn_error ignored;
    struct stat st;
    const char *run = path_join(&a, dir, name), *pid = strchr(name, '-');
    if (strlen(name) < 18 || name[8] != 'T' || !pid || lstat(run, &st) || !S_ISDIR(st.st_mode) ||
        time(NULL) - st.st_mtime <= YOUNG_S)
        return false;
    const char *text = root_read(here, &a, path_join(&a, run, "events.jsonl"), NULL);
    if (text && !json_parse(text, strcspn(text, "\n"), &start, &ignored) && json_get(start, "pid"))
        return !journal_is_running(start);
    return !os_is_alive((pid_t)atol(pid + 1));
}

/* One level deep: a run's folder has only files after the link is removed.  Links are removed, never
 * followed. */
static void remove_run(const struct own_dir *runs, const char *name)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    smi_link_remove(path_join(&a, runs->path, name));
    os_remove_folder_at(runs->fd, name);
}

void journal_prune(const char *state)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(own_dir_close) struct own_dir runs = OWN_DIR_NONE;
    struct root here = { .fd = -1 };
    struct cairn_error ignored = { 0 };
    char **names;
    size_t n;
    if (own_dir_open(&runs, PLACE_STATE, state, "runs", false, &ignored) || root_open(&here, NULL, &ignored))
        return;
    /* Names begin with the time, so the oldest come first. */
    if (!root_list(&here, &a, runs.path, &names, &n))
        for (size_t i = 0; i + JOURNAL_KEEP < n; i++)
            if (may_go(&here, runs.path, names[i]))
                remove_run(&runs, names[i]);
    root_close(&here);
}
