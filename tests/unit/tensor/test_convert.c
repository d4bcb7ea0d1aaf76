/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/convert.h"

#include "os/fault.h"
#include "check.h"
#include "tree.h"
#include <errno.h>
#include <math.h>

static struct tree tree;

enum { MOST = 16 };

/* A file to convert: tensors with their data. */
struct sample {
    struct st_tensor tensors[MOST];
    uint64_t shapes[MOST][3];
    const void *data[MOST];
    size_t n;
};

static void sample_add(struct sample *s, const char *name, enum dtype t, const uint64_t *shape, int rank,
                       const void *data)
{
    struct st_tensor *x = &s->tensors[s->n];
    *x = (struct st_tensor){
        .name = name, .dtype = t, .dtype_text = dtype_safetensors(t), .rank = rank, .elements = 1
    };
    for (int i = 0; i < rank; i++)
        x->elements *= s->shapes[s->n][i] = shape[i];
    x->shape = s->shapes[s->n];
    x->bytes = x->elements * dtype_size(t);
    s->data[s->n++] = data;
}
#define SHAPE(...) ((const uint64_t[]){ __VA_ARGS__ }), (int)ARRAY_LEN(((const uint64_t[]){ __VA_ARGS__ }))

static const struct st_meta meta[] = { { "k", "v \xc3\xa9" }, { FP8_METADATA, "{}" } };

