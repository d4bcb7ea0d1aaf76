/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/blas.h"

#include "base/own.h"
#include "base/str.h"
#include "config.h"
#include "gpu/backend.h"
#include "gpu/blas_way.h"
#include "gpu/compile.h"
#include "gpu/gemm_cpu.h"
#include "gpu/kernels/elementwise.h"
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- own kernels ---- */

static int launch(struct gpu *g, const char *kernel, const struct blas_call *c, struct gpu_grid grid,
                  const struct gemm_args *args, struct cairn_error *err)
{
    const struct gpu_kernel *k;
    if (gpu_kernel(g, kernel, c->storage, &k, err))
        return -1;
    return gpu_launch(g, c->stream, k, grid, args, sizeof(*args), err);
}

static struct gpu_grid tiles(const struct blas_call *c)
{
    return (struct gpu_grid){ gemm_tiles(c->args->m, c->args->n), 1, (unsigned)c->batches };
}

static bool fits_all(const struct gpu *g, const struct blas_call *c)
{
    (void)g, (void)c;
    return true;
}

static int run_gemm(struct gpu *g, void *state, const struct blas_call *c, bool *finished,
                    struct cairn_error *err)
{
    (void)state, (void)finished;
    return launch(g, "gemm", c, tiles(c), c->args, err);
}

static bool fits_mma(const struct gpu *g, const struct blas_call *c)
{
    return g->info.api != GPU_API_HOST && gpu_has_mma(g) && c->storage != GPU_F32;
}

static int run_mma(struct gpu *g, void *state, const struct blas_call *c, bool *finished,
                   struct cairn_error *err)
{
    (void)state, (void)finished;
    return launch(g, "gemm_mma", c, tiles(c), c->args, err);
}

static int run_cpu(struct gpu *g, void *state, const struct blas_call *c, bool *finished,
                   struct cairn_error *err)
{
    (void)state, (void)finished;
    return gemm_cpu_run(g, c->storage, c->args, c->batches, err);
}

/* Kernels are rows of the same table: a faster one for some chip or shape is a row with its own condition. */
static const struct blas_way own_cpu = {
    .name = "cpu",
    .api = GPU_API_HOST,
    .finishes = true,
    .fits = fits_all,
    .run = run_cpu,
};
static const struct blas_way own_mma = {
    .name = "gemm_mma", .everywhere = true, .finishes = true, .fits = fits_mma, .run = run_mma
};
static const struct blas_way own_gemm = {
    .name = "gemm", .everywhere = true, .finishes = true, .fits = fits_all, .run = run_gemm
};

/* In the order of trial; the last supports every call. */
static const struct blas_way *const ways[] = {
    &own_cpu, &blas_openblas, &blas_cublaslt, &blas_hipblaslt, &blas_rocblas, &own_mma, &own_gemm,
};
enum { WAYS = ARRAY_LEN(ways) };

/* ---- choices ---- */

struct pick {
    int way, variant;
};

struct choice {
    char shape[160]; /* everything that the speed depends on */
    struct pick pick;
};

struct blas {
    struct gpu *g;
    void *state[WAYS];
    struct cairn_error why[WAYS]; /* code set: cannot be used */
    int forced, last;             /* -1: none */
    bool fixed;                   /* blas_fix */
    struct choice *choices;
    size_t n_choices;
    struct own_dir cache; /* of choices; not open: none */
    char file[200];
};

static void shape_text(const struct blas *b, char *out, size_t size, const struct blas_call *c)
{
    const struct gemm_args *a = c->args;
    size_t aligned =
        b->g->info.api == GPU_API_HOST ? 0 : blas_alignment(c); /* alignment does not matter on the CPU */
    snprintf(out, size, "%s%s%c%c-%lldx%lldx%lld-b%zu-s%lld,%lld,%lld-u%zu%s%s%s%s%s",
             gpu_storage_name(c->storage), a->c_f32 ? "f" : "", a->a_transposed ? 't' : 'n',
             a->b_transposed ? 't' : 'n', (long long)a->m, (long long)a->n, (long long)a->k, c->batches,
             (long long)a->a_stride, (long long)a->b_stride, (long long)a->c_stride, aligned,
             a->gelu ? "-gelu" : "", a->before ? "-before" : "", a->bias ? "-bias" : "",
             a->residual ? "-add" : "", c->slope_of ? "-slope" : "");
}

