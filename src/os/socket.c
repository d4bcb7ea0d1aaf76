/* SPDX-License-Identifier: Apache-2.0 */
#include "os/socket.h"

#include "os/fault.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 20 };

int os_socket_pair(int ends[2])
{
    if (fault_hit() || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return -1;
    /* An optimization: the system may allow less. */
    for (int i = 0; i < 2; i++)
        setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &(int){ BUFFER_BYTES }, sizeof(int));
    return 0;
}

static int wait_for(int fd, short what, int limit_ms)
{
    struct pollfd p = { .fd = fd, .events = what };
    int r;
    do {
        r = poll(&p, 1, limit_ms);
    } while (r < 0 && errno == EINTR);
    if (!r)
        errno = ETIMEDOUT;
    return r > 0 ? 0 : -1;
}

/* Room for the one file that a message can carry. */
union control {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
};

int os_socket_send(int fd, const void *bytes, size_t n, int pass, int limit_ms)
{
    const char *at = bytes;
    while (n) {
        if (fault_hit() || wait_for(fd, POLLOUT, limit_ms))
            return -1;
        struct iovec piece = { (void *)at, n };
        union control control = { .bytes = { 0 } };
        struct msghdr m = { .msg_iov = &piece, .msg_iovlen = 1 };
        if (pass >= 0) {
            m.msg_control = control.bytes;
            m.msg_controllen = sizeof(control.bytes);
            struct cmsghdr *c = CMSG_FIRSTHDR(&m);
            *c = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
                                   .cmsg_type = SCM_RIGHTS,
                                   .cmsg_len = CMSG_LEN(sizeof(int)) };
            memcpy(CMSG_DATA(c), &pass, sizeof(int));
        }
        ssize_t sent = sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EINTR && errno != EAGAIN)
            return -1;
        if (sent <= 0)
            continue;
        pass = -1;
        at += sent;
        n -= (size_t)sent;
    }
    return 0;
}

/* Keeps the first file; closes any other. */
static void take_files(struct msghdr *m, int *passed)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int file;
            memcpy(&file, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
            if (passed && *passed < 0)
                *passed = file;
            else
                close(file);
        }
    }
}

int os_socket_receive(int fd, void *into, size_t n, int *passed, int limit_ms)
{
    char *at = into;
    if (passed)
        *passed = -1;
    while (n) {
        if (fault_hit() || wait_for(fd, POLLIN, limit_ms))
            return -1;
        struct iovec piece = { at, n };
        union control control = { .bytes = { 0 } };
        struct msghdr m = { .msg_iov = &piece,
                            .msg_iovlen = 1,
                            .msg_control = control.bytes,
                            .msg_controllen = sizeof(control.bytes) };
        ssize_t got = recvmsg(fd, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got > 0)
            take_files(&m, passed);
        if (!got)
            errno = ECONNRESET;
        if (got <= 0)
            return -1;
        at += got;
        n -= (size_t)got;
    }
    return 0;
}

bool os_socket_is_closed(int fd)
{
    struct pollfd p = { .fd = fd };
    return poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR);
}
