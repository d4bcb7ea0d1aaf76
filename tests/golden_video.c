/* SPDX-License-Identifier: Apache-2.0
 * Data of video models: times of flow matching, solvers, and caches as musubi-tuner writes them. */
#include "golden.h"
#include "base/str.h"
#include "os/path.h"
#include "video/cache.h"
#include "video/flow_time.h"
#include "video/solver.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- times ---- */

struct times {
    struct golden *c;
    const float *u, *z;
    size_t n;
    double shift, low, high; /* the first shift of the configuration, and its range */
    size_t height, width;
    const char *name; /* of the tensor that is compared */
};

static bool is_times(const struct st_file *f)
{
    return st_find(f, "u") && st_find(f, "z") && st_find(f, "range.linear") && st_find(f, "sigma_mode.index");
}

static int read_config(struct times *t)
{
    struct json *config = golden_config(t->c);
    if (!config)
        return -1;
    const struct json *hw = json_get(config, "hw"), *range = json_get(config, "minmax");
    t->shift = json_number(json_at(json_get(config, "shifts"), 0), 1);
    t->height = (size_t)json_int(json_at(hw, 0), 0);
    t->width = (size_t)json_int(json_at(hw, 1), 0);
    t->low = json_number(json_at(range, 0), 0);
    t->high = json_number(json_at(range, 1), 1000);
    json_free(config);
    return 0;
}

static int compare_times(struct times *t, const double *got, size_t n)
{
    struct golden *c = t->c;
    const struct st_tensor *tensor = st_find(c->file, t->name);
    float *ours = ARENA_NEW(&c->arena, float, n + 1), *want = ours;
    if (tensor->elements != n)
        return cairn_fail(&c->err, CAIRN_EFORMAT, "%s has %llu numbers", t->name,
                          (unsigned long long)tensor->elements);
    for (size_t i = 0; i < n; i++)
        ours[i] = (float)got[i];
    if (tensor->dtype == DTYPE_I64) {
        int64_t *ints = (int64_t *)golden_bytes(c, c->file, t->name, NULL);
        want = ARENA_NEW(&c->arena, float, n + 1);
        for (size_t i = 0; ints && i < n; i++)
            want[i] = (float)ints[i];
        if (!ints)
            return -1;
    } else if (!(want = golden_floats(c, c->file, t->name, NULL))) {
        return -1;
    }
    golden_compare(c, t->name, ours, want, n, tensor->dtype == DTYPE_I64 ? 0 : 1e-6, 0);
    return 0;
}

/* One of musubi-tuner's modes for every u and z. */
static int compare_mode(struct times *t, const struct flow_options *o)
{
    double *got = ARENA_NEW(&t->c->arena, double, t->n);
    for (size_t i = 0; i < t->n; i++)
        got[i] = flow_time_of(o, &(struct flow_random){ .u = t->u[i], .z = t->z[i] }, t->height, t->width);
    return compare_times(t, got, t->n);
}

static int compare_range(struct times *t, bool timestep)
{
    struct flow_options o = flow_options_default(FLOW_SHIFT);
    double *got = ARENA_NEW(&t->c->arena, double, t->n);
    o.shift = t->shift;
    o.min_timestep = t->low;
    o.max_timestep = t->high;
    for (size_t i = 0; i < t->n; i++) {
        double time = flow_time_of(&o, &(struct flow_random){ .z = t->z[i] }, 0, 0);
        got[i] = flow_time_in_range(&o, time);
        if (timestep)
            got[i] = 1000 * got[i] + 1;
    }
    return compare_times(t, got, t->n);
}

