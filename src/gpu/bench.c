/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/bench.h"

#include "gpu/compile.h"
#include "gpu/kernels/attention.h"
#include "gpu/kernels/elementwise.h"
#include "gpu/kernels/gemm.h"
#include "gpu/kernels/norm.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 7, BUFFERS = 4 };
static const float least_ms = 4,
                   most_ms = 400; /* a round is long enough for the clock, and all of them end soon */

struct bench {
    struct gpu *g;
    enum gpu_storage storage;
    size_t bytes;          /* of each buffer */
    void *device[BUFFERS]; /* holding zeros */
    void *pageable, *staging;
    struct gpu_event *from, *to;
};

/* What one run of a row does. */
struct amount {
    double bytes, flops;
    char shape[48];
};

/* Sets the amount and queues one run; called many times. */
typedef int once_fn(struct bench *b, struct amount *a, struct cairn_error *err);

static size_t storage_size(enum gpu_storage s)
{
    return s == GPU_F32 ? 4 : 2;
}

static int launch(struct bench *b, const char *name, struct gpu_grid grid, const void *args, size_t size,
                  struct cairn_error *err)
{
    const struct gpu_kernel *k;
    return gpu_kernel(b->g, name, b->storage, &k, err) || gpu_launch(b->g, NULL, k, grid, args, size, err)
               ? -1
               : 0;
}

/* ---- rows: copies ---- */

static void set_bytes(struct amount *a, double factor, size_t n)
{
    a->bytes = factor * (double)n;
    snprintf(a->shape, sizeof(a->shape), "%zu MiB", n >> 20);
}

static int copy_within(struct bench *b, struct amount *a, struct cairn_error *err)
{
    set_bytes(a, 2, b->bytes);
    return gpu_copy(b->g, NULL, b->device[1], b->device[0], b->bytes, err);
}

static int copy_kernel(struct bench *b, struct amount *a, struct cairn_error *err)
{
    size_t n = b->bytes / storage_size(b->storage);
    struct map_args args = { .y = b->device[1], .x = b->device[0], .n = (k_i64)n };
    set_bytes(a, 2, b->bytes);
    return launch(b, "copy", (struct gpu_grid){ .x = (unsigned)K_GROUPS(n) }, &args, sizeof(args), err);
}

static int upload_pageable(struct bench *b, struct amount *a, struct cairn_error *err)
{
    set_bytes(a, 1, b->bytes);
    return gpu_upload(b->g, NULL, b->device[0], b->pageable, b->bytes, err);
}

static int upload_staged(struct bench *b, struct amount *a, struct cairn_error *err)
{
    set_bytes(a, 1, b->bytes);
    return gpu_upload(b->g, NULL, b->device[0], b->staging, b->bytes, err);
}

static int download_pageable(struct bench *b, struct amount *a, struct cairn_error *err)
{
    set_bytes(a, 1, b->bytes);
    return gpu_download(b->g, NULL, b->pageable, b->device[0], b->bytes, err);
}

static int download_staged(struct bench *b, struct amount *a, struct cairn_error *err)
{
    set_bytes(a, 1, b->bytes);
    return gpu_download(b->g, NULL, b->staging, b->device[0], b->bytes, err);
}

/* ---- rows: kernels ---- */

static int norm(struct bench *b, struct amount *a, const char *kernel, struct cairn_error *err)
{
    enum { COLUMNS = 4096 };
    size_t rows = b->bytes / storage_size(b->storage) / COLUMNS;
    struct norm_args args = {
        .y = b->device[1],
        .mean = b->device[2],
        .rstd = b->device[3],
        .x = b->device[0],
        .rows = (k_i64)rows,
        .columns = COLUMNS,
        .epsilon = 1e-5f,
    };
    a->bytes = 2.0 * (double)(rows * COLUMNS * storage_size(b->storage));
    snprintf(a->shape, sizeof(a->shape), "%zu x %d", rows, COLUMNS);
    return launch(b, kernel, (struct gpu_grid){ .x = (unsigned)rows }, &args, sizeof(args), err);
}

static int layer_norm(struct bench *b, struct amount *a, struct cairn_error *err)
{
    return norm(b, a, "layer_norm", err);
}

static int rms_norm(struct bench *b, struct amount *a, struct cairn_error *err)
{
    return norm(b, a, "rms_norm", err);
}

