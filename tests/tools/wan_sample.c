/* SPDX-License-Identifier: Apache-2.0
 * wan_sample WEIGHTS LORA DATA OUT DEVICE f32|bf16|f16 STEPS CFG SHIFT: a sample of a Wan model, timed, for those who make the
 * same one (bench/wan_sample_peer.py).
 *
 * WEIGHTS is a checkpoint, LORA a file of "blocks.0.self_attn.q.lora_A.weight" and so on, alpha = rank.  DATA has "text", of the
 * prompt and of the negative prompt, and "size", the latent's frames, height and width.  OUT gets the "noise" that the sample began
 * with, and "euler", the latents.  Prints a line "WHAT SECONDS" for each solver, and for UniPC without the LoRA. */
#include "base/clock.h"
#include "nn/wan_file.h"
#include "tensor/safetensors.h"
#include "train/wan_generate.h"
#include "video/noise.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tool {
    struct arena arena;
    struct cairn_error err;
    struct gpu *g;
    struct nn nn;
    struct wan *m;
    struct task task;
    struct st_file lora, data;
    struct wan_clip clip;
    size_t values;
    float *noise, *latents, *ignored;
};

static float *floats(struct tool *t, const struct st_file *f, const char *name, size_t n)
{
    const struct st_tensor *s = st_find(f, name);
    if (!s || s->elements != n) {
        cairn_fail(&t->err, CAIRN_EFORMAT, "there is no tensor %s of %zu values", name, n);
        return NULL;
    }
    void *raw = arena_alloc(&t->arena, s->bytes + 1);
    float *out = ARENA_NEW(&t->arena, float, n + 1);
    if (st_read(f, s, 0, n, raw, &t->err))
        return NULL;
    dtype_convert(out, DTYPE_F32, raw, s->dtype, n, &(struct dtype_how){ 0 });
    return out;
}

static int open_model(struct tool *t, const char *path, enum gpu_storage storage)
{
    const struct st_tensor *a = st_find(&t->lora, "blocks.0.self_attn.q.lora_A.weight");
    struct wan_file_info info;
    struct param_report report = { 0 };
    if (!a)
        return cairn_fail(&t->err, CAIRN_EFORMAT, "the LoRA has no blocks.0.self_attn.q.lora_A.weight");
    struct lora_options lora = { .rank = a->shape[0], .alpha = (float)a->shape[0] };
    struct wan_options o = { .experts = 1, .lora = &lora };
    if (wan_file_read_info(path, 0, &info, &t->err) || nn_open(&t->nn, t->g, storage, &t->err) ||
        wan_new(&t->nn, &info.shape, &o, &t->m, &t->err) || model_alloc(&t->m->model, NULL, &t->err))
        return -1;
    int r = wan_file_load(t->m, 0, path, &report, &t->err);
    param_report_release(&report);
    for (size_t i = 0; i < t->m->loras[0].params.n && !r; i++) {
        const struct param *p = &t->m->loras[0].params.list[i];
        float *x = floats(t, &t->lora, p->name, p->rows * p->columns);
        r = !x || weights_put(&t->m->loras[0].weights, p, x, &t->err);
    }
    t->task = (struct task){ .env.nn = &t->nn, .model = &t->m->model };
    return r ? -1 : 0;
}

static int open_clip(struct tool *t)
{
    const struct wan_shape *s = &t->m->shape;
    size_t text = s->text_rows * s->text_width;
    const float *texts = floats(t, &t->data, "text", 2 * text), *size = floats(t, &t->data, "size", 3);
    if (!texts || !size)
        return -1;
    t->clip.size = (struct wan_size){ (size_t)size[0], (size_t)size[1], (size_t)size[2] };
    t->clip.text = texts;
    t->clip.negative = texts + text;
    t->clip.lora_scale = 1;
    t->clip.seed = 1;
    t->values = s->out * t->clip.size.frames * t->clip.size.height * t->clip.size.width;
    t->noise = ARENA_NEW(&t->arena, float, t->values);
    t->latents = ARENA_NEW(&t->arena, float, t->values);
    t->ignored = ARENA_NEW(&t->arena, float, t->values);
    noise_normal(&(struct noise_place){ .seed = 1, .step = UINT64_MAX }, t->noise, t->values);
    return 0;
}

