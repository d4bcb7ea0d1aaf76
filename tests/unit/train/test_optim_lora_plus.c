/* SPDX-License-Identifier: Apache-2.0
 * LoRA+: A and B matrices together, with a ratio, move as they do apart, with two learning rates. */
#include "train/optim.h"

#include "check.h"
#include <math.h>

enum { MODULES = 3, RANK = 8, MOST = 3000 * RANK, STEPS = 4 };
static const size_t in[MODULES] = { 3000, 37, 700 }, out[MODULES] = { 900, 2001, 5 };
static const double rate = 0.01, plus = 16;

static struct gpu *g;
static struct cairn_error err;

struct setup {
    struct params p;
    struct weights w;
    struct optim *o;
};

/* Values of a parameter: they depend on its name, not on what else there is. */
static const float *values_of(const struct param *p, uint32_t seed)
{
    static float v[MOST];
    for (const char *c = p->name; *c; c++)
        seed = seed * 31 + (unsigned char)*c;
    for (size_t i = 0; i < p->rows * p->columns; i++) {
        seed = seed * 1664525 + 1013904223;
        v[i] = (float)(seed >> 8) / (1 << 24) - 0.5f;
    }
    return v;
}

static void put(const struct setup *s, const struct weights *w, uint32_t seed)
{
    for (size_t i = 0; i < s->p.n; i++)
        CHECK(!weights_put(w, &s->p.list[i], values_of(&s->p.list[i], seed), &err));
}

