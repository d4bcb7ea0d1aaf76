/* SPDX-License-Identifier: Apache-2.0
 * A compute device: an AMD GPU through HIP, an NVIDIA GPU through the CUDA driver, or the CPU.
 *
 * Nothing is linked: the vendors' libraries are opened at run time, and a machine without them has the CPU.
 * Opening or listing devices never aborts the process.  Kernels are source text in the binary (kernels/),
 * compiled for the exact chip when first used (compile.h) and cached on disk.
 *
 * A struct gpu and everything made from it belong to one thread at a time.  Work is queued on streams and
 * runs in order on each; copies and launches return before they are done, and a later call may return their
 * errors.  After an error that loses the device (gpu_lost) every later call fails at once with the same
 * message.  watch.h limits how long a wait or a call may take; without it there is no limit. */
#ifndef CAIRN_GPU_GPU_H
#define CAIRN_GPU_GPU_H

#include "base/arena.h"
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpu;        /* an open device */
struct gpu_stream; /* a queue of work */
struct gpu_event;  /* a point in a queue */
struct gpu_kernel; /* a kernel that is ready to launch */
struct pool;       /* its memory: pool.h */
struct transfer;   /* large copies from and to it: transfer.h */
struct k_fault;

enum gpu_api { GPU_API_HOST, GPU_API_HIP, GPU_API_CUDA };

struct gfx_chip;

struct gpu_info {
    enum gpu_api api;
    int index;                   /* among the devices of its api */
    char name[16];               /* "cpu", "hip:0", "cuda:1": what gpu_open takes */
    char title[128];             /* "AMD Radeon 8060S" */
    char arch[64];               /* "gfx1151", "gfx90a:sramecc+:xnack-", "sm_90", "avx512" */
    const struct gfx_chip *chip; /* its row of chip/gfx_table.h; NULL: no AMD GPU, or not in the table */
    char pci[16];                /* "0000:c5:00.0"; empty for the CPU */
    uint64_t total_bytes;        /* as the runtime reports it; host/ is more accurate for shared memory */
    int units;                   /* compute units, multiprocessors, threads */
    int wave;                    /* work-items in lock step */
    bool unified;                /* the CPU's memory is the device's */
    int driver, runtime;         /* versions as the libraries number them; 0: not known */
    char library[256];           /* the file that was opened */
    char source[128];      /* what it belongs to: "ROCm 6.4, of PyTorch 2.9.1+rocm6.4"; empty: not known */
    char passed_over[512]; /* preferred libraries that could not be opened, and why; empty: none */
};

/* Every device that can be opened, the CPU last.  `reasons` has one line for each library or device that
 * could not be used. */
void gpu_list(struct arena *a, struct gpu_info **out, size_t *n, char ***reasons, size_t *n_reasons);

/* "auto" is the first of gpu_list; "hip", "cuda" and "cpu" the first of their kind. */
int gpu_open(const char *name, struct gpu **out, struct cairn_error *err);
void gpu_close(struct gpu *g);
const struct gpu_info *gpu_info(const struct gpu *g);
/* "6.3.42134", of a driver or runtime; "-" for 0.  buf is returned. */
const char *gpu_version_text(enum gpu_api api, int version, char *buf, size_t size);
/* Whether there are kernels for matrix cores; the CPU emulates them, slowly, for tests. */
bool gpu_has_mma(const struct gpu *g);
bool gpu_info_has_mma(const struct gpu_info *info);
/* Debug mode; call it before the first kernel: kernels check indices and values, and each launch is waited
 * for, so that its error names it. */
int gpu_set_debug(struct gpu *g, struct cairn_error *err);
bool gpu_is_debug(const struct gpu *g);
/* The fault that the last launch reported (kernels/types.h); all 0: none.  Its results exist nevertheless. */
const struct k_fault *gpu_fault(const struct gpu *g);
/* Why every call fails; NULL: the device is usable. */
const struct cairn_error *gpu_lost(const struct gpu *g);
/* Not lost, and no wait has failed so far: all work queued before the last wait is done. */
bool gpu_is_sound(const struct gpu *g);
/* The last queued operation, as text; NULL: none.  Another thread may call it, and may see a partly changed
 * text. */
const char *gpu_last(const struct gpu *g);
int gpu_memory(struct gpu *g, uint64_t *free_bytes, uint64_t *total_bytes, struct cairn_error *err);

