/* SPDX-License-Identifier: Apache-2.0
 * Attention and rotary positions against plain loops in double: with and without a mask, keys that are not as many as the
 * queries, heads that share keys, and every layout in memory. */
#include "check.h"
#include "gpu/rope.h"
#include "nn/op_trace.h"
#include "nn/weights.h"
#include <math.h>

enum layout {
    PACKED,      /* [sample][token][head][size] */
    HEADS_FIRST, /* [sample][head][token][size] */
    GAPS,        /* rows with room behind them, and samples too */
    FUSED,       /* q, k and v in one row */
};
static const struct attention_case {
    size_t samples, queries, keys, heads, kv_heads, size;
    bool causal;
    size_t past;
    enum layout layout;
} cases[] = {
    { 1, 1, 1, 1, 1, 4, false, 0, PACKED },
    { 2, 7, 7, 3, 3, 16, false, 0, PACKED },
    { 2, 9, 31, 4, 4, 20, false, 0, PACKED },
    { 2, 33, 6, 2, 2, 64, false, 0, GAPS },
    { 2, 13, 21, 6, 2, 12, false, 0, GAPS },
    { 1, 40, 70, 4, 1, 128, false, 0, HEADS_FIRST },
    { 2, 11, 17, 4, 2, 8, false, 0, HEADS_FIRST },
    { 2, 10, 10, 4, 2, 16, true, 0, FUSED },
    { 2, 10, 10, 4, 2, 16, false, 0, FUSED },
    { 2, 5, 12, 4, 4, 16, true, 7, GAPS },
    { 2, 34, 34, 2, 2, 32, true, 0, PACKED },
    /* cross attention: videos to texts and to images */
    { 1, 195, 512, 1, 1, 128, false, 0, PACKED },
    { 2, 40, 257, 2, 2, 32, false, 0, PACKED },
    { 1, 78, 257, 3, 3, 24, false, 0, GAPS },
    { 2, 130, 512, 2, 2, 4, false, 0, PACKED },
    { 1, 600, 20, 2, 2, 24, false, 0, PACKED },
};

/* Heads in memory, in a storage format, and the same numbers as floats.  What lies between them is CANARY. */
struct tensor {
    struct nn_heads heads;
    float *floats; /* extent numbers */
    size_t extent, tokens, n_heads;
};
static struct rig {
    struct gpu *g;
    struct nn nn;
    struct arena arena;
    uint32_t state;
} rig;
static struct cairn_error err;
static const float CANARY = -77;

static float next_number(void)
{
    rig.state = rig.state * 1664525 + 1013904223;
    return (float)(rig.state >> 24) / 128 - 1;
}

static size_t place(const struct tensor *t, size_t sample, size_t token, size_t head)
{
    return sample * (size_t)t->heads.by.sample + token * (size_t)t->heads.by.token +
           head * (size_t)t->heads.by.head;
}

static void to_storage(struct tensor *t)
{
    dtype_convert(t->heads.at, storage_dtype(rig.nn.storage), t->floats, DTYPE_F32, t->extent,
                  &(struct dtype_how){ 0 });
}

static void from_storage(struct tensor *t)
{
    dtype_convert(t->floats, DTYPE_F32, t->heads.at, storage_dtype(rig.nn.storage), t->extent,
                  &(struct dtype_how){ 0 });
}

static struct attention_stride strides(enum layout layout, size_t tokens, size_t heads, size_t size)
{
    size_t row = heads * size + (layout == GAPS ? 5 : 0), sample = tokens * row + (layout == GAPS ? 3 : 0);
    if (layout == HEADS_FIRST)
        return (struct attention_stride){ (k_i64)(heads * tokens * size), (k_i64)size,
                                          (k_i64)(tokens * size) };
    return (struct attention_stride){ (k_i64)sample, (k_i64)row, (k_i64)size };
}

