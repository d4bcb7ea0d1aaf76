/* SPDX-License-Identifier: Apache-2.0
 * The functions of a GPU runtime that cairn calls.  HIP and the CUDA driver mirror each other: one list
 * serves both, with the names in each.  tests/gpu checks the HIP prototypes against the real headers. */
#ifndef CAIRN_GPU_DEVICE_API_H
#define CAIRN_GPU_DEVICE_API_H

#include "gpu/backend.h"
#include "gpu/dl.h"

/* X(field, HIP's name, CUDA's name, arguments) Handles are void *: HIP's and CUDA's device addresses,
 * streams, events, modules and functions are as wide. */
#define DEVICE_SYMBOLS(X)                                                                             \
    X(init, hipInit, cuInit, (unsigned))                                                              \
    X(driver_version, hipDriverGetVersion, cuDriverGetVersion, (int *))                               \
    X(device_count, hipGetDeviceCount, cuDeviceGetCount, (int *))                                     \
    X(device_name, hipDeviceGetName, cuDeviceGetName, (char *, int, int))                             \
    X(device_attribute, hipDeviceGetAttribute, cuDeviceGetAttribute, (int *, int, int))               \
    X(device_pci, hipDeviceGetPCIBusId, cuDeviceGetPCIBusId, (char *, int, int))                      \
    X(device_total, hipDeviceTotalMem, cuDeviceTotalMem_v2, (size_t *, int))                          \
    X(memory_info, hipMemGetInfo, cuMemGetInfo_v2, (size_t *, size_t *))                              \
    X(alloc, hipMalloc, cuMemAlloc_v2, (void **, size_t))                                             \
    X(free, hipFree, cuMemFree_v2, (void *))                                                          \
    X(host_alloc, hipHostMalloc, cuMemHostAlloc, (void **, size_t, unsigned))                         \
    X(host_free, hipHostFree, cuMemFreeHost, (void *))                                                \
    X(copy_up, hipMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, (void *, void *, size_t, void *))            \
    X(copy_down, hipMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, (void *, void *, size_t, void *))          \
    X(copy_within, hipMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, (void *, void *, size_t, void *))        \
    X(set_bytes, hipMemsetD8Async, cuMemsetD8Async, (void *, unsigned char, size_t, void *))          \
    X(stream_create, hipStreamCreateWithFlags, cuStreamCreate, (void **, unsigned))                   \
    X(stream_destroy, hipStreamDestroy, cuStreamDestroy_v2, (void *))                                 \
    X(stream_wait, hipStreamSynchronize, cuStreamSynchronize, (void *))                               \
    X(stream_query, hipStreamQuery, cuStreamQuery, (void *))                                          \
    X(stream_wait_event, hipStreamWaitEvent, cuStreamWaitEvent, (void *, void *, unsigned))           \
    X(event_create, hipEventCreateWithFlags, cuEventCreate, (void **, unsigned))                      \
    X(event_destroy, hipEventDestroy, cuEventDestroy_v2, (void *))                                    \
    X(event_record, hipEventRecord, cuEventRecord, (void *, void *))                                  \
    X(event_elapsed, hipEventElapsedTime, cuEventElapsedTime, (float *, void *, void *))              \
    X(module_load, hipModuleLoadData, cuModuleLoadData, (void **, const void *))                      \
    X(module_unload, hipModuleUnload, cuModuleUnload, (void *))                                       \
    X(module_function, hipModuleGetFunction, cuModuleGetFunction, (void **, void *, const char *))    \
    X(launch, hipModuleLaunchKernel, cuLaunchKernel,                                                  \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, \
       void **))

/* Optional: older libraries lack them. */
#define DEVICE_GRAPH_SYMBOLS(X)                                                     \
    X(capture_begin, hipStreamBeginCapture, cuStreamBeginCapture_v2, (void *, int)) \
    X(capture_end, hipStreamEndCapture, cuStreamEndCapture, (void *, void **))      \
    X(graph_make, hipGraphInstantiateWithFlags, cuGraphInstantiateWithFlags,        \
      (void **, void *, unsigned long long))                                        \
    X(graph_launch, hipGraphLaunch, cuGraphLaunch, (void *, void *))                \
    X(graph_destroy, hipGraphDestroy, cuGraphDestroy, (void *))                     \
    X(graph_end, hipGraphExecDestroy, cuGraphExecDestroy, (void *))

