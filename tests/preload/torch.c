/* SPDX-License-Identifier: Apache-2.0
 * What stands for PyTorch: a library that needs the runtime, opened by a program that does not know it. */
#include "torch.h"

int hipMalloc(void **p, size_t n);
int hipMallocAsync(void **p, size_t n, void *stream);
int hipMallocFromPoolAsync(void **p, size_t n, void *pool, void *stream);
int hipFreeAsync(void *p, void *stream);
int hipDeviceGetMemPool(void **pool, int device);
int hipMallocPitch(void **p, size_t *pitch, size_t width, size_t height);
int hipMalloc3D(struct pitched *p, struct extent size);
int hipMemRelease(void *h);
int hipModuleUnload(void *module);
int hipMemCreate(void **h, size_t n, const void *where, unsigned long long flags);
int hipMemAddressReserve(void **p, size_t n, size_t align, void *wanted, unsigned long long flags);
int hipMemMap(void *p, size_t n, size_t at, void *h, unsigned long long flags);
int hipMemUnmap(void *p, size_t n);
int hipDeviceReset(void);
int hipFree(void *p);
int hipHostMalloc(void **p, size_t n, unsigned flags);
int hipHostFree(void *p);
int hipHostRegister(void *p, size_t n, unsigned flags);
int hipHostUnregister(void *p);
int hipMemcpy(void *to, const void *from, size_t n, int kind);
int hipMemcpyAsync(void *to, const void *from, size_t n, int kind, void *stream);
int hipMemcpyWithStream(void *to, const void *from, size_t n, int kind, void *stream);
int hipMemcpyHtoD(void *to, const void *from, size_t n);
int hipStreamDestroy(void *stream);
int hipStreamSynchronize(void *stream);
int hipStreamBeginCapture(void *stream, int mode);
int hipStreamBeginCaptureToGraph(void *stream, void *graph, const void *after, const void *edges, size_t n,
                                 int mode);
int hipStreamEndCapture(void *stream, void **graph);
int hipMemGetInfo(size_t *free_bytes, size_t *total);
int hipDeviceTotalMem(size_t *total, int device);
int hipGetDeviceProperties(void *p, int device);
int hipGetDevicePropertiesR0600(void *p, int device);
int hipGetLastError(void);
int hipSetDevice(int device);
int hipLaunchKernel(const void *f, struct size3 grid, struct size3 block, void **a, size_t shared,
                    void *stream);

static int copy_some(void)
{
    static char source[2 << 20];
    void *p = NULL;
    int code = hipMalloc(&p, sizeof(source));
    code = code ? code : hipMemcpy(p, source, sizeof(source), H2D);
    int freed = hipFree(p);
    return code ? code : freed;
}

/* Not at its very end, from where the call would seem to be somebody else's. */
static int call_once(void)
{
    int code = hipStreamSynchronize(NULL);
    __asm__ volatile("");
    return code;
}

__attribute__((visibility("default"))) const struct torch torch = {
#define AS_ROW(type, name, params) .name = name,
    TORCH_CALLS(AS_ROW).copy_some = copy_some,
    .call_once = call_once,
};