/* Numbers where heads are if `filled`; else all is CANARY. */
static struct tensor make(const struct attention_case *c, size_t tokens, size_t heads, bool filled)
{
    struct tensor t = { .tokens = tokens, .n_heads = heads };
    t.heads.by = strides(c->layout == FUSED ? PACKED : c->layout, tokens, heads, c->size);
    t.extent = c->samples * (size_t)t.heads.by.sample;
    t.floats = ARENA_NEW(&rig.arena, float, t.extent);
    t.heads.at = ARENA_NEW(&rig.arena, float, t.extent);
    for (size_t i = 0; i < t.extent; i++)
        t.floats[i] = CANARY;
    for (size_t s = 0; s < c->samples && filled; s++)
        for (size_t i = 0; i < tokens; i++)
            for (size_t h = 0; h < heads; h++)
                for (size_t d = 0; d < c->size; d++)
                    t.floats[place(&t, s, i, h) + d] = next_number();
    to_storage(&t);
    from_storage(&t);
    return t;
}

/* q, k and v as parts of one array. */
static void make_fused(const struct attention_case *c, struct tensor out[3], bool filled)
{
    size_t heads[3] = { c->heads, c->kv_heads, c->kv_heads }, row = (c->heads + 2 * c->kv_heads) * c->size;
    struct attention_case wide = *c;
    wide.layout = PACKED;
    struct tensor whole = make(&wide, c->queries, c->heads + 2 * c->kv_heads, filled);
    for (size_t i = 0, first = 0; i < 3; first += heads[i++] * c->size) {
        char *at = (char *)whole.heads.at + first * storage_size(rig.nn.storage);
        out[i] = (struct tensor){ nn_heads_in_rows(at, c->queries, row, c->size), whole.floats + first,
                                  whole.extent - first, c->queries, heads[i] };
    }
}

static void make_qkv(const struct attention_case *c, struct tensor out[3], bool filled)
{
    if (c->layout == FUSED) {
        make_fused(c, out, filled);
        return;
    }
    out[0] = make(c, c->queries, c->heads, filled);
    out[1] = make(c, c->keys, c->kv_heads, filled);
    out[2] = make(c, c->keys, c->kv_heads, filled);
}

/* ---- the reference ---- */

struct wanted {
    double *o, *dq, *dk, *dv; /* [sample][token][head][size] */
};

static double dot(const float *x, const float *y, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)y[i];
    return sum;
}

/* The weights of the keys for one query. */
static void weigh(const struct attention_case *c, const struct tensor *k, const float *q, size_t sample,
                  size_t kv_head, size_t keys, double *p)
{
    double sum = 0;
    for (size_t j = 0; j < keys; j++) {
        p[j] = exp(dot(q, k->floats + place(k, sample, j, kv_head), c->size) / sqrt((double)c->size));
        sum += p[j];
    }
    for (size_t j = 0; j < keys; j++)
        p[j] /= sum;
}

static void one_query(const struct attention_case *c, const struct tensor qkv[3], const struct tensor *d_o,
                      const struct wanted *want, size_t sample, size_t head, size_t query)
{
    size_t kv_head = head / (c->heads / c->kv_heads), keys = c->causal ? query + c->past + 1 : c->keys;
    const float *q = qkv[0].floats + place(&qkv[0], sample, query, head);
    const float *g = d_o->floats + place(d_o, sample, query, head);
    size_t at = ((sample * c->queries + query) * c->heads + head) * c->size;
    double *p = ARENA_NEW(&rig.arena, double, keys), delta = 0;
    weigh(c, &qkv[1], q, sample, kv_head, keys, p);
    for (size_t j = 0; j < keys; j++)
        delta += p[j] * dot(g, qkv[2].floats + place(&qkv[2], sample, j, kv_head), c->size);
    for (size_t j = 0; j < keys; j++) {
        const float *k = qkv[1].floats + place(&qkv[1], sample, j, kv_head);
        const float *v = qkv[2].floats + place(&qkv[2], sample, j, kv_head);
        size_t kv_at = ((sample * c->keys + j) * c->kv_heads + kv_head) * c->size;
        double ds = p[j] * (dot(g, v, c->size) - delta) / sqrt((double)c->size);
        for (size_t d = 0; d < c->size; d++) {
            want->o[at + d] += p[j] * (double)v[d];
            want->dq[at + d] += ds * (double)k[d];
            want->dk[kv_at + d] += ds * (double)q[d];
            want->dv[kv_at + d] += p[j] * (double)g[d];
        }
    }
}