static int compare_sigma(struct times *t)
{
    struct flow_options o = flow_options_default(FLOW_SIGMA);
    o.min_timestep = t->low;
    o.max_timestep = t->high;
    double *got = ARENA_NEW(&t->c->arena, double, t->n);
    for (size_t i = 0; i < t->n; i++) {
        int index = flow_sigma_index(&o, &(struct flow_random){ .u = t->u[i], .z = t->z[i] });
        got[i] = str_ends(t->name, "index")   ? index
                 : str_ends(t->name, "sigma") ? 1 - index / 1000.0
                                              : 1000 - index;
    }
    return compare_times(t, got, t->n);
}

static int compare_normals(struct times *t)
{
    double *got = ARENA_NEW(&t->c->arena, double, t->n);
    for (size_t i = 0; i < t->n; i++)
        got[i] = flow_bucket_normal(t->u[i]);
    return compare_times(t, got, t->n);
}

static int compare_weights(struct times *t, const char *scheme)
{
    enum flow_weighting w;
    size_t n;
    float *sigma = golden_floats(t->c, t->c->file, "weight.sigma", &n);
    if (!sigma || flow_weighting_parse(scheme, &w, &t->c->err))
        return -1;
    double *got = ARENA_NEW(&t->c->arena, double, n);
    for (size_t i = 0; i < n; i++)
        got[i] = flow_weight_of(w, sigma[i]);
    return compare_times(t, got, n);
}

static int compare_tensor(struct times *t)
{
    double shift =
        flow_shift_of(str_starts(t->name, "qwen") ? FLOW_QWEN_SHIFT : FLOW_FLUX_SHIFT, t->height, t->width);
    struct flow_options o = flow_options_default(FLOW_UNIFORM);
    const char *name = t->name;
    if (str_eq(name, "u") || str_eq(name, "z") || str_eq(name, "weight.sigma"))
        return 0;
    if (sscanf(name, "sigmoid.scale%lf", &o.sigmoid_scale) == 1)
        o.sampling = FLOW_SIGMOID;
    else if (sscanf(name, "shift%lf", &o.shift) == 1)
        o.sampling = FLOW_SHIFT;
    else if (sscanf(name, "logsnr.mean%lf.std%lf", &o.logit_mean, &o.logit_std) == 2)
        o.sampling = FLOW_LOGSNR;
    else if (str_ends(name, ".shift_value"))
        return compare_times(t, &shift, 1);
    else if (str_eq(name, "range.linear") || str_eq(name, "range.timestep"))
        return compare_range(t, str_ends(name, "timestep"));
    else if (str_eq(name, "ppf.z"))
        return compare_normals(t);
    else if (str_starts(name, "sigma_mode."))
        return compare_sigma(t);
    else if (str_starts(name, "weight."))
        return compare_weights(t, name + strlen("weight."));
    else if (flow_sampling_parse(FLOW_MUSUBI, name, &o.sampling, &t->c->err))
        return -1;
    return compare_mode(t, &o);
}

static int run_times(struct golden *c)
{
    struct times t = { .c = c };
    t.u = golden_floats(c, c->file, "u", &t.n);
    t.z = golden_floats(c, c->file, "z", NULL);
    if (!t.u || !t.z || read_config(&t))
        return -1;
    for (size_t i = 0; i < c->file->n_tensors; i++) {
        t.name = c->file->tensors[i].name;
        if (compare_tensor(&t))
            return -1;
    }
    return 0;
}

const struct golden_kind golden_times = { "times", is_times, run_times };

/* ---- solvers ---- */

/* A run "NAME.…" of a toy model whose velocity is a x t / 1000 + b. */
struct trajectory {
    struct golden *c;
    const char *run;
    struct solver *solver;
    const float *a, *b, *begin;
    size_t steps, values;
};

static bool is_solver(const struct st_file *f)
{
    bool final = false, sigmas = false;
    for (size_t i = 0; i < f->n_tensors; i++) {
        final |= str_ends(f->tensors[i].name, ".euler.final");
        sigmas |= str_ends(f->tensors[i].name, ".sigmas");
    }
    return final && sigmas;
}

