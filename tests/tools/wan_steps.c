/* SPDX-License-Identifier: Apache-2.0
 * wan_steps WEIGHTS LORA DATA OUT DEVICE f32|bf16|f16 STEPS RATE: training steps of a Wan model on given noise, for those who take
 * the same steps (bench/wan_reference.py).
 *
 * WEIGHTS is a checkpoint, LORA a file of "blocks.0.self_attn.q.lora_A.weight" and so on, alpha = rank.  DATA has "latents" and
 * "text" of some items, and for each step "noise", "sigma" and "order", the item.  OUT gets "loss" and "norm" of each step, and of
 * the first the "output" and each "grad.NAME". */
#include "nn/wan_file.h"
#include "nn/wan_work.h"
#include "tensor/safetensors.h"
#include "train/optim.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tool {
    struct arena arena;
    struct cairn_error err;
    struct gpu *g;
    struct nn nn;
    struct wan *m;
    struct work *work;
    struct optim *optim;
    struct st_file lora, data;
    struct wan_size size;
    size_t cells, text; /* values of a latent, of a caption */
    const float *latents, *texts, *sigma;
    const int *order;
    float *x, *target, *noise;
    struct st_tensor *out;
    void **out_at;
    size_t n_out;
};

static const struct st_tensor *find(struct tool *t, const struct st_file *f, const char *name)
{
    const struct st_tensor *found = st_find(f, name);
    if (!found)
        cairn_fail(&t->err, CAIRN_EFORMAT, "there is no tensor %s", name);
    return found;
}

static float *floats(struct tool *t, const struct st_file *f, const char *name)
{
    const struct st_tensor *s = find(t, f, name);
    if (!s)
        return NULL;
    void *raw = arena_alloc(&t->arena, s->bytes + 1);
    float *out = ARENA_NEW(&t->arena, float, s->elements + 1);
    if (st_read(f, s, 0, s->elements, raw, &t->err))
        return NULL;
    dtype_convert(out, DTYPE_F32, raw, s->dtype, s->elements, &(struct dtype_how){ 0 });
    return out;
}

/* ---- the model ---- */

static int load_lora(struct tool *t)
{
    const struct lora *l = &t->m->loras[0];
    for (size_t i = 0; i < l->params.n; i++) {
        const struct param *p = &l->params.list[i];
        const struct st_tensor *s = find(t, &t->lora, p->name);
        float *x = s && s->elements == p->rows * p->columns ? floats(t, &t->lora, p->name) : NULL;
        if (!x || weights_put(&l->weights, p, x, &t->err))
            return -1;
    }
    return optim_start(t->optim, &t->err);
}

static int open_model(struct tool *t, const char *path, enum gpu_storage storage)
{
    const struct optim_options adamw = { .kind = OPTIM_ADAMW,
                                         .beta1 = 0.9,
                                         .beta2 = 0.999,
                                         .epsilon = 1e-8,
                                         .decay = 0.01,
                                         .clip = 1,
                                         .master = true };
    const struct st_tensor *a = find(t, &t->lora, "blocks.0.self_attn.q.lora_A.weight");
    struct wan_file_info info;
    struct param_report report = { 0 };
    if (!a || wan_file_read_info(path, 0, &info, &t->err))
        return -1;
    struct lora_options lora = { .rank = a->shape[0], .alpha = (float)a->shape[0] };
    struct wan_options o = { .experts = 1, .lora = &lora };
    if (nn_open(&t->nn, t->g, storage, &t->err) || wan_new(&t->nn, &info.shape, &o, &t->m, &t->err) ||
        model_alloc(&t->m->model, NULL, &t->err) ||
        optim_open(t->g, &t->m->loras[0].params, &t->m->loras[0].weights, &adamw, &t->optim, &t->err))
        return -1;
    int r = wan_file_load(t->m, 0, path, &report, &t->err);
    param_report_release(&report);
    return r || load_lora(t) ? -1 : 0;
}

static int open_data(struct tool *t)
{
    const struct st_tensor *l = find(t, &t->data, "latents"), *order = find(t, &t->data, "order");
    if (!l || l->rank != 5 || !order || order->dtype != DTYPE_I32)
        return cairn_fail(&t->err, CAIRN_EFORMAT, "latents have 5 dimensions, order is I32");
    t->size = (struct wan_size){ l->shape[2], l->shape[3], l->shape[4] };
    t->cells = l->elements / l->shape[0];
    t->text = t->m->shape.text_rows * t->m->shape.text_width;
    t->latents = floats(t, &t->data, "latents");
    t->texts = floats(t, &t->data, "text");
    t->sigma = floats(t, &t->data, "sigma");
    int *items = ARENA_NEW(&t->arena, int, order->elements);
    t->x = ARENA_NEW(&t->arena, float, t->cells);
    t->target = ARENA_NEW(&t->arena, float, t->cells);
    t->noise = ARENA_NEW(&t->arena, float, t->cells);
    t->order = items;
    if (!t->latents || !t->texts || !t->sigma || !find(t, &t->data, "noise"))
        return -1;
    struct work_options o = { .samples = 1, .extent = wan_tokens(t->size), .train = true, .recompute = true };
    return st_read(&t->data, order, 0, order->elements, items, &t->err) ||
                   t->m->model.ops->work_open(&t->m->model, &o, &t->work, &t->err)
               ? -1
               : 0;
}

/* ---- steps ---- */