static struct wanted reference(const struct attention_case *c, const struct tensor qkv[3],
                               const struct tensor *d_o)
{
    size_t nq = c->samples * c->queries * c->heads * c->size,
           nk = c->samples * c->keys * c->kv_heads * c->size;
    struct wanted want = { ARENA_NEW(&rig.arena, double, nq), ARENA_NEW(&rig.arena, double, nq),
                           ARENA_NEW(&rig.arena, double, nk), ARENA_NEW(&rig.arena, double, nk) };
    for (size_t s = 0; s < c->samples; s++)
        for (size_t h = 0; h < c->heads; h++)
            for (size_t i = 0; i < c->queries; i++)
                one_query(c, qkv, d_o, &want, s, h, i);
    return want;
}

static double tolerance(void)
{
    return rig.nn.storage == GPU_F32 ? 2e-5 : rig.nn.storage == GPU_F16 ? 4e-3 : 3e-2;
}

static void compare(const char *what, const struct attention_case *c, struct tensor *got, const double *want)
{
    double worst = 0;
    from_storage(got);
    for (size_t s = 0, n = 0; s < c->samples; s++)
        for (size_t i = 0; i < got->tokens; i++)
            for (size_t h = 0; h < got->n_heads; h++)
                for (size_t d = 0; d < c->size; d++, n++)
                    worst = fmax(worst, fabs((double)got->floats[place(got, s, i, h) + d] - want[n]));
    if (!(worst < tolerance()))
        CHECK_FAIL_("case %d, %s is off by %g", (int)(c - cases), what, worst);
}

/* ---- tests ---- */

/* What the watcher was told last. */
static struct nn_event last;
static int remember(struct nn_watcher *w, struct nn *nn, const struct nn_event *e, struct cairn_error *error)
{
    (void)w, (void)nn, (void)error;
    last = *e;
    return 0;
}

/* Where nothing was to be written, nothing was. */
static void check_gaps(const struct attention_case *c, const struct tensor *t)
{
    if (c->layout != GAPS)
        return;
    for (size_t s = 0; s < c->samples; s++)
        for (size_t i = 0; i < t->tokens; i++)
            CHECK(t->floats[place(t, s, i, t->n_heads)] == CANARY);
}

static void check_outputs(const struct attention_case *c)
{
    size_t nq = c->samples * c->queries * c->heads * c->size,
           nk = c->samples * c->keys * c->kv_heads * c->size;
    bool one = c->layout == FUSED;
    CHECK_STR(last.op, "attention_backward");
    CHECK(last.flops > 0);
    if (c->layout == GAPS) {
        CHECK(!last.out[0].at && !last.out[1].at && !last.out[2].at);
        return;
    }
    CHECK(last.out[0].at && last.out[0].n == (one ? nq + 2 * nk : nq));
    CHECK(!one == (last.out[1].at && last.out[1].n == nk && last.out[2].at && last.out[2].n == nk));
}

static void run_case(const struct attention_case *c)
{
    struct nn_watcher watcher = { remember };
    struct tensor qkv[3], grads[3], o = make(c, c->queries, c->heads, false),
                                    d_o = make(c, c->queries, c->heads, true);
    size_t rows = c->samples * c->heads * c->queries;
    make_qkv(c, qkv, true);
    make_qkv(c, grads, false);
    struct nn_attention a = {
        .q = qkv[0].heads,
        .k = qkv[1].heads,
        .v = qkv[2].heads,
        .o = o.heads,
        .lse = ARENA_NEW(&rig.arena, float, rows),
        .samples = c->samples,
        .queries = c->queries,
        .keys = c->keys,
        .heads = c->heads,
        .kv_heads = c->kv_heads,
        .size = c->size,
        .causal = c->causal,
        .past = c->past,
    };
    struct nn_attention_back back = {
        .d_o = d_o.heads,
        .dq = grads[0].heads,
        .dk = grads[1].heads,
        .dv = grads[2].heads,
        .delta = ARENA_NEW(&rig.arena, float, rows),
    };
    struct wanted want = reference(c, qkv, &d_o);
    const double *gradients[3] = { want.dq, want.dk, want.dv };
    rig.nn.watcher = &watcher;
    CHECK(!nn_attention(&rig.nn, &a, &err));
    CHECK_STR(last.op, "attention");
    CHECK(!nn_attention_back(&rig.nn, &a, &back, &err));
    check_outputs(c);
    compare("o", c, &o, want.o);
    check_gaps(c, &o);
    for (int i = 0; i < 3; i++) {
        static const char *const names[3] = { "dq", "dk", "dv" };
        compare(names[i], c, &grads[i], gradients[i]);
        check_gaps(c, &grads[i]);
    }
}

