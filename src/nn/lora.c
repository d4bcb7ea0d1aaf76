/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/lora.h"
#include "base/int.h"
#include "gpu/gemm_cpu.h"
#include <assert.h>
#include <fnmatch.h>
#include <string.h>

bool lora_is_target(const struct lora_options *o, const char *module)
{
    if (!o->n_targets)
        return true;
    for (size_t i = 0; i < o->n_targets; i++)
        for (const char *end = module; end; end = strchr(end, '.')) {
            end += *end == '.';
            if (!fnmatch(o->targets[i], end, 0))
                return true;
        }
    return false;
}

void lora_add(struct lora *l, struct lora_site *site, const char *module, size_t first, size_t rows,
              size_t in)
{
    assert(site->n < LORA_PAIRS);
    site->pairs[site->n++] = (struct lora_pair){
        .a = params_add(&l->params, PARAM_MATRIX, l->rank, in, "%s.lora_A.weight", module),
        .b = params_add(&l->params, PARAM_MATRIX, rows, l->rank, "%s.lora_B.weight", module),
        .first = first,
        .rows = rows,
    };
    l->most_in = at_least(in, l->most_in);
}

size_t lora_packed_elements(const struct nn *nn, const struct lora_linear *l)
{
    size_t most = gemm_cpu_scratch(nn->g, l->rows, l->out, l->in);
    if (!l->train)
        return most;
    most = at_least(most, gemm_cpu_scratch(nn->g, l->rows, l->in, l->out));
    if (!l->rank)
        return at_least(most, gemm_cpu_scratch(nn->g, l->out, l->in, l->rows));
    return at_least(most, at_least(gemm_cpu_scratch(nn->g, l->rank, l->in, l->rows),
                                   gemm_cpu_scratch(nn->g, l->out, l->rank, l->rows)));
}

/* A pair's matrices; they are never quantized, so that nothing is queued. */
static void pair_of(const struct lora *l, const struct weights *w, const struct lora_pair *p, void **a,
                    void **b)
{
    struct cairn_error none;
    weights_matrix(w, NULL, &l->params.list[p->a], a, &none);
    weights_matrix(w, NULL, &l->params.list[p->b], b, &none);
}

static int drop(struct nn *nn, const struct lora_call *c, const void **x, struct cairn_error *err)
{
    *x = c->x;
    if (c->drop->rate == 0)
        return 0;
    *x = c->scratch->dropped;
    return nn_dropout(nn, c->scratch->dropped, c->x, c->rows * c->in, c->drop, err);
}

static void *skip(const struct nn *nn, const void *p, size_t numbers)
{
    return (char *)p + numbers * storage_size(nn->storage);
}

static int forward_pair(struct nn *nn, const struct lora_call *c, const struct lora_pair *p, const void *x,
                        void *y, struct cairn_error *err)
{
    void *a, *b;
    size_t rank = c->lora->params.list[p->a].rows;
    pair_of(c->lora, &c->lora->weights, p, &a, &b);
    struct nn_linear down = {
        .x = x, .w = a, .y = c->scratch->small, .rows = c->rows, .in = c->in, .out = rank
    };
    struct nn_linear up = {
        .x = c->scratch->small,
        .w = b,
        .y = skip(nn, y, p->first),
        .rows = c->rows,
        .in = rank,
        .out = p->rows,
        .y_stride = c->out,
        .alpha = c->lora->scale,
        .add = !c->first,
    };
    return nn_linear(nn, &down, err) || nn_linear(nn, &up, err) ? -1 : 0;
}

int lora_forward(struct nn *nn, const struct lora_call *c, void *y, struct cairn_error *err)
{
    const void *x;
    if (!c->site->n)
        return 0;
    if (drop(nn, c, &x, err))
        return -1;
    for (size_t i = 0; i < c->site->n; i++)
        if (forward_pair(nn, c, &c->site->pairs[i], x, y, err))
            return -1;
    return 0;
}

/* The backward pass through the pairs of a site. */
struct back {
    const struct lora_call *call;
    const void *x, *dy; /* x after its dropout */
    void *dx;           /* may be NULL */
    const struct weights *grads;
};

/* small = x aᵀ again; db = scale dyᵀ small; small_back = scale dy b; da = small_backᵀ x; dx = small_back a,
 * added to what is there where `add`. */
static int back_pair(struct nn *nn, const struct back *k, const struct lora_pair *p, bool add,
                     struct cairn_error *err)
{
    const struct lora_call *c = k->call;
    void *a, *b, *da, *db;
    pair_of(c->lora, &c->lora->weights, p, &a, &b);
    pair_of(c->lora, k->grads, p, &da, &db);
    size_t rank = c->lora->rank;
    struct nn_linear down = {
        .x = k->x, .w = a, .y = c->scratch->small, .rows = c->rows, .in = c->in, .out = rank
    };
    struct nn_linear_back up_back = {
        .dy = skip(nn, k->dy, p->first),
        .x = c->scratch->small,
        .w = b,
        .dx = c->scratch->small_back,
        .dw = db,
        .rows = c->rows,
        .in = rank,
        .out = p->rows,
        .dy_stride = c->out,
        .alpha = c->lora->scale,
    };
    struct nn_linear_back down_back = {
        .dy = c->scratch->small_back,
        .x = k->x,
        .w = a,
        .dx = k->dx,
        .dw = da,
        .rows = c->rows,
        .in = c->in,
        .out = rank,
        .add = add,
    };
    if (nn_linear(nn, &down, err) || nn_linear_back(nn, &up_back, err))
        return -1;
    return nn_linear_back(nn, &down_back, err);
}

/* With dropout the gradient of x passes through it: it is collected separately, after the dropped x, and
 * added then. */
int lora_back(struct nn *nn, const struct lora_call *c, const void *dy, void *dx, const struct weights *grads,
              struct cairn_error *err)
{
    struct back k = { .call = c, .x = c->x, .dy = dy, .dx = dx, .grads = grads };
    bool dropped = c->site->n && c->drop->rate != 0;
    if (dropped && dx)
        k.dx = (char *)c->scratch->dropped + c->rows * c->lora->most_in * storage_size(nn->storage);
    if (dropped && drop(nn, c, &k.x, err))
        return -1;
    for (size_t i = 0; i < c->site->n; i++)
        if (back_pair(nn, &k, &c->site->pairs[i], i > 0 || (!dropped && !c->first), err))
            return -1;
    if (!dropped || !dx)
        return 0;
    if (c->first)
        return nn_dropout(nn, dx, k.dx, c->rows * c->in, c->drop, err);
    return nn_dropout(nn, k.dx, k.dx, c->rows * c->in, c->drop, err) ||
                   nn_add(nn, dx, dx, k.dx, c->rows * c->in, err)
               ? -1
               : 0;
}
