/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_PRELOAD_TORCH_H
#define CAIRN_TESTS_PRELOAD_TORCH_H

#include "fake_runtime.h"

#define TORCH_CALLS(X)                                                                              \
    X(int, hipMalloc, (void **, size_t))                                                            \
    X(int, hipMallocAsync, (void **, size_t, void *))                                               \
    X(int, hipMallocFromPoolAsync, (void **, size_t, void *, void *))                               \
    X(int, hipFreeAsync, (void *, void *))                                                          \
    X(int, hipDeviceGetMemPool, (void **, int))                                                     \
    X(int, hipMallocPitch, (void **, size_t *, size_t, size_t))                                     \
    X(int, hipMalloc3D, (struct pitched *, struct extent))                                          \
    X(int, hipMemRelease, (void *))                                                                 \
    X(int, hipModuleUnload, (void *))                                                               \
    X(int, hipMemCreate, (void **, size_t, const void *, unsigned long long))                       \
    X(int, hipMemAddressReserve, (void **, size_t, size_t, void *, unsigned long long))             \
    X(int, hipMemMap, (void *, size_t, size_t, void *, unsigned long long))                         \
    X(int, hipMemUnmap, (void *, size_t))                                                           \
    X(int, hipDeviceReset, (void))                                                                  \
    X(int, hipFree, (void *))                                                                       \
    X(int, hipHostMalloc, (void **, size_t, unsigned))                                              \
    X(int, hipHostFree, (void *))                                                                   \
    X(int, hipHostRegister, (void *, size_t, unsigned))                                             \
    X(int, hipHostUnregister, (void *))                                                             \
    X(int, hipMemcpy, (void *, const void *, size_t, int))                                          \
    X(int, hipMemcpyAsync, (void *, const void *, size_t, int, void *))                             \
    X(int, hipMemcpyWithStream, (void *, const void *, size_t, int, void *))                        \
    X(int, hipMemcpyHtoD, (void *, const void *, size_t))                                           \
    X(int, hipStreamDestroy, (void *))                                                              \
    X(int, hipStreamSynchronize, (void *))                                                          \
    X(int, hipStreamBeginCapture, (void *, int))                                                    \
    X(int, hipStreamBeginCaptureToGraph, (void *, void *, const void *, const void *, size_t, int)) \
    X(int, hipStreamEndCapture, (void *, void **))                                                  \
    X(int, hipMemGetInfo, (size_t *, size_t *))                                                     \
    X(int, hipDeviceTotalMem, (size_t *, int))                                                      \
    X(int, hipGetDeviceProperties, (void *, int))                                                   \
    X(int, hipGetDevicePropertiesR0600, (void *, int))                                              \
    X(int, hipGetLastError, (void))                                                                 \
    X(int, hipLaunchKernel, (const void *, struct size3, struct size3, void **, size_t, void *))    \
    X(size_t, fake_pinned_for_copy, (void))                                                         \
    X(void, fake_pin_quietly, (void *, size_t))                                                     \
    X(int, hipSetDevice, (int))                                                                     \
    X(void, fake_break_stream, (void *, int))                                                       \
    X(void, fake_stick_soon, (void *))                                                              \
    X(void, fake_capture_soon, (void *))

struct torch {
#define AS_FIELD(type, name, params) type(*name) params;
    TORCH_CALLS(AS_FIELD)
    int (*copy_some)(void); /* a few calls that the library makes itself */
    int (*call_once)(void);
};

#endif