/* The first sample, of two steps, compiles kernels. */
static int measure(struct tool *t)
{
    static const struct {
        const char *name;
        enum solver_kind solver;
        double lora_scale;
        size_t steps;
    } rows[] = { { NULL, SOLVER_EULER, 1, 2 },
                 { NULL, SOLVER_EULER, 0, 2 },
                 { "euler", SOLVER_EULER, 1, 0 },
                 { "unipc", SOLVER_UNIPC, 1, 0 },
                 { "unipc-without-lora", SOLVER_UNIPC, 0, 0 } };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct wan_clip c = t->clip;
        c.solver = rows[i].solver;
        c.lora_scale = rows[i].lora_scale;
        c.steps = rows[i].steps ? rows[i].steps : c.steps;
        double begin = clock_s();
        bool is_kept = rows[i].name && rows[i].solver == SOLVER_EULER;
        if (wan_generate(&t->task, &c, is_kept ? t->latents : t->ignored, &t->err))
            return -1;
        if (rows[i].name)
            printf("%s %.4f\n", rows[i].name, clock_s() - begin);
        fflush(stdout);
    }
    return 0;
}

static int write_out(struct tool *t, const char *path)
{
    const uint64_t shape[] = { t->values };
    const float *at[] = { t->noise, t->latents };
    struct st_tensor out[2];
    struct st_contents c = { .tensors = out, .n = 2 };
    CLEANUP(st_writer_close) struct st_writer w = { .out = FILE_OUT_NONE };
    for (size_t i = 0; i < 2; i++)
        out[i] = (struct st_tensor){ .name = i ? "euler" : "noise",
                                     .dtype = DTYPE_F32,
                                     .dtype_text = "F32",
                                     .shape = (uint64_t *)shape,
                                     .rank = 1,
                                     .elements = t->values,
                                     .bytes = t->values * 4 };
    if (st_writer_open(&w, path, &c, true, &t->err))
        return -1;
    for (size_t i = 0; i < 2; i++)
        if (st_writer_put(&w, i, 0, at[i], out[i].bytes, &t->err))
            return -1;
    return st_writer_commit(&w, &t->err);
}

int main(int argc, char **argv)
{
    struct tool t = { 0 };
    if (argc != 10) {
        fputs("usage: wan_sample WEIGHTS LORA DATA OUT DEVICE f32|bf16|f16 STEPS CFG SHIFT\n", stderr);
        return 2;
    }
    setenv("CAIRN_KC", BUILT_KC, 0);
    enum gpu_storage storage = !strcmp(argv[6], "bf16")  ? GPU_BF16
                               : !strcmp(argv[6], "f16") ? GPU_F16
                                                         : GPU_F32;
    t.clip = (struct wan_clip){ .steps = strtoul(argv[7], NULL, 10),
                                .cfg = strtod(argv[8], NULL),
                                .shift = strtod(argv[9], NULL) };
    if (st_open(&t.lora, argv[2], &t.err) || st_open(&t.data, argv[3], &t.err) ||
        gpu_open(argv[5], &t.g, &t.err) || open_model(&t, argv[1], storage) || open_clip(&t) || measure(&t) ||
        write_out(&t, argv[4])) {
        fprintf(stderr, "wan_sample: %s\n", t.err.msg);
        return 1;
    }
    model_close(&t.m->model);
    nn_close(&t.nn);
    gpu_close(t.g);
    st_close(&t.lora);
    st_close(&t.data);
    arena_release(&t.arena);
    return 0;
}
