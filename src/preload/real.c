/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/preload.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* A program in a container may stand on an older glibc, whose loader does not start it with a library that asks for
 * newer versions.  There these are in a library of their own, which every process that opens others has. */
#if defined(__x86_64__) && defined(__GLIBC__)
__asm__(".symver dlopen, dlopen@GLIBC_2.2.5");
__asm__(".symver dlsym, dlsym@GLIBC_2.2.5");
__asm__(".symver dlclose, dlclose@GLIBC_2.2.5");
__asm__(".symver dlerror, dlerror@GLIBC_2.2.5");
#endif
#pragma weak dlopen
#pragma weak dlsym
#pragma weak dlclose
#pragma weak dlerror

enum { MOST_RUNTIMES = 4, MOST_CALLERS = 64, PAGE = 4096 };

/* Both tables only grow, and what is in them does not change: they are read without a lock. */
struct runtime {
    void *found[N_REAL];
    char path[256];
};
static struct runtime runtimes[MOST_RUNTIMES];
static _Atomic size_t n_runtimes;

struct span {
    uintptr_t at;
    size_t n;
};
static struct {
    struct span span;
    const struct runtime *runtime;
} callers[MOST_CALLERS];
static _Atomic size_t n_callers;

const char *const call_names[N_REAL] = {
#define OWN(hip, cuda) TEXT(FN(hip, cuda)),
#define PASS(hip, cuda, params, args, size) TEXT(FN(hip, cuda)),
#define HIP_OWN(hip) IF_HIP(#hip, )
#define HIP_PASS(hip, params, args, size) IF_HIP(#hip, )
#define CUDA_OWN(cuda) IF_CUDA(#cuda, )
#include "preload/calls.def"
#undef OWN
#undef PASS
#undef HIP_OWN
#undef HIP_PASS
#undef CUDA_OWN
    [HELP_PEEK_ERROR] = TEXT(FN(hipPeekAtLastError, cudaPeekAtLastError)),
    [HELP_LAST_ERROR] = TEXT(FN(hipGetLastError, cudaGetLastError)),
    [HELP_IS_CAPTURING] = TEXT(FN(hipStreamIsCapturing, cudaStreamIsCapturing)),
    [HELP_EVENT_CREATE] = TEXT(FN(hipEventCreateWithFlags, cudaEventCreateWithFlags)),
    [HELP_EVENT_RECORD] = TEXT(FN(hipEventRecord, cudaEventRecord)),
    [HELP_EVENT_QUERY] = TEXT(FN(hipEventQuery, cudaEventQuery)),
    [HELP_CAPTURE_MODE] = TEXT(FN(hipThreadExchangeStreamCaptureMode, cudaThreadExchangeStreamCaptureMode)),
    [HELP_DEVICE] = TEXT(FN(hipGetDevice, cudaGetDevice)),
    [HELP_POINTER] = TEXT(FN(hipPointerGetAttributes, cudaPointerGetAttributes)),
    [HELP_VERSION] = TEXT(FN(hipRuntimeGetVersion, cudaRuntimeGetVersion)),
    [HELP_STUB_NAME] = TEXT(FN(hipKernelNameRefByPtr, cudaFuncGetName)),
    [HELP_FUNCTION_NAME] = TEXT(FN(hipKernelNameRef, cudaFuncGetName)),
};

/* --- the loaded objects ------------------------------------------------------------------------------------------------- */

struct search {
    const char *begins; /* with this the file's name; "" is any, behind our own */
    size_t skip;
    bool behind_us;
    uintptr_t at; /* or what holds this address */
    struct span span;
    char path[PATH_MAX];
};

static struct span span_of(const struct dl_phdr_info *object)
{
    struct span s = { 0, 0 };
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type != PT_LOAD)
            continue;
        if (!s.n)
            s.at = object->dlpi_addr + part->p_vaddr;
        s.n = object->dlpi_addr + part->p_vaddr + part->p_memsz - s.at;
    }
    return s;
}

static bool holds(struct span s, uintptr_t at)
{
    return at - s.at < s.n;
}

static const char *file_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_named(const char *path, const char *begins)
{
    return !strncmp(file_of(path), begins, strlen(begins));
}

static int pick(struct dl_phdr_info *object, size_t size, void *context)
{
    struct search *s = context;
    bool fits = is_named(object->dlpi_name, s->begins) && (s->begins[0] || s->behind_us);
    (void)size;
    s->behind_us = s->behind_us || holds(span_of(object), (uintptr_t)call_names);
    if (!fits || !object->dlpi_name[0] || strlen(object->dlpi_name) >= sizeof(s->path) || s->skip-- > 0)
        return 0;
    strcpy(s->path, object->dlpi_name);
    return 1;
}

