/* SPDX-License-Identifier: Apache-2.0
 * cuBLASLt and hipBLASLt.  Of their structs only the first field of a heuristic result is used: the
 * algorithm, as opaque bytes.
 *
 * Our matrices are row-major, theirs are column-major: the same memory is the transposed matrix, and cᵀ = bᵀ
 * aᵀ.  So nothing is copied, and their bias, one per row, is ours, one per column. */
#include "gpu/blas_lt.h"

#include "chip/gfx_table.h"
#include "gpu/blas.h"
#include "gpu/blas_way.h"
#include "gpu/device_api.h"
#include "gpu/kernels/elementwise.h"
#include "gpu/libraries.h"
#include "gpu/watch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKSPACE = 32 << 20, RESULT_ROOM = 512, ALGORITHMS = 8, BIASES = 1 << 18 };

/* Constants that differ between the two. */
struct lt_codes {
    const char *name;
    int compute_f32, as_it_is, transposed;
    int op_a, op_b; /* attributes of an operation */
    int epilogue, bias, bias_type, aux, aux_ld, aux_batch;
    int batch_count, batch_stride; /* of a layout */
    int most_workspace;            /* of a preference */
    int alignment;                 /* the first of four; 0: there is none */
    size_t result_size;            /* of a heuristic's answer; 0: not known, so only one is asked for */
    bool bias_f32;                 /* takes a bias in f32 to a 16-bit result; else it is rounded first */
};
static const struct lt_codes cublaslt = { "cublaslt", 68, 0,  1, 3, 4, 7, 8,  26,
                                          11,         12, 13, 5, 6, 1, 5, 96, false };
static const struct lt_codes hipblaslt = { "hipblaslt", 2,  111, 112, 0, 1, 2, 3, 4,
                                           10,          11, 12,  0,   1, 1, 0, 0, true };
enum { TYPE_F32 = 0, TYPE_F16 = 2, TYPE_BF16 = 14 };
enum { EPILOGUE_NONE = 1, EPILOGUE_BIAS = 4, EPILOGUE_GELU = 32, EPILOGUE_SLOPE = 64, EPILOGUE_AUX = 128 };

#define AS_CUDA(field, name, args) { "cublasLt" #name, offsetof(struct lt_api, field), false },
#define AS_HIP(field, name, args) { "hipblasLt" #name, offsetof(struct lt_api, field), false },
static const struct dl_symbol cuda_symbols[] = { LT_SYMBOLS(AS_CUDA) };
static const struct dl_symbol hip_symbols[] = { LT_SYMBOLS(AS_HIP) };

/* An operation and the algorithms for it, the library's favourite first. */
struct recipe {
    void *operation;
    unsigned char algorithms[ALGORITHMS][RESULT_ROOM] __attribute__((aligned(16)));
    int n;
};

/* All that an algorithm depends on. */
struct plan_key {
    k_i64 m, n, k, a_stride, b_stride, c_stride, a_batch, b_batch, c_batch;
    size_t batches, alignment;
    k_u32 storage, a_transposed, b_transposed, c_f32;
    int epilogue; /* 0: there is nothing to fuse */
};

struct plan {
    struct plan_key key;
    void *a, *b, *c;
    struct recipe fused, plain; /* with bias, GELU and residual, where the library has that; without */
};

struct lt {
    struct lt_api api;
    const struct lt_codes *codes;
    void *handle, *workspace, *biases;
    struct plan **plans;
    size_t n_plans;
};

static int fail(const struct lt *lt, int code, const char *what, struct cairn_error *err)
{
    return cairn_fail(err, CAIRN_EDEVICE, "%s: %s: status %d", lt->codes->name, what, code);
}

static void plan_free(const struct lt *lt, struct plan *p)
{
    void *const layouts[] = { p->a, p->b, p->c };
    for (size_t i = 0; i < ARRAY_LEN(layouts); i++)
        if (layouts[i])
            lt->api.layout_destroy(layouts[i]);
    if (p->fused.operation)
        lt->api.operation_destroy(p->fused.operation);
    if (p->plain.operation)
        lt->api.operation_destroy(p->plain.operation);
    free(p);
}

