/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/check.h"

#include "base/splitmix.h"
#include "base/str.h"
#include "gpu/f16_ref.h"
#include "gpu/kernel_rows.h"
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct check {
    struct gpu *g;
    enum gpu_storage storage;
    struct arena arena;
    void **device; /* to be freed */
    size_t n_device;
    uint64_t random;
    struct check_result *result;
    struct cairn_error err; /* code set: a call failed */
    bool wrong;
    bool is_odd_fine;
};

static const struct {
    const struct check_case *cases;
    const size_t *n;
} tables[] = {
    { checks_adafactor, &n_checks_adafactor },
    { checks_attention, &n_checks_attention },
    { checks_columns, &n_checks_columns },
    { checks_conv, &n_checks_conv },
    { checks_elementwise, &n_checks_elementwise },
    { checks_embedding, &n_checks_embedding },
    { checks_gemm, &n_checks_gemm },
    { checks_move, &n_checks_move },
    { checks_norm, &n_checks_norm },
    { checks_optim, &n_checks_optim },
    { checks_quant, &n_checks_quant },
    { checks_random, &n_checks_random },
    { checks_reduce, &n_checks_reduce },
    { checks_rope, &n_checks_rope },
    { checks_small_linear, &n_checks_small_linear },
    { checks_softmax, &n_checks_softmax },
    { checks_vae, &n_checks_vae },
};

struct gpu *check_gpu(struct check *c)
{
    return c->g;
}

enum gpu_storage check_storage(const struct check *c)
{
    return c->storage;
}

bool check_ok(const struct check *c)
{
    return !c->err.code && !c->wrong;
}

void check_complain(struct check *c, const char *fmt, ...)
{
    va_list ap;
    if (!check_ok(c))
        return;
    c->wrong = true;
    va_start(ap, fmt);
    vsnprintf(c->result->why, sizeof(c->result->why), fmt, ap);
    va_end(ap);
}

double check_random(struct check *c)
{
    return ((double)(splitmix_next(&c->random) >> 11) + 0.5) / 9007199254740992.0;
}

static float normal(struct check *c)
{
    return sqrtf(-2 * logf((float)check_random(c))) * cosf(6.2831853f * (float)check_random(c));
}

/* ---- formats ---- */

float check_widen(const struct check *c, uint32_t code)
{
    float f;
    memcpy(&f, &code, sizeof(f));
    return c->storage == GPU_F32 ? f : f16_to_float(c->storage, (uint16_t)code);
}

uint32_t check_narrow(const struct check *c, float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    return c->storage == GPU_F32 ? bits : f16_from_float(c->storage, f);
}

static bool is_f32(const struct check *c, const struct check_tensor *t)
{
    return t->f32 || c->storage == GPU_F32;
}

/* ---- memory ---- */

static void *alloc_device(struct check *c, size_t size)
{
    void *p = NULL;
    if (!check_ok(c) || gpu_alloc(c->g, GPU_MEM_DEVICE, size, &p, &c->err))
        return NULL;
    *ARENA_PUSH(&c->arena, c->device, c->n_device) = p;
    return p;
}

static void upload(struct check *c, void *device, const void *bytes, size_t n)
{
    if (check_ok(c) && !gpu_upload(c->g, NULL, device, bytes, n, &c->err))
        gpu_wait(c->g, NULL, &c->err);
}

void check_read_bytes(struct check *c, void *into, const void *device, size_t n)
{
    if (check_ok(c) && !gpu_download(c->g, NULL, into, device, n, &c->err))
        gpu_wait(c->g, NULL, &c->err);
}

void *check_bytes(struct check *c, const void *bytes, size_t n)
{
    void *p = alloc_device(c, n);
    upload(c, p, bytes, n);
    return p;
}

static void send(struct check *c, struct check_tensor *t)
{
    if (is_f32(c, t)) {
        t->device = check_bytes(c, t->host, t->n * sizeof(float));
        return;
    }
    uint16_t *codes = arena_alloc(&c->arena, t->n * sizeof(*codes));
    for (size_t i = 0; i < t->n; i++) {
        codes[i] = f16_from_float(c->storage, t->host[i]);
        t->host[i] = f16_to_float(c->storage, codes[i]);
    }
    t->device = check_bytes(c, codes, t->n * sizeof(*codes));
}

