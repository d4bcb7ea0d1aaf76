/* SPDX-License-Identifier: Apache-2.0
 * cairn ui: the page in a browser. */
#include "base/json.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/messages.h"
#include "cli/options.h"
#include "cli/print.h"
#include "config.h"
#include "os/file.h"
#include "os/process.h"
#include "os/terminal.h"
#include "web/link.h"
#include "web/web.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ui_options {
    struct web_options web;
    bool json, no_open, url, stop;
};

#ifndef CAIRN_HAVE_UI

static int run(const struct ui_options *o)
{
    (void)o;
    struct cairn_error err = { 0 };
    cairn_fail(&err, CAIRN_ELACK, "this cairn was built without libmicrohttpd, which the page needs");
    cairn_hint(&err,
               "install libmicrohttpd-dev (Fedora: libmicrohttpd-devel, Arch: libmicrohttpd), and build "
               "cairn again; scripts/setup does the former");
    return print_error(&err);
}

#else

/* A program of $PATH; false: there is none. */
static bool find_program(const char *name, struct arena *a, const char **out)
{
    const char *at = getenv("PATH");
    for (; at && *at; at += strcspn(at, ":"), at += *at == ':') {
        *out = arena_printf(a, "%.*s/%s", (int)strcspn(at, ":"), at, name);
        if (*at == '/' && !access(*out, X_OK))
            return true;
    }
    return false;
}

/* Only for somebody who sits in front of it. */
static void open_browser(const char *link)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    const char *wayland = getenv("WAYLAND_DISPLAY"), *x11 = getenv("DISPLAY"), *program;
    if (!((wayland && *wayland) || (x11 && *x11)) || !tty_obeys(stdout) ||
        !find_program("xdg-open", &a, &program))
        return;
    const char *argv[] = { program, link, NULL };
    CLEANUP(fd_close) int null = os_open_null();
    const int files[3] = { null, null, null };
    if (null >= 0)
        os_spawn_apart(program, argv, files);
}

static void print_link(const struct ui_options *o, const char *link)
{
    if (o->json) {
        struct json *v = json_new_object();
        json_add_int(v, "schema", 1);
        json_add_text(v, "link", link);
        print_report(v);
    } else {
        printf("cairn ui: %s\n", link);
    }
    fflush(stdout);
}

static void ready(void *context, const char *link)
{
    const struct ui_options *o = context;
    print_link(o, link);
    if (!o->no_open && !o->json)
        open_browser(link);
}

static int none_runs(void)
{
    messages_say("no server runs for this state folder; start one with: cairn ui");
    return EXIT_TROUBLE;
}

/* Of the server that runs. */
static int fresh_link(const struct ui_options *o)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error err = { 0 };
    const char *link;
    bool found;
    if (link_ask(o->web.read_only, &a, &link, &found, &err))
        return print_error(&err);
    if (!found)
        return none_runs();
    if (o->url)
        print_link(o, link);
    else
        ready((void *)(uintptr_t)o, link);
    return EXIT_FINE;
}

static int stop_server(void)
{
    struct cairn_error err = { 0 };
    bool found;
    if (link_stop(&found, &err))
        return print_error(&err);
    return found ? EXIT_FINE : none_runs();
}

static int serve(const struct ui_options *o)
{
    struct cairn_error err = { 0 };
    bool taken;
    if (web_run(&o->web, &stderr_messages, &taken, ready, (void *)(uintptr_t)o, &err))
        return print_error(&err);
    return taken ? fresh_link(o) : EXIT_FINE;
}

static int run(const struct ui_options *o)
{
    return o->stop ? stop_server() : o->url ? fresh_link(o) : serve(o);
}

#endif

int cmd_ui(int argc, char **argv)
{
    struct ui_options o = { .web = { .port = WEB_PORT } };
    CLEANUP(opt_list_release) struct opt_list hosts = { 0 }, folders = { 0 };
    const struct opt_row rows[] = {
        OPT_INT('p', "port", &o.web.port, "N",
                "listen on this port, or the next of ten that is free (default 22476)"),
        OPT_STR(
            0, "listen", &o.web.listen, "ADDR",
            "listen on this address instead of the loopback (needs --host), or on a Unix socket, unix:PATH"),
        OPT_LIST(0, "host", &hosts, "NAME", "also answer under this name, as a browser sends it"),
        OPT_LIST(0, "folder", &folders, "NAME=DIR",
                 "show this folder under that name; NAME=DIR:ro: and change nothing in it"),
        OPT_FLAG(0, "read-only", &o.web.read_only, "change nothing; with --url: a link for watching only"),
        OPT_FLAG(0, "no-run", &o.web.no_run, "run no commands that a page names"),
        OPT_FLAG(0, "allow-run", &o.web.allow_run, "with --listen: run commands and take files all the same"),
        OPT_FLAG(0, "allow-root", &o.web.allow_root, "as root: run commands that a page names all the same"),
        OPT_FLAG(0, "no-open", &o.no_open, "open no browser"),
        OPT_FLAG(0, "url", &o.url, "print a fresh link to the server that runs, and end"),
        OPT_FLAG(0, "stop", &o.stop, "end the server that runs; jobs go on"),
        OPT_STR(0, "dev", &o.web.dev, "DIR",
                "serve the page from the files in DIR, and reload it when one changes"),
        OPT_FLAG('j', "json", &o.json, "print the link as JSON on stdout"),
        OPT_STR(0, "root", &o.web.root, "DIR", "read the tree DIR instead of this machine's /"),
        OPT_END,
    };
    static const struct opt_usage usage = {
        .synopsis = "cairn ui [options]",
        .about =
            "Serves a page for this machine: jobs, curves, logs, samples, GPUs, checks. Prints a link that works "
            "once, for ten minutes, and opens it in a browser if there is a display. Only this machine can "
            "connect; from another one use ssh -L 22476:localhost:22476 HOST. Ctrl-C ends the server, and never "
            "a job. Only one server runs per user: a second call prints a new link to the first.",
        .examples = "  cairn ui --folder data=/home/me/datasets\n"
                    "  cairn ui --url --read-only\n"
                    "  cairn ui --listen unix:/tmp/cairn.sock\n",
    };
    int r = options_parse(argc, argv, rows, &usage, NULL);
    if (r != OPTIONS_GO)
        return r;
    o.web.hosts = hosts.item;
    o.web.n_hosts = hosts.n;
    o.web.folders = folders.item;
    o.web.n_folders = folders.n;
    if (o.url && o.stop)
        return options_error("ui", "--url and --stop do not go together");
    if (o.web.port > 65535)
        return options_error("ui", "--port takes a number up to 65535");
    return run(&o);
}
