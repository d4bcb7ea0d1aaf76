/* SPDX-License-Identifier: Apache-2.0
 * One dialect of LoRA files into another: new names, and alpha folded the way the other side expects. */
#include "base/str.h"
#include "base/thread.h"
#include "tensor/lora.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a tensor of the output is made of. */
struct part {
    const struct st_tensor *from; /* NULL: a new alpha */
    double factor;                /* times this; the value itself for an alpha */
};

struct conversion {
    const struct lora_file *lora;
    const struct lora_rewrite *o;
    struct arena arena;
    struct st_tensor *tensors; /* of the output, with parts beside them */
    struct part *parts;
    size_t n, n_parts;
    struct st_writer *writer;
    uint64_t odd; /* values that are NaN or Inf; atomic */
};

static void fold_nothing(double scale, double *down, double *up)
{
    (void)scale;
    *down = *up = 1;
}

/* As musubi's converter does: the same share for both, so that neither leaves the range of a narrow type. */
static void fold_roots(double scale, double *down, double *up)
{
    *down = sqrt(fabs(scale));
    *up = scale < 0 ? -*down : *down;
}

/* As diffusers' reader does. */
static void fold_powers(double scale, double *down, double *up)
{
    *down = scale;
    *up = 1;
    while (scale > 0 && *down * 2 < *up) {
        *down *= 2;
        *up /= 2;
    }
}

static const struct {
    void (*fold)(double scale, double *down, double *up);
    bool has_alpha;
} dialects[LORA_DIALECT_COUNT] = {
    [LORA_MUSUBI] = { fold_nothing, true },
    [LORA_COMFY] = { fold_roots, false },
    [LORA_DIFFUSERS] = { fold_powers, false },
};

void lora_fold(enum lora_dialect d, double scale, double *down, double *up)
{
    *down = *up = 1;
    if (scale != 1)
        dialects[d].fold(scale, down, up);
}

static int add_part(struct conversion *c, const struct lora_module *m, enum lora_part part, double factor,
                    struct cairn_error *err)
{
    const struct st_tensor *from = m->part[part];
    char key[2 * LORA_NAME_MAX];
    if (!from)
        return 0;
    if (!m->known)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: %.200s is not a module of a supported model",
                          c->lora->source.path, from->name);
    if (lora_name_format(m->name, part, c->o->to, key, sizeof(key), err))
        return cairn_wrap(err, "%s: %s", c->lora->source.path, from->name);
    struct st_tensor *t = ARENA_PUSH(&c->arena, c->tensors, c->n);
    *t = *from;
    t->name = arena_strdup(&c->arena, key);
    if (part != LORA_ALPHA && c->o->dtype != DTYPE_OTHER)
        t->dtype = c->o->dtype;
    t->dtype_text = dtype_safetensors(t->dtype);
    t->bytes = t->elements * dtype_size(t->dtype);
    *ARENA_PUSH(&c->arena, c->parts, c->n_parts) = (struct part){ from, factor };
    return 0;
}

static int add_alpha(struct conversion *c, const struct lora_module *m, struct cairn_error *err)
{
    static const uint64_t no_shape[1];
    char key[2 * LORA_NAME_MAX];
    bool as_it_is = m->part[LORA_ALPHA] && !c->lora->config.rslora;
    if (as_it_is || !m->part[LORA_DOWN])
        return add_part(c, m, LORA_ALPHA, 1, err);
    if (lora_name_format(m->name, LORA_ALPHA, c->o->to, key, sizeof(key), err))
        return -1;
    *ARENA_PUSH(&c->arena, c->tensors, c->n) = (struct st_tensor){
        .name = arena_strdup(&c->arena, key),
        .dtype = DTYPE_F32,
        .dtype_text = dtype_safetensors(DTYPE_F32),
        .shape = no_shape,
        .elements = 1,
        .bytes = sizeof(float),
    };
    *ARENA_PUSH(&c->arena, c->parts, c->n_parts) = (struct part){ NULL, m->scale * (double)m->rank };
    return 0;
}

static bool is_power_of_two(double x)
{
    int exponent;
    return fabs(frexp(x, &exponent)) == 0.5;
}

/* Whether to keep an alpha that could be folded: 16 bits would round every value. */
static bool keeps_alpha(const struct conversion *c, const struct lora_module *m, double down)
{
    if (!m->part[LORA_DOWN])
        return false;
    enum dtype to = c->o->dtype == DTYPE_OTHER ? m->part[LORA_DOWN]->dtype : c->o->dtype;
    return c->o->to == LORA_COMFY && dtype_size(to) < sizeof(float) && !is_power_of_two(down);
}

static int add_module(struct conversion *c, const struct lora_module *m, struct lora_report *report,
                      struct cairn_error *err)
{
    double down, up;
    lora_fold(c->o->to, m->scale, &down, &up);
    bool has_alpha = dialects[c->o->to].has_alpha || keeps_alpha(c, m, down);
    if (has_alpha)
        down = up = 1;
    report->modules++;
    report->folded += down != 1 || up != 1;
    if (add_part(c, m, LORA_DOWN, down, err) || add_part(c, m, LORA_UP, up, err))
        return -1;
    if (has_alpha && add_alpha(c, m, err))
        return -1;
    for (int part = LORA_DIFF; part < LORA_PART_COUNT; part++)
        if (add_part(c, m, (enum lora_part)part, 1, err))
            return -1;
    return 0;
}

