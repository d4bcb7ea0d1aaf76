/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/bench.h"

#include "gpu/bench_rows.h"
#include "gpu/kernels/random.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 7 };
static const float least_ms = 4; /* a round must be long enough to time */

const char *const bench_groups[] = { "copy",      "norm", "softmax", "cross_entropy", "adamw", "gemm",
                                     "attention", "conv", NULL };

size_t bench_number_size(enum gpu_storage s)
{
    return s == GPU_F32 ? 4 : 2;
}

bool bench_is_cpu(const struct bench *b)
{
    return gpu_info(b->g)->api == GPU_API_HOST;
}

long long bench_scale(const struct bench *b, long long gpu, long long cpu)
{
    return !bench_is_cpu(b) ? gpu : strcmp(gpu_info(b->g)->arch, "plain") ? cpu : cpu / 8;
}

/* ---- numbers ---- */

static int make_pattern(struct bench *b, enum gpu_storage s, struct cairn_error *err)
{
    const struct gpu_kernel *k;
    struct random_args args = { .n = BENCH_PATTERN / (k_i64)bench_number_size(s), .seed = 1, .scale = 1 };
    if (b->pattern[s])
        return 0;
    if (gpu_kernel(b->g, "random_normal", s, &k, err) ||
        gpu_alloc(b->g, GPU_MEM_DEVICE, BENCH_PATTERN, &b->pattern[s], err))
        return -1;
    args.y = b->pattern[s];
    return gpu_launch(b->g, NULL, k, (struct gpu_grid){ .x = (unsigned)K_GROUPS(args.n) }, &args,
                      sizeof(args), err);
}

int bench_fill(struct bench *b, int i, enum gpu_storage s, struct cairn_error *err)
{
    if (make_pattern(b, s, err))
        return -1;
    for (size_t at = 0; at < b->bytes; at += BENCH_PATTERN)
        if (gpu_copy(b->g, NULL, (char *)b->device[i] + at, b->pattern[s], BENCH_PATTERN, err))
            return -1;
    return 0;
}

static int fill_inputs(struct bench *b, const struct bench_row *r, struct cairn_error *err)
{
    for (int i = 0; i < r->inputs; i++)
        if (bench_fill(b, i, b->storage, err))
            return -1;
    return r->prepare ? r->prepare(b, err) : 0;
}

/* ---- timing ---- */

static int time_round(struct bench *b, const struct bench_row *r, struct bench_amount *a, int times,
                      float *ms, struct cairn_error *err)
{
    if (gpu_event_record(b->g, b->from, NULL, err))
        return -1;
    for (int i = 0; i < times; i++)
        if (r->once(b, r, a, err))
            return -1;
    if (gpu_event_record(b->g, b->to, NULL, err) || gpu_wait(b->g, NULL, err) ||
        gpu_event_ms(b->g, b->from, b->to, ms, err))
        return -1;
    *ms /= (float)times;
    return 0;
}

static int best_round(struct bench *b, const struct bench_row *r, double seconds, struct bench_amount *a,
                      float *best, struct cairn_error *err)
{
    float ms = 0, spent = 0;
    /* The first call compiles and tunes, the second warms up; a long one needs no more. */
    for (int i = 0; i < 2 && ms < 1000 * seconds; i++)
        if (time_round(b, r, a, 1, &ms, err))
            return -1;
    int times = ms * 1000 < least_ms ? 1000 : ms < least_ms ? (int)(least_ms / ms) + 1 : 1;
    *best = INFINITY;
    for (int i = 0; i < ROUNDS && (!i || spent < 1000 * seconds); i++) {
        if (time_round(b, r, a, times, &ms, err))
            return -1;
        *best = ms < *best ? ms : *best;
        spent += ms * (float)times;
    }
    return 0;
}

static void shape_text(struct bench_result *r)
{
    size_t used = 0;
    if (!r->sizes[1])
        snprintf(r->shape, sizeof(r->shape), "%lld M%s", r->sizes[0] >> 20, r->format ? "i values" : "iB");
    for (int i = 0; r->sizes[1] && i < BENCH_SIZES && r->sizes[i]; i++)
        used +=
            (size_t)snprintf(r->shape + used, sizeof(r->shape) - used, "%s%lld", i ? " x " : "", r->sizes[i]);
}

