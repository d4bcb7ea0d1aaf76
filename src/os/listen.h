/* SPDX-License-Identifier: Apache-2.0
 * Sockets that listen, and connections to them: TCP on an address of this machine, or a Unix socket.
 * None of them blocks, and none is inherited by a child.  Here and below: -1 with errno. */
#ifndef CAIRN_OS_LISTEN_H
#define CAIRN_OS_LISTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* `address` is a numeric address, such as 127.0.0.1 or ::1.  Port 0: the system chooses; *port becomes it. */
int os_listen_tcp(const char *address, int *port);
/* A socket file with mode 0600.  One that a dead process left is replaced; EADDRINUSE: somebody listens. */
int os_listen_unix(const char *path);
/* A waiting connection and its address; EAGAIN: there is none. */
int os_accept(int listener, struct sockaddr_storage *from, socklen_t *from_size);
/* Connects, and then waits at most limit_ms for each read and write. */
int os_connect_tcp(const char *address, int port, int limit_ms);
int os_connect_unix(const char *path, int limit_ms);
/* Whether the other end sends nothing more and all that it sent was read. */
bool os_is_shut(int fd);
/* Ends both directions of a connection that another owner will close. */
void os_shut(int fd);

/* Whether the text is a numeric address; *loopback: only this machine can reach it. */
bool os_is_address(const char *text, bool *loopback);

#endif
