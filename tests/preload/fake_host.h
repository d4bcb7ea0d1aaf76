/* SPDX-License-Identifier: Apache-2.0
 * A host that shares its memory with the GPU: what it has left is in the file CAIRN_PRELOAD_MEMINFO. */
#ifndef CAIRN_TESTS_PRELOAD_FAKE_HOST_H
#define CAIRN_TESTS_PRELOAD_FAKE_HOST_H

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In place: whoever reads it meanwhile finds a number. */
static inline void fake_host_spend(long n)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const char digits[] = "0123456789";
    const char *path = getenv("CAIRN_PRELOAD_MEMINFO");
    int fd = path ? open(path, O_RDWR) : -1;
    char text[256] = "", *at;
    if (fd < 0)
        return;
    pthread_mutex_lock(&lock);
    if (read(fd, text, sizeof(text) - 1) > 0 && (at = strstr(text, "MemAvailable:"))) {
        char number[32];
        at += strcspn(at, digits);
        int width = (int)strspn(at, digits);
        snprintf(number, sizeof(number), "%0*ld", width, atol(at) - n / 1024);
        memcpy(at, number, (size_t)width);
        if (pwrite(fd, text, strlen(text), 0) < 0)
            abort();
    }
    pthread_mutex_unlock(&lock);
    close(fd);
}

#endif