static int time_row(struct bench *b, const struct bench_row *r, enum gpu_storage s, double seconds,
                    struct bench_result *out, struct cairn_error *err)
{
    struct bench_amount a = { 0 };
    float best;
    b->storage = s;
    if (fill_inputs(b, r, err) || best_round(b, r, seconds, &a, &best, err))
        return -1;
    *out = (struct bench_result){ .group = r->group, .name = r->name, .way = a.way, .ms = best };
    out->format = r->has_formats ? gpu_storage_name(s) : NULL;
    out->is_flops = a.flops > 0;
    out->rate = a.flops > 0 ? a.flops / best / 1e9 : a.bytes / best / 1e6;
    memcpy(out->sizes, a.sizes, sizeof(out->sizes));
    shape_text(out);
    return 0;
}

/* ---- the run ---- */

static void bench_release(struct bench *b)
{
    for (int i = 0; i < BENCH_BUFFERS; i++)
        gpu_free(b->g, GPU_MEM_DEVICE, b->device[i]);
    for (int i = 0; i < GPU_STORAGES; i++)
        gpu_free(b->g, GPU_MEM_DEVICE, b->pattern[i]);
    gpu_free(b->g, GPU_MEM_STAGING, b->staging);
    gpu_event_close(b->g, b->from);
    gpu_event_close(b->g, b->to);
    blas_close(b->blas);
    free(b->pageable);
}

static int bench_init(struct bench *b, struct gpu *g, struct cairn_error *err)
{
    uint64_t free_bytes, total;
    *b = (struct bench){ .g = g };
    if (gpu_memory(g, &free_bytes, &total, err))
        return -1;
    b->bytes = (size_t)bench_scale(b, 256, 128) << 20; /* far more than most caches hold */
    while (b->bytes > (1 << 24) && b->bytes * (BENCH_BUFFERS + 4) > free_bytes)
        b->bytes /= 2;
    b->pageable = malloc(b->bytes);
    if (!b->pageable)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu bytes", b->bytes);
    for (int i = 0; i < BENCH_BUFFERS; i++)
        if (gpu_alloc(g, GPU_MEM_DEVICE, b->bytes, &b->device[i], err))
            return -1;
    if (gpu_alloc(g, GPU_MEM_STAGING, b->bytes, &b->staging, err) || blas_open(g, &b->blas, err) ||
        bench_fill(b, 0, GPU_F32, err) || gpu_download(g, NULL, b->pageable, b->device[0], b->bytes, err) ||
        gpu_download(g, NULL, b->staging, b->device[0], b->bytes, err))
        return -1;
    return gpu_event_open(g, &b->from, err) || gpu_event_open(g, &b->to, err) ? -1 : 0;
}

static bool is_asked(const struct bench_options *o, const struct bench_row *r)
{
    for (const char *const *g = o->groups; g; g++) {
        if (!*g)
            return false;
        if (!strcmp(*g, r->group))
            return true;
    }
    return true;
}

/* Skips a row that the device cannot run: no matrix cores, no such library.  On the CPU, the GPU kernel is
 * only a last resort. */
static bool is_there(const struct bench *b, const struct bench_row *r)
{
    const char *way, *why;
    if (strcmp(r->group, "gemm") || !r->by)
        return true;
    for (size_t i = 0; (way = blas_way(b->blas, i, &why)); i++)
        if (!strcmp(way, r->by))
            return !why[0] && !(bench_is_cpu(b) && !strcmp(way, "gemm"));
    return true;
}

struct run {
    struct bench *b;
    const struct bench_options *o;
    struct bench_result *results;
    const struct bench_row **rows; /* of each result */
    size_t n;
    double copy, matrix[GPU_STORAGES]; /* the best rates; 0: not known yet */
};

static int formats_of(const struct bench_row *r)
{
    return r->has_formats ? GPU_STORAGES : 1;
}

static int run_row(struct run *run, const struct bench_row *r, enum gpu_storage s, struct cairn_error *err)
{
    struct bench_result *out = &run->results[run->n];
    if (time_row(run->b, r, s, run->o->seconds, out, err))
        return -1;
    if (r->ceiling == BY_COPY && !strcmp(r->group, "copy"))
        run->copy = fmax(run->copy, out->rate);
    if (r->ceiling == BY_MATRIX)
        run->matrix[s] = fmax(run->matrix[s], out->rate);
    /* An implementation that does not support this format was replaced by another, which has its own row. */
    if (is_asked(run->o, r) && !(r->by && out->way && strcmp(out->way, r->by)))
        run->rows[run->n++] = r;
    return 0;
}

