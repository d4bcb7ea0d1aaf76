/* SPDX-License-Identifier: Apache-2.0
 * A pair of connected stream sockets between two processes, over which open files can be passed. */
#ifndef CAIRN_OS_SOCKET_H
#define CAIRN_OS_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

/* Two connected ends, with large buffers.  Here and below: -1 with errno. */
int os_socket_pair(int ends[2]);

/* Sends all bytes, and with the first of them the file `pass` (-1: none).  Never raises SIGPIPE: EPIPE.
 * ETIMEDOUT: the other end read nothing for limit_ms milliseconds (-1: waits for ever). */
int os_socket_send(int fd, const void *bytes, size_t n, int pass, int limit_ms);

/* Receives exactly n bytes.  *passed (or NULL) is the file that came with them; else -1.  ECONNRESET: the
 * other end is closed.  ETIMEDOUT: nothing came for limit_ms milliseconds (-1: waits for ever). */
int os_socket_receive(int fd, void *into, size_t n, int *passed, int limit_ms);
/* Is the other end gone? */
bool os_socket_is_closed(int fd);

#endif
