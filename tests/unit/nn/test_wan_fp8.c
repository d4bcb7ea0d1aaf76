/* SPDX-License-Identifier: Apache-2.0
 * fp8 files: a weight is its code times its scale, in every spelling of scales and for every base.  Other files
 * in a quantized base: the same codes, whoever computes them. */
#include "gpu/transfer.h"
#include "nn/quantize.h"
#include "os/fault.h"
#include "tensor/convert.h"
#include "wan_models.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <unistd.h>

/* Of a piece: the small one holds a part of a matrix. */
enum { SMALL_RING = 1536, LARGE_RING = 1 << 17 };

static struct gpu *hip;
static struct nn hip_bf16, hip_f16;
static const struct wan_options to_fp8 = { .experts = 1, .quantize = true, .format = WEIGHTS_FP8 };
static const struct wan_options to_int8 = { .experts = 1, .quantize = true, .format = WEIGHTS_INT8 };

/* The values of a parameter, computed here from the bytes of the file. */
static float *values_of(const struct st_file *f, const char *name, size_t *n)
{
    struct cairn_error err = { 0 };
    const struct st_tensor *t = st_find(f, name);
    char scale_name[2][256];
    if (!t)
        return NULL;
    void *raw = malloc(t->bytes);
    float *out = malloc(t->elements * sizeof(*out));
    *n = t->elements;
    CHECK(!st_read(f, t, 0, t->elements, raw, &err));
    dtype_convert(out, DTYPE_F32, raw, t->dtype, t->elements, &(struct dtype_how){ 0 });
    free(raw);
    int stem = (int)(strlen(name) - strlen("weight"));
    snprintf(scale_name[0], sizeof(scale_name[0]), "%.*sscale_weight", stem, name);
    snprintf(scale_name[1], sizeof(scale_name[1]), "%.*sweight_scale", stem, name);
    for (int i = 0; i < 2; i++) {
        const struct st_tensor *s = str_ends(name, ".weight") ? st_find(f, scale_name[i]) : NULL;
        if (!s)
            continue;
        char bytes[8];
        float scale = 0;
        for (size_t k = 0, block = t->elements / s->elements; k < t->elements; k++) {
            if (k % block == 0) {
                CHECK(!st_read(f, s, k / block, 1, bytes, &err));
                dtype_convert(&scale, DTYPE_F32, bytes, s->dtype, 1, &(struct dtype_how){ 0 });
            }
            out[k] *= scale;
        }
    }
    return out;
}

/* What a quantized base makes of values. */
static void through_bytes(enum weights_format format, float *x, const struct param *p)
{
    uint8_t *codes = malloc(p->columns);
    for (size_t r = 0; r < p->rows; r++) {
        float scale;
        quantize_row(format, codes, &scale, x + r * p->columns, p->columns);
        dequantize_row(format, x + r * p->columns, codes, scale, p->columns);
    }
    free(codes);
}

/* copied: a quantized base has the codes of the file. */
static void check_values(struct nn *nn, const char *path, const struct wan_options *o, bool copied)
{
    struct cairn_error err = { 0 };
    struct st_file f;
    REQUIRE(!st_open(&f, path, &err));
    struct wan *m = load_wan(nn, path, o);
    for (size_t i = 0; i < m->params[0].n; i++) {
        const struct param *p = &m->params[0].list[i];
        size_t n, differ = 0;
        float *want = values_of(&f, p->name, &n), *got = malloc(p->rows * p->columns * sizeof(*got));
        REQUIRE(want && n == p->rows * p->columns);
        CHECK(!weights_get(&m->weights[0], p, got, &err));
        if (p->kind == PARAM_QUANTIZED && !copied)
            through_bytes(o->format, want, p);
        for (size_t k = 0; k < n; k++) {
            if (nn->storage == GPU_BF16 && p->kind == PARAM_MATRIX) {
                uint16_t narrow;
                dtype_convert(&narrow, DTYPE_BF16, &want[k], DTYPE_F32, 1, &(struct dtype_how){ 0 });
                dtype_convert(&want[k], DTYPE_F32, &narrow, DTYPE_BF16, 1, &(struct dtype_how){ 0 });
            }
            differ += got[k] != want[k];
        }
        if (differ)
            CHECK_FAIL_("%s: %s: %zu of %zu values differ", path, p->name, differ, n);
        free(want);
        free(got);
    }
    model_close(&m->model);
    st_close(&f);
}

