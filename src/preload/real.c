/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/preload.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

/* A program in a container may use an older glibc, whose loader refuses a library that needs newer symbol
 * versions. There these functions are in a separate library, which every process that opens others has. */
#if defined(__x86_64__) && defined(__GLIBC__)
__asm__(".symver dlopen, dlopen@GLIBC_2.2.5");
__asm__(".symver dlsym, dlsym@GLIBC_2.2.5");
__asm__(".symver dlclose, dlclose@GLIBC_2.2.5");
__asm__(".symver dlerror, dlerror@GLIBC_2.2.5");
__asm__(".symver dladdr, dladdr@GLIBC_2.2.5");
#endif
#pragma weak dlopen
#pragma weak dlsym
#pragma weak dlclose
#pragma weak dlerror
#pragma weak dladdr

enum { MOST_RUNTIMES = 8, MOST_OBJECTS = 256, MOST_PAGES = 256, PAGE_BITS = 12, PAGE = 1 << PAGE_BITS };

/* What is in it does not change: it is read without a lock. */
static struct runtime runtimes[MOST_RUNTIMES];
static _Atomic size_t n_runtimes;
static real_clock_fn *_Atomic clock_found;

/* A place that calls come from, and the runtime that they go to, in one word that is read without a lock: the
 * number of its first page, how many pages it has, which runtime. 0: none. */
enum { WHICH_BITS = 8, COUNT_BITS = 20, FIRST_BITS = 36 };
enum { GONE = 1 }; /* no pages; others may follow it */
static _Atomic uint64_t objects[MOST_OBJECTS];
/* Pages of no object, because the code was generated at run time, or of one whose end is unknown. */
static _Atomic uint64_t pages[MOST_PAGES];

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
    [HELP_STREAM_DEVICE] = TEXT(FN(hipStreamGetDevice, cudaStreamGetDevice)),
    [HELP_POOL] = TEXT(FN(hipDeviceGetMemPool, cudaDeviceGetMemPool)),
    [HELP_POOL_ATTRIBUTE] = TEXT(FN(hipMemPoolGetAttribute, cudaMemPoolGetAttribute)),
    [HELP_POOL_TRIM] = TEXT(FN(hipMemPoolTrimTo, cudaMemPoolTrimTo)),
};

/* --- the loaded objects -------------------------------------------------------------------------------- */

/* What the loader has put at an address. */
struct object {
    const char *path; /* "" for the program itself: it is not asked, since it would name us */
    uintptr_t at;
    size_t n; /* 0: not known */
};

/* Where the object begins and ends according to the file's own table, if that is in the first page: elsewhere
 * it need not be in memory. dl_iterate_phdr would show it too, but never returns in a child of fork if a
 * thread of the parent was in it. */
static bool object_at(const void *p, struct object *out)
{
    Dl_info info;
    if (!dladdr(p, &info))
        return false;
    const ElfW(Ehdr) *file = info.dli_fbase;
    if (strncmp((const char *)file->e_ident, ELFMAG, SELFMAG) != 0)
        return false;
    const ElfW(Phdr) *part = (const void *)((const char *)file + file->e_phoff);
    bool is_program = (uintptr_t)part == getauxval(AT_PHDR);
    *out = (struct object){ is_program || !info.dli_fname ? "" : info.dli_fname, (uintptr_t)file, 0 };
    uintptr_t first = UINTPTR_MAX;
    if (file->e_phoff > PAGE || file->e_phnum * sizeof(*part) > PAGE - file->e_phoff)
        return true;
    for (size_t i = 0; i < file->e_phnum; i++) {
        if (part[i].p_type != PT_LOAD)
            continue;
        if (first == UINTPTR_MAX)
            first = part[i].p_vaddr >> PAGE_BITS << PAGE_BITS;
        out->n = part[i].p_vaddr + part[i].p_memsz - first;
    }
    return true;
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

struct search {
    const char *begins; /* the file name, if given; "" is any, after our own */
    size_t skip;
    bool behind_us;
    char path[PATH_MAX];
};

static bool is_ours(const struct dl_phdr_info *object)
{
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_LOAD &&
            (uintptr_t)call_names - object->dlpi_addr - part->p_vaddr < part->p_memsz)
            return true;
    }
    return false;
}

static int pick(struct dl_phdr_info *object, size_t size, void *context)
{
    struct search *s = context;
    bool fits = is_named(object->dlpi_name, s->begins) && (s->begins[0] || s->behind_us);
    (void)size;
    s->behind_us = s->behind_us || is_ours(object);
    if (!fits || !object->dlpi_name[0] || strlen(object->dlpi_name) >= sizeof(s->path) || s->skip-- > 0)
        return 0;
    strcpy(s->path, object->dlpi_name);
    return 1;
}

static void *open_path(const char *path)
{
    return path[0] ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
}

/* --- runtimes ------------------------------------------------------------------------------------------ */

