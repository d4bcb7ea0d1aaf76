/* SPDX-License-Identifier: Apache-2.0
 * A Wan transformer: its output with and without LoRA, what leaves the blocks, the loss, every gradient of the
 * LoRA, with and without gradient checkpointing, and some steps of AdamW. */
#include "base/str.h"
#include "golden.h"
#include "nn/wan_file.h"
#include "nn/wan_inside.h"
#include "train/optim.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

struct wan_case {
    struct golden *c;
    struct nn nn;
    struct wan *m;
    struct work *work;
    struct optim *optim;
    struct lora_options lora;
    struct wan_batch batch;
    size_t numbers; /* of a batch's output */
};

static bool is_wan(const struct st_file *f)
{
    return st_find(f, "in.x") && st_find(f, "in.context") && st_find(f, "out.base") && st_find(f, "grad.out");
}

static int read_shape(struct golden *c, struct wan_shape *s, struct lora_options *lora)
{
    struct json *config = golden_config(c);
    if (!config)
        return -1;
#define SIZE(name, other) (size_t) json_int(json_get(config, name), other)
    *s = (struct wan_shape){
        .layers = SIZE("layers", 0),
        .heads = SIZE("heads", 0),
        .width = SIZE("dim", 0),
        .ffn = SIZE("ffn", 0),
        .in = SIZE("in", 0),
        .out = SIZE("out", 0),
        .text_width = SIZE("text_dim", 0),
        .text_rows = SIZE("text_len", 0),
        .time_width = SIZE("freq_dim", 256),
        .clip_width = SIZE("clip_dim", 0),
        .clip_rows = SIZE("clip_tok", 0),
    };
#undef SIZE
    lora->rank = (size_t)json_int(json_get(config, "rank"), 0);
    lora->alpha = (float)json_number(json_get(config, "alpha"), 0);
    json_free(config);
    return 0;
}

/* ---- weights ---- */

static int put_floats(struct golden *c, const struct st_file *f, const char *name, const struct weights *w,
                      const struct param *p)
{
    size_t n;
    float *numbers = golden_floats(c, f, name, &n);
    if (!numbers)
        return -1;
    if (n != p->rows * p->columns)
        return cairn_fail(&c->err, CAIRN_EFORMAT, "%s has %zu numbers", name, n);
    return weights_put(w, p, numbers, &c->err);
}

static int load_base(struct wan_case *t)
{
    struct golden *c = t->c;
    const char *prefix = st_find(c->weights, "patch_embedding.weight") ? "" : "model.diffusion_model.";
    for (size_t i = 0; i < t->m->params[0].n; i++) {
        const struct param *p = &t->m->params[0].list[i];
        char *name = arena_printf(&c->arena, "%s%s", prefix, p->name);
        if (put_floats(c, c->weights, name, &t->m->weights[0], p))
            return -1;
    }
    return 0;
}

/* "lora_unet_blocks_0_self_attn_q.lora_down.weight" for "blocks.0.self_attn.q.lora_A.weight". */
static const char *musubi_name(struct arena *a, const char *name)
{
    const char *end = strstr(name, ".lora_");
    char *module = arena_strndup(a, name, (size_t)(end - name));
    for (char *at = module; *at; at++)
        *at = *at == '.' ? '_' : *at;
    return arena_printf(a, "lora_unet_%s.%s.weight", module, end[6] == 'A' ? "lora_down" : "lora_up");
}

static int load_lora(struct wan_case *t)
{
    const struct lora *l = &t->m->loras[0];
    for (size_t i = 0; i < l->params.n; i++)
        if (put_floats(t->c, t->c->lora, musubi_name(&t->c->arena, l->params.list[i].name), &l->weights,
                       &l->params.list[i]))
            return -1;
    return optim_start(t->optim, &t->c->err);
}

/* ---- batches ---- */

