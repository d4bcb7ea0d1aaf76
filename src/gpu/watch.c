/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/watch.h"

#include "os/thread.h"
#include <pthread.h>
#include <stdint.h>
#include <time.h>

const char watch_hint[] =
    "`dmesg` shows whether the driver noticed it and reset the GPU; end other programs that use the GPU, and if it "
    "happens again, reboot; if the work is only slow, use a longer --hang-after";

static struct {
    int limit_s; /* 0: no watch */
    void (*stuck)(const struct cairn_error *why);
    const char *who, *what;
    uint64_t call; /* atomic; another number in each call, odd there and even outside */
    bool hang;
} watch;

static struct {
    pthread_mutex_t lock; /* held while `slow` is called */
    struct watch_work w;
    int64_t spent_ms;
    bool on, told;
} work = { .lock = PTHREAD_MUTEX_INITIALIZER };

enum { NAP_MS = 100, STOOD_STILL_MS = 1000 };

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static uint64_t call_now(void)
{
    return __atomic_load_n(&watch.call, __ATOMIC_ACQUIRE);
}

static bool is_in_call(uint64_t call)
{
    return call % 2;
}

/* These return whether the hang was reported. */
static bool check_call(int64_t passed_ms)
{
    static uint64_t seen;
    static int64_t spent_ms;
    uint64_t call = call_now();
    spent_ms = call == seen && is_in_call(call) ? spent_ms + passed_ms : 0;
    seen = call;
    if (spent_ms < (int64_t)watch.limit_s * 1000)
        return false;
    struct cairn_error err = { 0 };
    cairn_fail(&err, CAIRN_EDEVICE, "%s: %s: the driver has not answered for %d s", watch.who, watch.what,
               watch.limit_s);
    cairn_hint(&err, "%s", watch_hint);
    watch.stuck(&err);
    return true;
}

static bool check_work(int64_t passed_ms)
{
    bool stuck = false;
    pthread_mutex_lock(&work.lock);
    double spent_s = (double)(work.spent_ms += passed_ms) / 1000;
    if (work.on && work.w.slow_s > 0 && spent_s >= work.w.slow_s && !work.told) {
        work.told = true;
        work.w.slow(work.w.to, spent_s, is_in_call(call_now()) ? watch.what : NULL);
    }
    if (work.on && work.w.end_s > 0 && spent_s >= work.w.end_s) {
        struct cairn_error err = { 0 };
        cairn_fail(&err, CAIRN_EDEVICE, "%s: timed out after %.0f s", work.w.what, spent_s);
        cairn_hint(&err, "%s", watch_hint);
        watch.stuck(&err);
        stuck = true;
    }
    pthread_mutex_unlock(&work.lock);
    return stuck;
}

static void *keep_watch(void *nothing)
{
    (void)nothing;
    const struct timespec nap = { 0, NAP_MS * 1000000 };
    for (int64_t last = now_ms();;) {
        nanosleep(&nap, NULL);
        int64_t now = now_ms(), passed = now - last;
        last = now;
        if (passed > STOOD_STILL_MS) /* all of it did, and what was asked for may be answered right now */
            continue;
        if (check_call(passed) || check_work(passed))
            return NULL;
    }
}

int watch_start(int limit_s, void (*stuck)(const struct cairn_error *why), struct cairn_error *err)
{
    pthread_t thread;
    watch.limit_s = limit_s;
    watch.stuck = stuck;
    if (os_thread_start(&thread, keep_watch, NULL)) {
        watch.limit_s = 0;
        return cairn_fail(err, CAIRN_ENOMEM, "cannot start the thread that watches the device's calls");
    }
    pthread_detach(thread);
    return 0;
}

int watch_limit_s(void)
{
    return watch.limit_s;
}

/* Runs for every driver call: reading a clock would cost more than the rest if it is a system call. */
void watch_enter(const char *who, const char *what)
{
    if (!watch.limit_s)
        return;
    watch.who = who;
    watch.what = what;
    __atomic_store_n(&watch.call, (watch.call + 1) | 1, __ATOMIC_RELEASE);
}

void watch_leave(void)
{
    if (watch.limit_s)
        __atomic_store_n(&watch.call, (watch.call + 1) & ~(uint64_t)1, __ATOMIC_RELEASE);
}

void watch_work_begin(const struct watch_work *w)
{
    if (!watch.limit_s)
        return;
    pthread_mutex_lock(&work.lock);
    work.w = *w;
    work.spent_ms = 0;
    work.on = true;
    work.told = false;
    pthread_mutex_unlock(&work.lock);
}

void watch_work_end(void)
{
    if (!watch.limit_s)
        return;
    pthread_mutex_lock(&work.lock);
    work.on = false;
    pthread_mutex_unlock(&work.lock);
}

void watch_note_hang(void)
{
    watch.hang = true;
}

bool watch_saw_hang(void)
{
    return watch.hang;
}
