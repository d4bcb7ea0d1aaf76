/* SPDX-License-Identifier: Apache-2.0
 * Small models of every kind, filled with numbers, and folders to save them to. */
#ifndef CAIRN_TESTS_UNIT_NN_MODELS_H
#define CAIRN_TESTS_UNIT_NN_MODELS_H

#include "check.h"
#include "nn/gpt_file.h"
#include "tree.h"

static struct gpu *cpu;
static struct nn f32, bf16;
static struct tree tmp;

#define COMMON .layers = 2, .heads = 4, .width = 32, .context = 8, .vocab = 21, .norm_epsilon = 1e-5f
static const struct {
    const char *name, *type;
    struct gpt_shape shape;
} kinds[] = {
    { "gpt2", "gpt2", { COMMON, .kv_heads = 4, .ffn = 128, .bias = true, .tied = true } },
    { "gpt2 untied, narrow", "gpt2", { COMMON, .kv_heads = 4, .ffn = 40, .bias = true } },
    { "llama with shared heads",
      "llama",
      { COMMON, .kv_heads = 2, .ffn = 48, .norm = NN_NORM_RMS, .rope = true, .swiglu = true,
        .rope_theta = 500000 } },
    { "llama tied, with biases",
      "llama",
      { COMMON, .kv_heads = 1, .ffn = 48, .norm = NN_NORM_RMS, .rope = true, .swiglu = true, .bias = true,
        .tied = true, .rope_theta = 10000 } },
    { "rope with layer norm",
      "cairn-gpt",
      { COMMON, .kv_heads = 2, .ffn = 48, .rope = true, .bias = true, .rope_theta = 12345.678f } },
    { "learned positions with swiglu",
      "cairn-gpt",
      { COMMON, .kv_heads = 4, .ffn = 48, .swiglu = true, .norm = NN_NORM_RMS, .tied = true } },
    { "gpt2 without biases", "cairn-gpt", { COMMON, .kv_heads = 4, .ffn = 128, .tied = true } },
};

static inline struct gpt *open_model(struct nn *nn, const struct gpt_shape *s, const struct gpt_options *o)
{
    static const struct gpt_options none;
    struct cairn_error err = { 0 };
    struct gpt *m = NULL;
    if (gpt_open(nn, s, o ? o : &none, &m, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(99);
    }
    return m;
}

/* Numbers that differ everywhere and that bf16 can hold. */
static inline void fill(const struct params *p, const struct weights *w)
{
    struct cairn_error err = { 0 };
    uint32_t state = 1;
    for (size_t i = 0; i < p->n; i++) {
        size_t n = p->list[i].rows * p->list[i].columns;
        float *numbers = malloc(n * sizeof(*numbers));
        for (size_t k = 0; k < n; k++) {
            state = state * 1664525 + 1013904223;
            numbers[k] = (float)(int)(state >> 24) / 64 - 2;
        }
        CHECK(!weights_put(w, &p->list[i], numbers, &err));
        free(numbers);
    }
}

static inline void check_same(const struct params *p, const struct weights *a, const struct weights *b)
{
    struct cairn_error err = { 0 };
    for (size_t i = 0; i < p->n; i++) {
        size_t n = p->list[i].rows * p->list[i].columns;
        float *x = malloc(n * sizeof(*x)), *y = malloc(n * sizeof(*y));
        CHECK(!weights_get(a, &p->list[i], x, &err) && !weights_get(b, &p->list[i], y, &err));
        if (memcmp(x, y, n * sizeof(*x)))
            CHECK_FAIL_("%s differs", p->list[i].name);
        free(x);
        free(y);
    }
}

/* A folder of its own for each use. */
static const char *new_folder(void)
{
    static int n;
    static char path[128];
    snprintf(path, sizeof(path), "%s/%d", tmp.dir, n++);
    mkdir(path, 0755);
    return path;
}

static const char *in_folder(const char *dir, const char *name)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static inline char *slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "r");
    char *text = calloc(1, 1 << 20);
    *n = f ? fread(text, 1, (1 << 20) - 1, f) : 0;
    if (f)
        fclose(f);
    return text;
}

static inline int run_on_cpu(void (*all)(void))
{
    struct cairn_error err = { 0 };
    if (gpu_open("cpu", &cpu, &err) || nn_open(&f32, cpu, GPU_F32, &err) ||
        nn_open(&bf16, cpu, GPU_BF16, &err)) {
        printf("Bail out! %s\n", err.msg);
        return 99;
    }
    tree_make(&tmp);
    all();
    tree_remove(&tmp);
    nn_close(&f32);
    nn_close(&bf16);
    gpu_close(cpu);
    return check_done();
}

#endif