static struct check_tensor make(struct check *c, size_t n, bool f32)
{
    return (struct check_tensor){ .n = n, .f32 = f32, .host = arena_alloc(&c->arena, n * sizeof(float)) };
}

static struct check_tensor input(struct check *c, size_t n, float scale, bool f32)
{
    struct check_tensor t = make(c, n, f32);
    for (size_t i = 0; i < n; i++)
        t.host[i] = normal(c) * scale;
    send(c, &t);
    return t;
}

struct check_tensor check_input(struct check *c, size_t n, float scale)
{
    return input(c, n, scale, false);
}

struct check_tensor check_input_f32(struct check *c, size_t n, float scale)
{
    return input(c, n, scale, true);
}

struct check_tensor check_values(struct check *c, size_t n, const float *values)
{
    struct check_tensor t = make(c, n, false);
    memcpy(t.host, values, n * sizeof(float));
    send(c, &t);
    return t;
}

void check_poison(struct check *c, struct check_tensor *t, size_t i)
{
    t->host[i] = NAN;
    send(c, t);
    check_allow_odd(c);
}

void check_allow_odd(struct check *c)
{
    c->is_odd_fine = true;
}

static struct check_tensor output(struct check *c, size_t n, bool f32)
{
    struct check_tensor t = make(c, n, f32);
    for (size_t i = 0; i < n; i++)
        t.host[i] = NAN;
    send(c, &t);
    return t;
}

struct check_tensor check_output(struct check *c, size_t n)
{
    return output(c, n, false);
}

struct check_tensor check_output_f32(struct check *c, size_t n)
{
    return output(c, n, true);
}

double *check_doubles(struct check *c, size_t n)
{
    return arena_alloc(&c->arena, n * sizeof(double));
}

double *check_zeros(struct check *c, size_t n)
{
    double *d = check_doubles(c, n);
    for (size_t i = 0; i < n; i++)
        d[i] = 0;
    return d;
}

double *check_numbers(struct check *c, const struct check_tensor *t)
{
    double *d = check_doubles(c, t->n);
    for (size_t i = 0; i < t->n; i++)
        d[i] = t->host[i];
    return d;
}

/* ---- work ---- */

static bool is_odd_and_fine(const struct check *c)
{
    return c->is_odd_fine && gpu_fault(c->g)->kind >= K_FAULT_READ;
}

void check_launch(struct check *c, const char *kernel, struct gpu_grid grid, const void *args,
                  size_t args_size)
{
    const struct gpu_kernel *k;
    if (!check_ok(c) || gpu_kernel(c->g, kernel, c->storage, &k, &c->err))
        return;
    if (!gpu_launch(c->g, NULL, k, grid, args, args_size, &c->err))
        gpu_wait(c->g, NULL, &c->err);
    else if (is_odd_and_fine(c))
        c->err = (struct cairn_error){ 0 };
}

void check_gave_up(struct check *c, const struct cairn_error *err)
{
    if (!is_odd_and_fine(c))
        check_complain(c, "%s", err->msg);
}

void check_fetch(struct check *c, struct check_tensor *t)
{
    if (is_f32(c, t)) {
        check_read_bytes(c, t->host, t->device, t->n * sizeof(float));
        return;
    }
    uint16_t *codes = arena_alloc(&c->arena, t->n * sizeof(*codes));
    check_read_bytes(c, codes, t->device, t->n * sizeof(*codes));
    for (size_t i = 0; i < t->n; i++)
        t->host[i] = f16_to_float(c->storage, codes[i]);
}