static void close_library(struct gpu *g, void *state)
{
    struct lt *lt = state;
    if (!lt)
        return;
    for (size_t i = 0; i < lt->n_plans; i++)
        plan_free(lt, lt->plans[i]);
    if (lt->handle)
        lt->api.destroy(lt->handle);
    gpu_free(g, GPU_MEM_DEVICE, lt->workspace);
    gpu_free(g, GPU_MEM_DEVICE, lt->biases);
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
    if (code || gpu_alloc(g, GPU_MEM_DEVICE, WORKSPACE, &lt->workspace, err) ||
        gpu_alloc(g, GPU_MEM_DEVICE, BIASES * sizeof(k_u16), &lt->biases, err)) {
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
    /* Before 6.0 the constants of types and computations were different. */
    if (g->info.runtime < 60000000)
        return cairn_fail(err, CAIRN_ELACK, "hipblaslt: needs ROCm 6.0 or newer");
    if (blas_probe(g, "hipblaslt", err))
        return -1;
    return open_library(g, &hipblaslt, LIBRARY_HIPBLASLT, hip_symbols, ARRAY_LEN(hip_symbols), state, err);
}

static bool fits(const struct gpu *g, const struct blas_call *c)
{
    (void)g;
    return c->args->k > 0;
}

/* On some chips the layout of weight gradients runs at a third of rocBLAS's speed
 * (https://github.com/ROCm/TheRock/issues/5314). */
static bool fits_hip(const struct gpu *g, const struct blas_call *c)
{
    bool slow =
        g->info.chip && g->info.chip->slow_lt_gradients && c->args->a_transposed && !c->args->b_transposed;
    return fits(g, c) && !slow;
}

struct matrix {
    int type;
    k_i64 rows, columns, stride, batch;
    bool transposed;
};

static int layout(const struct lt *lt, void **out, struct matrix m, size_t batches)
{
    int32_t count = (int32_t)batches;
    int64_t distance = m.batch;
    int code = lt->api.layout_create(out, m.type, (uint64_t)(m.transposed ? m.rows : m.columns),
                                     (uint64_t)(m.transposed ? m.columns : m.rows), m.stride);
    if (!code)
        code = lt->api.layout_set(*out, lt->codes->batch_count, &count, sizeof(count));
    if (!code)
        code = lt->api.layout_set(*out, lt->codes->batch_stride, &distance, sizeof(distance));
    return code;
}

static const int types[GPU_STORAGES] = { [GPU_F32] = TYPE_F32, [GPU_BF16] = TYPE_BF16, [GPU_F16] = TYPE_F16 };

static int describe(const struct lt *lt, struct plan *p, const struct blas_call *call)
{
    const struct gemm_args *g = call->args;
    int type = types[call->storage], c_type = g->c_f32 ? TYPE_F32 : type;
    const struct matrix a = { type, g->m, g->k, g->a_stride, g->a_batch, g->a_transposed },
                        b = { type, g->k, g->n, g->b_stride, g->b_batch, g->b_transposed },
                        c = { c_type, g->m, g->n, g->c_stride, g->c_batch, false };
    int code = layout(lt, &p->a, b, call->batches); /* the library's matrices are column by column */
    code = code ? code : layout(lt, &p->b, a, call->batches);
    return code ? code : layout(lt, &p->c, c, call->batches);
}

/* The library computes epilogue(alpha a b + beta c + bias), and c may be another matrix than the result: so
 * bias, GELU with what it was given, its slope, or a residual.  In f32 our own GELU is the more exact one. */
static bool can_fuse(const struct blas_call *call)
{
    const struct gemm_args *a = call->args;
    if (call->slope_of)
        return call->storage != GPU_F32 && a->c_stride % 8 == 0;
    if (call->storage == GPU_F32 || (a->bias && a->bias_rows) || (a->residual && (a->beta != 0 || a->c_f32)))
        return false;
    if (a->gelu && (a->beta != 0 || a->residual))
        return false;
    if (a->before && (!a->gelu || a->c_f32 || a->c_stride % 8 || a->c_batch % 8))
        return false;
    return (a->bias && a->n <= BIASES) || (!a->bias && (a->gelu || a->residual));
}

static bool rounds_bias(const struct lt *lt, const struct gemm_args *a)
{
    return a->bias && !a->c_f32 && !lt->codes->bias_f32;
}

static int set_operation(const struct lt *lt, void *operation, int attribute, int32_t value)
{
    return lt->api.operation_set(operation, attribute, &value, sizeof(value));
}

/* What GELU was given: written, or read where its slope is wanted. */
static const void *aux_of(const struct blas_call *call)
{
    return call->slope_of ? call->slope_of : call->args->before;
}

static int set_pointers(const struct lt *lt, void *operation, const struct blas_call *call)
{
    const struct gemm_args *a = call->args;
    const void *aux = aux_of(call);
    const void *bias = rounds_bias(lt, a) ? lt->biases : a->bias;
    int code = bias ? lt->api.operation_set(operation, lt->codes->bias, &bias, sizeof(bias)) : 0;
    if (!code && aux)
        code = lt->api.operation_set(operation, lt->codes->aux, &aux, sizeof(aux));
    return code;
}

static int epilogue_of(const struct blas_call *call)
{
    const struct gemm_args *a = call->args;
    int epilogue = (a->bias ? EPILOGUE_BIAS : 0) | (a->gelu ? EPILOGUE_GELU : 0) |
                   (call->slope_of ? EPILOGUE_SLOPE : 0) | (aux_of(call) ? EPILOGUE_AUX : 0);
    return epilogue ? epilogue : EPILOGUE_NONE;
}

static int set_epilogue(const struct lt *lt, void *operation, const struct blas_call *call, int epilogue)
{
    const struct gemm_args *a = call->args;
    int64_t ld = a->c_stride, batch = a->c_batch;
    int code = set_operation(lt, operation, lt->codes->epilogue, epilogue);
    if (!code && a->bias && !rounds_bias(lt, a)) /* else that of the result */
        code = set_operation(lt, operation, lt->codes->bias_type, TYPE_F32);
    if (!code && aux_of(call))
        code = lt->api.operation_set(operation, lt->codes->aux_ld, &ld, sizeof(ld));
    if (!code && aux_of(call))
        code = lt->api.operation_set(operation, lt->codes->aux_batch, &batch, sizeof(batch));
    return code ? code : set_pointers(lt, operation, call);
}

static int set_preference(const struct lt *lt, void *preference, size_t alignment)
{
    uint64_t most = WORKSPACE;
    uint32_t least = (uint32_t)alignment;
    int code = lt->api.preference_set(preference, lt->codes->most_workspace, &most, sizeof(most));
    for (int i = 0; i < 4 && !code && lt->codes->alignment; i++)
        code = lt->api.preference_set(preference, lt->codes->alignment + i, &least, sizeof(least));
    return code;
}

/* Finds none if the library does not support the operation. */
static void find_algorithms(const struct lt *lt, const struct plan *p, struct recipe *r)
{
    size_t size = lt->codes->result_size;
    unsigned char results[ALGORITHMS * RESULT_ROOM] __attribute__((aligned(16))) = { 0 };
    void *preference;
    int found = 0;
    if (lt->api.preference_create(&preference))
        return;
    if (!set_preference(lt, preference, p->key.alignment) &&
        !lt->api.heuristic(lt->handle, r->operation, p->a, p->b, p->c, p->c, preference,
                           size ? ALGORITHMS : 1, results, &found))
        r->n = found;
    for (int i = 0; i < r->n; i++)
        memcpy(r->algorithms[i], results + (size_t)i * size, size ? size : RESULT_ROOM);
    lt->api.preference_destroy(preference);
}

static int make_recipe(const struct lt *lt, const struct plan *p, struct recipe *r,
                       const struct blas_call *call, int epilogue)
{
    const struct lt_codes *c = lt->codes;
    const struct gemm_args *a = call->args;
    int code = lt->api.operation_create(&r->operation, c->compute_f32, TYPE_F32);
    if (!code)
        code = set_operation(lt, r->operation, c->op_a, a->b_transposed ? c->transposed : c->as_it_is);
    if (!code)
        code = set_operation(lt, r->operation, c->op_b, a->a_transposed ? c->transposed : c->as_it_is);
    if (code)
        return code;
    if (!epilogue || !set_epilogue(lt, r->operation, call, epilogue))
        find_algorithms(lt, p, r);
    return 0;
}

static struct plan_key key_of(const struct blas_call *call)
{
    const struct gemm_args *a = call->args;
    struct plan_key key;
    memset(&key, 0, sizeof(key)); /* including the padding */
    key.m = a->m, key.n = a->n, key.k = a->k;
    key.a_stride = a->a_stride, key.b_stride = a->b_stride, key.c_stride = a->c_stride;
    key.a_batch = a->a_batch, key.b_batch = a->b_batch, key.c_batch = a->c_batch;
    key.batches = call->batches;
    key.alignment = blas_alignment(call);
    key.storage = call->storage;
    key.a_transposed = a->a_transposed, key.b_transposed = a->b_transposed, key.c_f32 = a->c_f32;
    key.epilogue = can_fuse(call) ? epilogue_of(call) : 0;
    return key;
}

static int plan_make(const struct lt *lt, const struct blas_call *call, struct plan *p)
{
    int code = describe(lt, p, call);
    if (!code)
        code = make_recipe(lt, p, &p->plain, call, 0);
    if (!code && p->key.epilogue)
        code = make_recipe(lt, p, &p->fused, call, p->key.epilogue);
    return code;
}

static int find_plan(struct lt *lt, const struct blas_call *call, struct plan **out, struct cairn_error *err)
{
    struct plan_key key = key_of(call);
    for (size_t i = 0; i < lt->n_plans; i++)
        if (!memcmp(&lt->plans[i]->key, &key, sizeof(key))) {
            *out = lt->plans[i];
            return 0;
        }
    struct plan *p = calloc(1, sizeof(*p));
    struct plan **grown = realloc(lt->plans, (lt->n_plans + 1) * sizeof(*grown));
    lt->plans = grown ? grown : lt->plans;
    if (!p || !grown) {
        free(p);
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for a plan of %s", lt->codes->name);
    }
    p->key = key;
    int code = plan_make(lt, call, p);
    if (code) {
        plan_free(lt, p);
        return fail(lt, code, "describe the matrices", err);
    }
    lt->plans[lt->n_plans++] = *out = p;
    return 0;
}

/* The algorithms that also do the rest, then those that do not. */
static int variants(struct gpu *g, void *state, const struct blas_call *call)
{
    struct cairn_error err = { 0 };
    struct plan *p;
    (void)g;
    return find_plan(state, call, &p, &err) ? 0 : p->fused.n + p->plain.n;
}

static int round_bias(struct gpu *g, const struct lt *lt, const struct blas_call *call,
                      struct cairn_error *err)
{
    const struct gpu_kernel *k;
    struct narrow_args args = { .y = lt->biases, .x = call->args->bias, .n = call->args->n };
    if (gpu_kernel(g, "narrow", call->storage, &k, err))
        return -1;
    return gpu_launch(g, call->stream, k, (struct gpu_grid){ .x = (unsigned)K_GROUPS(args.n) }, &args,
                      sizeof(args), err);
}

static int run(struct gpu *g, void *state, const struct blas_call *call, bool *finished,
               struct cairn_error *err)
{
    struct lt *lt = state;
    const struct gemm_args *a = call->args;
    struct plan *p;
    if (find_plan(lt, call, &p, err))
        return -1;
    *finished = call->variant < p->fused.n;
    const struct recipe *r = *finished ? &p->fused : &p->plain;
    int i = call->variant - (*finished ? 0 : p->fused.n);
    if (i >= r->n)
        return cairn_fail(err, CAIRN_ELACK, "%s has no algorithm %d for this shape", lt->codes->name, i);
    if (*finished && rounds_bias(lt, a) && round_bias(g, lt, call, err))
        return -1;
    bool adds = *finished && a->residual;
    const void *c = adds ? a->residual : a->c;
    float beta = adds ? 1 : a->beta;
    int code = *finished ? set_pointers(lt, r->operation, call) : 0;
    watch_enter(g->info.name, lt->codes->name);
    if (!code)
        code =
            lt->api.matmul(lt->handle, r->operation, &a->alpha, a->b, p->a, a->a, p->b, &beta, c, p->c, a->c,
                           p->c, r->algorithms[i], lt->workspace, WORKSPACE, device_queue(g, call->stream));
    watch_leave();
    return code ? fail(lt, code, "multiply", err) : 0;
}

const struct blas_way blas_cublaslt = { .name = "cublaslt",
                                        .api = GPU_API_CUDA,
                                        .open = open_cuda,
                                        .close = close_library,
                                        .fits = fits,
                                        .variants = variants,
                                        .run = run };
const struct blas_way blas_hipblaslt = { .name = "hipblaslt",
                                         .api = GPU_API_HIP,
                                         .open = open_hip,
                                         .close = close_library,
                                         .fits = fits_hip,
                                         .variants = variants,
                                         .run = run };

size_t blas_device_bytes(enum gpu_api api)
{
    return api == GPU_API_HOST ? 0 : WORKSPACE + BIASES * sizeof(k_u16);
}
