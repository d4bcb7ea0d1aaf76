/* SPDX-License-Identifier: Apache-2.0
 * Optimizers and numbers of 8 bits. */
#include "golden.h"
#include "gpu/kernels/quant.h"
#include "gpu/optim8.h"
#include "train/optim.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- AdamW, in f32 and with 8-bit state ---- */

static bool is_adamw(const struct st_file *f)
{
    return st_find(f, "param") && st_find(f, "grads");
}

static bool is_adamw8(const struct st_file *f)
{
    return st_find(f, "map.signed") && st_find(f, "adam8.grads");
}

/* A run of steps over one parameter; after each, its numbers and its state are compared by `look`. */
struct steps {
    struct golden *c;
    const char *run; /* "a" */
    const float *start, *grads;
    size_t n, steps;
    struct optim_options o;
    int (*look)(struct steps *t, struct optim *o, size_t step);
    double share; /* of what may differ; a code that is one off has its after-effects */
};

static int fetch(struct golden *c, const struct optim *o, const char *name, void *into, size_t bytes)
{
    size_t n;
    const struct optim_array *arrays = optim_arrays(o, &n);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(arrays[i].name, name))
            return gpu_download(c->g, NULL, into, arrays[i].at, bytes, &c->err) ||
                   gpu_wait(c->g, NULL, &c->err);
    return cairn_fail(&c->err, CAIRN_EFORMAT, "the optimizer has no %s", name);
}

static int compare_state(struct steps *t, const struct optim *o, const char *array, const char *what,
                         size_t n, size_t step)
{
    char *name = arena_printf(&t->c->arena, "%s.%s.step%zu", t->run, what, step);
    float *got = ARENA_NEW(&t->c->arena, float, n), *want = golden_floats(t->c, t->c->file, name, NULL);
    if (!want || fetch(t->c, o, array, got, n * sizeof(float)))
        return -1;
    golden_compare(t->c, name, got, want, n, t->share, 0);
    return 0;
}

static int look_adamw(struct steps *t, struct optim *o, size_t step)
{
    return compare_state(t, o, "matrix.m", "m", t->n, step) ||
           compare_state(t, o, "matrix.v", "v", t->n, step);
}

/* A code may differ by one in rare cases, where a number lies half way between two. */
static int compare_codes(struct steps *t, const struct optim *o, const char *array, const char *what,
                         size_t step)
{
    char *name = arena_printf(&t->c->arena, "%s.%s.step%zu", t->run, what, step);
    uint8_t *got = arena_alloc(&t->c->arena, t->n), *want = golden_bytes(t->c, t->c->file, name, NULL);
    if (!want || fetch(t->c, o, array, got, t->n))
        return -1;
    size_t near = 0;
    for (size_t i = 0; i < t->n; i++) {
        int d = abs(got[i] - want[i]);
        if (d > 1)
            return cairn_fail(&t->c->err, CAIRN_EFORMAT, "%s[%zu] is %d, not %d", name, i, got[i], want[i]);
        near += d == 1;
    }
    if (near * 100 > t->n)
        return cairn_fail(&t->c->err, CAIRN_EFORMAT, "%s: %zu of %zu codes are one off", name, near, t->n);
    return 0;
}

static int look_adamw8(struct steps *t, struct optim *o, size_t step)
{
    size_t blocks = (t->n + 255) / 256;
    return compare_codes(t, o, "matrix.m", "c1", step) || compare_codes(t, o, "matrix.v", "c2", step) ||
           compare_state(t, o, "matrix.m.max", "am1", blocks, step) ||
           compare_state(t, o, "matrix.v.max", "am2", blocks, step);
}

static int take_steps(struct steps *t, const struct params *p, struct weights *w, struct optim *o,
                      double rate)
{
    struct cairn_error *err = &t->c->err;
    float *got = ARENA_NEW(&t->c->arena, float, t->n);
    if (weights_put(w, &p->list[0], t->start, err) || optim_start(o, err))
        return -1;
    for (size_t s = 1; s <= t->steps; s++) {
        struct optim_result r;
        char *name = arena_printf(&t->c->arena, "%s.param.step%zu", t->run, s);
        float *want = golden_floats(t->c, t->c->file, name, NULL);
        if (!want || weights_put(optim_grads(o), &p->list[0], t->grads + (s - 1) * t->n, err) ||
            optim_step(o, NULL, rate, 1, err) || optim_finish(o, NULL, &r, err) ||
            weights_get(w, &p->list[0], got, err))
            return -1;
        golden_compare(t->c, name, got, want, t->n, t->share, 0);
        if (t->look(t, o, s))
            return -1;
    }
    return 0;
}

