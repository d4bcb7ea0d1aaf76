/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/blas.h"

#include "base/str.h"
#include "config.h"
#include "gpu/backend.h"
#include "gpu/blas_way.h"
#include "gpu/compile.h"
#include "gpu/gemm_cpu.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- own ways ---- */

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

static int run_gemm(struct gpu *g, void *state, const struct blas_call *c, struct cairn_error *err)
{
    (void)state;
    return launch(g, "gemm", c, tiles(c), c->args, err);
}

static bool fits_mma(const struct gpu *g, const struct blas_call *c)
{
    return g->info.api != GPU_API_HOST && gpu_has_mma(g) && c->storage != GPU_F32;
}

static int run_mma(struct gpu *g, void *state, const struct blas_call *c, struct cairn_error *err)
{
    (void)state;
    return launch(g, "gemm_mma", c, tiles(c), c->args, err);
}

static int open_cpu(struct gpu *g, void **state, struct cairn_error *err)
{
    (void)g;
    *state = calloc(1, sizeof(struct gemm_room));
    return *state ? 0 : cairn_fail(err, CAIRN_ENOMEM, "cpu: no memory");
}

static void close_cpu(struct gpu *g, void *state)
{
    (void)g;
    if (state)
        gemm_room_release(state);
    free(state);
}

static int run_cpu(struct gpu *g, void *state, const struct blas_call *c, struct cairn_error *err)
{
    return gemm_cpu_run(g, c->storage, c->args, c->batches, state, err);
}

/* Kernels are rows of the same table: a faster one for some chip or shape is a row with its own condition. */
static const struct blas_way own_cpu = { .name = "cpu",
                                         .api = GPU_API_HOST,
                                         .finishes = true,
                                         .open = open_cpu,
                                         .close = close_cpu,
                                         .fits = fits_all,
                                         .run = run_cpu };
static const struct blas_way own_mma = {
    .name = "gemm_mma", .everywhere = true, .finishes = true, .fits = fits_mma, .run = run_mma
};
static const struct blas_way own_gemm = {
    .name = "gemm", .everywhere = true, .finishes = true, .fits = fits_all, .run = run_gemm
};

/* In the order of trial; the last fits always. */
static const struct blas_way *const ways[] = {
    &own_cpu, &blas_openblas, &blas_cublaslt, &blas_hipblaslt, &blas_rocblas, &own_mma, &own_gemm,
};
enum { WAYS = ARRAY_LEN(ways) };

/* ---- choices ---- */

struct choice {
    char shape[160]; /* all that the speed depends on */
    int way;
};

struct blas {
    struct gpu *g;
    void *state[WAYS];
    struct cairn_error why[WAYS]; /* code set: cannot be used */
    int forced, last;             /* -1: none */
    struct choice *choices;
    size_t n_choices;
    char file[512]; /* where choices are kept; empty: nowhere */
};

static void shape_text(char *out, size_t size, const struct blas_call *c)
{
    const struct gemm_args *a = c->args;
    snprintf(out, size, "%s%s%c%c-%lldx%lldx%lld-b%zu-s%lld,%lld,%lld%s%s%s",
             compile_storage_name(c->storage), a->c_f32 ? "f" : "", a->a_transposed ? 't' : 'n',
             a->b_transposed ? 't' : 'n', (long long)a->m, (long long)a->n, (long long)a->k, c->batches,
             (long long)a->a_stride, (long long)a->b_stride, (long long)a->c_stride, a->gelu ? "-gelu" : "",
             a->bias ? "-bias" : "", a->residual ? "-add" : "");
}

static int way_named(const char *name)
{
    for (int i = 0; i < WAYS; i++)
        if (!strcmp(ways[i]->name, name))
            return i;
    return -1;
}

static bool remember(struct blas *b, const char *shape, int way)
{
    struct choice *grown = realloc(b->choices, (b->n_choices + 1) * sizeof(*grown));
    if (!grown)
        return false;
    b->choices = grown;
    struct choice *c = &grown[b->n_choices++];
    snprintf(c->shape, sizeof(c->shape), "%s", shape);
    c->way = way;
    return true;
}

/* A line each: shape, way.  What cannot be read is measured again. */
static void load_choices(struct blas *b)
{
    FILE *f = b->file[0] ? fopen(b->file, "re") : NULL;
    char line[256], shape[160], name[32];
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "%159s %31s", shape, name) == 2 && way_named(name) >= 0)
            remember(b, shape, way_named(name));
    if (f)
        fclose(f);
}

/* One write of one line: several processes may add to the file. */
static void save_choice(const struct blas *b, const char *shape, int way)
{
    FILE *f = b->file[0] ? fopen(b->file, "ae") : NULL;
    if (!f)
        return;
    fprintf(f, "%s %s\n", shape, ways[way]->name);
    fclose(f);
}

/* One file for each chip, driver and version of cairn: what was measured with another says nothing. */
static void choose_file(struct blas *b)
{
    char folder[256];
    if (!compile_cache_folder("gemm", folder, sizeof(folder)))
        return;
    snprintf(b->file, sizeof(b->file), "%s%.40s-%d-%d-%s", folder, b->g->info.arch, b->g->info.driver,
             b->g->info.units, CAIRN_VERSION);
}

/* ---- life ---- */

