/* SPDX-License-Identifier: Apache-2.0
 * f32 matmuls on the CPU through OpenBLAS, if it is installed.  It is called once on each of the device's
 * threads, for a part of c: its own threads would spin long after a call and slow down ours. */
#include "base/int.h"
#include "gpu/blas_way.h"

#include "gpu/backend.h"
#include "gpu/dl.h"
#include "os/memory.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

struct openblas {
    void (*sgemm)(int order, int a_op, int b_op, int m, int n, int k, float alpha, const float *a, int a_ld,
                  const float *b, int b_ld, float beta, float *c, int c_ld);
    void (*set_num_threads)(int n);
    int (*get_parallel)(void);
};
enum { PART_OF = 48 /* rows or columns: whole tiles of the library's */ };
enum { WITH_PTHREADS = 1 };
enum { ROWS_FIRST = 101, AS_IT_IS = 111, TRANSPOSED = 112 };

/* It creates its threads when it is loaded, unless a variable says that it needs none, and raises SIGINT if
 * it cannot (ulimit -u, ulimit -v), which would look like a Ctrl-C. */
static int load(void **library, char *path, size_t size, struct cairn_error *err)
{
    static const char *const names[] = { "libopenblas.so.0", NULL };
    static const char variable[] = "OPENBLAS_NUM_THREADS";
    const char *was = getenv(variable);
    CLEANUP(mem_free) char *old = was ? strdup(was) : NULL;
    setenv(variable, "1", 1);
    int r = dl_open(names, NULL, library, path, size, err);
    if (old)
        setenv(variable, old, 1);
    else
        unsetenv(variable);
    return r;
}

/* Each thread that calls it gets a buffer; if it cannot be mapped (ulimit -v), it retries for ever. */
static bool has_address_space(int threads)
{
    enum { EACH_MIB = 128, LIBRARY_MIB = 64 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return true;
    uint64_t used = os_memory_use().reserved;
    uint64_t need = ((uint64_t)threads * EACH_MIB + LIBRARY_MIB) << 20;
    return limit.rlim_cur > used && limit.rlim_cur - used > need;
}

static int open_library(struct gpu *g, void **state, struct cairn_error *err)
{
    if (!has_address_space(g->info.units))
        return cairn_fail(err, CAIRN_ELACK, "OpenBLAS needs more address space than ulimit -v allows");
    static const struct dl_symbol symbols[] = {
        { "cblas_sgemm", offsetof(struct openblas, sgemm), false },
        { "openblas_set_num_threads", offsetof(struct openblas, set_num_threads), false },
        { "openblas_get_parallel", offsetof(struct openblas, get_parallel), false },
    };
    char path[256];
    void *library;
    struct openblas api;
    if (load(&library, path, sizeof(path), err) ||
        dl_resolve(library, path, symbols, ARRAY_LEN(symbols), &api, err))
        return -1;
    if (api.get_parallel() != WITH_PTHREADS)
        return cairn_fail(err, CAIRN_ELACK,
                          "%s is not the build with POSIX threads, which several threads can call", path);
    struct openblas *o = malloc(sizeof(*o));
    if (!o)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for OpenBLAS");
    *o = api;
    o->set_num_threads(1);
    *state = o;
    return 0;
}

static void close_library(struct gpu *g, void *state)
{
    (void)g;
    free(state);
}

static bool fits(const struct gpu *g, const struct blas_call *c)
{
    (void)g;
    const struct gemm_args *a = c->args;
    return c->storage == GPU_F32 && a->k > 0 && a->m < INT_MAX && a->n < INT_MAX && a->k < INT_MAX &&
           a->a_stride < INT_MAX && a->b_stride < INT_MAX && a->c_stride < INT_MAX;
}

struct job {
    const struct openblas *openblas;
    const struct gemm_args *args;
    size_t rows, columns; /* of a part of c */
    size_t down, across;  /* parts */
};

static void make_part(void *context, size_t piece)
{
    const struct job *j = context;
    const struct gemm_args *g = j->args;
    k_i64 batch = (k_i64)(piece / j->across / j->down);
    k_i64 row = (k_i64)(piece / j->across % j->down * j->rows),
          column = (k_i64)(piece % j->across * j->columns);
    k_i64 m = g->m - row < (k_i64)j->rows ? g->m - row : (k_i64)j->rows;
    k_i64 n = g->n - column < (k_i64)j->columns ? g->n - column : (k_i64)j->columns;
    const float *a = (const float *)g->a + batch * g->a_batch + row * (g->a_transposed ? 1 : g->a_stride);
    const float *b = (const float *)g->b + batch * g->b_batch + column * (g->b_transposed ? g->b_stride : 1);
    float *c = (float *)g->c + batch * g->c_batch + row * g->c_stride + column;
    j->openblas->sgemm(ROWS_FIRST, g->a_transposed ? TRANSPOSED : AS_IT_IS,
                       g->b_transposed ? TRANSPOSED : AS_IT_IS, (int)m, (int)n, (int)g->k, g->alpha, a,
                       (int)g->a_stride, b, (int)g->b_stride, g->beta, c, (int)g->c_stride);
}

/* The longer side of c is cut, into as many parts as there are threads. */
static int run(struct gpu *g, void *state, const struct blas_call *c, bool *finished, struct cairn_error *err)
{
    (void)finished, (void)err;
    size_t m = (size_t)c->args->m, n = (size_t)c->args->n, threads = (size_t)g->info.units;
    struct job j = { .openblas = state, .args = c->args, .rows = m, .columns = n };
    size_t *cut = m >= n ? &j.rows : &j.columns;
    *cut = div_up(*cut, threads);
    *cut = align_up(*cut, PART_OF);
    j.down = div_up(m, j.rows);
    j.across = div_up(n, j.columns);
    gpu_host_run(g, c->batches * j.down * j.across, make_part, &j);
    return 0;
}

const struct blas_way blas_openblas = {
    .name = "openblas",
    .api = GPU_API_HOST,
    .open = open_library,
    .close = close_library,
    .fits = fits,
    .run = run,
};