static int run_steps(struct steps *t, double rate)
{
    struct params p = { 0 };
    struct weights w = { 0 };
    struct optim *o = NULL;
    params_add(&p, PARAM_MATRIX, 1, t->n, "w");
    int r = weights_open(&w, t->c->g, &p, GPU_F32, WEIGHTS_INT8, &t->c->err) ||
                    optim_open(t->c->g, &p, &w, &t->o, &o, &t->c->err) || take_steps(t, &p, &w, o, rate)
                ? -1
                : 0;
    optim_close(o);
    weights_close(&w);
    params_release(&p);
    return r;
}

static double number(const struct json *run, const char *one, const char *other, size_t index)
{
    const struct json *list = json_get(run, other);
    return json_is_array(list) ? json_number(json_at(list, index), NAN)
                               : json_number(json_get(run, json_get(run, one) ? one : other), NAN);
}

/* Every run of the metadata "config". */
static int run_all(struct golden *c, enum optim_kind kind, const char *start, const char *grads,
                   int (*look)(struct steps *t, struct optim *o, size_t step))
{
    struct steps t = { .c = c, .look = look, .share = kind == OPTIM_ADAMW8 ? 1e-3 : 1e-5 };
    size_t all;
    int r = 0;
    t.start = golden_floats(c, c->file, start, &t.n);
    t.grads = golden_floats(c, c->file, grads, &all);
    struct json *config = golden_config(c);
    if (!t.start || !t.grads || !config)
        r = -1;
    else
        t.steps = all / t.n;
    for (struct json_member m = json_first(config); !r && m.key; m = json_next(config, m)) {
        t.run = m.key;
        t.o = (struct optim_options){
            .kind = kind,
            .beta1 = number(m.value, "b1", "betas", 0),
            .beta2 = number(m.value, "b2", "betas", 1),
            .epsilon = number(m.value, "eps", "eps", 0),
            .decay = number(m.value, "wd", "weight_decay", 0),
        };
        r = run_steps(&t, number(m.value, "lr", "lr", 0));
    }
    json_free(config);
    return r;
}

static int run_adamw(struct golden *c)
{
    return run_all(c, OPTIM_ADAMW, "param", "grads", look_adamw);
}

/* ---- the maps of 8-bit state ---- */

/* The code whose value is nearest: how many of the middles lie below.  On a middle, give or take its rounding, both are
 * right. */
static bool is_code(const float *middles, float x, int code)
{
    float slack = 2e-7f * fabsf(x);
    int least = 0, most = 0;
    for (int i = 0; i < 255; i++) {
        least += middles[i] < x - slack;
        most += middles[i] <= x + slack;
    }
    return code >= least && code <= most;
}

static int compare_map(struct golden *c, const char *sign, const float *map)
{
    char *name = arena_printf(&c->arena, "map.%s", sign);
    float *want = golden_floats(c, c->file, name, NULL);
    if (!want)
        return -1;
    golden_compare(c, name, map, want, 256, 1e-7, 0);
    return 0;
}

static int compare_edges(struct golden *c, const char *sign, const float *middles)
{
    size_t n;
    float *x = golden_floats(c, c->file, arena_printf(&c->arena, "edge.%s.x", sign), &n);
    uint8_t *q = golden_bytes(c, c->file, arena_printf(&c->arena, "edge.%s.q", sign), NULL);
    if (!x || !q)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (!is_code(middles, x[i], q[i]))
            return cairn_fail(&c->err, CAIRN_EFORMAT, "edge.%s: %.9g is not code %d here", sign, (double)x[i],
                              q[i]);
    return 0;
}

static int compare_blocks(struct golden *c, const char *sign, size_t index, const float *map,
                          const float *middles)
{
    const char *what = arena_printf(&c->arena, "%s.%zu", sign, index);
    size_t n;
    if (!st_find(c->file, arena_printf(&c->arena, "%s.x", what)))
        return 0;
    float *x = golden_floats(c, c->file, arena_printf(&c->arena, "%s.x", what), &n);
    uint8_t *q = golden_bytes(c, c->file, arena_printf(&c->arena, "%s.q", what), NULL);
    float *most = golden_floats(c, c->file, arena_printf(&c->arena, "%s.absmax", what), NULL);
    float *want = golden_floats(c, c->file, arena_printf(&c->arena, "%s.deq", what), NULL);
    float *got = ARENA_NEW(&c->arena, float, n);
    if (!x || !q || !most || !want)
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (!is_code(middles, x[i] / most[i / 256], q[i]))
            return cairn_fail(&c->err, CAIRN_EFORMAT, "%s.q[%zu] is another code here", what, i);
        got[i] = map[q[i]] * most[i / 256];
    }
    golden_compare(c, arena_printf(&c->arena, "%s.deq", what), got, want, n, 1e-6, 0);
    return compare_blocks(c, sign, index + 1, map, middles);
}

static int run_adamw8(struct golden *c)
{
    float tables[OPTIM8_TABLES];
    optim8_tables(tables);
    for (int i = 0; i < 2; i++) {
        const char *sign = i ? "unsigned" : "signed";
        const float *map = tables + 512 * i, *middles = map + 256;
        if (compare_map(c, sign, map) || compare_edges(c, sign, middles) ||
            compare_blocks(c, sign, 0, map, middles))
            return -1;
    }
    return run_all(c, OPTIM_ADAMW8, "adam8.param0", "adam8.grads", look_adamw8);
}

