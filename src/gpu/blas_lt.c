/* SPDX-License-Identifier: Apache-2.0
 * cuBLASLt and hipBLASLt.  Of their structs only the first field of a heuristic's answer is used, the algorithm, as
 * bytes that are passed back. */
#include "gpu/blas_lt.h"

#include "gpu/blas_way.h"
#include "gpu/device_api.h"
#include "gpu/libraries.h"
#include "gpu/watch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKSPACE = 32 << 20, RESULT_ROOM = 512 };

/* Numbers that the two give different meanings. */
struct lt_codes {
    const char *name;
    int compute_f32, as_it_is, transposed;
    int op_a, op_b;                /* attributes of an operation */
    int batch_count, batch_stride; /* of a layout */
    int most_workspace;            /* of a preference */
};
static const struct lt_codes cublaslt = { "cublaslt", 68, 0, 1, 3, 4, 5, 6, 1 };
static const struct lt_codes hipblaslt = { "hipblaslt", 2, 111, 112, 0, 1, 0, 1, 1 };
enum { TYPE_F32 = 0, TYPE_F16 = 2, TYPE_BF16 = 14 };

#define AS_CUDA(field, name, args) { "cublasLt" #name, offsetof(struct lt_api, field), false },
#define AS_HIP(field, name, args) { "hipblasLt" #name, offsetof(struct lt_api, field), false },
static const struct dl_symbol cuda_symbols[] = { LT_SYMBOLS(AS_CUDA) };
static const struct dl_symbol hip_symbols[] = { LT_SYMBOLS(AS_HIP) };

/* What was found out for a shape; the descriptors hold no pointers to numbers. */
struct plan {
    struct gemm_args key; /* pointers and factors 0, but for beta: 0 or 1 */
    enum gpu_storage storage;
    size_t batches;
    void *operation, *a, *b, *c;
    unsigned char algorithm[RESULT_ROOM] __attribute__((aligned(16)));
    bool none; /* the library has no algorithm */
};

struct lt {
    struct lt_api api;
    const struct lt_codes *codes;
    void *handle, *workspace;
    struct plan *plans;
    size_t n_plans;
};

static int fail(const struct lt *lt, int code, const char *what, struct cairn_error *err)
{
    return cairn_fail(err, CAIRN_EIO, "%s: %s: status %d", lt->codes->name, what, code);
}

static void plan_release(const struct lt *lt, struct plan *p)
{
    void *const layouts[] = { p->a, p->b, p->c };
    for (size_t i = 0; i < ARRAY_LEN(layouts); i++)
        if (layouts[i])
            lt->api.layout_destroy(layouts[i]);
    if (p->operation)
        lt->api.operation_destroy(p->operation);
}

static void close_library(struct gpu *g, void *state)
{
    struct lt *lt = state;
    if (!lt)
        return;
    for (size_t i = 0; i < lt->n_plans; i++)
        plan_release(lt, &lt->plans[i]);
    if (lt->handle)
        lt->api.destroy(lt->handle);
    gpu_free(g, GPU_MEM_DEVICE, lt->workspace);
    free(lt->plans);
    free(lt);
}

static int open_library(struct gpu *g, const struct lt_codes *codes, enum library which,
                        const struct dl_symbol *symbols, size_t n, void **state, struct cairn_error *err)
{
    char path[256];
    void *library;
    struct lt *lt = calloc(1, sizeof(*lt));
    if (!lt)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %s", codes->name);
    lt->codes = codes;
    if (library_open(which, &library, path, sizeof(path), err) ||
        dl_resolve(library, path, symbols, n, &lt->api, err)) {
        free(lt);
        return -1;
    }
    watch_enter(g->info.name, codes->name);
    int code = lt->api.create(&lt->handle);
    watch_leave();
    if (code || gpu_alloc(g, GPU_MEM_DEVICE, WORKSPACE, &lt->workspace, err)) {
        if (code)
            fail(lt, code, path, err);
        close_library(g, lt);
        return -1;
    }
    *state = lt;
    return 0;
}

static int open_cuda(struct gpu *g, void **state, struct cairn_error *err)
{
    return open_library(g, &cublaslt, LIBRARY_CUBLASLT, cuda_symbols, ARRAY_LEN(cuda_symbols), state, err);
}

static int open_hip(struct gpu *g, void **state, struct cairn_error *err)
{
    /* Before 6.0 the numbers of types and computations were others. */
    if (g->info.runtime < 60000000)
        return cairn_fail(err, CAIRN_ELACK, "hipblaslt: ROCm 6.0 or newer is needed");
    if (blas_probe(g, "hipblaslt", err))
        return -1;
    return open_library(g, &hipblaslt, LIBRARY_HIPBLASLT, hip_symbols, ARRAY_LEN(hip_symbols), state, err);
}

static bool fits(const struct gpu *g, const struct blas_call *c)
{
    (void)g;
    return c->args->k > 0;
}

/* On gfx1151 the layout of weight gradients runs at a third of rocBLAS's speed
 * (https://github.com/ROCm/TheRock/issues/5314). */
static bool fits_hip(const struct gpu *g, const struct blas_call *c)
{
    bool slow = !strncmp(g->info.arch, "gfx1151", 7) && c->args->a_transposed && !c->args->b_transposed;
    return fits(g, c) && !slow;
}