static int way_named(const char *name)
{
    for (int i = 0; i < WAYS; i++)
        if (!strcmp(ways[i]->name, name))
            return i;
    return -1;
}

static bool remember(struct blas *b, const char *shape, struct pick pick)
{
    struct choice *grown = realloc(b->choices, (b->n_choices + 1) * sizeof(*grown));
    if (!grown)
        return false;
    b->choices = grown;
    struct choice *c = &grown[b->n_choices++];
    snprintf(c->shape, sizeof(c->shape), "%s", shape);
    c->pick = pick;
    return true;
}

static FILE *open_choices(const struct blas *b, unsigned how, const char *mode)
{
    struct cairn_error none;
    int fd;
    return b->cache.fd < 0 || own_file_open(&b->cache, b->file, how, &fd, &none) ? NULL : fdopen(fd, mode);
}

/* One line per choice: shape, implementation, variant.  Unreadable lines are measured again. */
static void load_choices(struct blas *b)
{
    FILE *f = open_choices(b, OS_READ, "r");
    char line[256], shape[160], name[32];
    int variant;
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "%159s %31s %d", shape, name, &variant) == 3 && way_named(name) >= 0)
            remember(b, shape, (struct pick){ way_named(name), variant });
    if (f)
        fclose(f);
}

/* One write per line: several processes may append to the file. */
static void save_choice(const struct blas *b, const char *shape, struct pick pick)
{
    FILE *f = open_choices(b, OS_APPEND | OS_CREATE, "a");
    if (!f)
        return;
    fprintf(f, "%s %s %d\n", shape, ways[pick.way]->name, pick.variant);
    fclose(f);
}

/* One file per chip, driver and version of cairn: measurements of another do not apply. */
static void choose_file(struct blas *b)
{
    struct cairn_error none;
    own_cache_open(&b->cache, "gemm", &none);
    snprintf(b->file, sizeof(b->file), "%.40s-%d-%d-%s", b->g->info.arch, b->g->info.driver, b->g->info.units,
             CAIRN_VERSION);
}

/* ---- opening and closing ---- */

/* CAIRN_BLAS=own: without the vendors' libraries, if one of them is suspected.  Choices made then are not
 * cached. */
static bool is_own_only(void)
{
    const char *value = getenv("CAIRN_BLAS");
    return value && !strcmp(value, "own");
}

int blas_open(struct gpu *g, struct blas **out, struct cairn_error *err)
{
    struct blas *b = calloc(1, sizeof(*b));
    if (!b)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory", g->info.name);
    b->g = g;
    b->forced = b->last = -1;
    bool own = is_own_only();
    for (int i = 0; i < WAYS; i++)
        if (!ways[i]->everywhere && ways[i]->api != g->info.api)
            cairn_fail(&b->why[i], CAIRN_ELACK, "not for %s", g->info.name);
        else if (ways[i]->open && own)
            cairn_fail(&b->why[i], CAIRN_ELACK, "CAIRN_BLAS=own");
        else if (ways[i]->open)
            ways[i]->open(g, &b->state[i], &b->why[i]);
    choose_file(b);
    load_choices(b);
    if (own)
        own_dir_close(&b->cache);
    *out = b;
    return 0;
}

void blas_close(struct blas *b)
{
    if (!b)
        return;
    for (int i = 0; i < WAYS; i++)
        if (ways[i]->close && b->state[i])
            ways[i]->close(b->g, b->state[i]);
    own_dir_close(&b->cache);
    free(b->choices);
    free(b);
}

const char *blas_way(const struct blas *b, size_t i, const char **why)
{
    if (i >= WAYS)
        return NULL;
    *why = b->why[i].msg;
    return ways[i]->name;
}

const char *blas_last(const struct blas *b)
{
    return b->last < 0 ? NULL : ways[b->last]->name;
}

int blas_force(struct blas *b, const char *way, struct cairn_error *err)
{
    b->forced = way ? way_named(way) : -1;
    if (way && b->forced < 0)
        return cairn_fail(err, CAIRN_EUSAGE, "no matmul implementation named %s", way);
    return 0;
}

/* ---- work ---- */

size_t blas_alignment(const struct blas_call *c)
{
    const struct gemm_args *a = c->args;
    uintptr_t all = (uintptr_t)a->a | (uintptr_t)a->b | (uintptr_t)a->c | (uintptr_t)a->before |
                    (uintptr_t)a->residual | (uintptr_t)c->slope_of | BLAS_ALIGNED;
    return all & -all;
}