bool lora_meta_is_hash(const char *key)
{
    return str_starts(key, "sshs_") || !strcmp(key, "modelspec.hash_sha256");
}

static size_t keep_meta(const struct tensor_source *s, struct arena *a, struct st_meta **out)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_meta; i++)
        if (!lora_meta_is_hash(s->meta[i].key) &&
            strcmp(s->meta[i].key, ADAPTER_METADATA)) /* alpha is in the numbers now */
            *ARENA_PUSH(a, *out, n) = s->meta[i];
    return n;
}

static int multiply(const struct st_tensor *t, float *v, size_t n, double factor, struct cairn_error *err)
{
    for (size_t i = 0; factor != 1 && i < n; i++) {
        double product = (double)v[i] * factor;
        if (isfinite(v[i]) && fabs(product) > dtype_max(DTYPE_F32))
            return cairn_fail(err, CAIRN_EFORMAT, "%s: a value overflows when it is scaled by alpha",
                              t->name);
        v[i] = (float)product;
    }
    return 0;
}

static void count_odd(struct conversion *c, const float *v, size_t n)
{
    uint64_t odd = 0;
    for (size_t i = 0; i < n; i++)
        odd += !isfinite(v[i]);
    __atomic_fetch_add(&c->odd, odd, __ATOMIC_RELAXED);
}

/* Bits are kept where there is nothing to do. */
static int read_piece(struct conversion *c, size_t i, uint64_t first, size_t n, float *wide, void *out,
                      struct cairn_error *err)
{
    const struct st_tensor *from = c->parts[i].from;
    enum dtype to = c->tensors[i].dtype;
    bool as_it_is = from->dtype == to && c->parts[i].factor == 1;
    if (as_it_is) {
        if (source_read(&c->lora->source, from, first, n, out, err))
            return -1;
        if (!dtype_is_float(from->dtype)) /* an alpha that is a whole number */
            return 0;
        dtype_convert(wide, DTYPE_F32, out, from->dtype, n, &(struct dtype_how){ 0 });
        count_odd(c, wide, n);
        return 0;
    }
    if (source_read_as(&c->lora->source, from, first, n, DTYPE_F32, wide, err))
        return -1;
    count_odd(c, wide, n);
    if (multiply(from, wide, n, c->parts[i].factor, err) || lora_check_fits(from, wide, n, to, err))
        return -1;
    dtype_convert(out, to, wide, DTYPE_F32, n, &(struct dtype_how){ 0 });
    return 0;
}

static int write_tensor(void *context, size_t i, struct cairn_error *err)
{
    enum { PIECE = 256 * 1024 };
    struct conversion *c = context;
    const struct st_tensor *t = &c->tensors[i];
    size_t size = dtype_size(t->dtype);
    float alpha = (float)c->parts[i].factor;
    if (!c->parts[i].from)
        return st_writer_put(c->writer, i, 0, &alpha, sizeof(alpha), err);
    CLEANUP(mem_free) float *wide = malloc(PIECE * sizeof(float));
    CLEANUP(mem_free) char *out = malloc(PIECE * sizeof(double));
    if (!wide || !out)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory", t->name);
    for (uint64_t first = 0; first < t->elements; first += PIECE) {
        if (c->o->stop && *c->o->stop)
            return cairn_fail(err, CAIRN_EIO, "stopped");
        size_t n = t->elements - first < PIECE ? (size_t)(t->elements - first) : PIECE;
        if (read_piece(c, i, first, n, wide, out, err) ||
            st_writer_put(c->writer, i, first * size, out, n * size, err))
            return -1;
    }
    return 0;
}

static int write_all(struct conversion *c, const char *out, struct cairn_error *err)
{
    const struct tensor_source *s = &c->lora->source;
    struct st_meta *meta = NULL;
    size_t n_meta = keep_meta(s, &c->arena, &meta);
    CLEANUP(st_writer_close) struct st_writer w = { .out = FILE_OUT_NONE };
    c->writer = &w;
    const struct st_contents contents = {
        .tensors = c->tensors, .n = c->n, .meta = meta, .n_meta = n_meta, .order = ST_ORDER_ALIGNED
    };
    if (st_writer_open(&w, out, &contents, c->o->replace, err))
        return -1;
    if (parallel_for(c->n, 0, write_tensor, c, err) || source_unchanged(s, err))
        return -1;
    return st_writer_commit(&w, err);
}

static int convert_open(const struct lora_file *l, struct conversion *c, const char *out,
                        struct lora_report *report, struct cairn_error *err)
{
    for (size_t i = 0; i < l->n_modules; i++)
        if (add_module(c, &l->modules[i], report, err))
            return -1;
    return write_all(c, out, err);
}

int lora_convert(const char *in, const char *out, const struct lora_rewrite *o, struct lora_report *report,
                 struct cairn_error *err)
{
    CLEANUP(lora_close) struct lora_file l = { 0 };
    if (lora_open(&l, in, err))
        return -1;
    *report = (struct lora_report){ .from = l.dialect, .basis = l.basis };
    struct conversion c = { .lora = &l, .o = o };
    int r = convert_open(&l, &c, out, report, err);
    report->odd = c.odd;
    arena_release(&c.arena);
    return r;
}
