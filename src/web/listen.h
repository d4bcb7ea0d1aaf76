/* SPDX-License-Identifier: Apache-2.0
 * Where the server listens: 127.0.0.1 and ::1, an address of --listen, or a Unix socket. */
#ifndef CAIRN_WEB_LISTEN_H
#define CAIRN_WEB_LISTEN_H

#include "base/arena.h"
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>

struct listen {
    int fd[4];
    size_t n;
    int port;           /* of a Unix socket: the port under which a tunnel is reached */
    const char *where;  /* an address, or unix:PATH with an absolute path */
    const char *socket; /* that path; NULL: it is no Unix socket */
    bool is_local;      /* only this machine can connect */
};

/* `where`: NULL, an address or unix:PATH.  A port in use: the next, `tries` in all. */
int listen_open(struct listen *l, const char *where, int port, int tries, struct arena *a,
                struct cairn_error *err);
/* Whether only this machine can connect there; fails for what is no address. */
int listen_is_local(const char *where, bool *local, struct cairn_error *err);

#endif