struct device_api {
#define AS_FIELD(field, hip, cuda, args) int(*field) args;
    DEVICE_SYMBOLS(AS_FIELD)
    DEVICE_GRAPH_SYMBOLS(AS_FIELD)
#undef AS_FIELD
    /* Where the two differ. */
    int (*bind)(struct gpu *g, struct cairn_error *err); /* makes the device current in this thread */
    void (*unbind)(struct gpu *g);                       /* ends what the first bind began */
    const char *(*error_name)(int code);                 /* "hipErrorInvalidValue" */
    /* Lets a kernel be launched with more shared memory than usual; only for chips that have kernels of their own. */
    int (*allow_shared)(void *function, unsigned bytes);
    int (*describe)(struct gpu_info *info, struct cairn_error *err); /* arch and versions */
    const struct device_codes *codes;
    const char *prefix; /* "hip" */
    char library[256];
    char source[128], passed_over[512]; /* as in struct gpu_info */
};

/* Numbers that the two runtimes give different meanings. */
struct device_codes {
    int no_memory;
    int none[3];              /* answers of init and count that mean "no device"; 0 ends */
    int lost[16];             /* answers after which the device is of no use; 0 ends */
    int gone[4];              /* of those: the driver, or the device in it, is no more */
    int bad_memory;           /* of those: an error in the device's memory */
    int not_ready;            /* a stream's answer while it works */
    int units, wave, unified; /* attributes */
};

/* The three functions a vendor's backend has of its own; the rest is shared. */
int device_list(struct device_api *api, enum gpu_api kind, struct arena *a, struct gpu_info **infos,
                size_t *n, struct cairn_error *err);
int device_open(struct gpu *g, struct device_api *api, struct cairn_error *err);
int device_fail(struct gpu *g, const struct device_api *api, int code, const char *what,
                struct cairn_error *err);

/* The runtime's own handle of a stream, for libraries that stand on it. */
void *device_queue(struct gpu *g, struct gpu_stream *s);

#define DEVICE_BACKEND                                                                                       \
    .close = device_close, .memory = device_memory, .alloc = device_alloc, .free = device_free,              \
    .stream_open = device_stream_open, .stream_close = device_stream_close, .wait = device_wait,             \
    .event_open = device_event_open, .event_close = device_event_close, .event_record = device_event_record, \
    .event_wait = device_event_wait, .event_ms = device_event_ms, .copy = device_copy,                       \
    .clear = device_clear, .kernel = device_kernel, .launch = device_launch,                                 \
    .graph_begin = device_graph_begin, .graph_end = device_graph_end, .graph_launch = device_graph_launch,   \
    .graph_close = device_graph_close

void device_close(struct gpu *g);
int device_memory(struct gpu *g, uint64_t *free_bytes, uint64_t *total_bytes, struct cairn_error *err);
int device_alloc(struct gpu *g, enum gpu_mem kind, size_t size, void **out, struct cairn_error *err);
void device_free(struct gpu *g, enum gpu_mem kind, void *p);
int device_stream_open(struct gpu *g, struct gpu_stream **out, struct cairn_error *err);
void device_stream_close(struct gpu *g, struct gpu_stream *s);
int device_wait(struct gpu *g, struct gpu_stream *s, struct cairn_error *err);
int device_event_open(struct gpu *g, struct gpu_event **out, struct cairn_error *err);
void device_event_close(struct gpu *g, struct gpu_event *e);
int device_event_record(struct gpu *g, struct gpu_event *e, struct gpu_stream *s, struct cairn_error *err);
int device_event_wait(struct gpu *g, struct gpu_stream *s, struct gpu_event *e, struct cairn_error *err);
int device_event_ms(struct gpu *g, struct gpu_event *from, struct gpu_event *to, float *ms,
                    struct cairn_error *err);
int device_copy(struct gpu *g, struct gpu_stream *s, void *dst, const void *src, size_t n, int direction,
                struct cairn_error *err);
int device_clear(struct gpu *g, struct gpu_stream *s, void *dst, size_t n, struct cairn_error *err);
int device_kernel(struct gpu *g, struct gpu_kernel *k, struct cairn_error *err);
int device_launch(struct gpu *g, struct gpu_stream *s, const struct gpu_kernel *k, struct gpu_grid grid,
                  const void *args, size_t args_size, struct cairn_error *err);
int device_graph_begin(struct gpu *g, struct gpu_stream *s, struct cairn_error *err);
int device_graph_end(struct gpu *g, struct gpu_stream *s, struct gpu_graph **out, struct cairn_error *err);
int device_graph_launch(struct gpu *g, struct gpu_graph *graph, struct gpu_stream *s,
                        struct cairn_error *err);
void device_graph_close(struct gpu *g, struct gpu_graph *graph);

#endif
