/* SPDX-License-Identifier: Apache-2.0
 * Answers requests, one after the other. */
#ifndef CAIRN_MEDIA_CHILD_SERVER_H
#define CAIRN_MEDIA_CHILD_SERVER_H

#include <stdint.h>

struct server_limits {
    uint64_t most_pixels;
    unsigned wait_s; /* for one frame */
    unsigned threads;
};

/* Returns the exit status: 0 when the other end is closed between requests, 4 when it talks nonsense. */
int server_run(int fd, const struct server_limits *limits);

#endif
