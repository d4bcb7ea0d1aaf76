/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/preload.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { SMALL = 1 << 20 }; /* not worth a look at the host */
static const uint64_t most_reserve = 16ULL << 30;

struct host {
    uint64_t total, available; /* bytes; 0: not known */
};

static uint64_t line_bytes(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? state_number(at + strlen(name)) * 1024 : 0;
}

static struct host read_host(const struct told *t)
{
    char text[1024];
    int fd = open(t->meminfo, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return (struct host){ line_bytes(text, "MemTotal:"), line_bytes(text, "MemAvailable:") };
}

/* A fifth, but no more than 16 GiB, unless we were told. */
static uint64_t reserve_bytes(const struct told *t, const struct host *h)
{
    if (t->reserve_bytes)
        return t->reserve_bytes;
    return h->total / 5 < most_reserve ? h->total / 5 : most_reserve;
}

bool memory_refuses(const struct told *t, size_t n)
{
    if (n < SMALL)
        return false;
    struct host h = read_host(t);
    return h.total && h.available && h.available < reserve_bytes(t, &h) + (uint64_t)n;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

void memory_tell(const struct told *t, size_t *free_bytes, size_t *total_bytes)
{
    struct host h = read_host(t);
    uint64_t left = less(t->budget_bytes, ranges_device_bytes());
    uint64_t host = less(h.available, reserve_bytes(t, &h));
    if (free_bytes)
        *free_bytes = h.total && h.available && host < left ? host : left;
    if (total_bytes)
        *total_bytes = t->budget_bytes;
    recorder_counts()->told++;
}
