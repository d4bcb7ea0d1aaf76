/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/preload.h"

#include <pthread.h>

enum { MOST = 16384 };

struct range {
    uintptr_t at;
    size_t n;
    enum range_kind kind;
    uintptr_t handle; /* of what is mapped here */
    bool released;    /* a handle, which lives on in what is mapped */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range
    ranges[MOST]; /* in no order: they are few, and looking through them is cheap beside the calls */
static size_t n_ranges;
/* Written with the lock, read without. */
static _Atomic uint64_t device_bytes;
static _Atomic size_t n_lost; /* that did not fit the table, and were not freed since */

static bool takes_memory(enum range_kind k)
{
    return k == RANGE_DEVICE || k == RANGE_HANDLE;
}

static void drop(size_t i)
{
    if (takes_memory(ranges[i].kind))
        device_bytes -= ranges[i].n;
    ranges[i] = ranges[--n_ranges];
}

static void add(const struct range *r)
{
    pthread_mutex_lock(&lock);
    if (n_ranges < MOST) {
        ranges[n_ranges++] = *r;
        device_bytes += takes_memory(r->kind) ? r->n : 0;
    } else
        n_lost++;
    pthread_mutex_unlock(&lock);
}

void ranges_add(enum range_kind k, const void *p, size_t n)
{
    if (p && n)
        add(&(const struct range){ .at = (uintptr_t)p, .n = n, .kind = k });
}

void ranges_map(const void *p, size_t n, const void *handle)
{
    add(&(const struct range){
        .at = (uintptr_t)p, .n = n, .kind = RANGE_MAPPED, .handle = (uintptr_t)handle });
}

/* One that is not in the table is given back. */
static void find_lost(void)
{
    if (n_lost > 0)
        n_lost--;
}

static bool is_mapped(uintptr_t handle)
{
    for (size_t i = 0; i < n_ranges; i++)
        if (ranges[i].kind == RANGE_MAPPED && ranges[i].handle == handle)
            return true;
    return false;
}

/* The memory of a handle is freed when the handle is released and nothing maps it. */
static bool drop_handle(uintptr_t handle, bool is_released)
{
    for (size_t i = n_ranges; i-- > 0;) {
        if (ranges[i].kind != RANGE_HANDLE || ranges[i].at != handle || ranges[i].released != is_released)
            continue;
        if (is_mapped(handle))
            ranges[i].released = true;
        else
            drop(i);
        return true;
    }
    return false;
}

void ranges_release(const void *handle)
{
    pthread_mutex_lock(&lock);
    if (!drop_handle((uintptr_t)handle, false))
        find_lost();
    pthread_mutex_unlock(&lock);
}

/* Runtimes free either kind with either function. */
static size_t find_to_free(enum range_kind k, uintptr_t at)
{
    size_t found = MOST;
    for (size_t i = n_ranges; i-- > 0;) {
        if (ranges[i].at != at || (ranges[i].kind != RANGE_DEVICE && ranges[i].kind != RANGE_PINNED))
            continue;
        found = i;
        if (ranges[i].kind == k)
            break;
    }
    return found;
}

struct range_gone ranges_remove(enum range_kind k, const void *p)
{
    struct range_gone gone = { k, 0 };
    pthread_mutex_lock(&lock);
    size_t i = p ? find_to_free(k, (uintptr_t)p) : MOST;
    if (i < MOST) {
        gone = (struct range_gone){ ranges[i].kind, ranges[i].n };
        drop(i);
    }
    pthread_mutex_unlock(&lock);
    return gone;
}

void ranges_freed(const void *p, struct range_gone gone, bool failed)
{
    if (failed)
        ranges_add(gone.kind, p, gone.n);
    if (failed || gone.n || !p)
        return;
    pthread_mutex_lock(&lock);
    find_lost();
    pthread_mutex_unlock(&lock);
}

void ranges_unmap(const void *p, size_t n)
{
    uintptr_t at = (uintptr_t)p;
    bool any = false;
    pthread_mutex_lock(&lock);
    for (size_t i = n_ranges; i-- > 0;) {
        if (i >= n_ranges) /* two are gone, and what was here has taken the place of one */
            continue;
        const struct range r = ranges[i];
        if (r.kind != RANGE_MAPPED || r.at < at || r.at - at >= n)
            continue;
        drop(i);
        drop_handle(r.handle, true);
        any = true;
    }
    if (!any)
        find_lost();
    pthread_mutex_unlock(&lock);
}

static bool meets(const struct range *r, uintptr_t at, size_t n)
{
    return r->kind != RANGE_HANDLE && at < r->at + r->n && r->at < at + n;
}

bool ranges_is_pageable(const void *p, size_t n)
{
    uintptr_t at = (uintptr_t)p;
    pthread_mutex_lock(&lock);
    bool free_of = !n_lost && at + n >= at;
    for (size_t i = 0; i < n_ranges && free_of; i++)
        free_of = !meets(&ranges[i], at, n);
    pthread_mutex_unlock(&lock);
    return free_of;
}

static const struct range *device_range(uintptr_t at, size_t n)
{
    for (size_t i = 0; i < n_ranges; i++)
        if (ranges[i].kind != RANGE_PINNED && meets(&ranges[i], at, n))
            return &ranges[i];
    return NULL;
}

static enum place place_locked(uintptr_t at, size_t n)
{
    if (at + n < at)
        return PLACE_ACROSS;
    if (!device_range(at, n))
        return PLACE_CLEAR;
    for (uintptr_t end = at + n; at < end;) {
        const struct range *r = device_range(at, 1);
        if (!r || (r->kind == RANGE_DEVICE && r->at + r->n < end))
            return PLACE_ACROSS;
        at = r->at + r->n;
    }
    return PLACE_DEVICE;
}

enum place ranges_place(const void *p, size_t n)
{
    pthread_mutex_lock(&lock);
    enum place place = place_locked((uintptr_t)p, n);
    pthread_mutex_unlock(&lock);
    return place;
}

uint64_t ranges_device_bytes(bool *is_whole)
{
    *is_whole = !n_lost;
    return device_bytes;
}

static void forget_all(void)
{
    n_ranges = 0;
    device_bytes = 0;
    n_lost = 0;
}

void ranges_reset(void)
{
    pthread_mutex_lock(&lock);
    forget_all();
    pthread_mutex_unlock(&lock);
}

void ranges_forget(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    forget_all();
}
