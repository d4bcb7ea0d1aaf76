/* SPDX-License-Identifier: Apache-2.0
 * What a running server leaves for others of the same user: a lock, and the file ui.json.
 *
 * $XDG_STATE_HOME/cairn/ui.lock is locked as long as the server lives, and names ui.json: in $XDG_RUNTIME_DIR/cairn,
 * or where that is not set beside the lock.  ui.json (0600) holds pid, port, address and sessions, so that a server
 * that is started again knows its browsers.  $XDG_STATE_HOME/cairn/token (0600) is the secret of programs. */
#ifndef CAIRN_WEB_STATE_H
#define CAIRN_WEB_STATE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/own.h"
#include "web/session.h"
#include <stdbool.h>

struct state {
    struct own_dir home;    /* $XDG_STATE_HOME/cairn */
    struct own_dir runtime; /* of ui.json */
    char name[32];          /* "ui.json" */
    int lock;               /* -1: not ours */
};
#define STATE_NONE                                                            \
    {                                                                         \
        .home = OWN_DIR_NONE, .runtime = OWN_DIR_NONE, .lock = -1, .name = "" \
    }

/* Another server, as its ui.json says. */
struct state_other {
    int64_t pid;
    int port;
    const char *listen; /* an address, or unix:PATH */
};

/* Becomes the server of the state folder.  *taken: another is it already, and nothing else was done. */
int state_open(struct state *s, const char *const *env, struct arena *a, bool *taken,
               struct cairn_error *err);
void state_close(struct state *s);

/* The secret of the command line, made if there is none. */
int state_token(const struct state *s, char out[SESSION_SECRET + 1], struct cairn_error *err);
/* The sessions of a former server of this folder; none is no error. */
void state_read_sessions(const struct state *s, struct sessions *out, int64_t today);
int state_write(const struct state *s, const struct state_other *self, const struct sessions *sessions,
                struct cairn_error *err);

/* The server that runs, and the token to talk to it.  *found: there is one. */
int state_find(const char *const *env, struct arena *a, struct state_other *out, const char **token,
               bool *found, struct cairn_error *err);

#endif
