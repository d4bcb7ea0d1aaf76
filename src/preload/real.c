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

static _Atomic(void *) found[N_REAL];
static _Atomic bool looked; /* and a runtime was there */
static char library[256];

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
    [HELP_VERSION] = TEXT(FN(hipRuntimeGetVersion, cudaRuntimeGetVersion)),
    [HELP_STUB_NAME] = TEXT(FN(hipKernelNameRefByPtr, cudaFuncGetName)),
    [HELP_FUNCTION_NAME] = TEXT(FN(hipKernelNameRef, cudaFuncGetName)),
};

struct search {
    const char *begins; /* with this the file's name; "" is any, behind our own */
    size_t skip;
    bool behind_us;
    char path[PATH_MAX];
};

static bool holds(const struct dl_phdr_info *object, uintptr_t at)
{
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && at - (object->dlpi_addr + part->p_vaddr) < part->p_memsz)
            return true;
    }
    return false;
}

static int pick(struct dl_phdr_info *object, size_t size, void *context)
{
    struct search *s = context;
    const char *slash = strrchr(object->dlpi_name, '/');
    const char *file = slash ? slash + 1 : object->dlpi_name;
    bool fits = !strncmp(file, s->begins, strlen(s->begins)) && (s->begins[0] || s->behind_us);
    (void)size;
    s->behind_us = s->behind_us || holds(object, (uintptr_t)call_names);
    if (!fits || !*file || strlen(object->dlpi_name) >= sizeof(s->path) || s->skip-- > 0)
        return 0;
    strcpy(s->path, object->dlpi_name);
    return 1;
}

const char *real_library(void)
{
    return library;
}

/* What came in as a dependency of something that was opened with RTLD_LOCAL, as Python opens extensions, is not among
 * the next ones; it has to be asked itself. */
static void *open_runtime(const char *begins)
{
    for (size_t nth = 0;; nth++) {
        struct search s = { .begins = begins, .skip = nth };
        if (!dl_iterate_phdr(pick, &s))
            return NULL;
        void *handle = dlopen(s.path, RTLD_LAZY | RTLD_NOLOAD);
        if (handle && dlsym(handle, call_names[0])) {
            snprintf(library, sizeof(library), "%s", s.path);
            return handle;
        }
        if (handle)
            dlclose(handle);
    }
}

/* The handle is kept: a GPU runtime is never closed.  Everything comes from one object, and what it does not have is not
 * looked for again.  One of an unknown name is looked for only behind us: another copy of this library may be before. */
static void find_all(void)
{
    if (!dlopen || !dlsym || !dlclose || !dlerror)
        return;
    void *handle = open_runtime(RUNTIME_FILE);
    if (!handle)
        handle = open_runtime("");
    for (size_t i = 0; handle && i < N_REAL; i++)
        atomic_store_explicit(&found[i], dlsym(handle, call_names[i]), memory_order_relaxed);
    dlerror(); /* ours, and nobody's business */
    if (handle)
        atomic_store_explicit(&looked, true, memory_order_release);
}

void *real_get(enum call c)
{
    if (!atomic_load_explicit(&looked, memory_order_acquire))
        find_all();
    return atomic_load_explicit(&found[c], memory_order_relaxed);
}
