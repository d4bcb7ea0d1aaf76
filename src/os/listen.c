/* SPDX-License-Identifier: Apache-2.0 */
#include "os/listen.h"

#include "os/fault.h"
#include "os/file.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { WAITING = 128 };

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
};

/* The size of the address; 0: the text is none. */
static socklen_t parse(const char *text, int port, union address *out)
{
    memset(out, 0, sizeof(*out));
    if (inet_pton(AF_INET, text, &out->v4.sin_addr) == 1) {
        out->v4.sin_family = AF_INET;
        out->v4.sin_port = htons((uint16_t)port);
        return sizeof(out->v4);
    }
    if (inet_pton(AF_INET6, text, &out->v6.sin6_addr) != 1)
        return 0;
    out->v6.sin6_family = AF_INET6;
    out->v6.sin6_port = htons((uint16_t)port);
    return sizeof(out->v6);
}

bool os_is_address(const char *text, bool *loopback)
{
    union address a;
    if (!parse(text, 0, &a))
        return false;
    *loopback = a.any.sa_family == AF_INET ? (ntohl(a.v4.sin_addr.s_addr) >> 24) == 127
                                           : IN6_IS_ADDR_LOOPBACK(&a.v6.sin6_addr);
    return true;
}

static int close_failed(int fd)
{
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

static int new_socket(int family)
{
    return fault_hit() ? -1 : socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static int port_of(const union address *a)
{
    return ntohs(a->any.sa_family == AF_INET ? a->v4.sin_port : a->v6.sin6_port);
}

int os_listen_tcp(const char *address, int *port)
{
    union address a;
    socklen_t size = parse(address, *port, &a);
    if (!size) {
        errno = EINVAL;
        return -1;
    }
    int on = 1, fd = new_socket(a.any.sa_family);
    if (fd < 0)
        return -1;
    /* A server that ended a moment ago must not hold the port; on Linux this steals none from a live one. */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (a.any.sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    if (bind(fd, &a.any, size) || listen(fd, WAITING) || getsockname(fd, &a.any, &size))
        return close_failed(fd);
    *port = port_of(&a);
    return fd;
}

static int local_address(const char *path, union address *out)
{
    memset(out, 0, sizeof(*out));
    out->local.sun_family = AF_UNIX;
    if (strlen(path) >= sizeof(out->local.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(out->local.sun_path, path);
    return 0;
}

/* A socket to which nobody listens; any other file of that name stays. */
static bool is_left_over(const char *path, const union address *a)
{
    struct stat st;
    if (lstat(path, &st) || !S_ISSOCK(st.st_mode))
        return false;
    int fd = new_socket(AF_UNIX);
    bool dead = fd >= 0 && connect(fd, &a->any, sizeof(a->local)) && errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return dead;
}

int os_listen_unix(const char *path)
{
    union address a;
    if (local_address(path, &a))
        return -1;
    int fd = new_socket(AF_UNIX);
    if (fd < 0)
        return -1;
    mode_t before = umask(0177); /* there is no moment at which others could connect */
    int r = bind(fd, &a.any, sizeof(a.local));
    int why = errno;
    if (r && why == EADDRINUSE && is_left_over(path, &a) && !os_remove(path)) {
        r = bind(fd, &a.any, sizeof(a.local));
        why = errno;
    }
    umask(before);
    errno = why;
    if (r || listen(fd, WAITING))
        return close_failed(fd);
    return fd;
}

int os_accept(int listener, struct sockaddr_storage *from, socklen_t *from_size)
{
    *from_size = sizeof(*from);
    return fault_hit() ? -1
                       : accept4(listener, (struct sockaddr *)from, from_size, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

static int connect_to(const union address *a, socklen_t size, int limit_ms)
{
    struct timeval limit = { limit_ms / 1000, (limit_ms % 1000) * 1000 };
    int fd = fault_hit() ? -1 : socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) || connect(fd, &a->any, size))
        return close_failed(fd);
    return fd;
}

int os_connect_tcp(const char *address, int port, int limit_ms)
{
    union address a;
    socklen_t size = parse(address, port, &a);
    errno = EINVAL;
    return size ? connect_to(&a, size, limit_ms) : -1;
}

int os_connect_unix(const char *path, int limit_ms)
{
    union address a;
    return local_address(path, &a) ? -1 : connect_to(&a, sizeof(a.local), limit_ms);
}

bool os_is_shut(int fd)
{
    char c;
    ssize_t n = recv(fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);
    return !n || (n < 0 && errno != EAGAIN && errno != EINTR);
}

void os_shut(int fd)
{
    shutdown(fd, SHUT_RDWR);
}