/* ---- fp8 ---- */

static bool is_fp8(const struct st_file *f)
{
    return st_find(f, "e4m3.table") && st_find(f, "e4m3.code");
}

/* What the device makes of codes, rows of `columns` with a factor each, or one for all. */
static int dequantise(struct golden *c, const uint8_t *codes, const float *scales, size_t rows,
                      size_t columns, bool per_row, float *into)
{
    size_t n = rows * columns, scale_bytes = (per_row ? rows : 1) * sizeof(float);
    void *x = NULL, *s = NULL, *y = NULL;
    const struct gpu_kernel *k;
    int r = -1;
    if (!gpu_alloc(c->g, GPU_MEM_DEVICE, n, &x, &c->err) &&
        !gpu_alloc(c->g, GPU_MEM_DEVICE, scale_bytes, &s, &c->err) &&
        !gpu_alloc(c->g, GPU_MEM_DEVICE, n * sizeof(float), &y, &c->err)) {
        struct dequantise_args args = {
            .y = y, .x = x, .scale = s, .rows = (k_i64)rows, .columns = (k_i64)columns, .per_row = per_row
        };
        struct gpu_grid grid = { .x = (unsigned)K_ROW_GROUPS(rows, columns) };
        if (!gpu_upload(c->g, NULL, x, codes, n, &c->err) &&
            !gpu_upload(c->g, NULL, s, scales, scale_bytes, &c->err) &&
            !gpu_kernel(c->g, "dequantise_e4m3", GPU_F32, &k, &c->err) &&
            !gpu_launch(c->g, NULL, k, grid, &args, sizeof(args), &c->err) &&
            !gpu_download(c->g, NULL, into, y, n * sizeof(float), &c->err))
            r = gpu_wait(c->g, NULL, &c->err);
    }
    gpu_free(c->g, GPU_MEM_DEVICE, x);
    gpu_free(c->g, GPU_MEM_DEVICE, s);
    gpu_free(c->g, GPU_MEM_DEVICE, y);
    return r;
}

static int compare_table(struct golden *c)
{
    uint8_t codes[256];
    float got[256], one = 1, *want = golden_floats(c, c->file, "e4m3.table", NULL);
    for (int i = 0; i < 256; i++)
        codes[i] = (uint8_t)i;
    if (!want || dequantise(c, codes, &one, 16, 16, false, got))
        return -1;
    for (int i = 0; i < 256; i++)
        if (isnan(want[i]) ? !isnan(got[i]) : got[i] != want[i])
            return cairn_fail(&c->err, CAIRN_EFORMAT, "e4m3 0x%02x is %g here, not %g", i, (double)got[i],
                              (double)want[i]);
    return 0;
}

static int compare_rounding(struct golden *c)
{
    size_t n;
    float *x = golden_floats(c, c->file, "e4m3.x", &n);
    uint8_t *want = golden_bytes(c, c->file, "e4m3.code", NULL), *got = arena_alloc(&c->arena, n);
    if (!x || !want)
        return -1;
    dtype_convert(got, DTYPE_F8_E4M3, x, DTYPE_F32, n, &(struct dtype_how){ .saturate = true });
    for (size_t i = 0; i < n; i++)
        if (got[i] != want[i])
            return cairn_fail(&c->err, CAIRN_EFORMAT, "%.9g becomes 0x%02x, not 0x%02x", (double)x[i], got[i],
                              want[i]);
    return 0;
}

static int compare_widened(struct golden *c, const char *codes, const char *scales, const char *want_name)
{
    size_t n, n_scales;
    uint8_t *q = golden_bytes(c, c->file, codes, &n);
    float *s = golden_floats(c, c->file, scales, &n_scales),
          *want = golden_floats(c, c->file, want_name, NULL);
    float *got = ARENA_NEW(&c->arena, float, n);
    if (!q || !s || !want || dequantise(c, q, s, n_scales, n / n_scales, n_scales > 1, got))
        return -1;
    golden_compare(c, want_name, got, want, n, 1e-6, 0);
    return 0;
}

static int run_fp8(struct golden *c)
{
    return compare_table(c) || compare_rounding(c) ||
                   compare_widened(c, "tensor.q", "tensor.scale", "tensor.deq") ||
                   compare_widened(c, "block64.q", "block64.scale_weight", "block64.deq_bf16scale")
               ? -1
               : 0;
}

const struct golden_kind golden_adamw = { "adamw", is_adamw, run_adamw };
const struct golden_kind golden_adamw8 = { "adamw8", is_adamw8, run_adamw8 };
const struct golden_kind golden_fp8 = { "fp8", is_fp8, run_fp8 };
