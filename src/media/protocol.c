/* SPDX-License-Identifier: Apache-2.0 */
#include "media/protocol.h"

#include "os/socket.h"
#include <errno.h>
#include <unistd.h>

int wire_send(int fd, const struct wire_message *m, int limit_ms)
{
    const struct wire_head head = { WIRE_MAGIC, WIRE_VERSION, (uint16_t)m->kind,
                                    m->first_size + m->second_size };
    return os_socket_send(fd, &head, sizeof(head), m->pass, limit_ms) ||
                   os_socket_send(fd, m->first, m->first_size, -1, limit_ms) ||
                   os_socket_send(fd, m->second, m->second_size, -1, limit_ms)
               ? -1
               : 0;
}

int wire_receive_head(int fd, struct wire_head *head, int *passed, int limit_ms)
{
    if (os_socket_receive(fd, head, sizeof(*head), passed, limit_ms))
        return -1;
    if (head->magic == WIRE_MAGIC && head->version == WIRE_VERSION)
        return 0;
    if (passed) {
        fd_close(passed);
        *passed = -1;
    }
    errno = EPROTO;
    return -1;
}

size_t wire_frame_bytes(const struct wire_frame *f, uint64_t most)
{
    uint64_t pixels;
    if ((f->channels != 1 && f->channels != 3) || !f->width || !f->height ||
        __builtin_mul_overflow(f->width, f->height, &pixels) || pixels > most)
        return 0;
    return pixels > SIZE_MAX / 3 ? 0 : (size_t)pixels * f->channels;
}
