/* SPDX-License-Identifier: Apache-2.0
 * Steps of the optimizers as a run takes them: rounding, master copies, the average, and gradients that are no numbers. */
#include "train/optim_inside.h"

#include "check.h"
#include <math.h>

enum { ROWS = 256, COLUMNS = 256, N = ROWS * COLUMNS };
static const double gap = 1.0 / 256; /* from 1 down to the next number of bf16 */

static struct gpu *g;
static struct cairn_error err;

struct setup {
    struct params p;
    struct weights w;
    struct optim *o;
};

static void fill(const struct setup *s, const struct weights *w, float value)
{
    static float numbers[N];
    for (size_t i = 0; i < N; i++)
        numbers[i] = value;
    for (size_t i = 0; i < s->p.n; i++)
        CHECK(!weights_put(w, &s->p.list[i], numbers, &err));
}

/* Weights of 1 and gradients of 1; Lion moves each by the rate then. */
static void open_setup(struct setup *s, enum gpu_storage storage, const struct optim_options *o)
{
    *s = (struct setup){ 0 };
    params_add(&s->p, PARAM_MATRIX, ROWS, COLUMNS, "matrix");
    params_add(&s->p, PARAM_VECTOR, 1, COLUMNS, "vector");
    CHECK(!weights_open(&s->w, g, &s->p, storage, WEIGHTS_INT8, &err));
    fill(s, &s->w, 1);
    if (optim_open(g, &s->p, &s->w, o, &s->o, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(99);
    }
    fill(s, optim_grads(s->o), 1);
}

static void close_setup(struct setup *s)
{
    optim_close(s->o);
    weights_close(&s->w);
    params_release(&s->p);
}

static bool step(const struct setup *s, double rate)
{
    struct optim_result r = { 0 };
    CHECK(!optim_step(s->o, NULL, rate, 1, &err) && !optim_finish(s->o, NULL, &r, &err));
    return r.applied;
}

static const float *matrix(const struct setup *s)
{
    static float numbers[N];
    CHECK(!weights_get(&s->w, &s->p.list[0], numbers, &err));
    return numbers;
}

static struct optim_options lion(void)
{
    return (
        struct optim_options){ .kind = OPTIM_LION, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8, .seed = 7 };
}

static void rounding_by_chance_keeps_the_mean(void)
{
    struct setup s;
    struct optim_options o = lion();
    o.stochastic = true;
    open_setup(&s, GPU_BF16, &o);
    CHECK(step(&s, 0.3 * gap));
    const float *w = matrix(&s);
    size_t down = 0;
    for (size_t i = 0; i < N; i++) {
        down += (double)w[i] == 1 - gap;
        if (w[i] != 1 && (double)w[i] != 1 - gap)
            CHECK_FAIL_("number %zu is %g", i, (double)w[i]);
    }
    /* The standard deviation of the share is 0.0018. */
    if (fabs((double)down / N - 0.3) > 0.01)
        CHECK_FAIL_("%zu of %d went down", down, N);
    close_setup(&s);
}

/* Ten steps of a tenth of what bf16 can tell apart. */
static float after_ten_small_steps(bool master)
{
    struct setup s;
    struct optim_options o = lion();
    o.master = master;
    open_setup(&s, GPU_BF16, &o);
    for (int i = 0; i < 10; i++)
        CHECK(step(&s, 0.1 * gap));
    const float *w = matrix(&s);
    for (size_t i = 1; i < N; i++)
        if (w[i] != w[0])
            CHECK_FAIL_("number %zu is %g", i, (double)w[i]);
    close_setup(&s);
    return w[0];
}

static void a_master_copy_adds_small_steps_up(void)
{
    CHECK((double)after_ten_small_steps(true) == 1 - gap);
    CHECK(after_ten_small_steps(false) == 1);
}

static void the_average_follows(void)
{
    static float average[N];
    struct setup s;
    struct optim_options o = lion();
    o.ema = 0.9;
    open_setup(&s, GPU_F32, &o);
    CHECK(step(&s, 0.5));
    CHECK(step(&s, 0.25));
    CHECK(matrix(&s)[N - 1] == 0.25f);
    size_t n, found = 0;
    const struct optim_array *arrays = optim_arrays(s.o, &n);
    for (size_t i = 0; i < n; i++) {
        if (!strstr(arrays[i].name, ".ema"))
            continue;
        found++;
        CHECK(!gpu_download(g, NULL, average, arrays[i].at, arrays[i].n * sizeof(float), &err) &&
              !gpu_wait(g, NULL, &err));
        CHECK(fabs((double)average[5] - (0.9 * (0.9 + 0.1 * 0.5) + 0.1 * 0.25)) < 1e-6);
    }
    CHECK_INT(found, 2);
    close_setup(&s);
}

/* ---- gradients that are no numbers ---- */

/* All that a later step depends on, one after the other. */
static unsigned char *state_of(const struct setup *s, size_t *size)
{
    size_t n, at = N * sizeof(uint16_t);
    const struct optim_array *arrays = optim_arrays(s->o, &n);
    unsigned char *all = calloc(16, N * sizeof(float));
    CHECK(!optim_settle(s->o, &err));
    CHECK(!gpu_download(g, NULL, all, s->w.matrices, at, &err));
    for (size_t i = 0; i < n; i++) {
        size_t bytes = arrays[i].n * dtype_size(arrays[i].dtype);
        CHECK(!gpu_download(g, NULL, all + at, arrays[i].at, bytes, &err));
        at += bytes;
    }
    CHECK(!gpu_wait(g, NULL, &err));
    *size = at;
    return all;
}

static void put_gradient(const struct setup *s, size_t param, float value)
{
    static float numbers[N];
    numbers[COLUMNS - 3] = value;
    CHECK(!weights_put(optim_grads(s->o), &s->p.list[param], numbers, &err));
}

static void is_left_out(const struct setup *s, size_t param, float value)
{
    size_t size, size_after;
    uint64_t applied = optim_applied(s->o), attempted = optim_attempted(s->o);
    unsigned char *before = state_of(s, &size);
    fill(s, optim_grads(s->o), 1);
    put_gradient(s, param, value);
    CHECK(!step(s, 0.01));
    unsigned char *after = state_of(s, &size_after);
    CHECK(size == size_after && !memcmp(before, after, size));
    CHECK_INT(optim_applied(s->o), applied);
    CHECK_INT(optim_attempted(s->o), attempted + 1);
    free(before);
    free(after);
}

static void a_step_that_is_no_number_changes_nothing(void)
{
    for (int kind = 0; kind < OPTIM_KINDS; kind++) {
        struct setup s;
        struct optim_options o = lion();
        size_t size;
        o.kind = (enum optim_kind)kind;
        o.d0 = o.d_coef = 1;
        o.master = true;
        o.ema = 0.9;
        o.clip = 1;
        o.decay = 0.1;
        open_setup(&s, GPU_BF16, &o);
        CHECK(step(&s, 0.01));
        for (size_t param = 0; param < s.p.n; param++) {
            is_left_out(&s, param, INFINITY);
            is_left_out(&s, param, -INFINITY);
            is_left_out(&s, param, NAN);
        }
        unsigned char *before = state_of(&s, &size), *after;
        fill(&s, optim_grads(s.o), 1);
        CHECK(step(&s, 0.01));
        after = state_of(&s, &size);
        CHECK(memcmp(before, after, size) != 0);
        free(before);
        free(after);
        close_setup(&s);
    }
}

/* Of a matrix Adafactor keeps a number for each row and column, of a vector each. */
static void adafactor_keeps_little(void)
{
    struct params p = { 0 };
    struct optim_options o = { .kind = OPTIM_ADAFACTOR }, none = { .kind = OPTIM_LION };
    params_add(&p, PARAM_MATRIX, 4096, 1024, "matrix");
    params_add(&p, PARAM_VECTOR, 1, 512, "vector");
    CHECK_INT(optim_sizes(&p, GPU_F32, &none).state, 4 * (4096 * 1024 + 512));
    CHECK_INT(optim_sizes(&p, GPU_F32, &o).state, 4 * (4096 + 1024 + 512));
    params_release(&p);
}

static void vary(const struct setup *s, uint32_t seed)
{
    static float numbers[N];
    for (size_t i = 0; i < N; i++) {
        seed = seed * 1664525 + 1013904223;
        numbers[i] = (float)(seed >> 8) / (1 << 24) - 0.5f;
    }
    for (size_t i = 0; i < s->p.n; i++)
        CHECK(!weights_put(optim_grads(s->o), &s->p.list[i], numbers, &err));
}

/* State that is on the host, that is sent there, and that comes back. */
static void state_on_the_host_gives_the_same_bits(void)
{
    for (int i = 0; i < 2 * OPTIM_KINDS; i++) {
        struct setup near, far;
        struct optim_options o = lion();
        o.kind = (enum optim_kind)(i / 2);
        if (!optim_can_move(o.kind))
            continue;
        o.master = true;
        o.ema = i % 2 ? 0.9 : 0;
        o.decay = 0.1;
        enum gpu_storage storage = i % 2 ? GPU_BF16 : GPU_F32;
        open_setup(&near, storage, &o);
        CHECK_INT(optim_sizes(&near.p, storage, &o).host, 0);
        size_t whole = optim_sizes(&near.p, storage, &o).state;
        o.on_host = true;
        open_setup(&far, storage, &o);
        CHECK(optim_is_on_host(far.o) && optim_sizes(&near.p, storage, &o).state < whole / 2);
        CHECK(optim_sizes(&near.p, storage, &o).host > whole / 2);
        for (uint32_t k = 0; k < 6; k++) {
            size_t size, size_far;
            vary(&near, k);
            vary(&far, k);
            CHECK(step(&near, 0.01) && step(&far, 0.01));
            unsigned char *a = state_of(&near, &size), *b = state_of(&far, &size_far);
            CHECK(size == size_far && !memcmp(a, b, size));
            free(a);
            free(b);
            CHECK(!optim_move_state(far.o, k % 2, &err));
            CHECK(optim_is_on_host(far.o) == (bool)(k % 2));
            CHECK(!optim_move_state(near.o, !(k % 2), &err));
        }
        fill(&far, &far.w, 2); /* as a file does: the master copy gets it too */
        CHECK(!optim_start(far.o, &err) && step(&far, 0) && matrix(&far)[7] == 2);
        close_setup(&near);
        close_setup(&far);
    }
    struct optim_options prodigy = { .kind = OPTIM_PRODIGY, .on_host = true, .d0 = 1, .d_coef = 1 };
    struct setup s;
    open_setup(&s, GPU_F32, &prodigy);
    CHECK(!optim_move_state(s.o, true, &err) && !optim_is_on_host(s.o));
    close_setup(&s);
}

/* A launch for a range of numbers, or a step of all of them: a method has one of the two. */
static void every_method_is_complete(void)
{
    struct params p = { 0 };
    int can_move = 0;
    for (int i = 0; i < OPTIM_KINDS; i++) {
        const struct optim_method *m = optim_methods[i];
        for (int vectors = 0; vectors < 2; vectors++) {
            struct optim_state out[4 * STATE_MOST];
            size_t n = m->state(&(struct optim_group){ .n = 1, .vectors = vectors }, &p, out);
            CHECK(n <= STATE_MOST);
            for (size_t k = 0; k < n; k++)
                CHECK(!strncmp(out[k].name, vectors ? "vector." : "matrix.", 7));
        }
        CHECK(optim_names[i] && m->state && !m->update == !!m->step);
        CHECK(m->low_lr <= m->default_lr && !m->lr_remark == !(m->low_lr > 0));
        can_move += optim_can_move((enum optim_kind)i);
    }
    CHECK(!optim_names[OPTIM_KINDS]);
    CHECK(can_move >= 3 && !optim_can_move(OPTIM_ADAFACTOR) && !optim_can_move(OPTIM_PRODIGY));
}

int main(void)
{
    if (gpu_open("cpu", &g, &err)) {
        printf("Bail out! %s\n", err.msg);
        return 99;
    }
    RUN(every_method_is_complete);
    RUN(rounding_by_chance_keeps_the_mean);
    RUN(a_master_copy_adds_small_steps_up);
    RUN(the_average_follows);
    RUN(adafactor_keeps_little);
    RUN(state_on_the_host_gives_the_same_bits);
    RUN(a_step_that_is_no_number_changes_nothing);
    gpu_close(g);
    return check_done();
}
