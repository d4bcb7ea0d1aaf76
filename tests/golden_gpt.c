/* SPDX-License-Identifier: Apache-2.0
 * A GPT: scores, loss, what leaves the blocks, every gradient, and some steps of AdamW. */
#include "golden.h"
#include "nn/gpt_work.h"
#include "train/optim.h"
#include <stdio.h>
#include <string.h>

struct gpt_case {
    struct golden *c;
    struct nn nn;
    struct gpt *m;
    struct gpt_work *room;
    struct optim *optim;
    size_t rows;
};

static bool is_gpt(const struct st_file *f)
{
    return st_find(f, "in.ids") && st_find(f, "in.targets") && st_find(f, "logits") &&
           st_find(f, "grad.wte.weight");
}

static int read_shape(struct golden *c, struct gpt_shape *s)
{
    struct json *config = golden_config(c);
    if (!config)
        return -1;
    *s = (struct gpt_shape){
        .layers = (size_t)json_int(json_get(config, "layers"), 0),
        .heads = (size_t)json_int(json_get(config, "heads"), 0),
        .width = (size_t)json_int(json_get(config, "d"), 0),
        .context = (size_t)json_int(json_get(config, "ctx"), 0),
        .vocab = (size_t)json_int(json_get(config, "vocab"), 0),
        .bias = true,
        .tied = true,
        .norm_epsilon = 1e-5f,
    };
    s->kv_heads = s->heads;
    const struct st_tensor *fc = st_find(c->weights, "h.0.mlp.c_fc.weight");
    s->ffn = fc ? fc->shape[0] : 4 * s->width;
    json_free(config);
    return 0;
}

static int load(struct gpt_case *t)
{
    for (size_t i = 0; i < t->m->params.n; i++) {
        const struct param *p = &t->m->params.list[i];
        size_t n;
        float *numbers = golden_floats(t->c, t->c->weights, p->name, &n);
        if (!numbers)
            return -1;
        if (n != p->rows * p->columns)
            return cairn_fail(&t->c->err, CAIRN_EFORMAT, "%s has %zu numbers", p->name, n);
        if (weights_put(&t->m->weights, p, numbers, &t->c->err))
            return -1;
    }
    return optim_start(t->optim, &t->c->err);
}

static int open_case(struct gpt_case *t)
{
    struct golden *c = t->c;
    struct gpt_shape shape;
    struct gpt_options options = { 0 };
    struct optim_options adamw = { .kind = OPTIM_ADAMW,
                                   .beta1 = 0.9,
                                   .beta2 = 0.95,
                                   .epsilon = 1e-8,
                                   .decay = 0.1,
                                   .clip = 1,
                                   .master = true };
    const struct st_tensor *ids = st_find(c->file, "in.ids");
    if (!c->weights)
        return cairn_fail(&c->err, CAIRN_EFORMAT, "no file of weights goes with it");
    if (ids->rank != 2 || read_shape(c, &shape))
        return -1;
    struct gpt_work_options room = { .samples = ids->shape[0], .tokens = ids->shape[1], .train = true };
    t->rows = room.samples * room.tokens;
    if (nn_open(&t->nn, c->g, c->storage, &c->err) || gpt_open(&t->nn, &shape, &options, &t->m, &c->err) ||
        gpt_work_open(t->m, &room, &t->room, &c->err) ||
        optim_open(c->g, &t->m->params, &t->m->weights, &adamw, &t->optim, &c->err))
        return -1;
    return load(t);
}

static int pass(struct gpt_case *t, const int *ids, const int *targets, double *loss)
{
    struct gpt_pass p = { .scale = 1 / (float)t->rows };
    size_t n;
    if (gpt_put(t->room, 0, ids, targets, &t->c->err) || optim_clear_grads(t->optim, NULL, &t->c->err) ||
        gpt_run(t->room, &p, optim_grads(t->optim), &t->c->err) || gpt_loss(t->room, 0, loss, &n, &t->c->err))
        return -1;
    *loss /= (double)n;
    return 0;
}

static void compare_number(struct golden *c, const char *name, double got, float want, double share)
{
    float number = (float)got;
    golden_compare(c, name, &number, &want, 1, share, 0);
}

/* Outputs are compared as the data's own readme says for f32. */
static int compare_tensor(struct gpt_case *t, const char *name, const float *got, bool gradient)
{
    size_t n;
    float *want = golden_floats(t->c, t->c->file, name, &n);
    if (!want)
        return -1;
    golden_compare(t->c, name, got, want, n, gradient ? 1e-4 : 2e-5, gradient ? 0 : 1);
    return 0;
}

