/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/wan_adapters.h"
#include "base/str.h"
#include "base/thread.h"
#include "nn/param_layout.h"
#include "tensor/lora.h"
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A parameter that is not a linear of a block. */
struct changed {
    size_t base;
    const struct param *param;
    float *before, *after;
};

struct wan_adapters {
    struct wan_adapter *list;
    size_t n, rank;
    struct changed *changed;
    size_t n_changed;
    struct arena arena; /* of lists, not of values */
};

/* ---- what there is ---- */

size_t wan_adapters_count(const struct wan *m)
{
    return m->adapters ? m->adapters->n : 0;
}

const struct wan_adapter *wan_adapters_at(const struct wan *m, size_t i)
{
    return &m->adapters->list[i];
}

size_t wan_adapters_rank(const struct wan *m)
{
    return m->adapters ? m->adapters->rank : 0;
}

/* ---- parameters that are changed ---- */

static int put_all(struct wan *m, size_t base, bool before, struct cairn_error *err)
{
    for (size_t i = 0; i < m->adapters->n_changed; i++) {
        const struct changed *c = &m->adapters->changed[i];
        if ((base == WAN_EXPERTS || c->base == base) &&
            weights_put(&m->weights[c->base], c->param, before ? c->before : c->after, err))
            return -1;
    }
    return 0;
}

int wan_adapters_apply(struct wan *m, size_t base, struct cairn_error *err)
{
    return m->adapters ? put_all(m, base, false, err) : 0;
}

static struct changed *change(struct wan *m, size_t base, const struct param *p, struct cairn_error *err)
{
    struct wan_adapters *a = m->adapters;
    size_t n = p->rows * p->columns;
    for (size_t i = 0; i < a->n_changed; i++)
        if (a->changed[i].base == base && a->changed[i].param == p)
            return &a->changed[i];
    struct changed *c = ARENA_PUSH(&a->arena, a->changed, a->n_changed);
    *c = (struct changed){ base, p, calloc(n, sizeof(float)), calloc(n, sizeof(float)) };
    if (!c->before || !c->after || weights_get(&m->weights[base], p, c->before, err)) {
        if (!c->before || !c->after)
            cairn_fail(err, CAIRN_ENOMEM, "no memory for %s", p->name);
        free(c->before);
        free(c->after);
        a->n_changed--;
        return NULL;
    }
    memcpy(c->after, c->before, n * sizeof(float));
    return c;
}

/* ---- reading a file ---- */

struct applying {
    struct wan *m;
    const struct wan_adapter_file *file;
    const struct lora_file *lora;
    size_t base;
    struct wan_adapter_report *report;
};

/* The values of a tensor times a factor. */
static float *read_part(const struct applying *k, const struct st_tensor *t, size_t n, double factor,
                        enum dtype to, struct cairn_error *err)
{
    const struct tensor_source *s = &k->lora->source;
    if (t->elements != n) {
        cairn_fail(err, CAIRN_EFORMAT, "%s: %s has %" PRIu64 " values, but the model needs %zu", s->path,
                   t->name, t->elements, n);
        return NULL;
    }
    float *values = malloc((n + 1) * sizeof(*values));
    if (!values)
        cairn_fail(err, CAIRN_ENOMEM, "%s: no memory for %s", s->path, t->name);
    int r = !values || source_read_as(s, t, 0, n, DTYPE_F32, values, err);
    for (size_t i = 0; i < n && !r; i++) {
        double v = (double)values[i] * factor;
        if (!(fabs(v) <= dtype_max(to)))
            r = cairn_fail(err, CAIRN_EFORMAT, "%s: the value %g of %s does not fit into %s", s->path, v,
                           t->name, dtype_name(to));
        values[i] = (float)v;
    }
    if (!r)
        return values;
    free(values);
    return NULL;
}

static const struct param *find_param(const struct wan *m, size_t base, const char *module, const char *end)
{
    char name[2 * LORA_NAME_MAX];
    snprintf(name, sizeof(name), "%s%s", module, end);
    return params_find(&m->params[base], name);
}

/* weight += factor * up * down, a row of it. */
struct product {
    float *after;
    const float *up, *down;
    size_t rank, columns;
};

static int add_row(void *context, size_t row, struct cairn_error *err)
{
    const struct product *p = context;
    float *y = p->after + row * p->columns;
    (void)err;
    for (size_t r = 0; r < p->rank; r++) {
        float by = p->up[row * p->rank + r];
        for (size_t i = 0; i < p->columns; i++)
            y[i] += by * p->down[r * p->columns + i];
    }
    return 0;
}