static void run_all(enum gpu_storage storage)
{
    rig = (struct rig){ .state = 1 };
    CHECK(!gpu_open("cpu", &rig.g, &err));
    CHECK(!nn_open(&rig.nn, rig.g, storage, &err));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        run_case(&cases[i]);
    arena_release(&rig.arena);
    nn_close(&rig.nn);
    gpu_close(rig.g);
}

static void attention_is_the_reference_in_f32(void)
{
    run_all(GPU_F32);
}
static void attention_is_the_reference_in_bf16(void)
{
    run_all(GPU_BF16);
}
static void attention_is_the_reference_in_f16(void)
{
    run_all(GPU_F16);
}

/* Which number is the other of a pair, and which is the first of them. */
static void pair_at(bool pairs, size_t i, size_t half, size_t *a, size_t *b)
{
    *a = pairs ? 2 * i : i;
    *b = pairs ? 2 * i + 1 : i + half;
}

static void rotate(const struct attention_case *c, bool pairs, float *cosines, float *sines)
{
    size_t half = c->size / 2;
    struct tensor x = make(c, c->queries, c->heads, true);
    float *before = ARENA_NEW(&rig.arena, float, x.extent);
    memcpy(before, x.floats, x.extent * sizeof(float));
    struct nn_rope r = {
        .x = x.heads,
        .samples = c->samples,
        .tokens = c->queries,
        .heads = c->heads,
        .size = c->size,
        .cos_ = cosines,
        .sin_ = sines,
        .pairs = pairs,
    };
    CHECK(!nn_rope(&rig.nn, &r, &err));
    from_storage(&x);
    for (size_t s = 0; s < c->samples; s++)
        for (size_t t = 0; t < c->queries; t++)
            for (size_t h = 0; h < c->heads; h++)
                for (size_t i = 0; i < half; i++) {
                    size_t at = place(&x, s, t, h), a, b;
                    float cs = cosines[t * half + i], sn = sines[t * half + i];
                    pair_at(pairs, i, half, &a, &b);
                    CHECK(fabsf(x.floats[at + a] - (before[at + a] * cs - before[at + b] * sn)) < 1e-6f);
                    CHECK(fabsf(x.floats[at + b] - (before[at + a] * sn + before[at + b] * cs)) < 1e-6f);
                }
    r.back = true;
    CHECK(!nn_rope(&rig.nn, &r, &err));
    from_storage(&x);
    for (size_t i = 0; i < x.extent; i++)
        CHECK(fabsf(x.floats[i] - before[i]) < 1e-5f);
}

/* In rows of their own, and in rows that have more in them than the heads that turn. */
static void rope_turns_pairs_and_halves(void)
{
    static const struct attention_case packed = { .samples = 2, .queries = 5, .heads = 3, .size = 12 };
    static const struct attention_case wide = {
        .samples = 1, .queries = 5, .heads = 3, .size = 12, .layout = GAPS
    };
    float cosines[5 * 6], sines[5 * 6];
    for (int i = 0; i < 5 * 6; i++) {
        cosines[i] = cosf((float)i * 0.37f);
        sines[i] = sinf((float)i * 0.37f);
    }
    rig = (struct rig){ .state = 1 };
    CHECK(!gpu_open("cpu", &rig.g, &err));
    CHECK(!nn_open(&rig.nn, rig.g, GPU_F32, &err));
    for (int pairs = 0; pairs < 2; pairs++) {
        rotate(&packed, pairs, cosines, sines);
        rotate(&wide, pairs, cosines, sines);
    }
    arena_release(&rig.arena);
    nn_close(&rig.nn);
    gpu_close(rig.g);
}

