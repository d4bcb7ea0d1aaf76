/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as requests to cairn-media, the first with a picture: it answers or ends, and reads no more than it
 * was sent. */
#include "media/child/server.h"

#include "fuzz.h"
#include "os/file.h"
#include "os/socket.h"
#include <sys/socket.h>
#include <unistd.h>

enum { LARGEST = 1 << 16 };

static int picture(void)
{
    static const uint8_t bmp[] = { 'B', 'M', 58, 0, 0, 0, 0, 0, 0,  0, 54, 0, 0, 0, 40, 0,  0,  0, 1, 0,
                                   0,   0,   1,  0, 0, 0, 1, 0, 24, 0, 0,  0, 0, 0, 0,  0,  0,  0, 0, 0,
                                   0,   0,   0,  0, 0, 0, 0, 0, 0,  0, 0,  0, 0, 0, 10, 20, 30, 0 };
    int fd = os_open_memory("picture");
    if (fd < 0 || os_write_at(fd, bmp, sizeof(bmp), 0) != (ssize_t)sizeof(bmp))
        abort();
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct server_limits limits = { .most_pixels = 64, .wait_s = 0, .threads = 1 };
    int ends[2];
    if (size > LARGEST)
        return 0;
    int file = picture();
    if (os_socket_pair(ends))
        abort();
    if (size && os_socket_send(ends[1], data, size, file, 1000))
        abort();
    shutdown(ends[1], SHUT_WR);
    int code = server_run(ends[0], &limits);
    FUZZ_REQUIRE(code == 0 || code == 4);
    close(file);
    close(ends[0]);
    close(ends[1]);
    return 0;
}
