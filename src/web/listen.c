/* SPDX-License-Identifier: Apache-2.0 */
#include "web/listen.h"

#include "base/str.h"
#include "os/listen.h"
#include "os/path.h"
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

int listen_is_local(const char *where, bool *local, struct cairn_error *err)
{
    *local = true;
    if (!where || str_starts(where, "unix:"))
        return 0;
    if (os_is_address(where, local))
        return 0;
    return cairn_fail(err, CAIRN_EUSAGE,
                      "--listen takes an address such as 192.168.1.5 or ::, or unix:PATH, not \"%s\"", where);
}

static void close_all(struct listen *l)
{
    for (size_t i = 0; i < l->n; i++)
        close(l->fd[i]);
    l->n = 0;
}

/* Both addresses of the loopback, or the one given, with one port; errno EADDRINUSE: one of them is taken. */
static int open_port(struct listen *l, const char *const *addresses, int port)
{
    l->port = port;
    for (size_t i = 0; addresses[i]; i++) {
        int fd = os_listen_tcp(addresses[i], &l->port);
        if (fd >= 0) {
            l->fd[l->n++] = fd;
            continue;
        }
        int why = errno;
        if (l->n && why != EADDRINUSE && why != EACCES)
            continue; /* a machine without IPv6 */
        close_all(l);
        errno = why;
        return -1;
    }
    return 0;
}

static int open_tcp(struct listen *l, const char *where, int port, int tries, struct cairn_error *err)
{
    const char *const both[] = { "127.0.0.1", "::1", NULL }, *const one[] = { where, NULL };
    const char *const *addresses = where ? one : both;
    l->where = where ? where : both[0];
    for (int i = 0; i < tries; i++) {
        int last = port + i;
        if (last > 65535)
            break;
        if (!open_port(l, addresses, last))
            return 0;
        if (errno != EADDRINUSE)
            return cairn_fail_errno(err, "listen on %s port %d", l->where, last);
    }
    cairn_fail(err, CAIRN_EIO, "the ports %d to %d of %s are in use", port, port + tries - 1, l->where);
    return cairn_hint(err, "choose another with --port");
}

/* Others have to find it from other folders. */
static const char *absolute(const char *path, struct arena *a)
{
    char here[PATH_MAX];
    return path_is_absolute(path) || !getcwd(here, sizeof(here)) ? arena_strdup(a, path)
                                                                 : arena_printf(a, "%s/%s", here, path);
}

int listen_open(struct listen *l, const char *where, int port, int tries, struct arena *a,
                struct cairn_error *err)
{
    *l = (struct listen){ .port = port };
    if (listen_is_local(where, &l->is_local, err))
        return -1;
    if (!where || !str_starts(where, "unix:"))
        return open_tcp(l, where, port, tries, err);
    l->socket = absolute(where + 5, a);
    l->where = arena_printf(a, "unix:%s", l->socket);
    int fd = os_listen_unix(l->socket);
    if (fd < 0)
        return cairn_fail_errno(err, "listen on %s", l->socket);
    l->fd[l->n++] = fd;
    return 0;
}
