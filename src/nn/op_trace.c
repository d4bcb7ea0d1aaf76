/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/op_trace.h"
#include "base/clock.h"
#include "gpu/kernels/reduce.h"
#include <stdlib.h>
#include <string.h>

/* ---- the first NaN or infinity ---- */

static int reserve(struct nan_finder *f, struct gpu *g, size_t bytes, struct cairn_error *err)
{
    if (bytes <= f->parts_bytes)
        return 0;
    if (f->parts)
        gpu_free(g, GPU_MEM_DEVICE, f->parts);
    f->parts = NULL;
    f->parts_bytes = 0;
    if (gpu_alloc(g, GPU_MEM_DEVICE, bytes, &f->parts, err))
        return -1;
    f->parts_bytes = bytes;
    return 0;
}

static int count(struct nan_finder *f, struct nn *nn, enum gpu_storage storage, const struct nn_output *x,
                 struct k_stats *out, struct cairn_error *err)
{
    size_t parts = K_GROUPS(x->n);
    const struct gpu_kernel *k, *fold;
    if (reserve(f, nn->g, (parts + 1) * sizeof(struct k_stats), err))
        return -1;
    struct k_stats *sum = f->parts;
    struct stats_args args = { .parts = sum + 1, .x = x->at, .n = (k_i64)x->n };
    struct stats_fold_args end = { .y = sum, .parts = sum + 1, .n = (k_i64)parts };
    struct gpu_grid grid = { .x = (unsigned)parts }, one = { .x = 1 };
    return gpu_kernel(nn->g, "stats", storage, &k, err) ||
                   gpu_kernel(nn->g, "stats_fold", GPU_F32, &fold, err) ||
                   gpu_launch(nn->g, nn->stream, k, grid, &args, sizeof(args), err) ||
                   gpu_launch(nn->g, nn->stream, fold, one, &end, sizeof(end), err) ||
                   gpu_download(nn->g, nn->stream, out, sum, sizeof(*out), err) ||
                   gpu_wait(nn->g, nn->stream, err)
               ? -1
               : 0;
}

static int find(struct nn_watcher *w, struct nn *nn, const struct nn_event *e, struct cairn_error *err)
{
    struct nan_finder *f = (struct nan_finder *)w;
    for (int i = 0; i < NN_OUTPUTS && !f->found; i++) {
        const struct nn_output *x = &e->out[i];
        struct k_stats s;
        if (!x->at || !x->n)
            continue;
        if (count(f, nn, e->storage, x, &s, err))
            return -1;
        if (!s.nan && !s.infinite)
            continue;
        f->found = true;
        f->nan = s.nan;
        f->infinite = s.infinite;
        f->n = x->n;
        snprintf(f->where, sizeof(f->where), "%s", e->where);
        snprintf(f->op, sizeof(f->op), "%s", e->op);
    }
    return 0;
}

void nan_finder_init(struct nan_finder *f)
{
    *f = (struct nan_finder){ .watcher = { find } };
}

void nan_finder_release(struct nan_finder *f, struct gpu *g)
{
    if (f->parts)
        gpu_free(g, GPU_MEM_DEVICE, f->parts);
    f->parts = NULL;
}

/* ---- time ---- */

static struct op_profile_row *row_of(struct op_profile *p, const char *op)
{
    size_t i = 0, most = sizeof(p->rows) / sizeof(p->rows[0]);
    while (i < p->n && strcmp(p->rows[i].op, op) != 0)
        i++;
    if (i == p->n && p->n < most)
        snprintf(p->rows[p->n++].op, sizeof(p->rows[i].op), "%s", op);
    return &p->rows[i < most ? i : most - 1];
}

static int measure(struct nn_watcher *w, struct nn *nn, const struct nn_event *e, struct cairn_error *err)
{
    struct op_profile *p = (struct op_profile *)w;
    if (gpu_wait(nn->g, nn->stream, err))
        return -1;
    double end = clock_s();
    struct op_profile_row *r = row_of(p, e->op);
    r->calls++;
    r->seconds += end - p->last;
    r->flops += e->flops;
    r->bytes += e->bytes;
    if (p->trace)
        fprintf(
            p->trace,
            "%s{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"ts\":%.3f,\"dur\":%.3f,\"pid\":1,\"tid\":1}",
            p->any ? ",\n" : "", e->op, e->where, (p->last - p->first) * 1e6, (end - p->last) * 1e6);
    p->any = true;
    p->last = clock_s();
    return 0;
}

void op_profile_start(struct op_profile *p, FILE *trace)
{
    *p = (struct op_profile){ .watcher = { measure }, .trace = trace };
    p->first = p->last = clock_s();
    if (trace)
        fputs("{\"traceEvents\":[\n", trace);
}

void op_profile_skip(struct op_profile *p)
{
    p->last = clock_s();
}

static int by_time(const void *a, const void *b)
{
    const struct op_profile_row *x = a, *y = b;
    return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

void op_profile_end(struct op_profile *p)
{
    qsort(p->rows, p->n, sizeof(p->rows[0]), by_time);
    if (p->trace)
        fputs("\n]}\n", p->trace);
}