/* The handle is kept: a GPU runtime is never closed. Everything comes from one object, and what it does not
 * have is not looked for again. */
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

/* A function that we do not wrap shows where the loader would have found them all. Not in a tool that wraps
 * the runtime as we do: it may be our caller. */
static bool fill_by_function(struct runtime *r, const void *function)
{
    struct object o;
    return function && object_at(function, &o) && is_named(o.path, RUNTIME_FILE) && fill(r, o.path);
}

/* Every object uses the global runtime, or else the one that it bundles: a dependency of something opened
 * with RTLD_LOCAL, as Python opens extensions, is invisible to all others. One of an unknown name is searched
 * only after us, because another copy of this library may come before. */
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

/* --- callers ------------------------------------------------------------------------------------------- */

/* 0: it has no place in a word. */
static uint64_t word_of(uintptr_t at, size_t n, size_t which)
{
    uint64_t first = at >> PAGE_BITS, count = ((at + n - 1) >> PAGE_BITS) - first + 1;
    if (!n || first >> FIRST_BITS || count >> COUNT_BITS)
        return 0;
    return first << (COUNT_BITS + WHICH_BITS) | count << WHICH_BITS | which;
}

static uint64_t first_of(uint64_t word)
{
    return word >> (COUNT_BITS + WHICH_BITS);
}

static uint64_t count_of(uint64_t word)
{
    return word >> WHICH_BITS & ((1U << COUNT_BITS) - 1);
}

static const struct runtime *runtime_of(uint64_t word)
{
    return &runtimes[word & ((1U << WHICH_BITS) - 1)];
}

static bool holds(uint64_t word, uint64_t page)
{
    return page - first_of(word) < count_of(word);
}

static _Atomic uint64_t *place_of(uint64_t page)
{
    return &pages[page % MOST_PAGES];
}

/* Whoever was there before is no more. */
static void clear(_Atomic uint64_t *table, size_t n, uint64_t word)
{
    for (size_t i = 0; i < n; i++)
        if (holds(word, first_of(table[i])) || holds(table[i], first_of(word)))
            table[i] = GONE;
}

/* If the table is full, the oldest entry is dropped, and will be looked up again. */
static void keep_object(uint64_t word)
{
    static size_t oldest;
    size_t i = 0;
    if (!word)
        return;
    clear(objects, MOST_OBJECTS, word);
    clear(pages, MOST_PAGES, word);
    while (i < MOST_OBJECTS && objects[i] > GONE)
        i++;
    objects[i < MOST_OBJECTS ? i : oldest++ % MOST_OBJECTS] = word;
}

/* One runtime too many gets no calls: they go to the first. */
static size_t keep_runtime(const struct runtime *r)
{
    size_t i = 0, n = n_runtimes;
    while (i < n && runtimes[i].found[0] != r->found[0])
        i++;
    if (i < n || n == MOST_RUNTIMES)
        return i < n ? i : 0;
    runtimes[n] = *r;
    runtimes[n].is_first = n == 0;
    n_runtimes = n + 1;
    return n;
}

/* In libc the way to it leads through pages of libc and of the loader. */
static void find_clock(void)
{
    void *kernel = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (kernel)
        clock_found = (real_clock_fn *)dlsym(kernel, "__vdso_clock_gettime");
}

real_clock_fn *real_clock(void)
{
    return clock_found;
}

/* The loader is called without our lock: another thread may hold its lock and wait for ours. */
static COLD const struct runtime *find(const void *caller)
{
    struct object o = { "", 0, 0 };
    struct runtime r;
    if (!dlopen || !dlsym || !dlclose || !dlerror || !dladdr)
        return NULL;
    state_own(true);
    find_clock();
    object_at(caller, &o);
    const struct runtime *found = NULL;
    if (fill_for(&r, o.path)) {
        state_lock();
        size_t which = keep_runtime(&r);
        if (o.n)
            keep_object(word_of(o.at, o.n, which));
        else
            *place_of((uintptr_t)caller >> PAGE_BITS) = word_of((uintptr_t)caller, 1, which);
        found = &runtimes[which];
        state_unlock();
    }
    dlerror(); /* our own call; not reported */
    state_own(false);
    return found;
}

HOT const struct runtime *real_runtime(const void *caller)
{
    uint64_t page = (uintptr_t)caller >> PAGE_BITS, word;
    for (size_t i = 0; i < MOST_OBJECTS; i++) {
        word = atomic_load_explicit(&objects[i], memory_order_acquire);
        if (holds(word, page))
            return runtime_of(word);
        if (!word)
            break;
    }
    word = atomic_load_explicit(place_of(page), memory_order_acquire);
    return holds(word, page) ? runtime_of(word) : find(caller);
}

void *real_get(enum call c)
{
    return runtimes[0].found[c];
}

const char *real_library(void)
{
    return runtimes[0].path;
}
