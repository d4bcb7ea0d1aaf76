/* SPDX-License-Identifier: Apache-2.0
 * Adafactor and Prodigy beside transformers and prodigyopt: tests/tools/mkoptim.py made the numbers. */
#include "train/optim.h"

#include "check.h"
#include "tensor/safetensors.h"
#include <math.h>

enum { STEPS = 6, MOST = 280 };
static const double tolerance = 1e-5; /* of how far a weight went; what f32 rounds comes on top */

static struct gpu *g;
static struct st_file file;
static struct cairn_error err;

static void read_tensor(const struct param *p, const char *what, int step, float *into)
{
    char name[64];
    if (step)
        snprintf(name, sizeof(name), "%s.%s.step%d", what, p->name, step);
    else
        snprintf(name, sizeof(name), "%s.%s", what, p->name);
    const struct st_tensor *t = st_find(&file, name);
    if (!t || t->elements != p->rows * p->columns || st_read(&file, t, 0, t->elements, into, &err))
        CHECK_FAIL_("%s: %s", name, t ? err.msg : "not there");
}

/* from the file into weights or gradients */
static void put(const struct params *p, const struct weights *w, const char *what, int step)
{
    float numbers[MOST];
    for (size_t i = 0; i < p->n; i++) {
        read_tensor(&p->list[i], what, step, numbers);
        CHECK(!weights_put(w, &p->list[i], numbers, &err));
    }
}

static void compare(const struct params *p, const struct weights *w, const char *run, int step)
{
    for (size_t i = 0; i < p->n; i++) {
        float got[MOST], want[MOST], start[MOST];
        double worst = 0, largest = 0, farthest = 0;
        size_t n = p->list[i].rows * p->list[i].columns;
        read_tensor(&p->list[i], "start", 0, start);
        read_tensor(&p->list[i], run, step, want);
        CHECK(!weights_get(w, &p->list[i], got, &err));
        for (size_t k = 0; k < n; k++) {
            worst = fmax(worst, fabs((double)got[k] - (double)want[k]));
            largest = fmax(largest, fabs((double)want[k]));
            farthest = fmax(farthest, fabs((double)want[k] - (double)start[k]));
        }
        if (!(worst <= tolerance * farthest + step * 1e-7 * largest))
            CHECK_FAIL_("%s, step %d: %s is off by %g after going %g", run, step, p->list[i].name, worst,
                        farthest);
    }
}

/* first: the rate that the first step is said to have had. */
static void follow(const char *run, const struct optim_options *o, double rate, double first)
{
    struct params p = { 0 };
    struct weights w;
    struct optim *optim;
    params_add(&p, PARAM_MATRIX, 40, 7, "tall");
    params_add(&p, PARAM_MATRIX, 3, 70, "wide");
    params_add(&p, PARAM_VECTOR, 1, 33, "vector");
    CHECK(!weights_open(&w, g, &p, GPU_F32, WEIGHTS_INT8, &err));
    put(&p, &w, "start", 0);
    CHECK(!optim_open(g, &p, &w, o, &optim, &err));
    for (int step = 1; step <= STEPS; step++) {
        struct optim_result r = { 0 };
        put(&p, optim_grads(optim), "grad", step);
        CHECK(!optim_step(optim, NULL, rate, 1, &err) && !optim_finish(optim, NULL, &r, &err));
        CHECK(r.applied);
        if (step == 1)
            CHECK(fabs(r.rate - first) <= 1e-6 * first);
        compare(&p, &w, run, step);
    }
    optim_close(optim);
    weights_close(&w);
    params_release(&p);
}

static void adafactor_as_transformers(void)
{
    follow("adafactor.a", &(struct optim_options){ .kind = OPTIM_ADAFACTOR, .decay = 0.1 }, 0.01, 0.01);
    follow("adafactor.b",
           &(struct optim_options){ .kind = OPTIM_ADAFACTOR, .relative = true, .scaled = true }, 1, 0.01);
    follow("adafactor.c", &(struct optim_options){ .kind = OPTIM_ADAFACTOR, .decay = 0.1, .scaled = true },
           0.02, 0.02);
}

static void prodigy_as_prodigyopt(void)
{
    follow(
        "prodigy.a",
        &(struct optim_options){
            .kind = OPTIM_PRODIGY, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .d0 = 1e-6, .d_coef = 1 },
        1, 1e-6);
    follow("prodigy.b",
           &(struct optim_options){ .kind = OPTIM_PRODIGY,
                                    .beta1 = 0.8,
                                    .beta2 = 0.95,
                                    .epsilon = 1e-8,
                                    .decay = 0.1,
                                    .d0 = 1e-5,
                                    .d_coef = 2,
                                    .growth = 1.5,
                                    .warm = true,
                                    .corrected = true },
           2, 2e-5 * sqrt(1 - 0.95) / (1 - 0.8));
}

int main(void)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/optim/references.safetensors", getenv("CAIRN_TEST_DATA"));
    if (gpu_open("cpu", &g, &err) || st_open(&file, path, &err)) {
        printf("Bail out! %s\n", err.msg);
        return 99;
    }
    RUN(adafactor_as_transformers);
    RUN(prodigy_as_prodigyopt);
    st_close(&file);
    gpu_close(g);
    return check_done();
}