static void check_all_bases(const char *path, bool copied)
{
    check_values(&f32, path, NULL, false);
    check_values(&bf16, path, NULL, false);
    check_values(&f32, path, &to_fp8, copied);
    check_values(&bf16, path, &to_fp8, copied);
    check_values(&f32, path, &to_int8, false);
    check_values(&hip_bf16, path, NULL, false);
    check_values(&hip_bf16, path, &to_fp8, copied);
    check_values(&hip_bf16, path, &to_int8, false);
}

static const char *new_path(void)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s", in_folder(new_folder(), "m.safetensors"));
    return path;
}

static const char *converted(enum fp8_grain grain, enum dtype to)
{
    struct cairn_error err = { 0 };
    static const char *const linears[] = { "blocks.*.weight" };
    CLEANUP(source_close) struct tensor_source s = { 0 };
    struct convert_options o = { .to = to, .scaled = grain, .only = linears, .n_only = grain ? 0 : 1 };
    struct convert_report report;
    const char *path = new_path();
    if (source_open(&s, check_data(official), &err) || convert_file(&s, path, &o, &report, &err))
        CHECK_FAIL_("%s", err.msg);
    return path;
}

static void a_weight_is_code_times_scale(void)
{
    check_all_bases(check_data(fp8_scaled), true);
}

/* The quantized base itself has the bytes of the file, and its scale in each row. */
static void codes_are_copied(void)
{
    struct cairn_error err = { 0 };
    struct st_file f;
    REQUIRE(!st_open(&f, check_data(fp8_scaled), &err));
    struct wan *m = load_wan(&bf16, check_data(fp8_scaled), &to_fp8);
    const struct param *p = &m->params[0].list[m->blocks[1].linear[WAN_FFN_OUT].w];
    const struct st_tensor *t = st_find(&f, p->name), *s = st_find(&f, "blocks.1.ffn.2.scale_weight");
    REQUIRE(t && s && t->bytes == p->rows * p->columns);
    uint8_t *codes = malloc(t->bytes);
    float scale;
    bool on_host;
    enum dtype unused;
    CHECK(!st_read(&f, t, 0, t->elements, codes, &err) && !st_read(&f, s, 0, 1, &scale, &err));
    CHECK(!memcmp(codes, weights_place(&m->weights[0], p, &unused, &on_host), t->bytes));
    for (size_t r = 0; r < p->rows; r++)
        CHECK(m->weights[0].scales[p->scale_at + r] == scale);
    free(codes);
    model_close(&m->model);
    st_close(&f);
}

static void every_granularity_is_read(void)
{
    check_all_bases(converted(FP8_TENSOR, DTYPE_F8_E4M3), true);
    check_all_bases(converted(FP8_CHANNEL, DTYPE_F8_E4M3), true);
    check_all_bases(converted(FP8_BLOCK64, DTYPE_F8_E4M3), false);
    check_all_bases(converted(FP8_TENSOR, DTYPE_F8_E5M2), false);
    check_all_bases(converted(FP8_PLAIN, DTYPE_F8_E4M3), true);
    check_all_bases(converted(FP8_PLAIN, DTYPE_F8_E5M2), false);
}

/* Scales for blocks of 64 columns of a row that has two: ffn.2 is [64, 128]. */
static void a_block_is_part_of_a_row(void)
{
    struct cairn_error err = { 0 };
    struct st_file f;
    REQUIRE(!st_open(&f, converted(FP8_BLOCK64, DTYPE_F8_E4M3), &err));
    const struct st_tensor *s = st_find(&f, "blocks.0.ffn.2.scale_weight");
    CHECK(s && s->elements == 64 * 2);
    st_close(&f);
}

static void both_spellings_are_read(void)
{
    static const char quant[] = "{\"format\": \"float8_e4m3fn\"}";
    struct changes spelled = { .from_end = ".scale_weight",
                               .to_end = ".weight_scale",
                               .drop = "scaled_fp8",
                               .add = "blocks.0.self_attn.q.comfy_quant",
                               .text = quant };
    const char *path = new_path();
    copy_changed(check_data(fp8_scaled), path, &spelled);
    check_all_bases(path, true);
    path = new_path();
    copy_changed(check_data(fp8_scaled), path,
                 &(struct changes){ .add = "blocks.0.self_attn.q.scale_input" });
    check_all_bases(path, true);
}