/* x, and behind its channels those of y, if there is one. */
static const float *input(struct golden *c, const float *x, size_t samples, size_t cells, size_t channels)
{
    const struct st_tensor *t = st_find(c->file, "in.y");
    size_t more = t ? t->shape[1] : 0, all = (channels + more) * cells;
    float *y = t ? golden_floats(c, c->file, "in.y", NULL) : NULL;
    if (!y)
        return x;
    float *out = ARENA_NEW(&c->arena, float, samples *all);
    for (size_t i = 0; i < samples; i++) {
        memcpy(out + i * all, x + i * channels * cells, channels * cells * sizeof(float));
        memcpy(out + i * all + channels * cells, y + i * more * cells, more * cells * sizeof(float));
    }
    return out;
}

/* The time of each sample; where each token has its own, that of the last, and how many frames have time 0. */
static const float *read_times(struct golden *c, size_t samples, size_t tokens, size_t frames, size_t *clean)
{
    size_t n, first = 0;
    float *all = golden_floats(c, c->file, "in.t", &n), *out = ARENA_NEW(&c->arena, float, samples);
    if (!all || n % samples)
        return NULL;
    size_t each = n / samples;
    while (first < each && each > 1 && all[first] == 0)
        first++;
    for (size_t i = 0; i < samples; i++)
        out[i] = all[(i + 1) * each - 1];
    *clean = first * frames / tokens;
    return out;
}

static int read_batch(struct wan_case *t)
{
    struct golden *c = t->c;
    const struct st_tensor *x = st_find(c->file, "in.x");
    struct wan_batch *b = &t->batch;
    size_t samples = x->shape[0], channels = x->shape[1], cells = x->shape[2] * x->shape[3] * x->shape[4];
    *b = (struct wan_batch){
        .samples = samples,
        .size = { x->shape[2], x->shape[3], x->shape[4] },
        .x = golden_floats(c, c->file, "in.x", NULL),
        .target = golden_floats(c, c->file, "in.target", NULL),
        .text = golden_floats(c, c->file, "in.context", NULL),
        .clip = st_find(c->file, "in.clip_fea") ? golden_floats(c, c->file, "in.clip_fea", NULL) : NULL,
    };
    b->times = read_times(c, samples, wan_tokens(b->size), b->size.frames, &b->clean_frames);
    if (!b->x || !b->target || !b->times || !b->text)
        return -1;
    b->x = input(c, b->x, samples, cells, channels);
    t->numbers = samples * t->m->shape.out * cells;
    return 0;
}

/* ---- opening ---- */

static int open_work(struct wan_case *t, bool recompute)
{
    const struct st_tensor *x = st_find(t->c->file, "in.x");
    struct work_options o = {
        .samples = x->shape[0],
        .extent = wan_tokens((struct wan_size){ x->shape[2], x->shape[3], x->shape[4] }),
        .train = true,
        .recompute = recompute,
    };
    wan_work_close(t->work);
    t->work = NULL;
    return wan_work_open(&t->m->model, &o, &t->work, &t->c->err);
}

static int open_case(struct wan_case *t)
{
    struct golden *c = t->c;
    struct wan_shape shape;
    const struct optim_options adamw = { .kind = OPTIM_ADAMW,
                                         .beta1 = 0.9,
                                         .beta2 = 0.999,
                                         .epsilon = 1e-8,
                                         .decay = 0.01,
                                         .clip = 1,
                                         .master = true };
    if (!c->weights || !c->lora)
        return cairn_fail(&c->err, CAIRN_EFORMAT, "files of weights and of a LoRA must go with it");
    if (read_shape(c, &shape, &t->lora))
        return -1;
    struct wan_options options = { .experts = 1, .lora = &t->lora };
    if (nn_open(&t->nn, c->g, c->storage, &c->err) || wan_new(&t->nn, &shape, &options, &t->m, &c->err) ||
        model_alloc(&t->m->model, NULL, &c->err) || open_work(t, false) ||
        optim_open(c->g, &t->m->loras[0].params, &t->m->loras[0].weights, &adamw, &t->optim, &c->err))
        return -1;
    return read_batch(t) || load_base(t) ? -1 : 0;
}