/* Memory.  Device memory comes from the pool, aligned to at least 256 bytes.  GPU_MEM_STAGING is pinned host
 * memory.  Freed memory may still be in use by work queued on any stream, and allocated memory is ready for
 * all of them. */
enum gpu_mem { GPU_MEM_DEVICE, GPU_MEM_STAGING };
/* CAIRN_ENOMEM when there is not enough; size 0 gives a pointer that may be freed. */
int gpu_alloc(struct gpu *g, enum gpu_mem kind, size_t size, void **out, struct cairn_error *err);
void gpu_free(struct gpu *g, enum gpu_mem kind, void *p);
struct pool *gpu_pool(struct gpu *g);
struct transfer *gpu_transfer(struct gpu *g);
/* GPU_MEM_STAGING, or ordinary memory with slower copies if the driver refuses it. */
struct gpu_staging {
    void *at;
    bool pinned;
};
int gpu_staging_open(struct gpu *g, size_t size, struct gpu_staging *out, struct cairn_error *err);
void gpu_staging_close(struct gpu *g, struct gpu_staging *s);

/* Device memory allocated by gpu_alloc: now, and the peak. */
struct gpu_allocated {
    uint64_t bytes, most_bytes;
};
struct gpu_allocated gpu_allocated(const struct gpu *g);

/* Queues.  NULL stands for the device's own first stream everywhere. */
int gpu_stream_open(struct gpu *g, struct gpu_stream **out, struct cairn_error *err);
void gpu_stream_close(struct gpu *g, struct gpu_stream *s);
int gpu_wait(struct gpu *g, struct gpu_stream *s, struct cairn_error *err); /* until all of it is done */
int gpu_event_open(struct gpu *g, struct gpu_event **out, struct cairn_error *err);
void gpu_event_close(struct gpu *g, struct gpu_event *e);
int gpu_event_record(struct gpu *g, struct gpu_event *e, struct gpu_stream *s, struct cairn_error *err);
int gpu_event_wait(struct gpu *g, struct gpu_stream *s, struct gpu_event *e, struct cairn_error *err);
/* Both must have passed. */
int gpu_event_ms(struct gpu *g, struct gpu_event *from, struct gpu_event *to, float *ms,
                 struct cairn_error *err);

/* Queues copies of small data; use transfer.h for large data and files. */
int gpu_upload(struct gpu *g, struct gpu_stream *s, void *dst, const void *src, size_t n,
               struct cairn_error *err);
int gpu_download(struct gpu *g, struct gpu_stream *s, void *dst, const void *src, size_t n,
                 struct cairn_error *err);
int gpu_copy(struct gpu *g, struct gpu_stream *s, void *dst, const void *src, size_t n,
             struct cairn_error *err);
int gpu_clear(struct gpu *g, struct gpu_stream *s, void *dst, size_t n, struct cairn_error *err);

/* Kernels, by their name in the table and the format of their tensors.  The first call for a file of kernels
 * compiles it or loads it from the cache; the handle lives as long as the device. */
enum gpu_storage { GPU_F32, GPU_BF16, GPU_F16, GPU_STORAGES };
const char *gpu_storage_name(enum gpu_storage s); /* "bf16" */
int gpu_kernel(struct gpu *g, const char *name, enum gpu_storage storage, const struct gpu_kernel **out,
               struct cairn_error *err);
struct gpu_grid {
    unsigned x, y, z; /* groups; 0 counts as 1 */
};
/* args is the kernel's own struct (kernels/NAME.h); it is copied. */
int gpu_launch(struct gpu *g, struct gpu_stream *s, const struct gpu_kernel *k, struct gpu_grid grid,
               const void *args, size_t args_size, struct cairn_error *err);

/* Graphs: what is queued on a stream between begin and end is kept instead of done, and can then be launched
 * as a whole again and again, with the same arguments.  CAIRN_ELACK where the device has none; the caller
 * then queues as usual. */
struct gpu_graph;
int gpu_graph_begin(struct gpu *g, struct gpu_stream *s, struct cairn_error *err);
int gpu_graph_end(struct gpu *g, struct gpu_stream *s, struct gpu_graph **out, struct cairn_error *err);
int gpu_graph_launch(struct gpu *g, struct gpu_graph *graph, struct gpu_stream *s, struct cairn_error *err);
void gpu_graph_close(struct gpu *g, struct gpu_graph *graph);

#endif
