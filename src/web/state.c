/* SPDX-License-Identifier: Apache-2.0 */
#include "web/state.h"

#include "base/file.h"
#include "base/str.h"
#include "os/process.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILES = 9, STATE_MOST = 1 << 20 };

/* A small file of ours as text; NULL: there is none, or it is not ours. */
static char *read_own(const struct own_dir *d, const char *name, struct arena *a)
{
    struct cairn_error ignored = { 0 };
    CLEANUP(fd_close) int fd = -1;
    if (own_file_open(d, name, OS_READ, &fd, &ignored))
        return NULL;
    CLEANUP(mem_free) char *text = malloc(STATE_MOST);
    size_t n = 0;
    for (ssize_t got = 1; text && got > 0 && n<STATE_MOST; n += got> 0 ? (size_t)got : 0)
        got = os_read_at(fd, text + n, STATE_MOST - n, n);
    return text ? arena_strndup(a, text, n) : NULL;
}

/* ---- places ---- */

static int open_home(struct own_dir *d, const char *const *env, struct arena *a, bool make,
                     struct cairn_error *err)
{
    const char *root;
    return own_path(PLACE_STATE, env, a, &root, err) ? -1
                                                     : own_dir_open(d, PLACE_STATE, root, NULL, make, err);
}

/* $XDG_RUNTIME_DIR/cairn; where there is none, the state folder. */
static int open_runtime(struct own_dir *d, const char *const *env, struct arena *a, struct cairn_error *err)
{
    const char *named = str_env(env, "XDG_RUNTIME_DIR");
    struct cairn_error ignored = { 0 };
    if (named && path_is_absolute(named) && !access(named, W_OK | X_OK) &&
        !own_dir_open(d, PLACE_STATE, arena_printf(a, "%s/cairn", named), NULL, true, &ignored))
        return 0;
    return open_home(d, env, a, true, err);
}

/* ---- ui.json ---- */

/* Another state folder may share the runtime folder: its server's file stays. */
static bool is_of_another(const struct state *s, const char *name)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(json_cleanup) struct json *v = NULL;
    struct cairn_error ignored = { 0 };
    const char *text = read_own(&s->runtime, name, &a);
    if (!text || json_parse(text, strlen(text), &v, &ignored) ||
        str_eq(json_text(json_get(v, "state")), s->home.path))
        return false;
    int64_t pid = json_int(json_get(v, "pid"), 0), start = json_int(json_get(v, "pid_start"), 0);
    return pid > 0 && os_is_alive((pid_t)pid) && labs((long)(os_process_start(pid) - start)) <= 1;
}

static void choose_name(struct state *s)
{
    snprintf(s->name, sizeof(s->name), "ui.json");
    for (int i = 2; i <= FILES && is_of_another(s, s->name); i++)
        snprintf(s->name, sizeof(s->name), "ui-%d.json", i);
}

/* The lock's file says where ui.json is: the next one may run with another $XDG_RUNTIME_DIR. */
static int write_place(const struct state *s, struct cairn_error *err)
{
    CLEANUP(str_release) struct str text = { 0 };
    str_addf(&text, "%s/%s\n", s->runtime.path, s->name);
    CLEANUP(fd_close) int fd = -1;
    /* 0600 from its first byte on; later versions take over the mode. */
    if (own_file_open(&s->runtime, s->name, OS_WRITE | OS_CREATE, &fd, err))
        return -1;
    if (ftruncate(s->lock, 0) || os_write_at(s->lock, text.s, text.len, 0) != (ssize_t)text.len)
        return cairn_fail_errno(err, "write %s/ui.lock", s->home.path);
    return 0;
}

int state_open(struct state *s, const char *const *env, struct arena *a, bool *taken, struct cairn_error *err)
{
    *s = (struct state)STATE_NONE;
    *taken = false;
    if (open_home(&s->home, env, a, true, err))
        return -1;
    if (own_file_open(&s->home, "ui.lock", OS_READ | OS_WRITE | OS_CREATE, &s->lock, err))
        return errno == EROFS || errno == EACCES
                   ? cairn_hint(err, "set XDG_STATE_HOME to a folder that you can write to")
                   : -1;
    if (os_lock(s->lock, false)) {
        *taken = errno == EWOULDBLOCK;
        return *taken ? 0 : cairn_fail_errno(err, "lock %s/ui.lock", s->home.path);
    }
    if (open_runtime(&s->runtime, env, a, err))
        return -1;
    choose_name(s);
    return write_place(s, err);
}