/* If GELU comes between the matmul and an addition, a kernel that runs afterwards is too late. */
static bool fits(const struct blas *b, int way, const struct blas_call *c)
{
    const struct gemm_args *a = c->args;
    return !b->why[way].code && ways[way]->fits(b->g, c) &&
           (ways[way]->finishes || !(a->gelu && a->beta != 0.0f));
}

static int variants_of(struct blas *b, int way, const struct blas_call *c)
{
    return !fits(b, way, c) ? 0 : ways[way]->variants ? ways[way]->variants(b->g, b->state[way], c) : 1;
}

static bool has_pick(struct blas *b, struct pick p, const struct blas_call *c)
{
    return p.variant >= 0 && p.variant < variants_of(b, p.way, c);
}

/* Does what the library did not fuse. */
static int finish(struct gpu *g, const struct blas_call *c, struct cairn_error *err)
{
    struct gemm_args rest = *c->args;
    struct map_backward_args slope = { .dx = rest.c, .dy = rest.c, .x = c->slope_of, .n = rest.m * rest.n };
    const struct gpu_kernel *k;
    rest.alpha = 1, rest.beta = 0;
    if (!c->slope_of)
        return launch(g, "gemm_epilogue", c, (struct gpu_grid){ (unsigned)rest.m, 1, (unsigned)c->batches },
                      &rest, err);
    if (gpu_kernel(g, "gelu_backward", c->storage, &k, err))
        return -1;
    return gpu_launch(g, c->stream, k, (struct gpu_grid){ .x = (unsigned)K_GROUPS(slope.n) }, &slope,
                      sizeof(slope), err);
}

static int run_pick(struct blas *b, struct pick p, struct blas_call c, struct cairn_error *err)
{
    const struct gemm_args *a = c.args;
    bool finished = ways[p.way]->finishes && !c.slope_of;
    c.variant = p.variant;
    if (ways[p.way]->open)
        b->g->last = ways[p.way]->name;
    if (ways[p.way]->run(b->g, b->state[p.way], &c, &finished, err))
        return -1;
    if (finished || !(a->bias || a->gelu || a->residual || a->before || c.slope_of))
        return 0;
    return finish(b->g, &c, err);
}

enum { TIMES = 4 };
/* The best of a few runs, after a warm-up; infinity if it fails.  Stops early if it is far slower than the
 * best. */
static double time_pick(struct blas *b, struct pick p, const struct blas_call *c, double limit,
                        struct gpu_event **events)
{
    struct cairn_error err = { 0 };
    double best = INFINITY;
    for (int i = 0; i <= TIMES && (i < 2 || best < limit); i++) {
        float ms;
        if (gpu_event_record(b->g, events[0], c->stream, &err) || run_pick(b, p, *c, &err) ||
            gpu_event_record(b->g, events[1], c->stream, &err) || gpu_wait(b->g, c->stream, &err) ||
            gpu_event_ms(b->g, events[0], events[1], &ms, &err))
            return INFINITY;
        best = i ? fmin(best, (double)ms) : best;
    }
    return best;
}

/* Of two that are about as fast the first is used, so that noise does not decide.  On the CPU the last
 * implementation is only for what no other supports, and too slow to be timed. */
static struct pick fastest(struct blas *b, const struct blas_call *c, struct gpu_event **events)
{
    struct pick found = { WAYS - 1, 0 };
    double best = INFINITY;
    int n_ways = b->g->info.api == GPU_API_HOST ? WAYS - 1 : WAYS;
    for (int i = 0; i < n_ways; i++)
        for (int v = 0, n = variants_of(b, i, c); v < n; v++) {
            struct pick p = { i, v };
            double ms = time_pick(b, p, c, 1.5 * best, events);
            if (ms < 0.98 * best)
                best = ms, found = p;
        }
    return found;
}

static struct pick first_that_fits(struct blas *b, const struct blas_call *c)
{
    struct pick p = { 0, 0 };
    while (p.way < WAYS - 1 && !variants_of(b, p.way, c))
        p.way++;
    return p;
}

/* The fastest; if it cannot be measured, the first that supports the call. */
static struct pick time_all(struct blas *b, const struct blas_call *c)
{
    struct cairn_error err = { 0 };
    struct gpu_event *events[2] = { NULL, NULL };
    struct pick pick = first_that_fits(b, c);
    if (!gpu_event_open(b->g, &events[0], &err) && !gpu_event_open(b->g, &events[1], &err))
        pick = fastest(b, c, events);
    gpu_event_close(b->g, events[0]);
    gpu_event_close(b->g, events[1]);
    return pick;
}