/* Whether a row's ceiling is yet to be measured: the row that is first of its kind sets it. */
static bool is_ceiling(const struct run *run, const struct bench_row *r, int s)
{
    static const char *const kinds[] = { [BY_COPY] = "copy", [BY_TRANSFER] = NULL, [BY_MATRIX] = "gemm" };
    if (!kinds[r->ceiling] || strcmp(kinds[r->ceiling], r->group))
        return false;
    if (r->ceiling == BY_COPY ? run->copy > 0 : run->matrix[s] > 0)
        return false;
    for (size_t i = 0; i < n_bench_rows; i++)
        if (bench_rows[i].ceiling == r->ceiling && is_asked(run->o, &bench_rows[i]))
            return true;
    return false;
}

static void set_ceilings(struct run *run)
{
    for (size_t i = 0; i < run->n; i++) {
        struct bench_result *r = &run->results[i];
        enum bench_ceiling kind = run->rows[i]->ceiling;
        r->ceiling = kind == BY_COPY ? run->copy : 0;
        for (int s = 0; s < GPU_STORAGES && kind == BY_MATRIX; s++)
            if (r->format == gpu_storage_name((enum gpu_storage)s))
                r->ceiling = run->matrix[s];
        for (size_t k = 0; k < run->n && kind == BY_TRANSFER; k++)
            if (run->rows[k]->ceiling == kind)
                r->ceiling = fmax(r->ceiling, run->results[k].rate);
    }
}

static bool is_wanted(const struct run *run, const struct bench_row *r, int s)
{
    return is_there(run->b, r) && (is_asked(run->o, r) || is_ceiling(run, r, s));
}

static int run_rows(struct run *run, struct cairn_error *err)
{
    size_t done = 0, all = 0;
    for (size_t i = 0; i < n_bench_rows; i++)
        all += is_wanted(run, &bench_rows[i], 0) ? (size_t)formats_of(&bench_rows[i]) : 0;
    for (size_t i = 0; i < n_bench_rows; i++)
        for (int s = 0; s < formats_of(&bench_rows[i]); s++) {
            if (!is_wanted(run, &bench_rows[i], s))
                continue;
            if (run->o->stop && run->o->stop())
                return 0;
            if (run->o->watch)
                run->o->watch(bench_rows[i].name,
                              bench_rows[i].has_formats ? gpu_storage_name((enum gpu_storage)s) : "", done++,
                              all);
            if (run_row(run, &bench_rows[i], (enum gpu_storage)s, err))
                return -1;
        }
    return 0;
}

int bench_run(struct gpu *g, const struct bench_options *o, struct bench_result **out, size_t *n,
              struct cairn_error *err)
{
    size_t most = n_bench_rows * GPU_STORAGES;
    CLEANUP(bench_release) struct bench b = { .g = g };
    CLEANUP(mem_free) struct bench_result *results = calloc(most, sizeof(*results));
    CLEANUP(mem_free) const struct bench_row **rows = calloc(most, sizeof(*rows));
    struct run run = { .b = &b, .o = o, .results = results, .rows = rows };
    *n = 0;
    if (!results || !rows)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for the results");
    if (bench_init(&b, g, err) || run_rows(&run, err))
        return -1;
    set_ceilings(&run);
    *n = run.n;
    *out = TAKE(results);
    return 0;
}

int bench_gemm_rate(struct gpu *g, enum gpu_storage s, double seconds, double *out, struct cairn_error *err)
{
    CLEANUP(bench_release) struct bench b = { .g = g };
    *out = 0;
    if (bench_init(&b, g, err))
        return -1;
    for (size_t i = 0; i < n_bench_rows; i++) {
        struct bench_result r;
        if (strcmp(bench_rows[i].group, "gemm") || bench_rows[i].by)
            continue;
        if (time_row(&b, &bench_rows[i], s, seconds, &r, err))
            return -1;
        *out = fmax(*out, r.rate);
    }
    return 0;
}

void bench_results_free(struct bench_result *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(r[i].ops);
    free(r);
}