/* ---- comparing ---- */

static int compare_tensor(struct wan_case *t, const char *name, const float *got, double share, double least)
{
    size_t n;
    float *want = golden_floats(t->c, t->c->file, name, &n);
    if (!want)
        return -1;
    golden_compare(t->c, name, got, want, n, share, least);
    return 0;
}

static int compare_output_tensor(struct wan_case *t, const char *name, const float *got)
{
    return compare_tensor(t, name, got, 2e-5, 1);
}

/* The largest gradient of any LoRA tensor: what 16-bit gradients are measured by, since small ones are
 * differences of large numbers. */
static double largest_gradient(struct wan_case *t)
{
    double most = 0;
    for (size_t i = 0; i < t->c->file->n_tensors; i++) {
        const char *name = t->c->file->tensors[i].name;
        size_t n;
        float *all = str_starts(name, "grad.lora") ? golden_floats(t->c, t->c->file, name, &n) : NULL;
        for (size_t k = 0; all && k < n; k++)
            most = fmax(most, fabs((double)all[k]));
    }
    return most;
}

static int compare_output(struct wan_case *t, const char *name)
{
    struct model_pass p = { .scale = 1 };
    float *got = ARENA_NEW(&t->c->arena, float, t->numbers);
    if (wan_put(t->work, 0, &t->batch, &t->c->err) || wan_run(t->work, &p, NULL, &t->c->err) ||
        wan_output(t->work, 0, got, &t->c->err))
        return -1;
    return compare_output_tensor(t, name, got);
}

/* What leaves the blocks; tests have the first and the last token of some, and all of others. */
static int compare_blocks(struct wan_case *t, const char *format)
{
    const struct wan_work *w = (const struct wan_work *)t->work;
    size_t n = w->rows * t->m->shape.width;
    enum dtype type = w->f32_stream ? DTYPE_F32 : storage_dtype(t->nn.storage);
    char *stored = arena_alloc(&t->c->arena, n * sizeof(float));
    float *got = ARENA_NEW(&t->c->arena, float, n);
    for (size_t i = 0; i < t->m->shape.layers; i++) {
        CLEANUP(str_release) struct str name = { 0 };
        str_addf(&name, "%s%zu", format, i);
        const struct st_tensor *there = st_find(t->c->file, name.s);
        if (!there || there->elements != n)
            continue;
        size_t bytes = n * (w->f32_stream ? sizeof(float) : storage_size(t->nn.storage));
        if (gpu_download(t->nn.g, t->nn.stream, stored, w->x[i + 1], bytes, &t->c->err) ||
            gpu_wait(t->nn.g, t->nn.stream, &t->c->err))
            return -1;
        dtype_convert(got, DTYPE_F32, stored, type, n, &(struct dtype_how){ 0 });
        if (compare_output_tensor(t, name.s, got))
            return -1;
    }
    return 0;
}

static int pass(struct wan_case *t, const struct wan_batch *b, double *loss)
{
    struct model_pass p = { .scale = 1 / (float)b->samples };
    double samples;
    if (wan_put(t->work, 0, b, &t->c->err) || optim_clear_grads(t->optim, NULL, &t->c->err) ||
        wan_run(t->work, &p, optim_grads(t->optim), &t->c->err) ||
        wan_loss(t->work, 0, loss, &samples, &t->c->err))
        return -1;
    *loss /= samples;
    return 0;
}

static void compare_number(struct golden *c, const char *name, double got, float want, double share)
{
    float number = (float)got;
    golden_compare(c, name, &number, &want, 1, share, 0);
}