/* The angle of a pair at a place: the frame has what is left when rows and columns took a third each. */
static double grid_angle(size_t f, size_t y, size_t x, size_t pair, size_t pairs)
{
    size_t third = pairs / 3, rest = pairs - 2 * third;
    if (pair < rest)
        return (double)f * pow(10000, -(double)pair / (double)rest);
    if (pair < rest + third)
        return (double)y * pow(10000, -(double)(pair - rest) / (double)third);
    return (double)x * pow(10000, -(double)(pair - rest - third) / (double)third);
}

static void rope_turns_by_places_in_a_grid(void)
{
    enum { FRAMES = 3, HEIGHT = 2, WIDTH = 5, TOKENS = FRAMES * HEIGHT * WIDTH };
    static const size_t sizes[] = { 128, 32, 24, 12, 4 };
    static float cosines[TOKENS * 64], sines[TOKENS * 64];
    rig = (struct rig){ .state = 1 };
    CHECK(!gpu_open("cpu", &rig.g, &err));
    CHECK(!nn_open(&rig.nn, rig.g, GPU_F32, &err));
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct attention_case c = { .samples = 2, .queries = TOKENS, .heads = 2, .size = sizes[i] };
        size_t pairs = c.size / 2;
        rope_table_grid(FRAMES, HEIGHT, WIDTH, pairs, cosines, sines);
        for (size_t t = 0; t < TOKENS; t++)
            for (size_t p = 0; p < pairs; p++) {
                double angle = grid_angle(t / (HEIGHT * WIDTH), t / WIDTH % HEIGHT, t % WIDTH, p, pairs);
                CHECK(fabs((double)cosines[t * pairs + p] - cos(angle)) < 1e-6);
                CHECK(fabs((double)sines[t * pairs + p] - sin(angle)) < 1e-6);
            }
        rotate(&c, true, cosines, sines);
    }
    arena_release(&rig.arena);
    nn_close(&rig.nn);
    gpu_close(rig.g);
}

static void the_first_nan_is_found_in_any_output(void)
{
    static const struct attention_case c = { 1, 3, 3, 1, 1, 8, false, 0, PACKED };
    struct nan_finder finder;
    rig = (struct rig){ .state = 1 };
    CHECK(!gpu_open("cpu", &rig.g, &err));
    CHECK(!nn_open(&rig.nn, rig.g, GPU_F32, &err));
    nan_finder_init(&finder);
    struct tensor good = make(&c, 3, 1, true), bad = make(&c, 3, 1, true);
    ((float *)bad.heads.at)[5] = NAN;
    struct nn_event e = { .op = "attention_backward",
                          .where = "blocks.0",
                          .out = { { good.heads.at, 24 }, { NULL, 24 }, { good.heads.at, 24 } },
                          .storage = GPU_F32 };
    CHECK(!finder.watcher.after(&finder.watcher, &rig.nn, &e, &err) && !finder.found);
    e.out[2].at = bad.heads.at;
    CHECK(!finder.watcher.after(&finder.watcher, &rig.nn, &e, &err) && finder.found);
    CHECK(finder.nan == 1 && finder.infinite == 0 && finder.n == 24);
    CHECK_STR(finder.op, "attention_backward");
    CHECK_STR(finder.where, "blocks.0");
    nan_finder_release(&finder, rig.g);
    arena_release(&rig.arena);
    nn_close(&rig.nn);
    gpu_close(rig.g);
}

int main(void)
{
    RUN(attention_is_the_reference_in_f32);
    RUN(attention_is_the_reference_in_bf16);
    RUN(attention_is_the_reference_in_f16);
    RUN(rope_turns_pairs_and_halves);
    RUN(rope_turns_by_places_in_a_grid);
    RUN(the_first_nan_is_found_in_any_output);
    return check_done();
}
