/* SPDX-License-Identifier: Apache-2.0
 * What gpt.py asks of cairn's models, on the CPU in f32:
 *
 *     gpt_tool new KIND DTYPE DIR       a new model (gpt2, llama, llama-tied), saved
 *     gpt_tool lora DIR NEW             a new LoRA for the model in DIR, saved
 *     gpt_tool scores DIR [LORA]        reads ids from stdin, writes the scores of each as f32
 *     gpt_tool copy DIR NEW             loads and saves */
#include "nn/gpt_file.h"
#include "nn/gpt_work.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IDS_MAX = 64 };

struct tool {
    struct gpu *g;
    struct nn nn;
    struct gpt *m;
    struct cairn_error err;
};

static const struct lora_options lora = { .rank = 4, .alpha = 6 };

static const struct {
    const char *name;
    struct gpt_shape shape;
} kinds[] = {
    { "gpt2",
      { .layers = 3,
        .heads = 4,
        .kv_heads = 4,
        .width = 64,
        .ffn = 200,
        .context = 48,
        .vocab = 101,
        .bias = true,
        .tied = true,
        .norm_epsilon = 1e-5f } },
    { "llama",
      { .layers = 3,
        .heads = 4,
        .kv_heads = 2,
        .width = 64,
        .ffn = 120,
        .context = 48,
        .vocab = 101,
        .norm = NN_NORM_RMS,
        .rope = true,
        .swiglu = true,
        .norm_epsilon = 1e-6f,
        .rope_theta = 50000 } },
    { "llama-tied",
      { .layers = 2,
        .heads = 4,
        .kv_heads = 4,
        .width = 64,
        .ffn = 120,
        .context = 48,
        .vocab = 101,
        .norm = NN_NORM_RMS,
        .rope = true,
        .swiglu = true,
        .bias = true,
        .tied = true,
        .norm_epsilon = 1e-5f,
        .rope_theta = 10000 } },
};

/* Even numbers around zero, and around one for the weights of norms. */
static int fill(const struct params *p, const struct weights *w, struct cairn_error *err)
{
    uint32_t state = 12345;
    for (size_t i = 0; i < p->n; i++) {
        const struct param *one = &p->list[i];
        size_t n = one->rows * one->columns;
        bool norm = strstr(one->name, "ln_") && strstr(one->name, ".weight");
        CLEANUP(mem_free) float *numbers = malloc(n * sizeof(*numbers));
        for (size_t k = 0; k < n; k++) {
            state = state * 1664525 + 1013904223;
            numbers[k] = ((float)(state >> 8) / (1 << 24) - 0.5f) * 0.4f + (norm ? 1 : 0);
        }
        if (weights_put(w, one, numbers, err))
            return -1;
    }
    return 0;
}

static int open_from(struct tool *t, const char *dir, const struct lora_options *l)
{
    struct gpt_shape shape = { 0 };
    struct gpt_options o = { .lora = l };
    struct param_report report = { 0 };
    int r = gpt_file_shape(dir, &shape, &t->err) || gpt_open(&t->nn, &shape, &o, &t->m, &t->err) ||
            gpt_file_load(t->m, dir, &report, &t->err);
    param_report_release(&report);
    return r;
}

static int new_model(struct tool *t, char **arg)
{
    static const struct gpt_options none;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (!strcmp(arg[0], kinds[i].name))
            return gpt_open(&t->nn, &kinds[i].shape, &none, &t->m, &t->err) ||
                   fill(&t->m->params, &t->m->weights, &t->err) ||
                   gpt_file_save(t->m, arg[2], dtype_parse(arg[1]), NULL, &t->err);
    return cairn_fail(&t->err, CAIRN_EUSAGE, "no kind %s", arg[0]);
}

static int new_lora(struct tool *t, char **arg)
{
    struct gpt_lora_file f = { .options = &lora, .base = arg[0], .dtype = DTYPE_F32 };
    return open_from(t, arg[0], &lora) || fill(&t->m->lora.params, &t->m->lora.weights, &t->err) ||
           gpt_file_save_lora(t->m, arg[1], &f, &t->err);
}

static int copy(struct tool *t, char **arg)
{
    return open_from(t, arg[0], NULL) || gpt_file_save(t->m, arg[1], DTYPE_F32, NULL, &t->err);
}

static int print_scores(struct tool *t)
{
    int ids[IDS_MAX], targets[IDS_MAX];
    size_t n = 0;
    while (n < IDS_MAX && scanf("%d", &ids[n]) == 1)
        targets[n++] = -1;
    struct gpt_work_options o = { .samples = 1, .tokens = n };
    struct gpt_work *room = NULL;
    struct gpt_pass pass = { .scale = 1 };
    CLEANUP(mem_free) float *scores = malloc((n + 1) * t->m->shape.vocab * sizeof(*scores));
    int r = gpt_work_open(t->m, &o, &room, &t->err) || gpt_put(room, 0, ids, targets, &t->err) ||
            gpt_run(room, &pass, NULL, &t->err) || gpt_scores(room, scores, &t->err);
    if (!r)
        fwrite(scores, sizeof(*scores), n * t->m->shape.vocab, stdout);
    gpt_work_close(room);
    return r;
}

static int scores_of(struct tool *t, char **arg)
{
    struct param_report report = { 0 };
    int r = open_from(t, arg[0], arg[1] ? &lora : NULL) ||
            (arg[1] && gpt_file_load_lora(t->m, arg[1], &report, &t->err)) || print_scores(t);
    param_report_release(&report);
    return r;
}

static const struct {
    const char *name;
    int least, most;
    int (*run)(struct tool *t, char **arg);
} commands[] = {
    { "new", 3, 3, new_model },
    { "lora", 2, 2, new_lora },
    { "copy", 2, 2, copy },
    { "scores", 1, 2, scores_of },
};

int main(int argc, char **argv)
{
    struct tool t = { 0 };
    int r = 2;
    if (gpu_open("cpu", &t.g, &t.err) || nn_open(&t.nn, t.g, GPU_F32, &t.err)) {
        fprintf(stderr, "%s\n", t.err.msg);
        return 1;
    }
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (argc > 1 && !strcmp(argv[1], commands[i].name) && argc - 2 >= commands[i].least &&
            argc - 2 <= commands[i].most)
            r = commands[i].run(&t, argv + 2) ? 1 : 0;
    if (r)
        fprintf(stderr, "%s\n", r == 2 ? "wrong usage" : t.err.msg);
    gpt_close(t.m);
    nn_close(&t.nn);
    gpu_close(t.g);
    return r;
}