static int put(struct tool *t, size_t step)
{
    const float *x0 = t->latents + (size_t)t->order[step] * t->cells;
    float s = t->sigma[step], time = 1000 * s;
    if (st_read(&t->data, st_find(&t->data, "noise"), step * t->cells, t->cells, t->noise, &t->err))
        return -1;
    for (size_t i = 0; i < t->cells; i++) {
        t->x[i] = (1 - s) * x0[i] + s * t->noise[i];
        t->target[i] = t->noise[i] - x0[i];
    }
    struct wan_batch b = {
        .samples = 1,
        .size = t->size,
        .x = t->x,
        .target = t->target,
        .times = &time,
        .text = t->texts + (size_t)t->order[step] * t->text,
    };
    return wan_put(t->work, 0, &b, &t->err);
}

static void keep(struct tool *t, const char *name, const float *at, size_t n)
{
    uint64_t *shape = ARENA_NEW(&t->arena, uint64_t, 1);
    *shape = n;
    t->out_at[t->n_out] = (void *)at;
    t->out[t->n_out++] = (struct st_tensor){ .name = name,
                                             .dtype = DTYPE_F32,
                                             .dtype_text = "F32",
                                             .shape = shape,
                                             .rank = 1,
                                             .elements = n,
                                             .bytes = n * 4 };
}

static int keep_first(struct tool *t)
{
    const struct params *all = &t->m->loras[0].params;
    for (size_t i = 0; i < all->n; i++) {
        const struct param *p = &all->list[i];
        float *x = ARENA_NEW(&t->arena, float, p->rows * p->columns);
        if (weights_get(optim_grads(t->optim), p, x, &t->err))
            return -1;
        keep(t, arena_printf(&t->arena, "grad.%s", p->name), x, p->rows * p->columns);
    }
    return 0;
}

static int keep_output(struct tool *t)
{
    struct model_pass p = { .scale = 1 };
    float *x = ARENA_NEW(&t->arena, float, t->cells);
    if (t->m->model.ops->run(t->work, &p, NULL, &t->err) || wan_output(t->work, 0, x, &t->err))
        return -1;
    keep(t, "output", x, t->cells);
    return 0;
}

static int step(struct tool *t, size_t i, double rate, float *loss, float *norm)
{
    struct model_pass p = { .scale = 1, .learn = true };
    struct optim_result r;
    double sum, units;
    if (put(t, i) || (!i && keep_output(t)) || optim_clear_grads(t->optim, NULL, &t->err) ||
        t->m->model.ops->run(t->work, &p, optim_grads(t->optim), &t->err) ||
        t->m->model.ops->loss(t->work, 0, &sum, &units, &t->err) || (!i && keep_first(t)) ||
        optim_step(t->optim, NULL, rate, 1, &t->err) || optim_finish(t->optim, NULL, &r, &t->err))
        return -1;
    *loss = (float)(sum / units);
    *norm = (float)r.norm;
    return 0;
}

static int run(struct tool *t, size_t steps, double rate)
{
    float *loss = ARENA_NEW(&t->arena, float, steps), *norm = ARENA_NEW(&t->arena, float, steps);
    t->out = ARENA_NEW(&t->arena, struct st_tensor, t->m->loras[0].params.n + 3);
    t->out_at = ARENA_NEW(&t->arena, void *, t->m->loras[0].params.n + 3);
    for (size_t i = 0; i < steps; i++)
        if (step(t, i, rate, &loss[i], &norm[i]))
            return -1;
    keep(t, "loss", loss, steps);
    keep(t, "norm", norm, steps);
    return 0;
}

static int write_out(struct tool *t, const char *path)
{
    struct st_contents c = { .tensors = t->out, .n = t->n_out };
    struct st_writer w;
    if (st_writer_open(&w, path, &c, true, &t->err))
        return -1;
    int r = 0;
    for (size_t i = 0; i < t->n_out && !r; i++)
        r = st_writer_put(&w, i, 0, t->out_at[i], t->out[i].bytes, &t->err);
    r = r || st_writer_commit(&w, &t->err);
    st_writer_close(&w);
    return r ? -1 : 0;
}

int main(int argc, char **argv)
{
    struct tool t = { 0 };
    if (argc != 9) {
        fputs("usage: wan_steps WEIGHTS LORA DATA OUT DEVICE f32|bf16|f16 STEPS RATE\n", stderr);
        return 2;
    }
    setenv("CAIRN_KC", BUILT_KC, 0);
    enum gpu_storage storage = !strcmp(argv[6], "bf16")  ? GPU_BF16
                               : !strcmp(argv[6], "f16") ? GPU_F16
                                                         : GPU_F32;
    if (st_open(&t.lora, argv[2], &t.err) || st_open(&t.data, argv[3], &t.err) ||
        gpu_open(argv[5], &t.g, &t.err) || open_model(&t, argv[1], storage) || open_data(&t) ||
        run(&t, strtoul(argv[7], NULL, 10), strtod(argv[8], NULL)) || write_out(&t, argv[4])) {
        fprintf(stderr, "wan_steps: %s\n", t.err.msg);
        return 1;
    }
    t.m->model.ops->work_close(t.work);
    optim_close(t.optim);
    model_close(&t.m->model);
    nn_close(&t.nn);
    gpu_close(t.g);
    st_close(&t.lora);
    st_close(&t.data);
    arena_release(&t.arena);
    return 0;
}
