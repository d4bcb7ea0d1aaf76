/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/conversions.h"

#include "gpu/f16_ref.h"
#include "gpu/kernel_rows.h"
#include "gpu/kernels/elementwise.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* From f32 each bf16 value comes with its neighbours: below, at and above the middle between it and the
 * next. */
enum { CODES = 65536, MOST = 4 * CODES, ROOM = MOST * sizeof(float) };
static const uint32_t neighbours[] = { 0, 0x7fff, 0x8000, 0x8001 };

/* A device with memory for one conversion, and the CPU. */
struct bench {
    struct gpu *g, *cpu;
    enum conversion_path path;
    void *device[3], *staging;
    void *in, *out; /* ours */
};

static void bench_release(struct bench *b)
{
    for (int i = 0; i < 3; i++)
        gpu_free(b->g, GPU_MEM_DEVICE, b->device[i]);
    gpu_free(b->g, GPU_MEM_STAGING, b->staging);
    gpu_close(b->cpu);
    free(b->in);
    free(b->out);
}

static int bench_init(struct bench *b, struct gpu *g, struct cairn_error *err)
{
    *b = (struct bench){ .g = g, .in = malloc(ROOM), .out = malloc(ROOM) };
    if (!b->in || !b->out)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for conversions");
    if (gpu_open("cpu", &b->cpu, err))
        return -1;
    for (int i = 0; i < 3; i++)
        if (gpu_alloc(g, GPU_MEM_DEVICE, ROOM, &b->device[i], err))
            return -1;
    return gpu_alloc(g, GPU_MEM_STAGING, ROOM, &b->staging, err);
}

/* Into device[0]. */
static int put(struct bench *b, const void *bytes, size_t n, struct cairn_error *err)
{
    void *first = b->device[b->path == CONVERSION_WITHIN ? 1 : 0];
    if (b->path == CONVERSION_STAGED)
        memcpy(b->staging, bytes, n);
    if (gpu_upload(b->g, NULL, first, b->path == CONVERSION_STAGED ? b->staging : bytes, n, err))
        return -1;
    if (b->path == CONVERSION_WITHIN && gpu_copy(b->g, NULL, b->device[0], first, n, err))
        return -1;
    return gpu_wait(b->g, NULL, err);
}

/* From device[from]. */
static int get(struct bench *b, int from, void *bytes, size_t n, struct cairn_error *err)
{
    int other = (from + 1) % 3;
    void *last = b->device[from], *into = b->path == CONVERSION_STAGED ? b->staging : bytes;
    if (b->path == CONVERSION_WITHIN) {
        if (gpu_copy(b->g, NULL, b->device[other], last, n, err))
            return -1;
        last = b->device[other];
    }
    if (gpu_download(b->g, NULL, into, last, n, err) || gpu_wait(b->g, NULL, err))
        return -1;
    if (into != bytes)
        memcpy(bytes, into, n);
    return 0;
}

static int launch(struct gpu *g, const char *kernel, enum gpu_storage s, size_t n, const void *args,
                  size_t size, struct cairn_error *err)
{
    const struct gpu_kernel *k;
    struct gpu_grid grid = { .x = (unsigned)K_GROUPS(n) };
    return gpu_kernel(g, kernel, s, &k, err) || gpu_launch(g, NULL, k, grid, args, size, err) ? -1 : 0;
}

static int widen(struct gpu *g, enum gpu_storage s, float *y, const void *x, size_t n,
                 struct cairn_error *err)
{
    struct widen_args args = { .y = y, .x = x, .n = (k_i64)n };
    return launch(g, "widen", s, n, &args, sizeof(args), err);
}

static int narrow(struct gpu *g, enum gpu_storage s, void *y, const float *x, size_t n,
                  struct cairn_error *err)
{
    struct narrow_args args = { .y = y, .x = x, .n = (k_i64)n };
    return launch(g, "narrow", s, n, &args, sizeof(args), err);
}

/* ---- the rows ---- */

enum place { ON_DEVICE, ON_CPU_PLAIN, ON_CPU };
static const char *const place_names[] = {
    [ON_DEVICE] = "on the device",
    [ON_CPU_PLAIN] = "on the CPU, one by one",
    [ON_CPU] = "on the CPU, all cores",
};

