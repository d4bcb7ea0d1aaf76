/* SPDX-License-Identifier: Apache-2.0
 * The interface of a kind of device.  gpu.c calls a device only through this table. */
#ifndef CAIRN_GPU_BACKEND_H
#define CAIRN_GPU_BACKEND_H

#include "gpu/gpu.h"
#include "gpu/kernel_rows.h"

struct gpu_kernel {
    const struct kernel_row *row;
    enum gpu_storage storage;
    void *handle; /* the backend's */
};

/* A tensor in device memory of which a chip copies boxes by itself. */
enum { GPU_BOX_RANK = 5, GPU_BOX_BYTES = 128 };
struct gpu_box_map {
    const void *at; /* aligned to 16 bytes */
    enum gpu_storage storage;
    unsigned rank;
    uint64_t sizes[GPU_BOX_RANK];       /* innermost first */
    uint64_t strides[GPU_BOX_RANK - 1]; /* bytes, multiples of 16, of all dimensions but the innermost */
    uint32_t box[GPU_BOX_RANK];         /* innermost: 128 bytes */
    uint32_t steps[GPU_BOX_RANK];       /* of the box, each so many elements are copied */
};

struct gpu_backend {
    enum gpu_api api;
    /* Adds the devices it finds.  Also 0 if there are none; -1 with the reason if the library is unusable. */
    int (*list)(struct arena *a, struct gpu_info **infos, size_t *n, struct cairn_error *err);
    int (*open)(struct gpu *g, struct cairn_error *err); /* g->info is filled in */
    void (*close)(struct gpu *g);
    int (*memory)(struct gpu *g, uint64_t *free_bytes, uint64_t *total_bytes, struct cairn_error *err);
    int (*alloc)(struct gpu *g, enum gpu_mem kind, size_t size, void **out, struct cairn_error *err);
    void (*free)(struct gpu *g, enum gpu_mem kind, void *p);
    int (*stream_open)(struct gpu *g, struct gpu_stream **out, struct cairn_error *err);
    void (*stream_close)(struct gpu *g, struct gpu_stream *s);
    int (*wait)(struct gpu *g, struct gpu_stream *s, struct cairn_error *err);
    int (*event_open)(struct gpu *g, struct gpu_event **out, struct cairn_error *err);
    void (*event_close)(struct gpu *g, struct gpu_event *e);
    int (*event_record)(struct gpu *g, struct gpu_event *e, struct gpu_stream *s, struct cairn_error *err);
    int (*event_wait)(struct gpu *g, struct gpu_stream *s, struct gpu_event *e, struct cairn_error *err);
    int (*event_ms)(struct gpu *g, struct gpu_event *from, struct gpu_event *to, float *ms,
                    struct cairn_error *err);
    int (*copy)(struct gpu *g, struct gpu_stream *s, void *dst, const void *src, size_t n, int direction,
                struct cairn_error *err);
    int (*clear)(struct gpu *g, struct gpu_stream *s, void *dst, size_t n, struct cairn_error *err);
    int (*kernel)(struct gpu *g, struct gpu_kernel *k, struct cairn_error *err); /* fills k->handle */
    int (*launch)(struct gpu *g, struct gpu_stream *s, const struct gpu_kernel *k, struct gpu_grid grid,
                  const void *args, size_t args_size, struct cairn_error *err);
    /* NULL in a backend without graphs. */
    int (*graph_begin)(struct gpu *g, struct gpu_stream *s, struct cairn_error *err);
    int (*graph_end)(struct gpu *g, struct gpu_stream *s, struct gpu_graph **out, struct cairn_error *err);
    int (*graph_launch)(struct gpu *g, struct gpu_graph *graph, struct gpu_stream *s,
                        struct cairn_error *err);
    void (*graph_close)(struct gpu *g, struct gpu_graph *graph);
    /* Describes a tensor for kernels that copy boxes of it, in GPU_BOX_BYTES; NULL in a backend without. */
    int (*box_map)(struct gpu *g, const struct gpu_box_map *map, void *out, struct cairn_error *err);
};
enum { GPU_UP, GPU_DOWN, GPU_WITHIN }; /* directions of a copy */

struct gpu {
    const struct gpu_backend *backend;
    struct gpu_info info;
    void *state;                 /* the backend's */
    struct pool *pool;           /* its memory */
    struct transfer *transfer;   /* the way to it */
    struct gpu_kernel **kernels; /* [row * GPU_STORAGES + storage]; NULL until asked for */
    struct cairn_error lost;     /* code set: the device is gone, and why */
    bool wait_failed;            /* once or more */
    bool chip_kernels_fail;      /* those for this chip alone: the compiler is too old */
    struct k_fault *fault;       /* on the device; NULL: not debugging */
    struct k_fault last_fault;   /* what the last launch reported */
    const char *last;            /* last queued operation; NULL: none */
};

extern const struct gpu_backend gpu_hip, gpu_cuda, gpu_host;

/* CPU only: the instruction set of its kernels, and work on all of its threads (cpu_threads.h). */
enum kernel_variant gpu_host_variant(const struct gpu *g);
/* For tests, before the first kernel is asked for.  false: the build or the CPU lacks it. */
bool gpu_host_set_variant(struct gpu *g, enum kernel_variant variant);
/* Uninitialized scratch memory for n floats, valid during one call. */
int gpu_host_scratch(struct gpu *g, size_t n, float **scratch, struct cairn_error *err);
/* For tests: the largest n so far. */
size_t gpu_host_scratch_size(const struct gpu *g);
void gpu_host_run(struct gpu *g, size_t pieces, void (*fn)(void *context, size_t piece), void *context);

#endif