static int pick_holder(struct dl_phdr_info *object, size_t size, void *context)
{
    struct search *s = context;
    (void)size;
    s->span = span_of(object);
    if (!holds(s->span, s->at))
        return 0;
    if (strlen(object->dlpi_name) < sizeof(s->path))
        strcpy(s->path, object->dlpi_name);
    return 1;
}

/* The program itself has no name, and is not asked: it would name us. */
static void *open_path(const char *path)
{
    return path[0] ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
}

/* --- runtimes ------------------------------------------------------------------------------------------------------------ */

/* The handle is kept: a GPU runtime is never closed.  Everything comes from one object, and what it does not have is not
 * looked for again. */
static bool fill(struct runtime *r, const char *path)
{
    void *handle = open_path(path);
    if (!handle || !dlsym(handle, call_names[0])) {
        if (handle)
            dlclose(handle);
        return false;
    }
    for (size_t i = 0; i < N_REAL; i++)
        r->found[i] = dlsym(handle, call_names[i]);
    snprintf(r->path, sizeof(r->path), "%s", path);
    return true;
}

static bool fill_by_name(struct runtime *r, const char *begins)
{
    for (size_t nth = 0;; nth++) {
        struct search s = { .begins = begins, .skip = nth };
        if (!dl_iterate_phdr(pick, &s))
            return false;
        if (fill(r, s.path))
            return true;
    }
}

/* A function that we do not stand before shows where the loader would have found them all.  Not in a tool that
 * stands before the runtime as we do: it may be the one that calls us. */
static bool fill_by_function(struct runtime *r, const void *function)
{
    struct search s = { .at = (uintptr_t)function };
    return function && dl_iterate_phdr(pick_holder, &s) && is_named(s.path, RUNTIME_FILE) && fill(r, s.path);
}

/* Every object has the runtime that is there for all, or else the one that it brought along: what came in as a dependency
 * of something that was opened with RTLD_LOCAL, as Python opens extensions, nobody else sees.  One of an unknown name is
 * looked for only behind us, since another copy of this library may be before. */
static bool fill_for(struct runtime *r, const char *caller)
{
    if (fill_by_function(r, dlsym(RTLD_DEFAULT, call_names[HELP_LAST_ERROR])))
        return true;
    void *handle = open_path(caller);
    bool brought = handle && fill_by_function(r, dlsym(handle, call_names[HELP_LAST_ERROR]));
    if (handle)
        dlclose(handle);
    if (brought)
        return true;
    if (n_runtimes > 0)
        *r = runtimes[0];
    return n_runtimes > 0 || fill_by_name(r, RUNTIME_FILE) || fill_by_name(r, "");
}

static const struct runtime *keep(const struct runtime *r, struct span caller)
{
    size_t i = 0, n = n_runtimes;
    while (i < n && runtimes[i].found[0] != r->found[0])
        i++;
    if (i == MOST_RUNTIMES)
        return &runtimes[0];
    if (i == n) {
        runtimes[n] = *r;
        n_runtimes = n + 1;
    }
    if (n_callers < MOST_CALLERS) {
        callers[n_callers].span = caller;
        callers[n_callers].runtime = &runtimes[i];
        n_callers++;
    }
    return &runtimes[i];
}

/* The loader is asked without our lock: its own may be held by somebody who waits for ours. */
static const struct runtime *find(uintptr_t at)
{
    struct search caller = { .at = at };
    struct runtime r;
    if (!dlopen || !dlsym || !dlclose || !dlerror)
        return NULL;
    state_own(true);
    if (!dl_iterate_phdr(pick_holder, &caller))
        caller.span = (struct span){ at & ~(uintptr_t)(PAGE - 1), PAGE };
    const struct runtime *found = NULL;
    if (fill_for(&r, caller.path)) {
        state_lock();
        found = keep(&r, caller.span);
        state_unlock();
    }
    dlerror(); /* ours, and nobody's business */
    state_own(false);
    return found;
}

const struct runtime *real_runtime(const void *caller)
{
    size_t n = atomic_load_explicit(&n_callers, memory_order_acquire);
    for (size_t i = 0; i < n; i++)
        if (holds(callers[i].span, (uintptr_t)caller))
            return callers[i].runtime;
    return n < MOST_CALLERS ? find((uintptr_t)caller) : &runtimes[0];
}

bool real_is_first(const struct runtime *r)
{
    return r == &runtimes[0];
}

void *real_in(const struct runtime *r, enum call c)
{
    return r->found[c];
}

void *real_get(enum call c)
{
    return runtimes[0].found[c];
}

const char *real_library(void)
{
    return runtimes[0].path;
}