static float *tensor_of(const struct trajectory *t, const char *name, size_t n)
{
    char key[128];
    size_t got;
    snprintf(key, sizeof(key), "%s.%s", t->run, name);
    float *values = golden_floats(t->c, t->c->file, key, &got);
    if (!values || got == n)
        return values;
    cairn_fail(&t->c->err, CAIRN_EFORMAT, "%s has %zu values, not %zu", key, got, n);
    return NULL;
}

/* The README's tolerance for outputs in f32. */
static int compare_values(const struct trajectory *t, const char *name, const float *got, size_t n)
{
    const float *want = tensor_of(t, name, n);
    char label[160];
    snprintf(label, sizeof(label), "%s.%s", t->run, name);
    if (want)
        golden_compare(t->c, label, got, want, n, 2e-5, 1);
    return want ? 0 : -1;
}

static int compare_schedule(const struct trajectory *t)
{
    char key[128];
    float *sigmas = ARENA_NEW(&t->c->arena, float, t->steps + 1);
    float *got = ARENA_NEW(&t->c->arena, float, t->steps), *want = ARENA_NEW(&t->c->arena, float, t->steps);
    snprintf(key, sizeof(key), "%s.timesteps", t->run);
    const int64_t *steps = (const int64_t *)golden_bytes(t->c, t->c->file, key, NULL);
    const struct st_tensor *tensor = st_find(t->c->file, key);
    if (!steps || tensor->dtype != DTYPE_I64 || tensor->elements != t->steps)
        return steps ? cairn_fail(&t->c->err, CAIRN_EFORMAT, "%s is not %zu integers", key, t->steps) : -1;
    for (size_t i = 0; i <= t->steps; i++)
        sigmas[i] = (float)solver_sigma(t->solver, i);
    for (size_t i = 0; i < t->steps; i++) {
        got[i] = (float)solver_timestep(t->solver, i);
        want[i] = (float)steps[i];
    }
    golden_compare(t->c, key, got, want, t->steps, 0, 0);
    const float *named = tensor_of(t, "sigmas", t->steps + 1);
    snprintf(key, sizeof(key), "%s.sigmas", t->run);
    if (named)
        golden_compare(t->c, key, sigmas, named, t->steps + 1, 1e-7, 0);
    return named ? 0 : -1;
}

/* All steps; `each`: every x is compared, not only the last. */
static int compare_steps(const struct trajectory *t, bool each)
{
    float *x = ARENA_NEW(&t->c->arena, float, t->values), *v = ARENA_NEW(&t->c->arena, float, t->values);
    memcpy(x, t->begin, t->values * sizeof(*x));
    for (size_t step = 0; step < t->steps; step++) {
        char name[32];
        for (size_t i = 0; i < t->values; i++)
            v[i] = (float)((double)t->a[i] * (double)x[i] * solver_timestep(t->solver, step) / 1000 +
                           (double)t->b[i]);
        solver_step(t->solver, x, v);
        snprintf(name, sizeof(name), "x.%zu", step + 1);
        if (each && compare_values(t, name, x, t->values))
            return -1;
    }
    return each ? 0 : compare_values(t, "euler.final", x, t->values);
}

static int compare_run(struct trajectory *t, double shift)
{
    char key[128];
    snprintf(key, sizeof(key), "%s.x.0", t->run);
    if (!t->steps || shift <= 0)
        return cairn_fail(&t->c->err, CAIRN_EFORMAT, "run %s has no steps, or no shift", t->run);
    t->begin = golden_floats(t->c, t->c->file, key, &t->values);
    t->a = t->begin ? tensor_of(t, "a", t->values) : NULL;
    t->b = t->a ? tensor_of(t, "b", t->values) : NULL;
    if (!t->b)
        return -1;
    for (int kind = SOLVER_UNIPC; kind <= SOLVER_EULER; kind++) {
        t->solver = solver_new((enum solver_kind)kind, t->steps, shift, t->values);
        if (!t->solver)
            return cairn_fail(&t->c->err, CAIRN_ENOMEM, "no memory");
        int r = compare_schedule(t) || compare_steps(t, kind == SOLVER_UNIPC);
        solver_free(t->solver);
        if (r)
            return -1;
    }
    return 0;
}