static void open_setup(struct setup *s, enum gpu_storage storage, bool a, bool b,
                       const struct optim_options *o)
{
    *s = (struct setup){ 0 };
    for (size_t i = 0; i < MODULES; i++) {
        if (a)
            params_add(&s->p, PARAM_MATRIX, RANK, in[i], "%zu.lora_A.weight", i);
        if (b)
            params_add(&s->p, PARAM_MATRIX, out[i], RANK, "%zu.lora_B.weight", i);
    }
    CHECK(!weights_open(&s->w, g, &s->p, storage, WEIGHTS_INT8, &err));
    if (optim_open(g, &s->p, &s->w, o, &s->o, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(99);
    }
    put(s, &s->w, 1);
    CHECK(!optim_start(s->o, &err));
}

static void close_setup(struct setup *s)
{
    optim_close(s->o);
    weights_close(&s->w);
    params_release(&s->p);
}

static void step(const struct setup *s, double lr, uint32_t seed)
{
    struct optim_result r = { 0 };
    put(s, optim_grads(s->o), seed);
    CHECK(!optim_step(s->o, NULL, lr, 1, &err) && !optim_finish(s->o, NULL, &r, &err) && r.applied);
}

/* The largest distance of a parameter's values in two setups, and how far the first moved. */
static double distance(const struct setup *x, const struct setup *y, const char *name)
{
    static float a[MOST], b[MOST];
    const struct param *p = params_find(&x->p, name), *q = params_find(&y->p, name);
    double most = 0;
    CHECK(p && q && !weights_get(&x->w, p, a, &err) && !weights_get(&y->w, q, b, &err));
    for (size_t i = 0; i < p->rows * p->columns; i++)
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

static struct optim_options options(enum optim_kind kind)
{
    return (struct optim_options){ .kind = kind,
                                   .beta1 = 0.9,
                                   .beta2 = 0.99,
                                   .epsilon = 1e-8,
                                   .decay = 0.1,
                                   .d0 = 1e-3,
                                   .d_coef = 1,
                                   .seed = 3 };
}

static void check_apart(enum gpu_storage storage, struct optim_options o)
{
    struct setup both, a, b;
    o.plus = plus;
    open_setup(&both, storage, true, true, &o);
    o.plus = 1;
    open_setup(&a, storage, true, false, &o);
    open_setup(&b, storage, false, true, &o);
    for (uint32_t i = 0; i < STEPS; i++) {
        step(&both, rate, i);
        step(&a, rate, i);
        step(&b, rate * plus, i);
    }
    for (size_t i = 0; i < MODULES; i++) {
        char name[2][32];
        snprintf(name[0], sizeof(name[0]), "%zu.lora_A.weight", i);
        snprintf(name[1], sizeof(name[1]), "%zu.lora_B.weight", i);
        if (distance(&both, &a, name[0]) > 0 || distance(&both, &b, name[1]) > 0)
            CHECK_FAIL_("%s, module %zu: A is off by %g, B by %g", optim_names[o.kind], i,
                        distance(&both, &a, name[0]), distance(&both, &b, name[1]));
    }
    close_setup(&both);
    close_setup(&a);
    close_setup(&b);
}

static void together_as_apart(void)
{
    for (int kind = 0; kind < OPTIM_KINDS; kind++) {
        struct optim_options o = options((enum optim_kind)kind);
        if (kind == OPTIM_PRODIGY) /* its estimate is of all parameters */
            continue;
        check_apart(GPU_F32, o);
        o.master = true;
        o.ema = 0.9;
        check_apart(GPU_BF16, o);
        o.on_host = optim_can_move(o.kind);
        check_apart(GPU_BF16, o);
        o.on_host = o.master = false;
        o.relative = o.scaled = kind == OPTIM_ADAFACTOR;
        if (!o.relative) /* its rate is not the one that is given */
            check_apart(GPU_BF16, o);
    }
}

/* B's rate follows from the step in Adafactor, too. */
static void a_relative_rate_is_multiplied(void)
{
    struct optim_options o = options(OPTIM_ADAFACTOR);
    struct setup with, without, still;
    o.relative = true;
    o.decay = 0;
    open_setup(&still, GPU_F32, true, true, &o);
    open_setup(&without, GPU_F32, true, true, &o);
    o.plus = 4;
    open_setup(&with, GPU_F32, true, true, &o);
    step(&with, rate, 1);
    step(&without, rate, 1);
    CHECK(distance(&with, &without, "0.lora_A.weight") == 0);
    double one = distance(&without, &still, "0.lora_B.weight"),
           four = distance(&with, &still, "0.lora_B.weight");
    CHECK(one > 0 && fabs(four / one - 4) < 1e-3);
    close_setup(&with);
    close_setup(&without);
    close_setup(&still);
}

/* The first step of Prodigy: the same estimate, and B goes further. */
static void prodigy_multiplies_its_own_rate(void)
{
    struct optim_options o = options(OPTIM_PRODIGY);
    struct setup with, without, still;
    o.decay = 0;
    open_setup(&still, GPU_F32, true, true, &o);
    open_setup(&without, GPU_F32, true, true, &o);
    o.plus = 4;
    open_setup(&with, GPU_F32, true, true, &o);
    step(&with, 1, 1);
    step(&without, 1, 1);
    for (size_t i = 0; i < MODULES; i++) {
        char a[32], b[32];
        snprintf(a, sizeof(a), "%zu.lora_A.weight", i);
        snprintf(b, sizeof(b), "%zu.lora_B.weight", i);
        CHECK(distance(&with, &without, a) == 0 && distance(&with, &still, a) > 0);
        double one = distance(&without, &still, b), four = distance(&with, &still, b);
        CHECK(one > 0 && fabs(four / one - 4) < 1e-3);
    }
    close_setup(&with);
    close_setup(&without);
    close_setup(&still);
}

/* Two parameters that are alike are not rounded alike. */
static void random_numbers_differ(void)
{
    static float v[64 * 64], w[64 * 64];
    struct setup s = { 0 };
    struct optim_options o = options(OPTIM_LION);
    o.plus = 2;
    o.stochastic = true;
    for (int i = 0; i < 2; i++)
        params_add(&s.p, PARAM_MATRIX, 64, 64, "%d.lora_B.weight", i);
    REQUIRE(!weights_open(&s.w, g, &s.p, GPU_BF16, WEIGHTS_INT8, &err) &&
            !optim_open(g, &s.p, &s.w, &o, &s.o, &err));
    for (size_t i = 0; i < ARRAY_LEN(v); i++)
        v[i] = 1;
    for (int i = 0; i < 2; i++)
        CHECK(!weights_put(&s.w, &s.p.list[i], v, &err) &&
              !weights_put(optim_grads(s.o), &s.p.list[i], v, &err));
    struct optim_result r;
    CHECK(!optim_step(s.o, NULL, 1e-3, 1, &err) && !optim_finish(s.o, NULL, &r, &err));
    CHECK(!weights_get(&s.w, &s.p.list[0], v, &err) && !weights_get(&s.w, &s.p.list[1], w, &err));
    CHECK(memcmp(v, w, sizeof(v)) != 0);
    close_setup(&s);
}

int main(int argc, char **argv)
{
    if (gpu_open(argc > 1 ? argv[1] : "cpu", &g, &err)) {
        printf("Bail out! %s\n", err.msg);
        return 99;
    }
    RUN(together_as_apart);
    RUN(a_relative_rate_is_multiplied);
    RUN(prodigy_multiplies_its_own_rate);
    RUN(random_numbers_differ);
    gpu_close(g);
    return check_done();
}