static void a_prefix_is_before_scales_too(void)
{
    const char *path = new_path();
    copy_changed(check_data(fp8_scaled), path, &(struct changes){ .prefix = "model.diffusion_model." });
    struct wan *a = load_wan(&f32, check_data(fp8_scaled), NULL), *b = load_wan(&f32, path, NULL);
    check_same(&a->params[0], &a->weights[0], &b->weights[0]);
    model_close(&a->model);
    model_close(&b->model);
}

static void check_refused(const struct changes *c, const struct wan_options *o, const char *object)
{
    struct cairn_error err = { 0 };
    struct param_report report;
    struct wan_shape s = shape_of(check_data(official));
    struct wan *m = open_wan(&f32, &s, o);
    const char *path = new_path();
    copy_changed(check_data(fp8_scaled), path, c);
    CHECK(wan_file_load(m, 0, path, &report, &err));
    CHECK_INT(err.code, CAIRN_EFORMAT);
    CHECK_HAS(err.msg, object);
    param_report_release(&report);
    model_close(&m->model);
}

static void a_forgotten_scale_is_refused(void)
{
    static const char lost[] = "blocks.1.cross_attn.o.scale_weight";
    const struct wan_options *const bases[] = { NULL, &to_fp8, &to_int8 };
    for (size_t i = 0; i < ARRAY_LEN(bases); i++) {
        check_refused(&(struct changes){ .drop = lost }, bases[i], "blocks.1.cross_attn.o.weight");
        /* All scales lost, but the marker is there. */
        check_refused(&(struct changes){ .drop_end = ".scale_weight" }, bases[i], ".weight");
        /* A scale that is NaN. */
        check_refused(&(struct changes){ .drop = lost, .add = lost, .value = NAN }, bases[i],
                      "blocks.1.cross_attn.o.weight");
    }
    /* A scale without its weight belongs to nothing. */
    check_refused(&(struct changes){ .add = "blocks.1.other.scale_weight" }, NULL, "blocks.1.other");
}

static void scales_that_do_not_fit_are_refused(void)
{
    check_refused(&(struct changes){ .drop = "blocks.1.ffn.0.scale_weight",
                                     .add = "blocks.1.ffn.0.weight_scale",
                                     .value = 1,
                                     .add_n = 3 },
                  NULL, "blocks.1.ffn.0.weight_scale");
}

/* ---- files of 16 and 32 bits, quantized on the device ---- */

static bool is_by_host(const struct wan *m)
{
    return model_host_quant(&m->model) != NULL;
}

/* Codes and scales of a model, bit by bit those of one that the CPU has loaded. */
static void check_same_codes(const struct wan *m, const struct wan *by_cpu)
{
    struct cairn_error err = { 0 };
    const struct weights *w = &m->weights[0], *cpu_w = &by_cpu->weights[0];
    for (size_t i = 0; i < m->params[0].n; i++) {
        const struct param *p = &m->params[0].list[i];
        if (p->kind != PARAM_QUANTIZED)
            continue;
        size_t n = p->rows * p->columns;
        char *codes = malloc(n), *scales = malloc(p->rows * sizeof(float));
        enum dtype unused;
        bool on_host, here;
        void *at = weights_place(w, p, &unused, &on_host);
        struct transfer_part parts[] = {
            { .device = at, .bytes = n, .move = transfer_move_into, .context = codes, .on_host = on_host },
            { .device = w->scales + p->scale_at,
              .bytes = p->rows * sizeof(float),
              .move = transfer_move_into,
              .context = scales },
        };
        CHECK(!transfer_down(gpu_transfer(w->g), parts, 2, NULL, &err));
        CHECK(!memcmp(scales, cpu_w->scales + p->scale_at, p->rows * sizeof(float)));
        if (memcmp(codes, weights_place(cpu_w, p, &unused, &here), n))
            CHECK_FAIL_("%s: the codes differ", p->name);
        free(codes);
        free(scales);
    }
}

static void check_codes(const char *path, const struct wan_options *o, bool by_host)
{
    struct wan *m = load_wan(&hip_bf16, path, o), *by_cpu = load_wan(&bf16, path, o);
    CHECK_INT(is_by_host(m), by_host);
    CHECK(!is_by_host(by_cpu));
    check_same_codes(m, by_cpu);
    model_close(&m->model);
    model_close(&by_cpu->model);
}

