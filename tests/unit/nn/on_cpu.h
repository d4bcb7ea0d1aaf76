/* SPDX-License-Identifier: Apache-2.0
 * Models on the CPU: values for them, and folders to save them to. */
#ifndef CAIRN_TESTS_UNIT_NN_ON_CPU_H
#define CAIRN_TESTS_UNIT_NN_ON_CPU_H

#include "check.h"
#include "nn/nn.h"
#include "nn/weights.h"
#include "tree.h"

static struct gpu *cpu;
static struct nn f32, bf16;
static struct tree tmp;

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
static inline const char *new_folder(void)
{
    static int n;
    static char path[128];
    snprintf(path, sizeof(path), "%s/%d", tmp.dir, n++);
    mkdir(path, 0755);
    return path;
}

static inline const char *in_folder(const char *dir, const char *name)
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
