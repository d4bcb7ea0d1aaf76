/* SPDX-License-Identifier: Apache-2.0
 * The server of `cairn ui`: what its parts share, from its start to its end.
 *
 * A handler reaches it as r->web.  The parts are opened by web_run (ui.c) in the order of the struct. */
#ifndef CAIRN_WEB_WEB_H
#define CAIRN_WEB_WEB_H

#include "base/error.h"
#include "base/message_sink.h"
#include "base/str.h"
#include "web/child.h"
#include "web/events.h"
#include "web/folder.h"
#include "web/guard.h"
#include "web/job_texts.h"
#include "web/loop.h"
#include "web/server.h"
#include "web/session.h"
#include "web/state.h"
#include <stdbool.h>

/* The options of the command line; the texts belong to the caller. */
struct web_options {
    int port;           /* this one, or the next of ten that is free; 0: any */
    const char *listen; /* an address, or unix:PATH; NULL: 127.0.0.1 and ::1 */
    const char *const *hosts;
    size_t n_hosts;
    const char *const *folders; /* NAME=DIR or NAME=DIR:ro */
    size_t n_folders;
    const char *dev;  /* a folder of assets */
    const char *root; /* of a captured machine */
    bool read_only, no_run, allow_run, allow_root;
};
enum { WEB_PORT = 22476, WEB_PORTS = 10 };

struct web {
    const struct web_options *options;
    const struct message_sink *sink;
    bool read_only;      /* nobody may change anything */
    bool run_allowed;    /* jobs may run a command that a client names */
    bool upload_allowed; /* clients may send files */
    struct state state;
    char token[SESSION_SECRET + 1]; /* of the command line */
    struct sessions sessions;
    struct guard guard;
    struct folders folders;
    struct loop *loop;
    struct server *server;
    struct children *children;
    struct events *events;
    struct assets *assets;
    struct machine *machine;
    struct tasks *tasks;
    struct tasks *writes; /* of the database: they wait for each other and for other programs */
    struct series_cache *series;
    struct jobs *jobs;
    struct job_texts texts; /* for lists of jobs */
    struct state_other self;
    const char *address; /* in links: "localhost:22476" */
    struct arena arena;  /* lives as long as the server */
};

/* Serves until Ctrl-C or --stop.  `ready` gets the link to open, once the server listens.  *taken: another serves
 * this state folder, and nothing was done. */
int web_run(const struct web_options *options, const struct message_sink *sink, bool *taken,
            void (*ready)(void *context, const char *link), void *context, struct cairn_error *err);

/* A fresh one-time link. */
int web_link(struct web *w, bool read_only, struct str *out, struct cairn_error *err);
/* Writes ui.json after a session began or ended. */
void web_save(struct web *w);

/* For web_run: what is done with requests. */
extern const struct server_app web_app;

#endif
