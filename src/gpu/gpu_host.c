/* SPDX-License-Identifier: Apache-2.0
 * The CPU as a device: host memory, streams that execute at once, and launches that run the groups of a grid
 * on all cores. */
#include "base/int.h"
#include "base/thread.h"
#include "gpu/backend.h"
#include "gpu/cpu_threads.h"
#include "os/file.h"
#include "os/memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct host {
    struct cpu_threads *cpu_threads;
    enum kernel_variant variant;
    float *scratch; /* reused from call to call */
    size_t n_scratch;
};

struct gpu_event {
    double ms;
};

static enum kernel_variant best_variant(void)
{
#ifdef KERNELS_WIDE /* the build has them */
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return KERNEL_PLAIN;
    bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    return wide ? KERNEL_AVX512 : KERNEL_AVX2;
#else
    return KERNEL_PLAIN;
#endif
}

static void read_title(char *title, size_t size)
{
    snprintf(title, size, "CPU");
    FILE *f = os_stream("/proc/cpuinfo", OS_READ);
    char line[256];
    while (f && fgets(line, sizeof(line), f)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !colon)
            continue;
        snprintf(title, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
        break;
    }
    if (f)
        fclose(f);
}

static int host_list(struct arena *a, struct gpu_info **infos, size_t *n, struct cairn_error *err)
{
    (void)err;
    static const char *const names[] = { "debug", "plain", "avx2", "avx512" };
    struct gpu_info *info = ARENA_PUSH(a, *infos, *n);
    *info = (struct gpu_info){ .api = GPU_API_HOST, .name = "cpu", .wave = 1, .unified = true };
    read_title(info->title, sizeof(info->title));
    snprintf(info->arch, sizeof(info->arch), "%s", names[best_variant()]);
    info->total_bytes = os_memory_total();
    info->units = parallel_threads();
    return 0;
}

static int host_open(struct gpu *g, struct cairn_error *err)
{
    struct host *h = calloc(1, sizeof(*h));
    if (!h)
        return cairn_fail(err, CAIRN_ENOMEM, "cpu: no memory");
    g->state = h;
    h->variant = best_variant();
    h->cpu_threads = cpu_threads_new(parallel_threads());
    return h->cpu_threads ? 0 : cairn_fail(err, CAIRN_ENOMEM, "cpu: no memory for threads");
}

static void host_close(struct gpu *g)
{
    struct host *h = g->state;
    if (h) {
        cpu_threads_free(h->cpu_threads);
        free(h->scratch);
    }
    free(h);
}

static int host_memory(struct gpu *g, uint64_t *free_bytes, uint64_t *total_bytes, struct cairn_error *err)
{
    (void)err;
    *free_bytes = os_memory_free();
    *total_bytes = g->info.total_bytes;
    return 0;
}

/* Huge pages for large allocations: a matrix has more small pages than the TLB holds. */
static void *alloc_pages(size_t size)
{
    enum { HUGE_PAGE = 2 << 20 };
    bool large = size >= 2 * HUGE_PAGE;
    void *p = os_aligned(large ? HUGE_PAGE : 64, size);
    if (p && large)
        os_advise_huge(p, size);
    return p;
}

static int host_alloc(struct gpu *g, enum gpu_mem kind, size_t size, void **out, struct cairn_error *err)
{
    (void)g, (void)kind;
    *out = alloc_pages(size);
    return *out ? 0 : cairn_fail(err, CAIRN_ENOMEM, "cpu: no memory for %zu bytes", size);
}

static void host_free(struct gpu *g, enum gpu_mem kind, void *p)
{
    (void)g, (void)kind;
    os_free_aligned(p);
}

static int host_stream_open(struct gpu *g, struct gpu_stream **out, struct cairn_error *err)
{
    (void)g;
    *out = malloc(1); /* an address that no other stream has; there is nothing to keep */
    return *out ? 0 : cairn_fail(err, CAIRN_ENOMEM, "cpu: no memory for a stream");
}

static void host_stream_close(struct gpu *g, struct gpu_stream *s)
{
    (void)g;
    free(s);
}

static int host_wait(struct gpu *g, struct gpu_stream *s, struct cairn_error *err)
{
    (void)g, (void)s, (void)err;
    return 0;
}

static int host_event_open(struct gpu *g, struct gpu_event **out, struct cairn_error *err)
{
    (void)g;
    *out = calloc(1, sizeof(**out));
    return *out ? 0 : cairn_fail(err, CAIRN_ENOMEM, "cpu: no memory for an event");
}

static void host_event_close(struct gpu *g, struct gpu_event *e)
{
    (void)g;
    free(e);
}