/* If c is added to, which must happen only once, measures with a buffer of its own, aligned as the caller's.
 * Otherwise the result is simply written again. */
static struct pick measure(struct blas *b, const struct blas_call *call)
{
    struct cairn_error err = { 0 };
    const struct gemm_args *a = call->args;
    size_t width = a->c_f32 || call->storage == GPU_F32 ? 4 : 2;
    size_t n = (size_t)(a->m * a->c_stride) + (call->batches - 1) * (size_t)a->c_batch;
    size_t bytes = n * width + BLAS_ALIGNED;
    struct gemm_args args = *a;
    struct blas_call c = *call;
    void *scratch = NULL, *before = NULL;
    if (a->beta == 0 && a->residual != a->c)
        return time_all(b, call);
    struct pick pick = first_that_fits(b, call);
    if (!gpu_alloc(b->g, GPU_MEM_DEVICE, bytes, &scratch, &err) &&
        (!a->before || !gpu_alloc(b->g, GPU_MEM_DEVICE, bytes, &before, &err)) &&
        !gpu_clear(b->g, call->stream, scratch, bytes, &err)) {
        c.args = &args;
        args.c = (char *)scratch + (uintptr_t)a->c % BLAS_ALIGNED;
        args.before = before ? (char *)before + (uintptr_t)a->before % BLAS_ALIGNED : NULL;
        pick = time_all(b, &c);
    }
    gpu_free(b->g, GPU_MEM_DEVICE, scratch);
    gpu_free(b->g, GPU_MEM_DEVICE, before);
    return pick;
}

static struct pick find_pick(struct blas *b, const struct blas_call *c)
{
    char shape[160];
    struct pick last = { WAYS - 1, 0 };
    if (b->g->fault) /* the kernel that checks itself */
        return last;
    if (b->forced >= 0) {
        struct pick forced = { b->forced, 0 };
        return has_pick(b, forced, c) ? forced : last;
    }
    if (b->fixed)
        return first_that_fits(b, c);
    shape_text(b, shape, sizeof(shape), c);
    for (size_t i = 0; i < b->n_choices; i++)
        if (!strcmp(b->choices[i].shape, shape) && has_pick(b, b->choices[i].pick, c))
            return b->choices[i].pick;
    struct pick pick = measure(b, c);
    if (remember(b, shape, pick))
        save_choice(b, shape, pick);
    return pick;
}

static int multiply(struct blas *b, const struct blas_call *c, struct cairn_error *err)
{
    const struct gemm_args *a = c->args;
    if (a->m <= 0 || a->n <= 0 || a->k < 0)
        return cairn_fail(err, CAIRN_EUSAGE, "matrices of %lld x %lld x %lld", (long long)a->m,
                          (long long)a->n, (long long)a->k);
    struct pick pick = find_pick(b, c);
    b->last = pick.way;
    return run_pick(b, pick, *c, err);
}

int blas_gemm(struct blas *b, struct gpu_stream *s, enum gpu_storage storage, const struct gemm_args *args,
              size_t batches, struct cairn_error *err)
{
    struct gemm_args in_place = *args;
    struct blas_call c = { s, storage, args, batches, NULL, 0 };
    /* A library that does not add the residual itself would write over it first. */
    if (args->residual && args->residual == args->c && !args->gelu) {
        in_place.residual = NULL;
        in_place.beta += 1;
        c.args = &in_place;
    }
    return batches ? multiply(b, &c, err) : 0;
}

int blas_gemm_gelu_back(struct blas *b, struct gpu_stream *s, enum gpu_storage storage,
                        const struct gemm_args *args, const void *slope_of, struct cairn_error *err)
{
    struct blas_call c = { s, storage, args, 1, slope_of, 0 };
    if (args->bias || args->gelu || args->residual || args->before || args->c_f32 || args->beta != 0 ||
        args->c_stride != args->n)
        return cairn_fail(err, CAIRN_EUSAGE, "a matmul with GELU's derivative cannot add to its result");
    return multiply(b, &c, err);
}

int blas_probe(const struct gpu *g, const char *library, struct cairn_error *err)
{
    return compile_probe(&g->info, library, err);
}

void blas_fix(struct blas *b)
{
    b->fixed = true;
}