static void check_wide_files(bool by_host)
{
    static const enum dtype wide[] = { DTYPE_F32, DTYPE_BF16, DTYPE_F16 };
    for (size_t i = 0; i < ARRAY_LEN(wide); i++) {
        const char *path = converted(FP8_PLAIN, wide[i]);
        check_codes(path, &to_fp8, by_host);
        check_codes(path, &to_int8, by_host);
    }
}

static void the_device_quantizes(void)
{
    check_wide_files(false);
}

/* No kernel, none that can be launched, and one that fails in the middle. */
static void the_host_does_what_the_device_cannot(void)
{
    setenv("CAIRN_FAKE_HIP", "refuse=quantise", 1);
    check_wide_files(true);
    setenv("CAIRN_FAKE_HIP", "fail=hipModuleLaunchKernel:7:1", 1);
    check_codes(check_data(official), &to_fp8, true);
    setenv("CAIRN_FAKE_HIP", "", 1);
    check_wide_files(false);
}

/* What is already in 8 bits needs no kernel. */
static void codes_of_a_file_are_not_made_again(void)
{
    setenv("CAIRN_FAKE_HIP", "refuse=quantise", 1);
    check_codes(check_data(fp8_scaled), &to_fp8, false);
    setenv("CAIRN_FAKE_HIP", "", 1);
}

static void the_host_quantizes_what_it_holds(void)
{
    struct cairn_error err = { 0 };
    struct wan_shape s = shape_of(check_data(official));
    struct wan *by_cpu = load_wan(&bf16, check_data(official), &to_fp8);
    const uint64_t streamed[] = { 1, MODEL_ALL_BLOCKS };
    for (size_t i = 0; i < ARRAY_LEN(streamed); i++) {
        struct param_report report = { 0 };
        struct wan *m = NULL;
        REQUIRE(!wan_new(&hip_bf16, &s, &to_fp8, &m, &err) &&
                !model_alloc(&m->model, &(struct model_layout){ .streamed = streamed[i] }, &err));
        if (streamed[i] == MODEL_ALL_BLOCKS) /* nothing is left for the device */
            setenv("CAIRN_FAKE_HIP", "refuse=quantise", 1);
        CHECK(!wan_file_load(m, 0, check_data(official), &report, &err));
        CHECK(!is_by_host(m));
        setenv("CAIRN_FAKE_HIP", "", 1);
        check_same_codes(m, by_cpu);
        param_report_release(&report);
        model_close(&m->model);
    }
    model_close(&by_cpu->model);
}

/* The last number of a tensor becomes these bytes. */
static const char *spoiled(enum dtype dtype, const char *name, const void *bytes)
{
    struct cairn_error err = { 0 };
    struct st_file f;
    const char *path = converted(FP8_PLAIN, dtype);
    size_t n = dtype_size(dtype);
    if (st_open(&f, path, &err)) {
        CHECK_FAIL_("%s", err.msg);
        return path;
    }
    const struct st_tensor *t = st_find(&f, name);
    int fd = open(path, O_WRONLY);
    CHECK(t && t->dtype == dtype && pwrite(fd, bytes, n, (off_t)(t->at + t->bytes - n)) == (ssize_t)n);
    close(fd);
    st_close(&f);
    return path;
}

static void check_not_loaded(struct nn *nn, const char *path, const char *name)
{
    const struct wan_options *const bases[] = { &to_fp8, &to_int8 };
    struct wan_shape s = shape_of(path);
    for (size_t i = 0; i < ARRAY_LEN(bases); i++) {
        struct cairn_error err = { 0 };
        struct param_report report = { 0 };
        struct wan *m = open_wan(nn, &s, bases[i]);
        CHECK(wan_file_load(m, 0, path, &report, &err));
        CHECK_INT(err.code, CAIRN_EFORMAT);
        CHECK_HAS(err.msg, name);
        CHECK(!is_by_host(m));
        param_report_release(&report);
        model_close(&m->model);
    }
}