static int host_event_record(struct gpu *g, struct gpu_event *e, struct gpu_stream *s,
                             struct cairn_error *err)
{
    (void)g, (void)s, (void)err;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    e->ms = (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
    return 0;
}

static int host_event_wait(struct gpu *g, struct gpu_stream *s, struct gpu_event *e, struct cairn_error *err)
{
    (void)g, (void)s, (void)e, (void)err;
    return 0;
}

static int host_event_ms(struct gpu *g, struct gpu_event *from, struct gpu_event *to, float *ms,
                         struct cairn_error *err)
{
    (void)g, (void)err;
    *ms = (float)(to->ms - from->ms);
    return 0;
}

enum { COPY_PIECE = 1 << 20 };
struct copy_job {
    char *dst;
    const char *src; /* NULL: clear */
    size_t n;
};

static void copy_piece(void *context, size_t piece)
{
    const struct copy_job *j = context;
    size_t at = piece * COPY_PIECE, n = j->n - at < COPY_PIECE ? j->n - at : COPY_PIECE;
    if (j->src)
        memmove(j->dst + at, j->src + at, n);
    else
        memset(j->dst + at, 0, n);
}

static void run_copy(struct gpu *g, const struct copy_job *j)
{
    struct host *h = g->state;
    cpu_threads_run(h->cpu_threads, div_up(j->n, COPY_PIECE), copy_piece, (void *)j);
}

static int host_copy(struct gpu *g, struct gpu_stream *s, void *dst, const void *src, size_t n, int direction,
                     struct cairn_error *err)
{
    (void)s, (void)direction, (void)err;
    run_copy(g, &(struct copy_job){ dst, src, n });
    return 0;
}

static int host_clear(struct gpu *g, struct gpu_stream *s, void *dst, size_t n, struct cairn_error *err)
{
    (void)s, (void)err;
    run_copy(g, &(struct copy_job){ dst, NULL, n });
    return 0;
}

/* A version that the build lacks is replaced by the next simpler one. */
static int host_kernel(struct gpu *g, struct gpu_kernel *k, struct cairn_error *err)
{
    (void)err;
    const struct host *h = g->state;
    int v = g->fault ? KERNEL_DEBUG : (int)h->variant;
    while (v > KERNEL_PLAIN && !k->row->host[k->storage][v])
        v--;
    k->handle = (void *)k->row->host[k->storage][v];
    return 0;
}

struct launch_job {
    kernel_fn *fn;
    const void *args;
    struct gpu_grid grid;
    size_t groups, per_piece;
};

static void launch_piece(void *context, size_t piece)
{
    const struct launch_job *j = context;
    size_t at = piece * j->per_piece, end = at + j->per_piece < j->groups ? at + j->per_piece : j->groups;
    for (; at < end; at++)
        j->fn(j->args, (struct k_place){ (int)(at % j->grid.x), (int)(at / j->grid.x % j->grid.y),
                                         (int)(at / j->grid.x / j->grid.y) });
}

static int host_launch(struct gpu *g, struct gpu_stream *s, const struct gpu_kernel *k, struct gpu_grid grid,
                       const void *args, size_t args_size, struct cairn_error *err)
{
    (void)s, (void)args_size, (void)err;
    struct host *h = g->state;
    g->last = k->row->name;
    size_t groups = (size_t)grid.x * grid.y * grid.z, pieces = (size_t)cpu_threads_size(h->cpu_threads) * 8;
    struct launch_job j = { (kernel_fn *)k->handle, args, grid, groups, div_up(groups, pieces) };
    cpu_threads_run(h->cpu_threads, div_up(groups, j.per_piece), launch_piece, &j);
    return 0;
}

enum kernel_variant gpu_host_variant(const struct gpu *g)
{
    const struct host *h = g->state;
    return h->variant;
}

bool gpu_host_set_variant(struct gpu *g, enum kernel_variant variant)
{
    struct host *h = g->state;
    if (variant > best_variant())
        return false;
    h->variant = variant;
    return true;
}

int gpu_host_scratch(struct gpu *g, size_t n, float **scratch, struct cairn_error *err)
{
    struct host *h = g->state;
    if (n > h->n_scratch) {
        void *more = NULL;
        gpu_free(g, GPU_MEM_DEVICE, h->scratch);
        h->scratch = NULL;
        h->n_scratch = 0;
        if (gpu_alloc(g, GPU_MEM_DEVICE, n * sizeof(float), &more, err))
            return -1;
        h->scratch = more;
        h->n_scratch = n;
    }
    *scratch = h->scratch;
    return 0;
}

size_t gpu_host_scratch_size(const struct gpu *g)
{
    const struct host *h = g->state;
    return h->n_scratch;
}

void gpu_host_run(struct gpu *g, size_t pieces, void (*fn)(void *context, size_t piece), void *context)
{
    struct host *h = g->state;
    cpu_threads_run(h->cpu_threads, pieces, fn, context);
}

const struct gpu_backend gpu_host = {
    .api = GPU_API_HOST,
    .list = host_list,
    .open = host_open,
    .close = host_close,
    .memory = host_memory,
    .alloc = host_alloc,
    .free = host_free,
    .stream_open = host_stream_open,
    .stream_close = host_stream_close,
    .wait = host_wait,
    .event_open = host_event_open,
    .event_close = host_event_close,
    .event_record = host_event_record,
    .event_wait = host_event_wait,
    .event_ms = host_event_ms,
    .copy = host_copy,
    .clear = host_clear,
    .kernel = host_kernel,
    .launch = host_launch,
};