static int compare_between(struct gpt_case *t)
{
    char name[64];
    float *got = ARENA_NEW(&t->c->arena, float, t->rows * t->m->shape.width);
    for (size_t i = 0; i <= t->m->shape.layers; i++) {
        snprintf(name, sizeof(name), i ? "act.h.%zu.out" : "act.embed", i - 1);
        if (gpt_between(t->room, i, false, got, &t->c->err) || compare_tensor(t, name, got, false))
            return -1;
        snprintf(name, sizeof(name), "act.h.%zu.after_attn", i);
        if (i < t->m->shape.layers &&
            (gpt_between(t->room, i, true, got, &t->c->err) || compare_tensor(t, name, got, false)))
            return -1;
    }
    return 0;
}

static int compare_grads(struct gpt_case *t)
{
    for (size_t i = 0; i < t->m->params.n; i++) {
        const struct param *p = &t->m->params.list[i];
        char *name = arena_printf(&t->c->arena, "grad.%s", p->name);
        float *got = ARENA_NEW(&t->c->arena, float, p->rows * p->columns);
        if (weights_get(optim_grads(t->optim), p, got, &t->c->err) || compare_tensor(t, name, got, true))
            return -1;
    }
    return 0;
}

static int one_pass(struct gpt_case *t)
{
    struct golden *c = t->c;
    int *ids = golden_ints(c, c->file, "in.ids", NULL),
        *targets = golden_ints(c, c->file, "in.targets", NULL);
    float *want = golden_floats(c, c->file, "loss", NULL);
    float *scores = ARENA_NEW(&c->arena, float, t->rows * t->m->shape.vocab);
    double loss;
    if (!ids || !targets || !want || pass(t, ids, targets, &loss))
        return -1;
    compare_number(c, "loss", loss, *want, 1e-5);
    if (compare_between(t) || compare_grads(t) || gpt_scores(t->room, scores, &c->err))
        return -1;
    return compare_tensor(t, "logits", scores, false);
}

static int compare_finals(struct gpt_case *t)
{
    static const char before[] = "train.final.";
    for (size_t i = 0; i < t->c->file->n_tensors; i++) {
        const char *name = t->c->file->tensors[i].name;
        if (strncmp(name, before, strlen(before)))
            continue;
        const struct param *p = params_find(&t->m->params, name + strlen(before));
        if (!p)
            return cairn_fail(&t->c->err, CAIRN_EFORMAT, "%s is of no parameter", name);
        float *got = ARENA_NEW(&t->c->arena, float, p->rows * p->columns);
        if (weights_get(&t->m->weights, p, got, &t->c->err))
            return -1;
        float *want = golden_floats(t->c, t->c->file, name, NULL);
        golden_compare(t->c, name, got, want, p->rows * p->columns, 1e-3, 0);
    }
    return 0;
}

static int train(struct gpt_case *t)
{
    struct golden *c = t->c;
    size_t steps;
    int *ids = golden_ints(c, c->file, "train.ids", NULL),
        *targets = golden_ints(c, c->file, "train.targets", NULL);
    float *losses = golden_floats(c, c->file, "train.loss", &steps);
    float *norms = golden_floats(c, c->file, "train.grad_norm", NULL);
    if (!ids || !targets || !losses || !norms)
        return -1;
    for (size_t i = 0; i < steps; i++) {
        struct optim_result r;
        double loss;
        char name[32];
        if (pass(t, ids + i * t->rows, targets + i * t->rows, &loss) ||
            optim_step(t->optim, NULL, 3e-3, 1, &c->err) || optim_finish(t->optim, NULL, &r, &c->err))
            return -1;
        snprintf(name, sizeof(name), "train.loss[%zu]", i);
        compare_number(c, name, loss, losses[i], 1e-4);
        snprintf(name, sizeof(name), "train.grad_norm[%zu]", i);
        compare_number(c, name, r.norm, norms[i], 1e-3);
    }
    return compare_finals(t);
}

static int run_gpt(struct golden *c)
{
    struct gpt_case t = { .c = c };
    int r = open_case(&t) || one_pass(&t) || (st_find(c->file, "train.ids") && train(&t)) ? -1 : 0;
    optim_close(t.optim);
    gpt_work_close(t.room);
    gpt_close(t.m);
    nn_close(&t.nn);
    return r;
}

const struct golden_kind golden_gpt = { "gpt", is_gpt, run_gpt };