int blas_open(struct gpu *g, struct blas **out, struct cairn_error *err)
{
    struct blas *b = calloc(1, sizeof(*b));
    if (!b)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory", g->info.name);
    b->g = g;
    b->forced = b->last = -1;
    for (int i = 0; i < WAYS; i++)
        if (!ways[i]->everywhere && ways[i]->api != g->info.api)
            cairn_fail(&b->why[i], CAIRN_ELACK, "not for %s", g->info.name);
        else if (ways[i]->open)
            ways[i]->open(g, &b->state[i], &b->why[i]);
    choose_file(b);
    load_choices(b);
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
        return cairn_fail(err, CAIRN_EUSAGE, "there is no way %s to multiply matrices", way);
    return 0;
}

/* ---- work ---- */

/* Where GELU comes between the product and what is added after it, a kernel that comes later is too late. */
static bool fits(const struct blas *b, int way, const struct blas_call *c)
{
    const struct gemm_args *a = c->args;
    return !b->why[way].code && ways[way]->fits(b->g, c) &&
           (ways[way]->finishes || !(a->gelu && a->beta != 0.0f));
}

static int run_way(struct blas *b, int way, const struct blas_call *c, struct cairn_error *err)
{
    const struct gemm_args *a = c->args;
    if (ways[way]->run(b->g, b->state[way], c, err))
        return -1;
    if (ways[way]->finishes || !(a->bias || a->gelu || a->residual || a->before))
        return 0;
    struct gemm_args rest = *a;
    rest.alpha = 1, rest.beta = 0;
    return launch(b->g, "gemm_epilogue", c, (struct gpu_grid){ (unsigned)a->m, 1, (unsigned)c->batches },
                  &rest, err);
}

enum { TIMES = 4 };
/* The best of a few, after one to warm up; infinity when it fails. */
static double time_way(struct blas *b, int way, const struct blas_call *c, struct gpu_event **events)
{
    struct cairn_error err = { 0 };
    double best = INFINITY;
    for (int i = 0; i <= TIMES; i++) {
        float ms;
        if (gpu_event_record(b->g, events[0], c->stream, &err) || run_way(b, way, c, &err) ||
            gpu_event_record(b->g, events[1], c->stream, &err) || gpu_wait(b->g, c->stream, &err) ||
            gpu_event_ms(b->g, events[0], events[1], &ms, &err))
            return INFINITY;
        best = i ? fmin(best, (double)ms) : best;
    }
    return best;
}

/* Of two that are about as fast the first of the table is taken, so that noise does not choose. */
static int fastest(struct blas *b, const struct blas_call *c, struct gpu_event **events)
{
    int way = WAYS - 1;
    double best = INFINITY;
    for (int i = 0; i < WAYS; i++) {
        double ms = fits(b, i, c) ? time_way(b, i, c, events) : INFINITY;
        if (ms < 0.95 * best)
            best = ms, way = i;
    }
    return way;
}

/* Into memory of its own: what c holds is the caller's, and may be added to only once.  Where there is no memory for
 * that, the first way that fits will do. */
static int measure(struct blas *b, const struct blas_call *call)
{
    struct cairn_error err = { 0 };
    const struct gemm_args *a = call->args;
    size_t width = a->c_f32 || call->storage == GPU_F32 ? 4 : 2;
    size_t n = (size_t)(a->m * a->c_stride) + (call->batches - 1) * (size_t)a->c_batch;
    struct gemm_args args = *a;
    struct blas_call c = *call;
    struct gpu_event *events[2] = { NULL, NULL };
    void *scratch = NULL;
    int way = 0;
    while (way < WAYS - 1 && !fits(b, way, call))
        way++;
    if (!gpu_alloc(b->g, GPU_MEM_DEVICE, n * width, &scratch, &err) &&
        !gpu_clear(b->g, call->stream, scratch, n * width, &err) && !gpu_event_open(b->g, &events[0], &err) &&
        !gpu_event_open(b->g, &events[1], &err)) {
        c.args = &args;
        args.c = scratch;
        args.before = NULL;
        way = fastest(b, &c, events);
    }
    gpu_event_close(b->g, events[0]);
    gpu_event_close(b->g, events[1]);
    gpu_free(b->g, GPU_MEM_DEVICE, scratch);
    return way;
}

static int find_way(struct blas *b, const struct blas_call *c)
{
    char shape[160];
    if (b->g->fault) /* the kernel that checks itself */
        return WAYS - 1;
    if (b->forced >= 0)
        return fits(b, b->forced, c) ? b->forced : WAYS - 1;
    shape_text(shape, sizeof(shape), c);
    for (size_t i = 0; i < b->n_choices; i++)
        if (!strcmp(b->choices[i].shape, shape) && fits(b, b->choices[i].way, c))
            return b->choices[i].way;
    int way = measure(b, c);
    if (remember(b, shape, way))
        save_choice(b, shape, way);
    return way;
}

int blas_gemm(struct blas *b, struct gpu_stream *s, enum gpu_storage storage, const struct gemm_args *args,
              size_t batches, struct cairn_error *err)
{
    struct blas_call c = { s, storage, args, batches };
    if (args->m <= 0 || args->n <= 0 || args->k < 0)
        return cairn_fail(err, CAIRN_EUSAGE, "matrices of %lld × %lld × %lld", (long long)args->m,
                          (long long)args->n, (long long)args->k);
    if (!batches)
        return 0;
    b->last = find_way(b, &c);
    return run_way(b, b->last, &c, err);
}

int blas_probe(const struct gpu *g, const char *library, struct cairn_error *err)
{
    return compile_probe(&g->info, library, err);
}
