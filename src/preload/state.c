/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/preload.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OLDEST = 5, NEWEST = 7, NEWEST_CUDA = 13, PIECE_BYTES = 1 << 20, LEAST_PIECE = 64 << 10, BUFFERS = 2 };

struct state state;
static _Atomic int starting,
    keeping; /* the process whose thread initializes; a child of fork finds its parent's */
__thread struct state_thread state_thread __attribute__((tls_model("initial-exec")));

void state_own(bool on)
{
    if (on && !state_thread.own++)
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state_thread.cancels);
    else if (!on && !--state_thread.own)
        pthread_setcancelstate(state_thread.cancels, &(int){ 0 });
}

/* strtoull has another name in every libc. */
uint64_t state_number(const char *text)
{
    uint64_t n = 0;
    text += strspn(text, " ");
    for (; *text >= '0' && *text <= '9'; text++)
        n = n * 10 + (uint64_t)(*text - '0');
    return n;
}

/* secure_getenv, which older versions of musl have not. */
static const char *variable(const char *name)
{
    return getauxval(AT_SECURE) ? NULL : getenv(name);
}

static uint64_t read_number(const char *name)
{
    const char *text = variable(name);
    return text ? state_number(text) : 0;
}

static void read_text(const char *name, char *text, size_t size)
{
    const char *given = variable(name);
    if (given && strlen(given) < size)
        strcpy(text, given);
}

/* For an unknown future version, calls are recorded at most. */
static bool runtime_is_known(int *version)
{
    int (*ask)(int *) = (int (*)(int *))real_get(HELP_VERSION);
    if (!ask || ask(version))
        return false;
    int major = *version / FN(10000000, 1000);
    return major >= OLDEST && major <= FN(NEWEST, NEWEST_CUDA);
}

static void read_told(struct told *t)
{
    t->switches = record_switches(variable("CAIRN_PRELOAD"));
    t->budget_bytes = read_number("CAIRN_PRELOAD_BUDGET");
    t->reserve_bytes = read_number("CAIRN_PRELOAD_RESERVE");
    t->piece_bytes = read_number("CAIRN_PRELOAD_PIECE");
    if (t->piece_bytes < LEAST_PIECE || t->piece_bytes > 1U << 30)
        t->piece_bytes = PIECE_BYTES;
    t->n_buffers = read_number("CAIRN_PRELOAD_RING");
    if (t->n_buffers < 1 || t->n_buffers > MOST_BUFFERS)
        t->n_buffers = BUFFERS;
    strcpy(t->meminfo, "/proc/meminfo");
    read_text("CAIRN_PRELOAD_MEMINFO", t->meminfo, sizeof(t->meminfo));
    strcpy(t->clocksource, "/sys/devices/system/clocksource/clocksource0/current_clocksource");
    read_text("CAIRN_PRELOAD_CLOCKSOURCE", t->clocksource, sizeof(t->clocksource));
    read_text("CAIRN_PRELOAD_FILE", t->file, sizeof(t->file));
    if (t->switches & ~(unsigned)SWITCH_RECORD && !runtime_is_known(&t->runtime))
        t->switches &= SWITCH_RECORD;
}

/* Locks that the parent's other threads held at fork have no owner now. */
static void forget(void)
{
    recorder_forget();
    ranges_forget();
    memory_forget();
    copy_forget();
}

/* An old kernel does not empty the page: there parent and child share the file. */
static void start(void)
{
    static uint32_t n_processes;
    if (n_processes++)
        forget();
    madvise(&state, sizeof(state), MADV_WIPEONFORK);
    state.process = n_processes;
    read_told(&state.told);
    if (state.told.switches & (SWITCH_RECORD | SWITCH_GUARD)) /* what it refuses is to be seen */
        recorder_open(&state.told);
    atomic_store_explicit(&state.ready, 1, memory_order_release);
}

static void take(_Atomic int *lock)
{
    int self = (int)getpid(), holder = 0;
    while (!atomic_compare_exchange_strong(lock, &holder, self)) {
        if (holder != self)
            continue; /* it is not here */
        holder = 0;
        sched_yield();
    }
}

void state_lock(void)
{
    take(&keeping);
}

void state_unlock(void)
{
    atomic_store(&keeping, 0);
}

const struct told *state_start(void)
{
    state_own(true);
    take(&starting);
    if (!atomic_load_explicit(&state.ready, memory_order_acquire))
        start();
    atomic_store(&starting, 0);
    state_own(false);
    return &state.told;
}
