/* SPDX-License-Identifier: Apache-2.0 */
#include "fiber.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#ifndef __x86_64__
#include <ucontext.h>
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#else
#define __sanitizer_start_switch_fiber(save, bottom, size) ((void)(save), (void)(bottom), (void)(size))
#define __sanitizer_finish_switch_fiber(save, bottom, size) ((void)(save), (void)(bottom), (void)(size))
#endif

enum { MOST_ITEMS = 1024, STACK = 256 * 1024, GUARD = 4096, WAVE = 32 };

/* Where a fiber, or the scheduler, goes on.  swapcontext asks the kernel twice about signals, at every barrier of every
 * work-item: on x86-64 what a call must keep is pushed instead, and the stack exchanged. */
#ifdef __x86_64__
typedef void *stop;
void fiber_switch(stop *from, stop to);
__asm__(".text\n"
        ".globl fiber_switch\n"
        ".type fiber_switch, @function\n"
        "fiber_switch:\n"
        "    push %rbp\n    push %rbx\n    push %r12\n    push %r13\n    push %r14\n    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15\n    pop %r14\n    pop %r13\n    pop %r12\n    pop %rbx\n    pop %rbp\n"
        "    ret\n"
        ".size fiber_switch, . - fiber_switch\n");

static void stop_switch(stop *from, stop *to)
{
    fiber_switch(from, *to);
}

/* Six registers, the place to return to, and nobody who called it; the stack is as it is after a call. */
static void stop_make(stop *p, char *stack, size_t size, void (*begin)(void))
{
    void **top = (void **)(stack + size) - 8;
    for (int i = 0; i < 8; i++)
        top[i] = NULL;
    top[6] = (void *)begin;
    *p = top;
}
#else
typedef ucontext_t stop;
static void stop_switch(stop *from, stop *to)
{
    swapcontext(from, to);
}

static void stop_make(stop *p, char *stack, size_t size, void (*begin)(void))
{
    getcontext(p);
    p->uc_stack.ss_sp = stack;
    p->uc_stack.ss_size = size;
    makecontext(p, begin, 0);
}
#endif

struct fiber {
    stop context;
    char *stack;      /* with a page below it that must not be touched */
    void *fake_stack; /* the address sanitizer's */
    int line;         /* of the barrier it waits at; 0: it has ended; SHUFFLE: it waits for its wave only */
};
enum { SHUFFLE = -1 };

/* One group at a time in each thread. */
static _Thread_local struct group {
    struct fiber *fibers;
    stop scheduler;
    const void *scheduler_stack;
    size_t scheduler_size;
    int items;
    void (*once)(const void *args, struct k_place place);
    const void *args;
    struct k_place place;
    float shuffle[MOST_ITEMS];
} group;
_Thread_local int k_item;
static bool is_reversed;
static void (*seen_fn)(const void *place);
static const void *left_out;

void k_fiber_set_reversed(bool reversed)
{
    is_reversed = reversed;
}

void k_fiber_set_seen(void (*seen)(const void *place))
{
    seen_fn = seen;
}

void k_fiber_leave_out(const void *place)
{
    left_out = place;
}

static void to_scheduler(struct fiber *f)
{
    __sanitizer_start_switch_fiber(f->line ? &f->fake_stack : NULL, group.scheduler_stack,
                                   group.scheduler_size);
    stop_switch(&f->context, &group.scheduler);
    __sanitizer_finish_switch_fiber(f->fake_stack, &group.scheduler_stack, &group.scheduler_size);
}

static void begin(void)
{
    struct fiber *f = &group.fibers[k_item];
    __sanitizer_finish_switch_fiber(NULL, &group.scheduler_stack, &group.scheduler_size);
    group.once(group.args, group.place);
    f->line = 0;
    to_scheduler(f);
}

static void to_fiber(struct fiber *f)
{
    void *fake_stack = NULL;
    __sanitizer_start_switch_fiber(&fake_stack, f->stack, STACK);
    stop_switch(&group.scheduler, &f->context);
    __sanitizer_finish_switch_fiber(fake_stack, NULL, NULL);
}

/* Never given back: a thread keeps its fibers for all its groups. */
static void *alloc_memory(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        perror("fiber: memory");
        abort();
    }
    return p;
}

static char *new_stack(void)
{
    char *p = alloc_memory(GUARD + STACK);
    mprotect(p, GUARD, PROT_NONE);
    return p + GUARD;
}

static void prepare(struct fiber *f)
{
    if (!f->stack)
        f->stack = new_stack();
    f->fake_stack = NULL;
    f->line = 0;
    stop_make(&f->context, f->stack, STACK, begin);
}

static const char *stop_name(int line)
{
    static _Thread_local char name[2][48];
    static _Thread_local int turn;
    char *out = name[turn++ % 2];
    snprintf(out, sizeof(name[0]), line == SHUFFLE ? "a shuffle" : "the barrier of line %d", line);
    return out;
}

/* After a round all of the n must wait at the same barrier, or all must have ended. */
static void judge_round(int first, int n)
{
    int line = group.fibers[first].line;
    for (int i = first + 1; i < first + n; i++) {
        int other = group.fibers[i].line;
        if (other == line)
            continue;
        if (!other || !line)
            fprintf(stderr, "fiber: work-item %d has ended while %d waits at %s\n", other ? first : i,
                    other ? i : first, stop_name(other ? other : line));
        else
            fprintf(stderr, "fiber: work-item %d waits at %s, %d at %s\n", first, stop_name(line), i,
                    stop_name(other));
        abort();
    }
}

/* The nth of n in the order of this run. */
static int turn_of(int nth, int n)
{
    return is_reversed ? n - 1 - nth : nth;
}

/* A wave goes on by itself until all of it waits at a barrier of the group: its shuffles hold up nobody else. */
static void run_wave(int first, int n)
{
    do {
        for (int i = 0; i < n; i++) {
            k_item = first + turn_of(i, n);
            to_fiber(&group.fibers[k_item]);
        }
        judge_round(first, n);
    } while (group.fibers[first].line == SHUFFLE);
}

void k_fiber_group(void (*once)(const void *args, struct k_place place), const void *args,
                   struct k_place place, int items)
{
    if (!group.fibers)
        group.fibers = alloc_memory(MOST_ITEMS * sizeof(*group.fibers));
    if (items > MOST_ITEMS)
        abort();
    group.items = items;
    group.once = once;
    group.args = args;
    group.place = place;
    for (int i = 0; i < items; i++)
        prepare(&group.fibers[i]);
    int waves = (items + WAVE - 1) / WAVE;
    do {
        for (int w = 0; w < waves; w++) {
            int first = turn_of(w, waves) * WAVE;
            run_wave(first, items - first < WAVE ? items - first : WAVE);
        }
        judge_round(0, items);
    } while (group.fibers[0].line);
}

static void wait_here(int line)
{
    struct fiber *f = &group.fibers[k_item];
    f->line = line;
    to_scheduler(f);
}

void k_fiber_wait(int line)
{
    const void *place = __builtin_return_address(0);
    if (seen_fn)
        seen_fn(place);
    if (place != left_out)
        wait_here(line);
}

void k_fiber_wave(void)
{
    wait_here(SHUFFLE);
}

float k_fiber_shuffle_xor(float v, int mask)
{
    int item = k_item;
    group.shuffle[item] = v;
    k_fiber_wave();
    v = group.shuffle[item ^ mask];
    k_fiber_wave();
    return v;
}
