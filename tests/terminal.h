/* SPDX-License-Identifier: Apache-2.0
 * What a test sees of a terminal. */
#ifndef CAIRN_TESTS_TERMINAL_H
#define CAIRN_TESTS_TERMINAL_H

#include "base/str.h"
#include <poll.h>
#include <unistd.h>

/* A terminal hands out what was written to it piece by piece: reads until the text ends so, or nothing more comes. */
static void read_until(int fd, const char *end, char *text, size_t size)
{
    struct pollfd ready = { .fd = fd, .events = POLLIN };
    size_t len = 0;
    ssize_t n = 1;
    while (!str_ends(text, end) && poll(&ready, 1, 5000) > 0 && n > 0) {
        n = read(fd, text + len, size - 1 - len);
        len += n > 0 ? (size_t)n : 0;
        text[len] = '\0';
    }
}

#endif