static bool is_cpu(const struct bench *b)
{
    return gpu_info(b->g)->api == GPU_API_HOST;
}

static int gemm(struct bench *b, struct amount *a, struct cairn_error *err)
{
    unsigned n = is_cpu(b) ? 512 : 4096;
    struct gemm_args args = {
        .c = b->device[2],
        .a = b->device[0],
        .b = b->device[1],
        .m = n,
        .n = n,
        .k = n,
        .a_stride = n,
        .b_stride = n,
        .c_stride = n,
        .alpha = 1,
    };
    a->flops = 2.0 * n * n * n;
    snprintf(a->shape, sizeof(a->shape), "%u x %u x %u", n, n, n);
    return launch(b, "gemm", (struct gpu_grid){ .x = gemm_tiles(n, n) }, &args, sizeof(args), err);
}

static int attention(struct bench *b, struct amount *a, struct cairn_error *err)
{
    enum { SIZE = 64 };
    k_i64 heads = is_cpu(b) ? 4 : 32, tokens = is_cpu(b) ? 512 : 2048;
    struct attention_stride by = { tokens * heads * SIZE, heads * SIZE, SIZE };
    struct attention_args args = {
        .o = b->device[3],
        .q = b->device[0],
        .k = b->device[1],
        .v = b->device[2],
        .o_by = by,
        .q_by = by,
        .k_by = by,
        .v_by = by,
        .heads = heads,
        .kv_heads = heads,
        .queries = tokens,
        .keys = tokens,
        .size = SIZE,
        .causal = 1,
        .scale = 0.125f,
    };
    /* Room for the sums: the last part of the output's buffer. */
    args.lse = (float *)((char *)b->device[3] + b->bytes / 2);
    a->flops = 2.0 * 2.0 * (double)(heads * tokens * tokens * SIZE) / 2; /* half of the scores are hidden */
    snprintf(a->shape, sizeof(a->shape), "%lld heads, %lld tokens, %d, causal", (long long)heads,
             (long long)tokens, SIZE);
    struct gpu_grid grid = { (unsigned)((tokens + ATTENTION_ROWS - 1) / ATTENTION_ROWS), (unsigned)heads, 1 };
    return launch(b, "attention", grid, &args, sizeof(args), err);
}

enum ceiling { BY_COPY, BY_TRANSFER, BY_MATRIX };
static const struct row {
    const char *group, *name;
    once_fn *once;
    enum ceiling ceiling;
    bool has_formats;
} rows[] = {
    { "copy", "on the device", copy_within, BY_COPY, false },
    { "copy", "copy kernel", copy_kernel, BY_COPY, true },
    { "copy", "to the device, pageable", upload_pageable, BY_TRANSFER, false },
    { "copy", "to the device, staged", upload_staged, BY_TRANSFER, false },
    { "copy", "from the device, pageable", download_pageable, BY_TRANSFER, false },
    { "copy", "from the device, staged", download_staged, BY_TRANSFER, false },
    { "norm", "layer_norm", layer_norm, BY_COPY, true },
    { "norm", "rms_norm", rms_norm, BY_COPY, true },
    { "gemm", "gemm", gemm, BY_MATRIX, true },
    { "attention", "attention", attention, BY_MATRIX, true },
};
const char *const bench_groups[] = { "copy", "norm", "gemm", "attention", NULL };

/* ---- the clock ---- */

static int time_round(struct bench *b, const struct row *r, struct amount *a, int times, float *ms,
                      struct cairn_error *err)
{
    if (gpu_event_record(b->g, b->from, NULL, err))
        return -1;
    for (int i = 0; i < times; i++)
        if (r->once(b, a, err))
            return -1;
    if (gpu_event_record(b->g, b->to, NULL, err) || gpu_wait(b->g, NULL, err) ||
        gpu_event_ms(b->g, b->from, b->to, ms, err))
        return -1;
    *ms /= (float)times;
    return 0;
}