static void what_is_not_finite_is_refused(void)
{
    static const char name[] = "blocks.1.ffn.0.weight";
    const uint16_t bf16_nan = 0x7fc1, bf16_infinite = 0xff80, f16_infinite = 0x7c00, bf16_large = 0x4780;
    const float nan = NAN, large = 65536;
    check_not_loaded(&hip_bf16, spoiled(DTYPE_BF16, name, &bf16_nan), name);
    check_not_loaded(&hip_bf16, spoiled(DTYPE_BF16, name, &bf16_infinite), name);
    check_not_loaded(&hip_bf16, spoiled(DTYPE_F16, name, &f16_infinite), name);
    check_not_loaded(&hip_bf16, spoiled(DTYPE_F32, name, &nan), name);
    check_not_loaded(&hip_f16, spoiled(DTYPE_F32, name, &large), name);
    check_not_loaded(&hip_f16, spoiled(DTYPE_BF16, name, &bf16_large), name);
    check_codes(spoiled(DTYPE_F32, name, &large), &to_fp8, false);
}

/* Each of the first calls of the driver fails once: an error, or the same codes. */
static void every_call_may_fail(void)
{
    static const char *const calls[] = { "hipModuleLaunchKernel", "hipMemcpyHtoDAsync",
                                         "hipStreamSynchronize", "hipModuleLoadData" };
    struct wan_shape s = shape_of(check_data(official));
    struct wan *by_cpu = load_wan(&bf16, check_data(official), &to_int8);
    size_t loaded = 0;
    transfer_set_ring(gpu_transfer(hip), 3, LARGE_RING);
    for (size_t i = 0; i < 4 * ARRAY_LEN(calls); i++) {
        struct cairn_error err = { 0 };
        CLEANUP(param_report_release) struct param_report report = { 0 };
        char words[64];
        struct wan *m = open_wan(&hip_bf16, &s, &to_int8);
        snprintf(words, sizeof(words), "fail=%s:%zu:1", calls[i / 4], 1 + i % 4 * 3);
        setenv("CAIRN_FAKE_HIP", words, 1);
        int r = wan_file_load(m, 0, check_data(official), &report, &err);
        setenv("CAIRN_FAKE_HIP", "", 1);
        CHECK(!r || (err.code && err.msg[0]));
        if (!r)
            check_same_codes(m, by_cpu);
        loaded += !r;
        model_close(&m->model);
    }
    CHECK(loaded > ARRAY_LEN(calls));
    model_close(&by_cpu->model);
}

static void every_system_call_may_fail(void)
{
    bool reached = true;
    int failed = 0;
    struct wan_shape s = shape_of(check_data(official));
    struct wan *by_cpu = load_wan(&bf16, check_data(official), &to_fp8);
    transfer_set_ring(gpu_transfer(hip), 3, LARGE_RING);
    for (int nth = 1; reached && nth < 10000; nth += nth < 30 ? 1 : 17) {
        struct cairn_error err = { 0 };
        CLEANUP(param_report_release) struct param_report report = { 0 };
        struct wan *m = open_wan(&hip_bf16, &s, &to_fp8);
        fault_arm(nth, EIO);
        int r = wan_file_load(m, 0, check_data(official), &report, &err);
        reached = fault_disarm();
        failed += r != 0;
        if (r)
            CHECK(err.code && err.msg[0] && reached);
        else
            check_same_codes(m, by_cpu);
        model_close(&m->model);
    }
    CHECK(!reached && failed > 10);
    model_close(&by_cpu->model);
}

/* A ring so small that matrices go in pieces, of which the last is shorter. */
static void open_hip(void)
{
    struct cairn_error err = { 0 };
    if (gpu_open("hip:0", &hip, &err) || nn_open(&hip_bf16, hip, GPU_BF16, &err) ||
        nn_open(&hip_f16, hip, GPU_F16, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(99);
    }
    transfer_set_ring(gpu_transfer(hip), 3, SMALL_RING);
}

static void all(void)
{
    open_hip();
    RUN(a_weight_is_code_times_scale);
    RUN(codes_are_copied);
    RUN(every_granularity_is_read);
    RUN(a_block_is_part_of_a_row);
    RUN(both_spellings_are_read);
    RUN(a_prefix_is_before_scales_too);
    RUN(a_forgotten_scale_is_refused);
    RUN(scales_that_do_not_fit_are_refused);
    RUN(the_device_quantizes);
    RUN(the_host_does_what_the_device_cannot);
    RUN(codes_of_a_file_are_not_made_again);
    RUN(the_host_quantizes_what_it_holds);
    RUN(what_is_not_finite_is_refused);
    RUN(every_call_may_fail);
    RUN(every_system_call_may_fail);
    nn_close(&hip_bf16);
    nn_close(&hip_f16);
    gpu_close(hip);
}

int main(void)
{
    return run_on_cpu(all);
}