static int layout(const struct lt *lt, void **out, int type, k_i64 rows, k_i64 columns, k_i64 ld,
                  size_t batches, k_i64 stride)
{
    int32_t count = (int32_t)batches;
    int64_t distance = stride;
    int code = lt->api.layout_create(out, type, (uint64_t)columns, (uint64_t)rows, ld);
    if (!code)
        code = lt->api.layout_set(*out, lt->codes->batch_count, &count, sizeof(count));
    if (!code)
        code = lt->api.layout_set(*out, lt->codes->batch_stride, &distance, sizeof(distance));
    return code;
}

/* The library counts columns first, so that our rows are its columns: cᵀ = bᵀ aᵀ. */
static int describe(const struct lt *lt, struct plan *p, const struct blas_call *call)
{
    static const int types[] = { TYPE_F32, TYPE_BF16, TYPE_F16 };
    const struct gemm_args *g = call->args;
    int type = types[call->storage], c_type = g->c_f32 ? TYPE_F32 : type;
    int32_t op_a = g->b_transposed ? lt->codes->transposed : lt->codes->as_it_is;
    int32_t op_b = g->a_transposed ? lt->codes->transposed : lt->codes->as_it_is;
    int code = lt->api.operation_create(&p->operation, lt->codes->compute_f32, TYPE_F32);
    if (!code)
        code = lt->api.operation_set(p->operation, lt->codes->op_a, &op_a, sizeof(op_a));
    if (!code)
        code = lt->api.operation_set(p->operation, lt->codes->op_b, &op_b, sizeof(op_b));
    if (!code)
        code = layout(lt, &p->a, type, g->b_transposed ? g->n : g->k, g->b_transposed ? g->k : g->n,
                      g->b_stride, call->batches, g->b_batch);
    if (!code)
        code = layout(lt, &p->b, type, g->a_transposed ? g->k : g->m, g->a_transposed ? g->m : g->k,
                      g->a_stride, call->batches, g->a_batch);
    if (!code)
        code = layout(lt, &p->c, c_type, g->m, g->n, g->c_stride, call->batches, g->c_batch);
    return code;
}

static int choose(const struct lt *lt, struct plan *p)
{
    uint64_t most = WORKSPACE;
    void *preference;
    int found = 0, code = lt->api.preference_create(&preference);
    if (code)
        return code;
    code = lt->api.preference_set(preference, lt->codes->most_workspace, &most, sizeof(most));
    if (!code)
        code = lt->api.heuristic(lt->handle, p->operation, p->a, p->b, p->c, p->c, preference, 1,
                                 p->algorithm, &found);
    lt->api.preference_destroy(preference);
    p->none = code || !found;
    return 0;
}

static struct gemm_args key_of(const struct gemm_args *args)
{
    struct gemm_args key;
    memset(&key, 0, sizeof(key));
    key.m = args->m, key.n = args->n, key.k = args->k;
    key.a_stride = args->a_stride, key.b_stride = args->b_stride, key.c_stride = args->c_stride;
    key.a_batch = args->a_batch, key.b_batch = args->b_batch, key.c_batch = args->c_batch;
    key.a_transposed = args->a_transposed, key.b_transposed = args->b_transposed, key.c_f32 = args->c_f32;
    return key;
}

static int find_plan(struct lt *lt, const struct blas_call *call, struct plan **out, struct cairn_error *err)
{
    struct gemm_args key = key_of(call->args);
    for (size_t i = 0; i < lt->n_plans; i++) {
        *out = &lt->plans[i];
        if ((*out)->storage == call->storage && (*out)->batches == call->batches &&
            !memcmp(&(*out)->key, &key, sizeof(key)))
            return 0;
    }
    struct plan *grown = realloc(lt->plans, (lt->n_plans + 1) * sizeof(*grown));
    if (!grown)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for a plan of %s", lt->codes->name);
    lt->plans = grown;
    struct plan *p = &grown[lt->n_plans];
    memset(p, 0, sizeof(*p));
    p->key = key, p->storage = call->storage, p->batches = call->batches;
    int code = describe(lt, p, call);
    if (!code)
        code = choose(lt, p);
    if (code) {
        plan_release(lt, p);
        return fail(lt, code, "describe the matrices", err);
    }
    lt->n_plans++;
    *out = p;
    return 0;
}

static int run(struct gpu *g, void *state, const struct blas_call *call, struct cairn_error *err)
{
    struct lt *lt = state;
    const struct gemm_args *a = call->args;
    struct plan *p;
    if (find_plan(lt, call, &p, err))
        return -1;
    if (p->none)
        return cairn_fail(err, CAIRN_ELACK, "%s has no algorithm for this shape", lt->codes->name);
    watch_enter(g->info.name, lt->codes->name);
    int code =
        lt->api.matmul(lt->handle, p->operation, &a->alpha, a->b, p->a, a->a, p->b, &a->beta, a->c, p->c,
                       a->c, p->c, p->algorithm, lt->workspace, WORKSPACE, device_queue(g, call->stream));
    watch_leave();
    return code ? fail(lt, code, "multiply", err) : 0;
}

const struct blas_way blas_cublaslt = { "cublaslt", GPU_API_CUDA,  false, false,
                                        open_cuda,  close_library, fits,  run };
const struct blas_way blas_hipblaslt = { "hipblaslt", GPU_API_HIP,   false,    false,
                                         open_hip,    close_library, fits_hip, run };