/* From a value to another format.  On the CPU: after a trip to the device and back. */
static const struct row {
    enum gpu_storage from, to;
    enum place place;
} rows[CONVERSIONS] = {
    { GPU_BF16, GPU_F32, ON_DEVICE }, { GPU_BF16, GPU_F32, ON_CPU_PLAIN }, { GPU_BF16, GPU_F32, ON_CPU },
    { GPU_BF16, GPU_F16, ON_DEVICE }, { GPU_F32, GPU_BF16, ON_DEVICE },    { GPU_F16, GPU_BF16, ON_DEVICE },
};

static size_t size_of(enum gpu_storage s)
{
    return s == GPU_F32 ? sizeof(float) : sizeof(uint16_t);
}

static size_t values_of(const struct row *r)
{
    return r->from == GPU_F32 ? MOST : CODES;
}

static float value_at(const struct row *r, size_t i)
{
    uint32_t bits = (uint32_t)(i % CODES) << 16 | neighbours[i / CODES];
    float f;
    memcpy(&f, &bits, sizeof(f));
    return r->from == GPU_F32 ? f : f16_to_float(r->from, (uint16_t)i);
}

static void fill_in(const struct row *r, void *in)
{
    for (size_t i = 0; i < values_of(r); i++)
        if (r->from == GPU_F32)
            ((float *)in)[i] = value_at(r, i);
        else
            ((uint16_t *)in)[i] = (uint16_t)i;
}

static size_t count_wrong(const struct row *r, const void *out)
{
    size_t wrong = 0;
    for (size_t i = 0; i < values_of(r); i++) {
        float want = value_at(r, i), got;
        if (r->to == GPU_F32)
            memcpy(&got, (const float *)out + i, sizeof(got));
        else
            got = f16_to_float(r->to, ((const uint16_t *)out)[i]);
        if (r->to != GPU_F32)
            want = f16_to_float(r->to, f16_from_float(r->to, want));
        wrong += isnan(want) ? !isnan(got) : memcmp(&got, &want, sizeof(want)) != 0;
    }
    return wrong;
}

static int convert_on_device(struct bench *b, const struct row *r, struct cairn_error *err)
{
    size_t n = values_of(r);
    int at = 0;
    if (r->from != GPU_F32) {
        if (widen(b->g, r->from, b->device[2], b->device[0], n, err))
            return -1;
        at = 2;
    }
    if (r->to != GPU_F32) {
        if (narrow(b->g, r->to, b->device[1], b->device[at], n, err))
            return -1;
        at = 1;
    }
    return get(b, at, b->out, n * size_of(r->to), err);
}

static int convert_on_cpu(struct bench *b, const struct row *r, struct cairn_error *err)
{
    size_t n = values_of(r);
    if (get(b, 0, b->in, n * size_of(r->from), err))
        return -1;
    if (r->place == ON_CPU)
        return widen(b->cpu, r->from, b->out, b->in, n, err);
    struct widen_args args = { .y = b->out, .x = b->in, .n = (k_i64)n };
    kernel_fn *fn = kernel_find("widen")->host[r->from][KERNEL_PLAIN];
    for (int i = 0; i < (int)K_GROUPS(n); i++)
        fn(&args, (struct k_place){ i, 0, 0 });
    return 0;
}

static int run_row(struct bench *b, const struct row *r, struct conversion *out, struct cairn_error *err)
{
    *out = (struct conversion){
        gpu_storage_name(r->from), gpu_storage_name(r->to), place_names[r->place], values_of(r), { 0 }
    };
    for (int p = 0; p < CONVERSION_PATHS; p++) {
        b->path = (enum conversion_path)p;
        fill_in(r, b->in);
        memset(b->out, 0, ROOM);
        if (put(b, b->in, out->values * size_of(r->from), err))
            return -1;
        if (r->place == ON_DEVICE ? convert_on_device(b, r, err) : convert_on_cpu(b, r, err))
            return -1;
        out->wrong[p] = count_wrong(r, b->out);
    }
    return 0;
}

int conversions_run(struct gpu *g, struct conversion out[CONVERSIONS], struct cairn_error *err)
{
    CLEANUP(bench_release) struct bench b;
    if (bench_init(&b, g, err))
        return -1;
    for (size_t i = 0; i < CONVERSIONS; i++)
        if (run_row(&b, &rows[i], &out[i], err))
            return -1;
    return 0;
}