static const char *sample_write(const struct sample *s, const char *name)
{
    struct st_writer w;
    struct cairn_error err = { 0 };
    char *path = tree_path(&tree, name);
    int r = st_writer_open(
        &w, path,
        &(struct st_contents){
            .tensors = s->tensors, .n = s->n, .meta = meta, .n_meta = 2, .order = ST_ORDER_GIVEN },
        true, &err);
    for (size_t i = 0; i < s->n && !r; i++)
        r = st_writer_put(&w, i, 0, s->data[i], s->tensors[i].bytes, &err);
    if (r || st_writer_commit(&w, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        exit(99);
    }
    st_writer_close(&w);
    return path;
}

static int convert(const char *in, const char *out, const struct convert_options *o, struct convert_report *r,
                   struct cairn_error *err)
{
    CLEANUP(source_close) struct tensor_source src = { 0 };
    if (source_open(&src, in, err))
        return -1;
    if (o->direct)
        source_set_direct(&src);
    return convert_file(&src, out, o, r, err);
}

/* Converts in/NAME to out/NAME and opens that; the caller closes. */
static bool convert_open(const struct sample *s, const struct convert_options *o, struct convert_report *r,
                         struct st_file *out)
{
    struct cairn_error err = { 0 };
    char in[PATH_MAX];
    struct convert_options replacing = *o;
    replacing.replace = true;
    strcpy(in, sample_write(s, "in"));
    const char *path = tree_path(&tree, "out");
    *out = (struct st_file){ 0 };
    if (!convert(in, path, &replacing, r, &err) && !st_open(out, path, &err))
        return true;
    CHECK_FAIL_("%s", err.msg);
    return false;
}

static void check_tensor(const struct st_file *f, const char *name, enum dtype t, const void *want,
                         size_t bytes)
{
    const struct st_tensor *x = st_find(f, name);
    struct cairn_error err = { 0 };
    CLEANUP(mem_free) char *got = malloc(bytes + 1);
    if (!x || x->dtype != t || x->bytes != bytes || st_read(f, x, 0, x->elements, got, &err))
        CHECK_FAIL_("%s: %s", name, x ? err.msg[0] ? err.msg : x->dtype_text : "not there");
    else if (bytes && memcmp(got, want, bytes))
        CHECK_FAIL_("%s has other numbers", name);
}

static const float floats[] = { 1.0f, -2.5f, 0x1.8p-130f, INFINITY, NAN, 1e30f };
static const int16_t whole[] = { -1, 7, 300 };

/* Order, metadata, shapes; what is no float; a scalar and an empty one. */
static void carries_everything_over(void)
{
    struct sample s = { .n = 0 };
    struct st_file out;
    struct convert_report r;
    uint16_t want[6];
    sample_add(&s, "z", DTYPE_F32, SHAPE(2, 3), floats);
    sample_add(&s, "scalar", DTYPE_F32, NULL, 0, floats + 1);
    sample_add(&s, "i", DTYPE_I16, SHAPE(3), whole);
    sample_add(&s, "empty", DTYPE_F32, SHAPE(0, 3), NULL);
    sample_add(&s, "a", DTYPE_BF16, SHAPE(1), whole);
    REQUIRE(convert_open(&s, &(struct convert_options){ .to = DTYPE_BF16 }, &r, &out));
    dtype_convert(want, DTYPE_BF16, floats, DTYPE_F32, 6, &(struct dtype_how){ 0 });
    check_tensor(&out, "z", DTYPE_BF16, want, 12);
    check_tensor(&out, "scalar", DTYPE_BF16, want + 1, 2);
    check_tensor(&out, "i", DTYPE_I16, whole, 6);
    check_tensor(&out, "empty", DTYPE_BF16, NULL, 0);
    check_tensor(&out, "a", DTYPE_BF16, whole, 2);
    CHECK_STR(st_meta_find(&out, "k"), "v \xc3\xa9");
    CHECK_STR(st_meta_find(&out, FP8_METADATA), "{}");
    CHECK_STR(out.tensors[0].name, "z");
    CHECK_INT(st_find(&out, "scalar")->rank, 0);
    CHECK_INT(st_find(&out, "empty")->shape[1], 3);
    CHECK(r.converted == 3 && r.copied == 2 && !r.reordered && r.values == 7);
    CHECK_INT(r.bytes_in, 24 + 4 + 6 + 2);
    st_close(&out);
}

/* Three bytes before a float would leave it where torch cannot map it. */
static void keeps_addresses_even(void)
{
    struct sample s = { .n = 0 };
    struct st_file out;
    struct convert_report r;
    sample_add(&s, "a", DTYPE_F32, SHAPE(3), floats);
    sample_add(&s, "b", DTYPE_I16, SHAPE(3), whole);
    REQUIRE(convert_open(&s, &(struct convert_options){ .to = DTYPE_F8_E5M2 }, &r, &out));
    CHECK(r.reordered);
    CHECK_STR(out.tensors[0].name, "b");
    check_tensor(&out, "b", DTYPE_I16, whole, 6);
    st_close(&out);
}

/* Large enough for several pieces, with every length of the last one; threads do not change a bit. */
static void pieces_and_threads(void)
{
    enum { N = 1100001 };
    CLEANUP(mem_free) float *data = malloc(N * sizeof(float));
    CLEANUP(mem_free) uint16_t *want = malloc(N * 2);
    for (uint32_t i = 0; i < N; i++)
        memcpy(&data[i], &(uint32_t){ i * 2654435761u }, 4);
    for (int stochastic = 0; stochastic < 2; stochastic++) {
        struct dtype_how how = { .round = stochastic ? DTYPE_STOCHASTIC : DTYPE_NEAREST, .seed = 7 };
        for (int threads = 1; threads < 4; threads++) {
            struct sample s = { .n = 0 };
            struct st_file out;
            struct convert_report r;
            sample_add(&s, "a", DTYPE_F32, SHAPE(N), data);
            sample_add(&s, "b", DTYPE_F32, SHAPE(N - 7), data);
            struct convert_options o = {
                .to = DTYPE_BF16, .threads = threads, .stochastic = stochastic, .seed = 7
            };
            o.direct = threads == 2;
            REQUIRE(convert_open(&s, &o, &r, &out));
            how.first = 0;
            dtype_convert(want, DTYPE_BF16, data, DTYPE_F32, N, &how);
            check_tensor(&out, "a", DTYPE_BF16, want, N * 2);
            how.first = N; /* random bits are those of the element's number in the file */
            dtype_convert(want, DTYPE_BF16, data, DTYPE_F32, N - 7, &how);
            check_tensor(&out, "b", DTYPE_BF16, want, (N - 7) * 2);
            st_close(&out);
        }
    }
}

static void counts_and_repairs(void)
{
    static const float data[] = { 1e30f, -1e30f, INFINITY, NAN, 1e-30f, 0, 2 };
    static const uint16_t clamped[] = { 0x7bff, 0xfbff, 0x7bff, 0x3c00, 0, 0, 0x4000 };
    static const float repaired[] = { 1e30f, -1e30f, 0x1.fffffep127f, 1, 1e-30f, 0, 2 };
    struct sample s = { .n = 0 };
    struct st_file out;
    struct convert_report r;
    sample_add(&s, "a", DTYPE_F32, SHAPE(7), data);
    REQUIRE(convert_open(&s, &(struct convert_options){ .to = DTYPE_F16 }, &r, &out));
    CHECK(r.overflowed == 2 && r.underflowed == 1 && r.clamped == 0 && r.nans_replaced == 0);
    st_close(&out);
    struct convert_options o = { .to = DTYPE_F16, .clamp = true, .replace_nan = true, .nan = 1 };
    REQUIRE(convert_open(&s, &o, &r, &out));
    CHECK(r.overflowed == 0 && r.underflowed == 1 && r.clamped == 3 && r.nans_replaced == 1);
    check_tensor(&out, "a", DTYPE_F16, clamped, sizeof(clamped));
    st_close(&out);
    o.to = DTYPE_OTHER;
    REQUIRE(convert_open(&s, &o, &r, &out));
    CHECK(r.clamped == 1 && r.nans_replaced == 1 && r.converted == 1);
    check_tensor(&out, "a", DTYPE_F32, repaired, sizeof(repaired));
    st_close(&out);
}

static void only_some(void)
{
    static const char *const globs[] = { "a.*", "c" }, *const none[] = { "nothing*" };
    struct sample s = { .n = 0 };
    struct st_file out;
    struct convert_report r;
    sample_add(&s, "a.x", DTYPE_F32, SHAPE(2), floats);
    sample_add(&s, "b.x", DTYPE_F32, SHAPE(2), floats);
    sample_add(&s, "c", DTYPE_F32, SHAPE(2), floats);
    struct convert_options o = { .to = DTYPE_F64, .only = globs, .n_only = 2 };
    REQUIRE(convert_open(&s, &o, &r, &out));
    CHECK_INT(st_find(&out, "a.x")->dtype, DTYPE_F64);
    CHECK_INT(st_find(&out, "b.x")->dtype, DTYPE_F32);
    CHECK_INT(st_find(&out, "c")->dtype, DTYPE_F64);
    CHECK(r.converted == 2 && r.copied == 1 && r.dropped == 0);
    st_close(&out);
    o.drop_others = true;
    REQUIRE(convert_open(&s, &o, &r, &out));
    CHECK(out.n_tensors == 2 && r.dropped == 1 && !st_find(&out, "b.x"));
    st_close(&out);
    struct cairn_error err = { 0 };
    o.only = none, o.n_only = 1, o.replace = true;
    CHECK(convert(tree_path(&tree, "in"), tree_path(&tree, "out"), &o, &r, &err) == -1);
    CHECK_HAS(err.msg, "in: no tensor");
}

/* The reference's matrix as a block's weight, a bias beside it. */
static void add_reference(struct sample *s, struct st_file *ref, uint16_t *w, const char *name)
{
    struct cairn_error err = { 0 };
    if (st_open(ref, check_data("tensor/fp8-scaled-reference.safetensors"), &err) ||
        st_read(ref, st_find(ref, "tensor.w"), 0, 8 * 192, w, &err))
        exit(99);
    sample_add(s, name, DTYPE_BF16, SHAPE(8, 192), w);
    sample_add(s, "blocks.0.q.bias", DTYPE_BF16, SHAPE(8), w);
}

static void check_same(const struct st_file *out, const char *name, const struct st_file *ref,
                       const char *want)
{
    const struct st_tensor *x = st_find(ref, want);
    struct cairn_error err = { 0 };
    char bytes[8 * 192 * 4];
    REQUIRE(x && x->bytes <= sizeof(bytes) && !st_read(ref, x, 0, x->elements, bytes, &err));
    check_tensor(out, name, x->dtype, bytes, x->bytes);
}

/* There with scales and back with them, against the reference's numbers in both directions. */
static void scaled_round_trip(enum fp8_grain grain, const char *codes, const char *scale, const char *product)
{
    struct sample s = { .n = 0 };
    struct st_file ref, out;
    struct convert_report r;
    struct cairn_error err = { 0 };
    uint16_t w[8 * 192];
    add_reference(&s, &ref, w, "blocks.0.q.weight");
    REQUIRE(convert_open(&s, &(struct convert_options){ .to = DTYPE_F8_E4M3, .scaled = grain }, &r, &out));
    CHECK(r.scaled == 1 && r.copied == 1);
    check_same(&out, "blocks.0.q.weight", &ref, codes);
    check_same(&out, "blocks.0.q.scale_weight", &ref, scale);
    check_tensor(&out, FP8_MARKER, DTYPE_F8_E4M3, NULL, 0);
    check_tensor(&out, "blocks.0.q.bias", DTYPE_BF16, w, 16);
    st_close(&out);
    struct convert_options back = { .to = DTYPE_F32, .scaled = FP8_TENSOR, .replace = true };
    REQUIRE(convert(tree_path(&tree, "out"), tree_path(&tree, "back"), &back, &r, &err) == 0);
    REQUIRE(st_open(&out, tree_path(&tree, "back"), &err) == 0);
    CHECK(r.unscaled == 1 && r.dropped == 2 && out.n_tensors == 2);
    check_same(&out, "blocks.0.q.weight", &ref, product);
    CHECK(!st_meta_find(&out, FP8_METADATA) && st_meta_find(&out, "k"));
    st_close(&out);
    st_close(&ref);
}

static void scaled_as_the_reference(void)
{
    scaled_round_trip(FP8_TENSOR, "tensor.q", "tensor.scale", "tensor.deq");
    scaled_round_trip(FP8_BLOCK64, "block64.q", "block64.scale_weight", "block64.deq_bf16scale");
}

/* More rows than a piece holds, for every grain: the largest error is half a step of the coarsest code. */
static void scaled_in_pieces(void)
{
    enum { ROWS = 700, COLUMNS = 640, N = ROWS * COLUMNS };
    CLEANUP(mem_free) float *data = malloc(N * sizeof(float)), *got = malloc(N * sizeof(float));
    for (uint32_t i = 0; i < N; i++)
        data[i] = (float)(int32_t)(i * 2654435761u) * 0x1p-31f * (float)(1 + i / COLUMNS);
    for (int grain = FP8_TENSOR; grain <= FP8_BLOCK64; grain++) {
        struct sample s = { .n = 0 };
        struct st_file out;
        struct convert_report r;
        struct cairn_error err = { 0 };
        sample_add(&s, "blocks.0.q.weight", DTYPE_F32, SHAPE(ROWS, COLUMNS), data);
        REQUIRE(convert_open(
            &s, &(struct convert_options){ .to = DTYPE_F8_E4M3, .scaled = (enum fp8_grain)grain }, &r, &out));
        st_close(&out);
        struct convert_options back = { .to = DTYPE_F32, .scaled = FP8_TENSOR, .replace = true };
        REQUIRE(convert(tree_path(&tree, "out"), tree_path(&tree, "back"), &back, &r, &err) == 0);
        REQUIRE(st_open(&out, tree_path(&tree, "back"), &err) == 0);
        CHECK(st_read(&out, st_find(&out, "blocks.0.q.weight"), 0, N, got, &err) == 0);
        st_close(&out);
        size_t wrong = 0;
        for (size_t i = 0; i < N; i++) {
            float most = grain == FP8_TENSOR ? (float)ROWS : (float)(1 + i / COLUMNS);
            wrong += !(fabsf(got[i] - data[i]) <= most * (16.0f / 448) * 1.0001f);
        }
        CHECK_INT(wrong, 0);
    }
}

static void scales_that_do_not_fit(void)
{
    static const uint8_t codes[4] = { 1, 2, 3, 4 };
    struct sample s = { .n = 0 };
    struct convert_report r;
    struct cairn_error err = { 0 };
    sample_add(&s, "q.weight", DTYPE_F8_E4M3, SHAPE(2, 2), codes);
    sample_add(&s, "q.weight_scale", DTYPE_F32, SHAPE(3), floats);
    const char *in = sample_write(&s, "odd");
    CHECK(convert(in, tree_path(&tree, "never"),
                  &(struct convert_options){ .to = DTYPE_F32, .scaled = FP8_TENSOR }, &r, &err) == -1);
    CHECK_HAS(err.msg, "q.weight_scale [3] does not fit q.weight [2, 2]");
    CHECK(access(tree_path(&tree, "never"), F_OK) != 0);
}

/* Without --scaled the numbers are the codes', and that is counted; scales themselves stay f32. */
static void scales_not_asked_for(void)
{
    static const uint8_t codes[4] = { 0x38, 0x40, 0x38, 0x38 };
    static const float want[4] = { 1, 2, 1, 1 };
    struct sample s = { .n = 0 };
    struct st_file out;
    struct convert_report r;
    sample_add(&s, "q.weight", DTYPE_F8_E4M3, SHAPE(2, 2), codes);
    sample_add(&s, "q.weight_scale", DTYPE_F32, NULL, 0, floats + 1);
    REQUIRE(convert_open(&s, &(struct convert_options){ .to = DTYPE_F32 }, &r, &out));
    CHECK(r.scales_ignored == 1 && r.unscaled == 0);
    check_tensor(&out, "q.weight", DTYPE_F32, want, 16);
    check_tensor(&out, "q.weight_scale", DTYPE_F32, floats + 1, 4);
    st_close(&out);
    REQUIRE(convert_open(&s, &(struct convert_options){ .to = DTYPE_F32, .scaled = FP8_TENSOR }, &r, &out));
    check_tensor(&out, "q.weight", DTYPE_F32, (float[]){ -2.5f, -5, -2.5f, -2.5f }, 16);
    CHECK(r.dropped == 1 && out.n_tensors == 1);
    st_close(&out);
}

static void refuses_to_scale(void)
{
    static const float bad[] = { 1, 2, NAN, 4 };
    struct sample s = { .n = 0 }, bare = { .n = 0 };
    struct convert_report r;
    struct cairn_error err = { 0 };
    struct convert_options o = { .to = DTYPE_F8_E4M3 };
    sample_add(&s, "blocks.0.q.weight", DTYPE_F32, SHAPE(2, 2), bad);
    sample_add(&bare, "wte.weight", DTYPE_F32, SHAPE(2, 2), bad);
    for (int grain = FP8_TENSOR; grain <= FP8_BLOCK64; grain++) {
        o.scaled = (enum fp8_grain)grain;
        CHECK(convert(sample_write(&s, "nan"), tree_path(&tree, "never"), &o, &r, &err) == -1);
        CHECK_HAS(err.msg, "/nan: tensor blocks.0.q.weight has NaN or Inf");
        CHECK_HAS(err.hint, "--nan 0");
        CHECK(access(tree_path(&tree, "never"), F_OK) != 0);
    }
    CHECK(convert(sample_write(&bare, "bare"), tree_path(&tree, "never"), &o, &r, &err) == -1);
    CHECK_HAS(err.msg, "no tensor to scale");
}

static const char *old_file(void)
{
    tree_put(&tree, "d/out", "old");
    return tree_path(&tree, "d/out");
}

static bool is_old_and_alone(void)
{
    char text[8] = "", dir[PATH_MAX];
    FILE *f = fopen(tree_path(&tree, "d/out"), "r");
    size_t n = f ? fread(text, 1, sizeof(text), f) : 0;
    if (f)
        fclose(f);
    snprintf(dir, sizeof(dir), "%s/d", tree.dir);
    return n == 3 && !strcmp(text, "old") && tree_count(dir) == 1;
}

static void interrupted(void)
{
    volatile sig_atomic_t stop = 1;
    struct sample s = { .n = 0 };
    struct convert_report r;
    struct cairn_error err = { 0 };
    sample_add(&s, "a", DTYPE_F32, SHAPE(6), floats);
    struct convert_options o = { .to = DTYPE_BF16, .replace = true, .stop = &stop };
    char in[PATH_MAX];
    strcpy(in, sample_write(&s, "stop"));
    CHECK(convert(in, old_file(), &o, &r, &err) == -1);
    CHECK_HAS(err.msg, "interrupted");
    CHECK(is_old_and_alone());
}

/* The input is written to between opening and the end. */
static void changed_while_read(void)
{
    struct sample s = { .n = 0 };
    struct convert_report r;
    struct cairn_error err = { 0 };
    struct tensor_source src;
    sample_add(&s, "a", DTYPE_F32, SHAPE(6), floats);
    char in[PATH_MAX];
    strcpy(in, sample_write(&s, "changing"));
    struct convert_options o = { .to = DTYPE_BF16, .replace = true };
    REQUIRE(source_open(&src, in, &err) == 0);
    FILE *f = fopen(in, "r+");
    fputc('x', f);
    fclose(f);
    CHECK(truncate(in, 1000) == 0);
    CHECK(convert_file(&src, old_file(), &o, &r, &err) == -1);
    CHECK_HAS(err.msg, "changing changed");
    CHECK(is_old_and_alone());
    CHECK(truncate(in, 20) == 0);
    CHECK(convert_file(&src, old_file(), &o, &r, &err) == -1);
    CHECK_HAS(err.msg, "changing is truncated: at byte 128, expected 24 more");
    CHECK_HAS(err.msg, "tensor a");
    CHECK(is_old_and_alone());
    source_close(&src);
}

/* Every outside call, from opening the input to the flush of the directory, fails once. */
static void every_call_fails_once(const struct convert_options *o)
{
    static const uint8_t codes[4] = { 0x38, 0x40, 0x38, 0x38 };
    struct sample s = { .n = 0 };
    char in[PATH_MAX];
    sample_add(&s, "blocks.0.a.weight", DTYPE_F32, SHAPE(2, 2), (float[]){ 1, 2, 3, 4 });
    sample_add(&s, "i", DTYPE_I16, SHAPE(2), whole);
    sample_add(&s, "q.weight", DTYPE_F8_E4M3, SHAPE(2, 2), codes);
    sample_add(&s, "q.scale_weight", DTYPE_F32, SHAPE(1), floats);
    strcpy(in, sample_write(&s, "fault"));
    int nth = 0;
    for (bool reached = true; reached;) {
        struct cairn_error err = { 0 };
        struct convert_report r;
        const char *out = old_file();
        fault_arm(++nth, EIO);
        int status = convert(in, out, o, &r, &err);
        reached = fault_disarm();
        CHECK_INT(status, reached ? -1 : 0);
        CHECK(!reached || strstr(err.msg, "Input/output error"));
        CHECK(is_old_and_alone() == (reached && !strstr(err.msg, "the file is written")));
        REQUIRE(nth < 200);
    }
    CHECK(nth > 12);
}

static void faults(void)
{
    every_call_fails_once(&(struct convert_options){ .to = DTYPE_BF16, .threads = 1, .replace = true });
    every_call_fails_once(
        &(struct convert_options){ .to = DTYPE_F16, .threads = 1, .replace = true, .scaled = FP8_TENSOR });
    every_call_fails_once(&(struct convert_options){
        .to = DTYPE_F8_E4M3, .threads = 1, .replace = true, .scaled = FP8_TENSOR });
}

int main(void)
{
    tree_make(&tree);
    RUN(carries_everything_over);
    RUN(keeps_addresses_even);
    RUN(pieces_and_threads);
    RUN(counts_and_repairs);
    RUN(only_some);
    RUN(scaled_as_the_reference);
    RUN(scaled_in_pieces);
    RUN(scales_that_do_not_fit);
    RUN(scales_not_asked_for);
    RUN(refuses_to_scale);
    RUN(interrupted);
    RUN(changed_while_read);
    RUN(faults);
    tree_remove(&tree);
    return check_done();
}