static int run_solver(struct golden *c)
{
    struct json *config = golden_config(c);
    const struct json *runs = json_get(config, "runs");
    int r = config ? 0 : -1;
    struct json_member m = json_first(runs);
    if (config && !m.key)
        r = cairn_fail(&c->err, CAIRN_EFORMAT, "the metadata lists no runs");
    for (; m.key && !r; m = json_next(runs, m)) {
        struct trajectory t = { .c = c, .run = m.key, .steps = (size_t)json_int(json_at(m.value, 0), 0) };
        r = compare_run(&t, json_number(json_at(m.value, 1), 0));
    }
    json_free(config);
    return r;
}

const struct golden_kind golden_solver = { "solver", is_solver, run_solver };

/* ---- caches ---- */

static bool is_cache(const struct st_file *f)
{
    const char *arch = st_meta_find(f, "architecture");
    if (!arch || strcmp(arch, "wan"))
        return false;
    for (size_t i = 0; i < f->n_tensors; i++)
        if (str_starts(f->tensors[i].name, "latents_") || str_starts(f->tensors[i].name, "varlen_t5_"))
            return true;
    return false;
}

/* What is read must be what is in the file, and the size in the name that of the tensor. */
static int compare_part(struct golden *c, const struct video_item *item, enum video_part part)
{
    const struct video_tensor *t = &item->parts[part];
    const struct st_tensor *tensor = st_find(c->file, t->name);
    size_t n;
    float *got = ARENA_NEW(&c->arena, float, t->values + 1);
    float *want = golden_floats(c, c->file, t->name, &n);
    if (!want || n != t->values || video_item_read(item, part, got, &c->err))
        return c->err.msg[0] ? -1 : cairn_fail(&c->err, CAIRN_EFORMAT, "%s has %zu values", t->name, n);
    golden_compare(c, t->name, got, want, n, 0, 0);
    const char *size = strpbrk(t->name, "0123456789");
    uint64_t f, h, w;
    if (part > VIDEO_IMAGE || !size)
        return 0;
    if (sscanf(size, "%" SCNu64 "x%" SCNu64 "x%" SCNu64, &f, &h, &w) != 3 || tensor->rank != 4 ||
        f != tensor->shape[1] || h != tensor->shape[2] || w != tensor->shape[3])
        return cairn_fail(&c->err, CAIRN_EFORMAT, "%s does not have the size of its name", t->name);
    return 0;
}

/* The file must be an item's latents or text; a text is compared as that of its first item. */
static int run_cache(struct golden *c)
{
    const char *path = c->file->shards[0].path;
    CLEANUP(mem_free) char *folder = path_folder(path);
    const char *folders[] = { folder };
    CLEANUP(video_cache_cleanup) struct video_cache *cache = NULL;
    if (video_cache_open(&cache, &(struct video_cache_options){ .paths = folders, .n_paths = 1 }, &c->err))
        return -1;
    for (size_t i = 0; i < video_cache_count(cache); i++) {
        const struct video_item *item = video_cache_item(cache, i);
        if (!strcmp(item->text_path, path))
            return compare_part(c, item, VIDEO_TEXT);
        if (strcmp(item->path, path))
            continue;
        for (int part = 0; part < VIDEO_TEXT; part++)
            if (item->parts[part].values && compare_part(c, item, (enum video_part)part))
                return -1;
        return 0;
    }
    return cairn_fail(&c->err, CAIRN_EFORMAT, "the folder's list of items does not have it");
}

const struct golden_kind golden_cache = { "cache", is_cache, run_cache };
