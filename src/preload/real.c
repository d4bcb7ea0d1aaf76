/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/preload.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static _Atomic(void *) found[N_REAL];
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
    struct search s = { "" };
    if (!library[0])
        dl_iterate_phdr(is_runtime, &s);
    if (s.path[0])
        snprintf(library, sizeof(library), "%s", s.path);
    return library;
}

/* What came in as a dependency of something that was opened with RTLD_LOCAL, as Python opens extensions, is not among
 * the next ones; it has to be asked itself.  The handle is kept: a GPU runtime is never closed. */
static void *find(const char *name)
{
    void *f = dlsym(RTLD_NEXT, name);
    struct search s = { "" };
    if (f)
        return f;
    dl_iterate_phdr(is_runtime, &s);
    void *handle = s.path[0] ? dlopen(s.path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    f = handle ? dlsym(handle, name) : NULL;
    dlerror(); /* ours, and nobody's business */
    return f;
}

void *real_get(enum call c)
{
    void *f = atomic_load_explicit(&found[c], memory_order_acquire);
    if (f)
        return f;
    f = find(call_names[c]);
    atomic_store_explicit(&found[c], f, memory_order_release);
    return f;
}
