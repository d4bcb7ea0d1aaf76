/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/preload.h"

#include <pthread.h>

enum { MOST = 16384 };

struct range {
    uintptr_t at;
    size_t n;
    enum range_kind kind;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range
    ranges[MOST]; /* in no order: they are few, and looking through them is cheap beside the calls */
static size_t n_ranges;
static uint64_t device_bytes;
static bool lost; /* there was no room for one */

void ranges_add(enum range_kind k, const void *p, size_t n)
{
    if (!p || !n)
        return;
    pthread_mutex_lock(&lock);
    if (n_ranges < MOST)
        ranges[n_ranges++] = (struct range){ (uintptr_t)p, n, k };
    else
        lost = true;
    if (k == RANGE_DEVICE && !lost)
        device_bytes += n;
    pthread_mutex_unlock(&lock);
}

void ranges_remove(enum range_kind k, const void *p)
{
    pthread_mutex_lock(&lock);
    for (size_t i = n_ranges; p && i-- > 0;) {
        if (ranges[i].at != (uintptr_t)p || ranges[i].kind != k)
            continue;
        if (k == RANGE_DEVICE)
            device_bytes -= ranges[i].n;
        ranges[i] = ranges[--n_ranges];
        break;
    }
    pthread_mutex_unlock(&lock);
}

bool ranges_is_pageable(const void *p, size_t n)
{
    uintptr_t at = (uintptr_t)p;
    pthread_mutex_lock(&lock);
    bool free_of = !lost;
    for (size_t i = 0; i < n_ranges && free_of; i++)
        free_of = at + n <= ranges[i].at || ranges[i].at + ranges[i].n <= at;
    pthread_mutex_unlock(&lock);
    return free_of;
}

uint64_t ranges_device_bytes(void)
{
    pthread_mutex_lock(&lock);
    uint64_t n = device_bytes;
    pthread_mutex_unlock(&lock);
    return n;
}

void ranges_forget(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    n_ranges = 0;
    device_bytes = 0;
    lost = false;
}