void check_equal_bytes(struct check *c, const void *device, const void *want, size_t n)
{
    unsigned char *got = arena_alloc(&c->arena, n ? n : 1);
    check_read_bytes(c, got, device, n);
    for (size_t i = 0; i < n && check_ok(c); i++)
        if (got[i] != ((const unsigned char *)want)[i])
            check_complain(c, "byte %zu of %zu is 0x%02x, not 0x%02x", i, n, got[i],
                           ((const unsigned char *)want)[i]);
}

void check_compare(struct check *c, struct check_tensor *got, const double *want, double slack)
{
    /* Half of it, at 1. */
    static const double spacing[GPU_STORAGES] = {
        [GPU_F32] = 0x1p-24, [GPU_BF16] = 0x1p-8, [GPU_F16] = 0x1p-11
    };
    check_fetch(c, got);
    double largest = 0;
    for (size_t i = 0; i < got->n; i++)
        largest = fmax(largest, fabs(want[i]));
    /* Sums in f32 lose a little whatever they are stored in. */
    double unit = (is_f32(c, got) ? spacing[GPU_F32] : spacing[c->storage] + 8 * spacing[GPU_F32]) * slack;
    for (size_t i = 0; i < got->n && check_ok(c); i++) {
        double off = isnan(want[i]) && isnan(got->host[i])
                         ? 0
                         : fabs(got->host[i] - want[i]) / (largest > 0 ? largest : 1);
        if (!(off <= unit))
            check_complain(c, "element %zu of %zu is %.9g, not %.9g", i, got->n, (double)got->host[i],
                           want[i]);
        if (!(off / unit < c->result->error)) {
            c->result->error = off / unit;
            c->result->relative = off;
            c->result->tolerance = unit;
        }
    }
}

static uint64_t seed_of(const char *name)
{
    uint64_t h = 14695981039346656037u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 1099511628211u;
    return h;
}

static void run_case(struct gpu *g, const struct check_case *row, enum gpu_storage storage,
                     struct check_result *result)
{
    struct check c = { .g = g, .storage = storage, .random = seed_of(row->kernel), .result = result };
    *result = (struct check_result){ .kernel = row->kernel, .storage = storage };
    row->run(&c);
    if (c.err.code) {
        result->failed = true;
        snprintf(result->why, sizeof(result->why), "%s", c.err.msg);
        snprintf(result->hint, sizeof(result->hint), "%s", c.err.hint);
    }
    result->ok = check_ok(&c);
    for (size_t i = 0; i < c.n_device; i++)
        gpu_free(g, GPU_MEM_DEVICE, c.device[i]);
    arena_release(&c.arena);
}

/* A case that is not named after a kernel is there for all formats. */
static bool exists(struct gpu *g, const struct check_case *row, enum gpu_storage storage)
{
    const struct kernel_row *kernel = kernel_find(row->kernel);
    return !kernel || kernel_is_for(kernel, g, storage);
}

bool check_run(struct gpu *g, const struct check_case *row, enum gpu_storage s, struct check_result *out)
{
    if ((row->f32_only && s != GPU_F32) || !exists(g, row, s))
        return false;
    run_case(g, row, s, out);
    return true;
}

const struct check_case *check_nth(size_t nth)
{
    for (size_t t = 0; t < ARRAY_LEN(tables); nth -= *tables[t++].n)
        if (nth < *tables[t].n)
            return &tables[t].cases[nth];
    return NULL;
}

static size_t count_cases(void)
{
    size_t n = 0;
    for (size_t t = 0; t < ARRAY_LEN(tables); t++)
        n += *tables[t].n * GPU_STORAGES;
    return n;
}

int check_all(struct gpu *g, const char *only, bool (*stop)(void), struct check_result **out, size_t *n,
              struct cairn_error *err)
{
    *n = 0;
    *out = calloc(count_cases(), sizeof(**out));
    if (!*out)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for the results");
    const struct check_case *row;
    for (size_t i = 0; (row = check_nth(i)); i++)
        for (int s = 0; s < GPU_STORAGES; s++)
            if ((!only || strstr(row->kernel, only)) && !gpu_lost(g) && !(stop && stop()))
                *n += check_run(g, row, (enum gpu_storage)s, &(*out)[*n]);
    return 0;
}