void state_close(struct state *s)
{
    if (s->lock >= 0)
        close(s->lock);
    own_dir_close(&s->runtime);
    own_dir_close(&s->home);
    *s = (struct state)STATE_NONE;
}

int state_write(const struct state *s, const struct state_other *self, const struct sessions *sessions,
                struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *v = json_new_object();
    json_add_int(v, "schema", 1);
    json_add_text(v, "state", s->home.path);
    json_add_int(v, "pid", self->pid);
    json_add_int(v, "pid_start", os_process_start(self->pid));
    json_add_int(v, "port", self->port);
    json_add_text(v, "listen", self->listen);
    session_write(sessions, v);
    CLEANUP(mem_free) char *text = json_to_string(v);
    return own_file_write(&s->runtime, s->name, text, strlen(text), err);
}

void state_read_sessions(const struct state *s, struct sessions *out, int64_t today)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(json_cleanup) struct json *v = NULL;
    struct cairn_error ignored = { 0 };
    const char *text = read_own(&s->runtime, s->name, &a);
    if (text && !json_parse(text, strlen(text), &v, &ignored) &&
        str_eq(json_text(json_get(v, "state")), s->home.path))
        session_read(out, v, today);
}

/* ---- the token ---- */

static bool is_secret(const char *text)
{
    return text && strlen(text) == SESSION_SECRET && !text[strspn(text, "0123456789abcdef")];
}

static const char *read_token(const struct own_dir *home, struct arena *a)
{
    char *text = read_own(home, "token", a);
    if (text)
        text[strcspn(text, "\n")] = '\0';
    return is_secret(text) ? text : NULL;
}

int state_token(const struct state *s, char out[SESSION_SECRET + 1], struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(fd_close) int fd = -1;
    const char *old = read_token(&s->home, &a);
    if (old) {
        snprintf(out, SESSION_SECRET + 1, "%s", old);
        return 0;
    }
    if (session_secret(out, err) ||
        own_file_open(&s->home, "token", OS_WRITE | OS_CREATE | OS_TRUNCATE, &fd, err))
        return -1;
    const char *line = arena_printf(&a, "%s\n", out);
    if (os_write_at(fd, line, strlen(line), 0) != (ssize_t)strlen(line))
        return cairn_fail_errno(err, "write %s/token", s->home.path);
    return 0;
}

/* ---- another server ---- */

static int read_other(const char *path, struct arena *a, struct state_other *out, struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *v = NULL;
    if (json_read_object(path, &v, err))
        return -1;
    const char *where = json_text(json_get(v, "listen"));
    *out = (struct state_other){ .pid = json_int(json_get(v, "pid"), 0),
                                 .port = (int)json_int(json_get(v, "port"), 0),
                                 .listen = arena_strdup(a, where) };
    return out->pid > 0 && out->port > 0 && out->listen
               ? 0
               : cairn_fail(err, CAIRN_EFORMAT, "%s is damaged", path);
}

/* The files of whoever holds the lock; *found: somebody does. */
static int read_lock(const struct own_dir *home, struct arena *a, const char **place, bool *found,
                     struct cairn_error *err)
{
    CLEANUP(fd_close) int lock = -1;
    struct cairn_error why = { 0 };
    if (own_file_open(home, "ui.lock", OS_READ, &lock, &why)) {
        if (errno != ENOENT)
            *err = why;
        return errno == ENOENT ? 0 : -1;
    }
    *found = os_lock(lock, false) && errno == EWOULDBLOCK; /* a lock of ours goes with the descriptor */
    if (!*found)
        return 0;
    char *text = read_own(home, "ui.lock", a);
    if (!text)
        return cairn_fail_errno(err, "read %s/ui.lock", home->path);
    text[strcspn(text, "\n")] = '\0';
    *place = text;
    return 0;
}

int state_find(const char *const *env, struct arena *a, struct state_other *out, const char **token,
               bool *found, struct cairn_error *err)
{
    struct own_dir home = OWN_DIR_NONE;
    struct cairn_error why = { 0 };
    const char *place = NULL;
    *found = false;
    if (open_home(&home, env, a, false, &why)) {
        if (errno != ENOENT)
            *err = why;
        return errno == ENOENT ? 0 : -1;
    }
    int r = read_lock(&home, a, &place, found, err);
    *token = read_token(&home, a);
    if (!r && *found && !*token)
        r = cairn_fail(err, CAIRN_EIO, "a server runs, but %s/token is not readable", home.path);
    own_dir_close(&home);
    return r || !*found ? r : read_other(place, a, out, err);
}
