/* SPDX-License-Identifier: Apache-2.0
 * The life of the server: what web_run opens, in its order, and closes again. */
#include "web/web.h"

#include "base/clock.h"
#include "os/file.h"
#include "os/stop.h"
#include "host/root.h"
#include "run/signals.h"
#include "web/answer.h"
#include "web/assets.h"
#include "web/jobs.h"
#include "web/listen.h"
#include "web/machine.h"
#include "web/series_cache.h"
#include "web/task.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void web_save(struct web *w)
{
    struct cairn_error err = { 0 };
    if (state_write(&w->state, &w->self, &w->sessions, &err))
        message_error(w->sink, &err);
}

int web_link(struct web *w, bool read_only, struct str *out, struct cairn_error *err)
{
    char code[SESSION_SECRET + 1];
    if (session_code_new(&w->sessions, read_only, clock_s(), code, err))
        return -1;
    str_addf(out, "http://%s/login?code=%s", w->address, code);
    return 0;
}

/* ---- what is allowed ---- */

static int check_root(const char *dir, struct cairn_error *err)
{
    struct root root;
    if (root_open(&root, dir, err))
        return -1;
    root_close(&root);
    return 0;
}

static int check_options(const struct web_options *o, struct cairn_error *err)
{
    bool local;
    if (o->root && check_root(o->root, err))
        return -1;
    if (listen_is_local(o->listen, &local, err))
        return -1;
    if (local || o->n_hosts)
        return 0;
    cairn_fail(err, CAIRN_EUSAGE, "--listen %s lets other machines connect: it needs --host", o->listen);
    return cairn_hint(err,
                      "give the name that browsers will use: --host NAME; or leave out --listen, and "
                      "connect through ssh: ssh -L %d:localhost:%d HOST",
                      WEB_PORT, WEB_PORT);
}

/* A command of a stranger in the network, or of a page as root, is too much to allow silently. */
static void set_rights(struct web *w, bool local)
{
    const struct web_options *o = w->options;
    bool root = !geteuid() && !o->allow_root;
    w->read_only = o->read_only;
    w->upload_allowed = !o->read_only && (local || o->allow_run);
    w->run_allowed = !o->read_only && !o->no_run && (local || o->allow_run) && !root;
}

/* ---- opening ---- */

static const char *address_of(struct web *w, const struct listen *l)
{
    const char *name = w->options->n_hosts && !l->is_local ? w->options->hosts[0] : "localhost";
    return strchr(name, ':') ? name : arena_printf(&w->arena, "%s:%d", name, l->port);
}

static int open_place(struct web *w, struct listen *l, struct cairn_error *err)
{
    const struct web_options *o = w->options;
    if (listen_open(l, o->listen, o->port, o->port ? WEB_PORTS : 1, &w->arena, err))
        return -1;
    set_rights(w, l->is_local);
    w->guard = (struct guard){ .port = l->port, .hosts = o->hosts, .n_hosts = o->n_hosts };
    w->address = address_of(w, l);
    w->self = (struct state_other){ .pid = getpid(), .port = l->port, .listen = l->where };
    struct server_app app = web_app;
    app.context = w;
    return server_open(w->loop, l->fd, l->n, &server_usual_limits, &app, &w->server, err);
}

static int open_parts(struct web *w, struct listen *l, struct cairn_error *err)
{
    for (size_t i = 0; i < w->options->n_folders; i++)
        if (folders_add_option(&w->folders, w->options->folders[i], &w->arena, err))
            return -1;
    if (state_token(&w->state, w->token, err) || loop_open(&w->loop, err) ||
        children_open(w->loop, &w->children, err) || events_open(w->loop, &w->events, err) ||
        assets_open(w->loop, w->events, w->options->dev, &w->assets, err) ||
        tasks_open(w->loop, &w->tasks, err) || tasks_open(w->loop, &w->writes, err) ||
        !(w->series = series_cache_open(w->loop)) ||
        machine_open(w->loop, w->events, w->options->root, &w->machine, err) || jobs_open(w, &w->jobs, err) ||
        open_place(w, l, err))
        return -1;
    state_read_sessions(&w->state, &w->sessions, (int64_t)time(NULL));
    return state_write(&w->state, &w->self, &w->sessions, err);
}

/* Children and tasks first: their requests wait for them. */
static void close_parts(struct web *w, const struct listen *l)
{
    children_close(w->children);
    tasks_close(w->tasks);
    tasks_close(w->writes);
    server_close(w->server);
    series_cache_close(w->series);
    machine_close(w->machine);
    jobs_close(w->jobs);
    job_texts_release(&w->texts);
    assets_close(w->assets);
    events_close(w->events);
    loop_close(w->loop);
    folders_close(&w->folders);
    if (l->socket)
        os_remove(l->socket);
    state_close(&w->state);
    arena_release(&w->arena);
}

/* ---- running ---- */

struct stopper {
    struct signals signals;
    struct loop *loop;
};

static void stop(void *context)
{
    struct stopper *s = context;
    if (signals_read(&s->signals))
        loop_stop(s->loop);
}

static int serve(struct web *w, void (*ready)(void *context, const char *link), void *context,
                 struct cairn_error *err)
{
    static const int ends[] = { SIGINT, SIGTERM, SIGHUP };
    CLEANUP(str_release) struct str link = { 0 };
    struct stopper s = { .signals.fd = -1, .loop = w->loop };
    if (web_link(w, w->read_only, &link, err) || signals_open(&s.signals, ends, ARRAY_LEN(ends), err))
        return -1;
    os_ignore_closed_pipe();
    loop_read(w->loop, s.signals.fd, stop, &s);
    ready(context, link.s);
    int r = loop_run(w->loop, err);
    loop_forget(w->loop, s.signals.fd);
    signals_close(&s.signals);
    return r;
}

int web_run(const struct web_options *options, const struct message_sink *sink, bool *taken,
            void (*ready)(void *context, const char *link), void *context, struct cairn_error *err)
{
    struct web *w = calloc(1, sizeof(*w));
    struct listen l = { 0 };
    if (!w)
        abort();
    w->options = options;
    w->sink = sink;
    *taken = false;
    int r = check_options(options, err) ||
                    state_open(&w->state, (const char *const *)environ, &w->arena, taken, err)
                ? -1
                : 0;
    if (!r && !*taken)
        r = open_parts(w, &l, err) || serve(w, ready, context, err) ? -1 : 0;
    close_parts(w, &l);
    free(w);
    return r;
}
