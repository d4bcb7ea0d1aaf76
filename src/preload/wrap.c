/* SPDX-License-Identifier: Apache-2.0
 * The functions of calls.def, as others see them. */
#include "preload/preload.h"

#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct size3 {
    uint32_t x, y, z;
};

struct extent {
    size_t width, height, depth;
};
struct pitched {
    void *at;
    size_t pitch, width, height;
};

static size_t box(size_t width, size_t height, size_t depth)
{
    return width * height * depth;
}

static uint64_t volume(struct size3 a, struct size3 b)
{
    return (uint64_t)a.x * a.y * a.z * b.x * b.y * b.z;
}

/* Inside a function: the real one, looked up meanwhile, or the answer of a process that has none; and our
 * configuration. */
#define ENTER(id, params)                                                          \
    const struct runtime *runtime = real_runtime(__builtin_return_address(0));     \
    int(*real) params = runtime ? (int(*) params)runtime->found[CALL_##id] : NULL; \
    if (!real)                                                                     \
        return runtime ? GPU_NOT_SUPPORTED : GPU_NOT_INITIALIZED;                  \
    __builtin_prefetch((void *)real);                                              \
    const struct told *told = runtime->is_first ? state_enter() : NULL
/* Makes the call, and writes it down. */
#define RECORDED(id, size, detail, call)                                                    \
    struct seen seen = told ? recorder_begin(CALL_##id, size, detail) : (struct seen){ 0 }; \
    state_thread.inside++;                                                                  \
    int code = call;                                                                        \
    state_thread.inside--;                                                                  \
    recorder_end(seen, code)

#define BODY(id, name, params, args, size)            \
    EXPORT int name params;                           \
    EXPORT int name params                            \
    {                                                 \
        ENTER(id, params);                            \
        RECORDED(id, (uint64_t)(size), 0, real args); \
        return code;                                  \
    }
#define OWN(hip, cuda)
#define HIP_OWN(hip)
#define CUDA_OWN(cuda)
#define PASS(hip, cuda, params, args, size) BODY(hip, FN(hip, cuda), params, args, size)
#define HIP_PASS(hip, params, args, size) IF_HIP(BODY(hip, hip, params, args, size))
#include "preload/calls.def"

/* --- memory that is allocated and freed ----------------------------------------------------------------- */

static bool guards(const struct told *t, void **p)
{
    /* A GPU without a configured budget has memory of its own. */
    return p && t && t->switches & SWITCH_GUARD && t->budget_bytes;
}

static bool tracks(const struct told *t)
{
    return t && t->switches & (SWITCH_STAGE | SWITCH_RETRY | SWITCH_MEMORY);
}

static const size_t impossible = (size_t)1 << 60;

static struct memory_pool no_pool(void)
{
    return (struct memory_pool){ 0 };
}

static struct memory_pool pool_for(void *pool, void *stream)
{
    return (struct memory_pool){ .is_one = true, .pool = pool, .stream = stream };
}

static bool refuses(const struct told *t, size_t n, void **p, struct memory_pool *pool)
{
    if (!guards(t, p) || !memory_refuses(t, n) || memory_pool_lends(pool, n))
        return false;
    recorder_counts()->refused++;
    recorder_counts()->refused_bytes += n;
    return true;
}

/* The runtime was asked for an impossible size, so that hipGetLastError reports it; whatever it returned,
 * this is our result. A caller that ignores the code gets no address, as from the runtime. */
static int refusal(int code, void **p)
{
    (void)code;
    *p = NULL;
    return GPU_OUT_OF_MEMORY;
}

static void took(const struct told *t, size_t n, void **p, const struct memory_pool *pool)
{
    if (guards(t, p))
        memory_returned(n);
    memory_pool_settle(pool);
    memory_changed();
}

/* n: bytes, as far as known before; p: where the result goes; got: bytes, afterwards; from: a pool; too_much:
 * makes the arguments impossible. */
#define TAKE_SOME(id, name, params, args, n, p, got, kind, guarded, from, too_much) \
    EXPORT int name params;                                                         \
    EXPORT int name params                                                          \
    {                                                                               \
        ENTER(id, params);                                                          \
        const size_t wanted = n;                                                    \
        struct memory_pool pool_asked = from;                                       \
        bool refused = (guarded) && refuses(told, wanted, p, &pool_asked);          \
        if (refused)                                                                \
            too_much;                                                               \
        RECORDED(id, wanted, refused ? RECORD_REFUSED : 0,                          \
                 refused ? refusal(real args, (void **)(p)) : real args);           \
        if ((guarded) && !refused)                                                  \
            took(told, wanted, p, &pool_asked);                                     \
        if (!code && tracks(told))                                                  \
            ranges_add(kind, *(void *const *)(p), got);                             \
        return code;                                                                \
    }
#define TAKE(id, name, params, args, p, kind, guarded) \
    TAKE_SOME(id, name, params, args, n, p, n, kind, guarded, no_pool(), n = impossible)
#define TAKE_FROM(id, name, params, args, from) \
    TAKE_SOME(id, name, params, args, n, p, n, RANGE_DEVICE, true, from, n = impossible)
/* Forgotten before it is gone: another thread may be given the same place at once. */
#define GIVE(id, name, params, args, p, kind) \
    EXPORT int name params;                   \
    EXPORT int name params                    \
    {                                         \
        ENTER(id, params);                    \
        struct range_gone gone = { kind, 0 }; \
        if (tracks(told))                     \
            gone = ranges_remove(kind, p);    \
        RECORDED(id, 0, 0, real args);        \
        if (tracks(told))                     \
            ranges_freed(p, gone, code);      \
        memory_changed();                     \
        return code;                          \
    }

TAKE(hipMalloc, FN(hipMalloc, cudaMalloc), (void **p, size_t n), (p, n), p, RANGE_DEVICE, true)
TAKE_FROM(hipMallocAsync, FN(hipMallocAsync, cudaMallocAsync), (void **p, size_t n, void *stream),
          (p, n, stream), pool_for(NULL, stream))
TAKE_FROM(hipMallocFromPoolAsync, FN(hipMallocFromPoolAsync, cudaMallocFromPoolAsync),
          (void **p, size_t n, void *pool, void *stream), (p, n, pool, stream), pool_for(pool, stream))
/* A row may be longer than was asked for. */
TAKE_SOME(hipMallocPitch, FN(hipMallocPitch, cudaMallocPitch),
          (void **p, size_t *pitch, size_t width, size_t height), (p, pitch, width, height),
          box(width, height, 1), p, box(*pitch, height, 1), RANGE_DEVICE, true, no_pool(),
          width = impossible / height)
TAKE_SOME(hipMalloc3D, FN(hipMalloc3D, cudaMalloc3D), (struct pitched * p, struct extent e), (p, e),
          box(e.width, e.height, e.depth), (void **)p, box(p->pitch, e.height, e.depth), RANGE_DEVICE, true,
          no_pool(), e.width = impossible / e.height / e.depth)
/* The host may read it, but the GPU may have written it. */
TAKE(hipMallocManaged, FN(hipMallocManaged, cudaMallocManaged), (void **p, size_t n, unsigned flags),
     (p, n, flags), p, RANGE_DEVICE, true)
TAKE(hipHostMalloc, FN(hipHostMalloc, cudaHostAlloc), (void **p, size_t n, unsigned flags), (p, n, flags), p,
     RANGE_PINNED, false)
TAKE(hipMallocHost, FN(hipMallocHost, cudaMallocHost), (void **p, size_t n), (p, n), p, RANGE_PINNED, false)
TAKE(hipHostRegister, FN(hipHostRegister, cudaHostRegister), (void *p, size_t n, unsigned flags),
     (p, n, flags), &p, RANGE_PINNED, false)
GIVE(hipFree, FN(hipFree, cudaFree), (void *p), (p), p, RANGE_DEVICE)
GIVE(hipFreeAsync, FN(hipFreeAsync, cudaFreeAsync), (void *p, void *stream), (p, stream), p, RANGE_DEVICE)
GIVE(hipHostFree, FN(hipHostFree, cudaFreeHost), (void *p), (p), p, RANGE_PINNED)
GIVE(hipHostUnregister, FN(hipHostUnregister, cudaHostUnregister), (void *p), (p), p, RANGE_PINNED)
#ifndef PRELOAD_CUDA
TAKE(hipExtMallocWithFlags, hipExtMallocWithFlags, (void **p, size_t n, unsigned flags), (p, n, flags), p,
     RANGE_DEVICE, true)
TAKE(hipHostAlloc, hipHostAlloc, (void **p, size_t n, unsigned flags), (p, n, flags), p, RANGE_PINNED, false)
TAKE(hipMemAllocHost, hipMemAllocHost, (void **p, size_t n), (p, n), p, RANGE_PINNED, false)
TAKE(hipExtHostAlloc, hipExtHostAlloc, (void **p, size_t n, unsigned flags), (p, n, flags), p, RANGE_PINNED,
     false)
GIVE(hipFreeHost, hipFreeHost, (void *p), (p), p, RANGE_PINNED)
TAKE(hipMemCreate, hipMemCreate, (void **h, size_t n, const void *where, unsigned long long flags),
     (h, n, where, flags), h, RANGE_HANDLE, true)

EXPORT int hipMemRelease(void *h);
EXPORT int hipMemRelease(void *h)
{
    ENTER(hipMemRelease, (void *));
    if (tracks(told))
        ranges_release(h);
    RECORDED(hipMemRelease, 0, 0, real(h));
    memory_changed();
    return code;
}

EXPORT int hipMemMap(void *p, size_t n, size_t at, void *h, unsigned long long flags);
EXPORT int hipMemMap(void *p, size_t n, size_t at, void *h, unsigned long long flags)
{
    ENTER(hipMemMap, (void *, size_t, size_t, void *, unsigned long long));
    RECORDED(hipMemMap, n, 0, real(p, n, at, h, flags));
    if (!code && tracks(told))
        ranges_map(p, n, h);
    return code;
}

EXPORT int hipMemUnmap(void *p, size_t n);
EXPORT int hipMemUnmap(void *p, size_t n)
{
    ENTER(hipMemUnmap, (void *, size_t));
    if (tracks(told))
        ranges_unmap(p, n);
    RECORDED(hipMemUnmap, n, 0, real(p, n));
    memory_changed();
    return code;
}
#endif

EXPORT int FN(hipDeviceReset, cudaDeviceReset)(void);
EXPORT int FN(hipDeviceReset, cudaDeviceReset)(void)
{
    ENTER(hipDeviceReset, (void));
    if (told) {
        copy_reset();
        ranges_reset();
    }
    RECORDED(hipDeviceReset, 0, 0, real());
    memory_changed();
    return code;
}

/* --- copies -------------------------------------------------------------------------------------------- */

#define COPY(id, name, params, in_shape, in_kind, in_stream)   \
    EXPORT int name params;                                    \
    EXPORT int name params                                     \
    {                                                          \
        ENTER(id, params);                                     \
        const struct copy c = { .shape = in_shape,             \
                                .real = (void *)real,          \
                                .to = to,                      \
                                .from = from,                  \
                                .n = n,                        \
                                .kind = in_kind,               \
                                .stream = in_stream };         \
        RECORDED(id, n, (unsigned)c.kind, copy_run(&c, told)); \
        return code;                                           \
    }
COPY(hipMemcpy, FN(hipMemcpy, cudaMemcpy), (void *to, const void *from, size_t n, int kind), COPY_KIND, kind,
     NULL)
COPY(hipMemcpyAsync, FN(hipMemcpyAsync, cudaMemcpyAsync),
     (void *to, const void *from, size_t n, int kind, void *stream), COPY_KIND_STREAM, kind, stream)
#ifndef PRELOAD_CUDA
COPY(hipMemcpyWithStream, hipMemcpyWithStream, (void *to, const void *from, size_t n, int kind, void *stream),
     COPY_KIND_STREAM, kind, stream)
COPY(hipMemcpyHtoD, hipMemcpyHtoD, (void *to, const void *from, size_t n), COPY_PLAIN, COPY_TO_DEVICE, NULL)
COPY(hipMemcpyHtoDAsync, hipMemcpyHtoDAsync, (void *to, const void *from, size_t n, void *stream),
     COPY_STREAM, COPY_TO_DEVICE, stream)
#endif

/* --- what the runtime reports about memory ------------------------------------------------------------- */

static bool tells(const struct told *t, int code)
{
    return !code && t && t->switches & SWITCH_MEMORY && t->budget_bytes;
}

EXPORT int FN(hipMemGetInfo, cudaMemGetInfo)(size_t *free_bytes, size_t *total);
EXPORT int FN(hipMemGetInfo, cudaMemGetInfo)(size_t *free_bytes, size_t *total)
{
    ENTER(hipMemGetInfo, (size_t *, size_t *));
    RECORDED(hipMemGetInfo, 0, 0, real(free_bytes, total));
    if (tells(told, code))
        memory_report(told, free_bytes, total);
    return code;
}

/* The field is at the same offset in every version of a layout. */
#define PROPERTIES(id, name, at)                                                      \
    EXPORT int name(void *properties, int device);                                    \
    EXPORT int name(void *properties, int device)                                     \
    {                                                                                 \
        ENTER(id, (void *, int));                                                     \
        RECORDED(id, 0, 0, real(properties, device));                                 \
        if (tells(told, code) && properties)                                          \
            memory_report(told, NULL, (size_t *)(void *)((char *)properties + (at))); \
        return code;                                                                  \
    }
PROPERTIES(hipGetDeviceProperties, FN(hipGetDeviceProperties, cudaGetDeviceProperties), FN(256, 288))
#ifdef PRELOAD_CUDA
PROPERTIES(cudaGetDeviceProperties_v2, cudaGetDeviceProperties_v2, 288)
#else
PROPERTIES(hipGetDevicePropertiesR0600, hipGetDevicePropertiesR0600, 288)
PROPERTIES(hipDeviceTotalMem, hipDeviceTotalMem, 0)
#endif

/* --- kernels ------------------------------------------------------------------------------------------- */

#ifdef PRELOAD_CUDA
static const char *name_by_stub(const void *stub)
{
    int (*ask)(const char **, const void *) = (int (*)(const char **, const void *))real_get(HELP_STUB_NAME);
    const char *name = NULL;
    return ask && !ask(&name, stub) ? name : NULL;
}
#else
static const char *name_by_stub(const void *stub)
{
    const char *(*ask)(const void *, void *) =
        (const char *(*)(const void *, void *))real_get(HELP_STUB_NAME);
    return ask ? ask(stub, NULL) : NULL;
}

static const char *name_by_function(const void *function)
{
    const char *(*ask)(const void *) = (const char *(*)(const void *))real_get(HELP_FUNCTION_NAME);
    return ask ? ask(function) : NULL;
}
#endif

#define LAUNCH(id, name, params, args, threads, function, by)                       \
    EXPORT HOT int name params;                                                     \
    EXPORT int name params                                                          \
    {                                                                               \
        ENTER(id, params);                                                          \
        RECORDED(id, threads, told ? recorder_kernel(function, by) : 0, real args); \
        return code;                                                                \
    }
LAUNCH(hipLaunchKernel, FN(hipLaunchKernel, cudaLaunchKernel),
       (const void *f, struct size3 grid, struct size3 block, void **a, size_t shared, void *stream),
       (f, grid, block, a, shared, stream), volume(grid, block), f, name_by_stub)
LAUNCH(hipLaunchCooperativeKernel, FN(hipLaunchCooperativeKernel, cudaLaunchCooperativeKernel),
       (const void *f, struct size3 grid, struct size3 block, void **a, FN(unsigned, size_t) shared,
        void *stream),
       (f, grid, block, a, shared, stream), volume(grid, block), f, name_by_stub)
/* A configuration begins with its two sizes. */
LAUNCH(hipLaunchKernelExC, FN(hipLaunchKernelExC, cudaLaunchKernelExC),
       (const struct size3 *config, const void *f, void **a), (config, f, a),
       config ? volume(config[0], config[1]) : 0, f, name_by_stub)
#ifdef PRELOAD_CUDA
/* What the compiler of CUDA 13 calls. */
LAUNCH(__cudaLaunchKernel, __cudaLaunchKernel,
       (const void *f, struct size3 grid, struct size3 block, void **a, size_t shared, void *stream),
       (f, grid, block, a, shared, stream), volume(grid, block), f, name_by_stub)
#else
LAUNCH(hipExtLaunchKernel, hipExtLaunchKernel,
       (const void *f, struct size3 grid, struct size3 block, void **a, size_t shared, void *stream,
        void *begin, void *end, int flags),
       (f, grid, block, a, shared, stream, begin, end, flags), volume(grid, block), f, name_by_stub)
LAUNCH(hipModuleLaunchKernel, hipModuleLaunchKernel,
       (void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
        unsigned shared, void *stream, void **a, void **extra),
       (f, gx, gy, gz, bx, by, bz, shared, stream, a, extra),
       volume((struct size3){ gx, gy, gz }, (struct size3){ bx, by, bz }), f, name_by_function)
LAUNCH(hipExtModuleLaunchKernel, hipExtModuleLaunchKernel,
       (void *f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz, size_t shared,
        void *stream, void **a, void **extra, void *begin, void *end, uint32_t flags),
       (f, gx, gy, gz, bx, by, bz, shared, stream, a, extra, begin, end, flags),
       volume((struct size3){ gx, gy, gz }, (struct size3){ 1, 1, 1 }), f, name_by_function)

EXPORT int hipModuleUnload(void *module);
EXPORT int hipModuleUnload(void *module)
{
    ENTER(hipModuleUnload, (void *));
    recorder_forget_kernels();
    RECORDED(hipModuleUnload, 0, 0, real(module));
    return code;
}
#endif

/* --- captures ------------------------------------------------------------------------------------------ */

/* Known before it begins: another thread must not see a moment between. */
#define BEGIN_CAPTURE(id, name, params, args) \
    EXPORT int name params;                   \
    EXPORT int name params                    \
    {                                         \
        ENTER(id, params);                    \
        copy_capture_begins(stream);          \
        RECORDED(id, 0, 0, real args);        \
        if (code)                             \
            copy_capture_ends(stream);        \
        return code;                          \
    }
BEGIN_CAPTURE(hipStreamBeginCapture, FN(hipStreamBeginCapture, cudaStreamBeginCapture),
              (void *stream, int mode), (stream, mode))
BEGIN_CAPTURE(hipStreamBeginCaptureToGraph, FN(hipStreamBeginCaptureToGraph, cudaStreamBeginCaptureToGraph),
              (void *stream, void *graph, const void *after, const void *edges, size_t n, int mode),
              (stream, graph, after, edges, n, mode))

EXPORT int FN(hipStreamEndCapture, cudaStreamEndCapture)(void *stream, void **graph);
EXPORT int FN(hipStreamEndCapture, cudaStreamEndCapture)(void *stream, void **graph)
{
    ENTER(hipStreamEndCapture, (void *, void **));
    RECORDED(hipStreamEndCapture, 0, 0, real(stream, graph));
    copy_capture_ends(stream);
    return code;
}

/* A capture is gone with its stream. */
EXPORT int FN(hipStreamDestroy, cudaStreamDestroy)(void *stream);
EXPORT int FN(hipStreamDestroy, cudaStreamDestroy)(void *stream)
{
    ENTER(hipStreamDestroy, (void *));
    bool ended = copy_capture_ends(stream);
    RECORDED(hipStreamDestroy, 0, 0, real(stream));
    if (code && ended)
        copy_capture_begins(stream);
    return code;
}