/* A pair outside the blocks. */
static int merge_pair(const struct applying *k, const struct lora_module *module, const struct param *p,
                      struct cairn_error *err)
{
    if (module->in != p->columns || module->out != p->rows)
        return cairn_fail(err, CAIRN_EFORMAT,
                          "%s: %.200s is %" PRIu64 " x %" PRIu64 ", but the model's is %zu x %zu",
                          k->lora->source.path, module->name, module->out, module->in, p->rows, p->columns);
    CLEANUP(mem_free)
    float *down = read_part(k, module->part[LORA_DOWN], module->rank * p->columns, 1, DTYPE_F32, err);
    CLEANUP(mem_free)
    float *up = down ? read_part(k, module->part[LORA_UP], p->rows * module->rank,
                                 module->scale * k->file->strength, DTYPE_F32, err)
                     : NULL;
    struct changed *c = up ? change(k->m, k->base, p, err) : NULL;
    if (!c)
        return -1;
    struct product product = { c->after, up, down, module->rank, p->columns };
    return parallel_for(p->rows, 0, add_row, &product, err);
}

/* A difference as it is; of a matrix in the blocks there is none. */
static int add_difference(const struct applying *k, const struct lora_module *module, enum lora_part part,
                          struct cairn_error *err)
{
    bool is_bias = part != LORA_DIFF;
    const struct param *p = find_param(k->m, k->base, module->name, is_bias ? ".bias" : ".weight");
    const struct st_tensor *t = module->part[part];
    double factor = k->file->strength * (part == LORA_UP_BIAS ? module->scale : 1);
    if (!p && !is_bias)
        p = find_param(k->m, k->base, module->name, "");
    if (!p)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: the model has no parameter for %.200s",
                          k->lora->source.path, t->name);
    if (p->kind != PARAM_VECTOR && str_starts(p->name, "blocks."))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: %.200s changes a whole matrix, not by a LoRA",
                          k->lora->source.path, t->name);
    size_t n = p->rows * p->columns;
    CLEANUP(mem_free) float *values = read_part(k, t, n, factor, DTYPE_F32, err);
    struct changed *c = values ? change(k->m, k->base, p, err) : NULL;
    for (size_t i = 0; c && i < n; i++)
        c->after[i] += values[i];
    return c ? 0 : -1;
}

/* ---- linears of the blocks ---- */

/* "blocks.3.self_attn.q": which linear it is; false: none of the blocks'. */
static bool block_linear(const struct wan *m, const char *module, size_t *layer, enum wan_matrix *which)
{
    int used = 0;
    if (sscanf(module, "blocks.%zu.%n", layer, &used) != 1 || !used || *layer >= m->shape.layers)
        return false;
    for (int i = 0; i < WAN_MATRICES; i++)
        if (wan_has_matrix(&m->shape, (enum wan_matrix)i) && !strcmp(module + used, wan_modules[i])) {
            *which = (enum wan_matrix)i;
            return true;
        }
    return false;
}

/* Adds the pair to the table; the values follow once the memory is there. */
static int add_pair(const struct applying *k, struct wan_adapter *a, const struct lora_module *module,
                    size_t layer, enum wan_matrix which, struct cairn_error *err)
{
    const struct wan_linear *l = &k->m->blocks[layer].linear[which];
    if (module->in != l->in || module->out != l->out)
        return cairn_fail(err, CAIRN_EFORMAT,
                          "%s: %.200s is %" PRIu64 " x %" PRIu64 ", but the model's is %zu x %zu",
                          k->lora->source.path, module->name, module->out, module->in, l->out, l->in);
    a->lora.rank = module->rank;
    lora_add(&a->lora, &a->sites[layer][which], module->name, 0, l->out, l->in);
    return 0;
}

static int put_pair(const struct applying *k, const struct wan_adapter *a, const struct lora_module *module,
                    const struct lora_pair *pair, struct cairn_error *err)
{
    const struct {
        const struct param *param;
        enum lora_part part;
        double factor;
    } halves[] = { { &a->lora.params.list[pair->a], LORA_DOWN, 1 },
                   { &a->lora.params.list[pair->b], LORA_UP, module->scale * k->file->strength } };
    enum dtype to = storage_dtype(a->lora.weights.storage);
    for (size_t i = 0; i < ARRAY_LEN(halves); i++) {
        const struct param *p = halves[i].param;
        CLEANUP(mem_free)
        float *values =
            read_part(k, module->part[halves[i].part], p->rows * p->columns, halves[i].factor, to, err);
        if (!values || weights_put(&a->lora.weights, p, values, err))
            return -1;
    }
    return 0;
}

/* ---- a file over a base ---- */

static bool has_module(const struct wan *m, size_t base, const char *name)
{
    return find_param(m, base, name, ".weight") || find_param(m, base, name, "");
}