static int time_row(struct bench *b, const struct row *r, enum gpu_storage s, struct bench_result *out,
                    struct cairn_error *err)
{
    struct amount a = { 0 };
    float ms, best = INFINITY;
    b->storage = s;
    if (time_round(b, r, &a, 1, &ms, err) || time_round(b, r, &a, 1, &ms, err))
        return -1;
    int times = ms * 1000 < least_ms ? 1000 : ms < least_ms ? (int)(least_ms / ms) + 1 : 1;
    float spent = 0;
    for (int i = 0; i < ROUNDS && spent < most_ms; i++) {
        if (time_round(b, r, &a, times, &ms, err))
            return -1;
        best = ms < best ? ms : best;
        spent += ms * (float)times;
    }
    *out = (struct bench_result){ .group = r->group, .name = r->name, .ms = best, .is_flops = a.flops > 0 };
    out->format = r->has_formats ? compile_storage_name(s) : NULL;
    out->rate = a.flops > 0 ? a.flops / best / 1e9 : a.bytes / best / 1e6;
    memcpy(out->shape, a.shape, sizeof(out->shape));
    return 0;
}

/* ---- the run ---- */

static void bench_release(struct bench *b)
{
    for (int i = 0; i < BUFFERS; i++)
        gpu_free(b->g, GPU_MEM_DEVICE, b->device[i]);
    gpu_free(b->g, GPU_MEM_STAGING, b->staging);
    gpu_event_close(b->g, b->from);
    gpu_event_close(b->g, b->to);
    free(b->pageable);
}

static int bench_init(struct bench *b, struct gpu *g, struct cairn_error *err)
{
    uint64_t free_bytes, total;
    *b = (struct bench){ .g = g };
    if (gpu_memory(g, &free_bytes, &total, err))
        return -1;
    b->bytes = is_cpu(b) ? (size_t)64 << 20 : (size_t)256 << 20; /* far more than any cache holds */
    while (b->bytes > (1 << 24) && b->bytes * (BUFFERS + 2) > free_bytes)
        b->bytes /= 2;
    b->pageable = calloc(1, b->bytes);
    if (!b->pageable)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu bytes", b->bytes);
    for (int i = 0; i < BUFFERS; i++)
        if (gpu_alloc(g, GPU_MEM_DEVICE, b->bytes, &b->device[i], err) ||
            gpu_clear(g, NULL, b->device[i], b->bytes, err))
            return -1;
    if (gpu_alloc(g, GPU_MEM_STAGING, b->bytes, &b->staging, err))
        return -1;
    memset(b->staging, 0, b->bytes);
    return gpu_event_open(g, &b->from, err) || gpu_event_open(g, &b->to, err) ? -1 : 0;
}

static const struct row *row_of(const struct bench_result *r)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].name == r->name)
            return &rows[i];
    return NULL;
}

/* Matrices of different formats have different units, so different ceilings. */
static void set_ceilings(struct bench_result *results, size_t n, double copy_rate)
{
    for (size_t i = 0; i < n; i++) {
        enum ceiling kind = row_of(&results[i])->ceiling;
        results[i].ceiling = kind == BY_COPY ? copy_rate : 0;
        for (size_t k = 0; k < n && kind != BY_COPY; k++)
            if (row_of(&results[k])->ceiling == kind && results[k].format == results[i].format)
                results[i].ceiling = fmax(results[i].ceiling, results[k].rate);
    }
}

static int run_rows(struct bench *b, const char *group, bool (*stop)(void), struct bench_result *out,
                    size_t *n, struct cairn_error *err)
{
    struct bench_result copy;
    if (time_row(b, &rows[0], GPU_F32, &copy, err))
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (int s = 0; s < (rows[i].has_formats ? GPU_STORAGES : 1); s++) {
            if ((group && strcmp(group, rows[i].group)) || (stop && stop()))
                continue;
            if (time_row(b, &rows[i], (enum gpu_storage)s, &out[*n], err))
                return -1;
            ++*n;
        }
    for (size_t i = 0; i < *n; i++) /* the best of all copies on the device */
        if (!strcmp(out[i].group, rows[0].group) && row_of(&out[i])->ceiling == BY_COPY)
            copy.rate = fmax(copy.rate, out[i].rate);
    set_ceilings(out, *n, copy.rate);
    return 0;
}

int bench_run(struct gpu *g, const char *group, bool (*stop)(void), struct bench_result **out, size_t *n,
              struct cairn_error *err)
{
    CLEANUP(bench_release) struct bench b;
    CLEANUP(mem_free) struct bench_result *results = calloc(ARRAY_LEN(rows) * GPU_STORAGES, sizeof(*results));
    *n = 0;
    if (bench_init(&b, g, err))
        return -1;
    if (!results)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for the results");
    if (run_rows(&b, group, stop, results, n, err))
        return -1;
    *out = TAKE(results);
    return 0;
}
