/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/preload.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

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
    char path[512];
};

static int is_runtime(struct dl_phdr_info *object, size_t size, void *context)
{
    struct search *s = context;
    const char *slash = strrchr(object->dlpi_name, '/');
    const char *file = slash ? slash + 1 : object->dlpi_name;
    (void)size;
    if (strncmp(file, RUNTIME_FILE, strlen(RUNTIME_FILE)) || strlen(object->dlpi_name) >= sizeof(s->path))
        return 0;
    strcpy(s->path, object->dlpi_name);
    return 1;
}

const char *real_library(void)
{
    return library;
}

/* What came in as a dependency of something that was opened with RTLD_LOCAL, as Python opens extensions, is not among
 * the next ones; it has to be asked itself.  The handle is kept: a GPU runtime is never closed.  Everything comes from
 * one object, and what it does not have is not looked for again. */
static void find_all(void)
{
    struct search s = { "" };
    dl_iterate_phdr(is_runtime, &s);
    void *handle = s.path[0] ? dlopen(s.path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (handle)
        snprintf(library, sizeof(library), "%s", s.path);
    bool has_next = !handle && dlsym(RTLD_NEXT, call_names[0]);
    for (size_t i = 0; (handle || has_next) && i < N_REAL; i++)
        atomic_store_explicit(&found[i], dlsym(handle ? handle : RTLD_NEXT, call_names[i]),
                              memory_order_relaxed);
    dlerror(); /* ours, and nobody's business */
    if (handle || has_next)
        atomic_store_explicit(&looked, true, memory_order_release);
}

void *real_get(enum call c)
{
    if (!atomic_load_explicit(&looked, memory_order_acquire))
        find_all();
    return atomic_load_explicit(&found[c], memory_order_relaxed);
}