static int compare_grads(struct wan_case *t)
{
    const struct params *all = &t->m->loras[0].params;
    struct arena *a = &t->c->arena;
    float *want = golden_floats(t->c, t->c->file, "loss", NULL);
    double loss, least = t->c->storage == GPU_F32 ? 0 : largest_gradient(t);
    if (!want || pass(t, &t->batch, &loss))
        return -1;
    compare_number(t->c, "loss", loss, *want, 1e-5);
    for (size_t i = 0; i < all->n; i++) {
        const struct param *p = &all->list[i];
        float *got = ARENA_NEW(a, float, p->rows * p->columns);
        if (weights_get(optim_grads(t->optim), p, got, &t->c->err) ||
            compare_tensor(t, arena_printf(a, "grad.%s", musubi_name(a, p->name)), got, 1e-4, least))
            return -1;
    }
    return 0;
}

/* ---- five steps ---- */

static int compare_finals(struct wan_case *t)
{
    const struct params *all = &t->m->loras[0].params;
    struct arena *a = &t->c->arena;
    for (size_t i = 0; i < all->n; i++) {
        const struct param *p = &all->list[i];
        const char *name = arena_printf(a, "train.final.%s", musubi_name(a, p->name));
        float *got = ARENA_NEW(a, float, p->rows * p->columns),
              *want = golden_floats(t->c, t->c->file, name, NULL);
        if (!want || weights_get(&t->m->loras[0].weights, p, got, &t->c->err))
            return -1;
        golden_compare(t->c, name, got, want, p->rows * p->columns, 1e-3, 0);
    }
    return 0;
}

static int train(struct wan_case *t)
{
    struct golden *c = t->c;
    size_t steps, n = t->numbers, text;
    float *losses = golden_floats(c, c->file, "train.loss", &steps);
    float *norms = golden_floats(c, c->file, "train.grad_norm", NULL);
    float *x0 = golden_floats(c, c->file, "train.x0", NULL),
          *noise = golden_floats(c, c->file, "train.noise", NULL);
    float *sigma = golden_floats(c, c->file, "train.sigma", NULL);
    float *context = golden_floats(c, c->file, "train.context", &text);
    float *x = ARENA_NEW(&c->arena, float, n), *target = ARENA_NEW(&c->arena, float, n);
    if (!losses || !norms || !x0 || !noise || !sigma || !context)
        return -1;
    for (size_t i = 0; i < steps; i++) {
        struct wan_batch b = t->batch;
        struct optim_result r;
        float time = 1000 * sigma[i] + 1;
        double loss;
        char name[32];
        for (size_t k = 0; k < n; k++) {
            x[k] = (1 - sigma[i]) * x0[i * n + k] + sigma[i] * noise[i * n + k];
            target[k] = noise[i * n + k] - x0[i * n + k];
        }
        b.x = x;
        b.target = target;
        b.times = &time;
        b.text = context + i * text / steps;
        if (pass(t, &b, &loss) || optim_step(t->optim, NULL, 1e-3, 1, &c->err) ||
            optim_finish(t->optim, NULL, &r, &c->err))
            return -1;
        snprintf(name, sizeof(name), "train.loss[%zu]", i);
        compare_number(c, name, loss, losses[i], 1e-4);
        snprintf(name, sizeof(name), "train.grad_norm[%zu]", i);
        compare_number(c, name, r.norm, norms[i], 1e-3);
    }
    /* AdamW divides by the size of a gradient: where that is rounded, some steps have the other sign. */
    return c->storage == GPU_F32 ? compare_finals(t) : 0;
}

/* ---- the same model in other files ---- */

static bool same_shape(const struct wan_shape *a, const struct wan_shape *b)
{
    return a->layers == b->layers && a->width == b->width && a->ffn == b->ffn && a->in == b->in &&
           a->out == b->out && a->text_width == b->text_width && a->clip_width == b->clip_width;
}

/* Whether the base now has the vectors that the case's own file has: they are the same in every format. */
static bool is_this_model(struct wan_case *t, const float *bias, size_t n)
{
    float *got = ARENA_NEW(&t->c->arena, float, n);
    return !weights_get(&t->m->weights[0], &t->m->params[0].list[t->m->patch.b], got, &t->c->err) &&
           !memcmp(got, bias, n * sizeof(*got));
}