static int add_module(const struct applying *k, struct wan_adapter *a, const struct lora_module *module,
                      struct cairn_error *err)
{
    struct wan_adapter_report *r = k->report;
    size_t layer;
    enum wan_matrix which;
    if (!has_module(k->m, k->base, module->name)) {
        if (!r->unknown++)
            snprintf(r->first_unknown, sizeof(r->first_unknown), "%s", module->name);
        return 0;
    }
    r->modules++;
    if (module->embedding || module->part[LORA_WHOLE] || module->part[LORA_WHOLE_B])
        return cairn_fail(err, CAIRN_EFORMAT, "%s: %.200s replaces weights; it is not a LoRA",
                          k->lora->source.path, module->name);
    for (int part = LORA_DIFF; part <= LORA_UP_BIAS; part++)
        if (module->part[part] && add_difference(k, module, (enum lora_part)part, err))
            return -1;
    if (!module->part[LORA_DOWN])
        return 0;
    if (block_linear(k->m, module->name, &layer, &which))
        return add_pair(k, a, module, layer, which, err);
    const struct param *p = find_param(k->m, k->base, module->name, ".weight");
    if (!p || p->kind != PARAM_MATRIX)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: %.200s is not a linear layer", k->lora->source.path,
                          module->name);
    return merge_pair(k, module, p, err);
}

static int put_values(const struct applying *k, const struct wan_adapter *a, struct cairn_error *err)
{
    for (size_t i = 0; i < k->lora->n_modules; i++) {
        const struct lora_module *module = &k->lora->modules[i];
        size_t layer;
        enum wan_matrix which;
        if (module->part[LORA_DOWN] && block_linear(k->m, module->name, &layer, &which) &&
            put_pair(k, a, module, &a->sites[layer][which].pairs[0], err))
            return -1;
    }
    return 0;
}

static int apply_file(struct applying *k, struct cairn_error *err)
{
    struct wan *m = k->m;
    struct wan_adapters *all = m->adapters;
    struct wan_adapter *a = ARENA_PUSH(&all->arena, all->list, all->n);
    *a = (struct wan_adapter){ .base = k->base, .lora = { .scale = 1 } };
    a->sites = arena_alloc(&all->arena, m->shape.layers * sizeof(*a->sites));
    memset(a->sites, 0, m->shape.layers * sizeof(*a->sites));
    for (size_t i = 0; i < k->lora->n_modules; i++) {
        if (add_module(k, a, &k->lora->modules[i], err))
            return -1;
        all->rank = a->lora.rank > all->rank ? a->lora.rank : all->rank;
    }
    if (!a->lora.params.n)
        return 0;
    return weights_open(&a->lora.weights, m->nn->g, &a->lora.params, m->nn->storage, WEIGHTS_INT8, err) ||
                   put_values(k, a, err)
               ? -1
               : 0;
}

static int open_file(struct wan *m, const struct wan_adapter_file *file, struct wan_adapter_report *report,
                     struct cairn_error *err)
{
    *report = (struct wan_adapter_report){ 0 };
    for (size_t base = 0; base < m->model.n_bases && file->strength != 0; base++) {
        CLEANUP(lora_close) struct lora_file lora = { 0 };
        enum lora_expert expert = m->model.n_bases < 2 ? LORA_EXPERT_ANY
                                  : base               ? LORA_EXPERT_HIGH
                                                       : LORA_EXPERT_LOW;
        struct applying k = { m, file, &lora, base, report };
        if (file->base != WAN_EXPERTS && file->base != base)
            continue;
        if (lora_open_expert(&lora, file->path, expert, err) || apply_file(&k, err) ||
            source_unchanged(&lora.source, err))
            return -1;
        if (!report->modules)
            return cairn_fail(err, CAIRN_EFORMAT,
                              "%s: none of its layers is one of the model's; the first is %.200s", file->path,
                              report->first_unknown);
    }
    return 0;
}

/* ---- all of them ---- */

static void release(struct wan *m)
{
    struct wan_adapters *a = m->adapters;
    for (size_t i = 0; i < a->n; i++) {
        weights_close(&a->list[i].lora.weights);
        params_release(&a->list[i].lora.params);
    }
    for (size_t i = 0; i < a->n_changed; i++) {
        free(a->changed[i].before);
        free(a->changed[i].after);
    }
    arena_release(&a->arena);
    free(a);
    m->adapters = NULL;
}

int wan_adapters_open(struct wan *m, const struct wan_adapter_file *files, size_t n,
                      struct wan_adapter_report *reports, struct cairn_error *err)
{
    struct wan_adapter_report ignored;
    assert(!m->adapters);
    m->adapters = calloc(1, sizeof(*m->adapters));
    if (!m->adapters)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    for (size_t i = 0; i < n; i++)
        if (open_file(m, &files[i], reports ? &reports[i] : &ignored, err)) {
            release(m); /* no weight was changed so far */
            return -1;
        }
    if (!put_all(m, WAN_EXPERTS, false, err))
        return 0;
    struct cairn_error again;
    wan_adapters_close(m, &again);
    return -1;
}

int wan_adapters_close(struct wan *m, struct cairn_error *err)
{
    if (!m->adapters)
        return 0;
    int r = put_all(m, WAN_EXPERTS, true, err);
    release(m);
    return r;
}