/* What the model must say: for fp8 weights there is a file with that alone. */
static const float *expected_output(struct wan_case *t, bool scaled, const float *got)
{
    struct golden *c = t->c;
    const float *best = NULL;
    double least = INFINITY;
    for (size_t i = 0; scaled && i < c->n_others; i++) {
        const struct st_file *f = c->others[i].file;
        const struct st_tensor *out = f && f->n_tensors == 1 ? st_find(f, "out.base") : NULL;
        float *want = out && out->elements == t->numbers ? golden_floats(c, f, "out.base", NULL) : NULL;
        double error = 0;
        for (size_t k = 0; want && k < t->numbers; k++)
            error = fmax(error, fabs((double)want[k] - (double)got[k]));
        if (!want || error >= least)
            continue;
        least = error;
        best = want;
        c->others[i].used = true;
    }
    return scaled ? best : golden_floats(c, c->file, "out.base", NULL);
}

/* Diffusers names, fp8 with scales: a checkpoint that says no case's name. */
static int compare_other_files(struct wan_case *t)
{
    struct golden *c = t->c;
    size_t n;
    const struct param *bias_param = &t->m->params[0].list[t->m->patch.b];
    float *bias = ARENA_NEW(&c->arena, float, bias_param->columns),
          *got = ARENA_NEW(&c->arena, float, t->numbers);
    if (load_base(t) || weights_get(&t->m->weights[0], bias_param, bias, &c->err))
        return -1;
    n = bias_param->columns;
    for (size_t i = 0; i < c->n_others; i++) {
        const struct st_file *f = c->others[i].file;
        struct wan_file_info info;
        struct cairn_error ignored;
        struct param_report report = { 0 };
        if (!f || f == c->weights || f == c->lora || st_meta_find(f, "golden") ||
            wan_file_read_info(c->others[i].path, t->m->shape.heads, &info, &ignored) ||
            !same_shape(&info.shape, &t->m->shape))
            continue;
        int r = wan_file_load(t->m, 0, c->others[i].path, &report, &c->err);
        param_report_release(&report);
        if (r || !is_this_model(t, bias, n))
            return r;
        c->others[i].used = true;
        struct model_pass p = { .scale = 1 };
        if (wan_put(t->work, 0, &t->batch, &c->err) || wan_run(t->work, &p, NULL, &c->err) ||
            wan_output(t->work, 0, got, &c->err))
            return -1;
        const float *want = expected_output(t, info.scaled, got);
        if (!want)
            return cairn_fail(&c->err, CAIRN_EFORMAT, "%s: there is no output to compare with",
                              c->others[i].path);
        golden_compare(c, arena_printf(&c->arena, "out.base of %s", c->others[i].path), got, want, t->numbers,
                       2e-5, 1);
    }
    return 0;
}

static int clear_lora(struct wan_case *t)
{
    const struct lora *l = &t->m->loras[0];
    return weights_clear(&l->weights, &l->params, NULL, &t->c->err);
}

static int run_wan(struct golden *c)
{
    struct wan_case t = { .c = c };
    c->share16 = 0.02;
    int r = open_case(&t) || compare_output(&t, "out.base") || compare_blocks(&t, "act.blocks.") ||
                    load_lora(&t) || compare_output(&t, "out.lora") ||
                    compare_blocks(&t, "act.lora.blocks.") || compare_grads(&t) || open_work(&t, true) ||
                    compare_grads(&t) || (st_find(c->file, "train.loss") && train(&t)) || clear_lora(&t) ||
                    compare_other_files(&t)
                ? -1
                : 0;
    optim_close(t.optim);
    wan_work_close(t.work);
    if (t.m)
        model_close(&t.m->model);
    nn_close(&t.nn);
    return r;
}

const struct golden_kind golden_wan = { "wan", is_wan, run_wan };
