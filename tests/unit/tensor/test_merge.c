/* SPDX-License-Identifier: Apache-2.0
 * Merging, against the sum in double precision, for every kind of base. */
#include "tensor/merge.h"

#include "os/fault.h"
#include "check.h"
#include "lora_files.h"
#include "tensor/fp8_scaled.h"
#include "tensor/lowrank.h"
#include "tree.h"
#include <errno.h>
#include <math.h>

enum { OUT = 6, IN = 128, RANK = 3 };

static struct tree tree;
static char base_path[128], lora_path[128], out_path[128];

static int merge(const struct merge_options *o, struct merge_report *report, struct cairn_error *err)
{
    CLEANUP(source_close) struct tensor_source base = { 0 };
    CLEANUP(lora_close) struct lora_file lora = { 0 };
    if (source_open(&base, base_path, err) || lora_open(&lora, lora_path, err))
        return -1;
    return merge_lora(&base, &lora, out_path, o, report, err);
}

static struct merge_report merge_well(double scale, enum dtype dtype)
{
    struct merge_options o = { .scale = scale, .dtype = dtype, .replace = true };
    struct merge_report report = { 0 };
    struct cairn_error err = { 0 };
    if (merge(&o, &report, &err))
        CHECK_FAIL_("%s", err.msg);
    return report;
}

static void merge_badly(const char *says)
{
    struct merge_options o = { .scale = 1, .replace = true };
    struct merge_report report;
    struct cairn_error err = { 0 };
    unlink(out_path);
    CHECK(merge(&o, &report, &err) == -1);
    CHECK_HAS(err.msg, says);
    CHECK_INT(count_files(tree.dir), 2);
}

#define MODULE "lora_unet_blocks_0_ffn_0"

static void put_lora(float spread)
{
    put_file(lora_path, (struct put[]){ { MODULE ".lora_down.weight", DTYPE_F32, RANK, IN, 0, spread },
                                        { MODULE ".lora_up.weight", DTYPE_F32, OUT, RANK, 0, spread },
                                        { MODULE ".alpha", DTYPE_F32, 0, 0, 1.5f, 0 },
                                        { 0 } });
}

/* W + scale * alpha / rank * up * down in double; W as numbers. */
static double *expect(const float *w, double scale)
{
    double *sum = calloc(OUT * IN, sizeof(double));
    float *down = get_numbers(lora_path, MODULE ".lora_down.weight", NULL);
    float *up = get_numbers(lora_path, MODULE ".lora_up.weight", NULL);
    for (int i = 0; i < OUT; i++) {
        for (int j = 0; j < IN; j++) {
            for (int k = 0; k < RANK; k++)
                sum[i * IN + j] += (double)up[i * RANK + k] * (double)down[k * IN + j];
            sum[i * IN + j] = (double)w[i * IN + j] + scale * 0.5 * sum[i * IN + j];
        }
    }
    free(up), free(down);
    return sum;
}

/* The step between neighbours of v in a floating kind: half of it is the most that rounding may cost. */
static double step(enum dtype t, double v)
{
    static const struct {
        int mantissa, smallest;
    } kinds[DTYPE_COUNT] = {
        [DTYPE_F32] = { 23, -126 },  [DTYPE_F16] = { 10, -14 },    [DTYPE_BF16] = { 7, -126 },
        [DTYPE_F8_E4M3] = { 3, -6 }, [DTYPE_F8_E5M2] = { 2, -14 },
    };
    int e = ilogb(fabs(v) > 0 ? v : 1e-300);
    return ldexp(1, (e < kinds[t].smallest ? kinds[t].smallest : e) - kinds[t].mantissa);
}

static void check_merged(const char *name, enum dtype type, double scale)
{
    struct st_tensor what = { 0 };
    float *w = get_numbers(base_path, name, NULL), *got = get_numbers(out_path, name, &what);
    REQUIRE(w && got);
    CHECK_INT(what.dtype, type);
    double *want = expect(w, scale);
    int bad = 0;
    for (int i = 0; i < OUT * IN; i++) {
        double room = step(type, want[i]) / 2 + 1e-6; /* and the sum in f32 */
        if (fabs((double)got[i] - want[i]) > room && bad++ < 3)
            CHECK_FAIL_("%s %s[%d] is %.9g, want %.9g", dtype_name(type), name, i, (double)got[i], want[i]);
    }
    free(w), free(got), free(want);
}

static const enum dtype kinds[] = { DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_F8_E4M3, DTYPE_F8_E5M2 };

static void every_kind_of_base_gets_the_nearest_sum(void)
{
    put_lora(1);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        put_file(base_path, (struct put[]){ { "blocks.0.ffn.0.weight", kinds[i], OUT, IN, 0, 2 },
                                            { "blocks.0.ffn.0.bias", kinds[i], OUT, 0, 0, 1 },
                                            { "blocks.1.ffn.0.weight", kinds[i], OUT, IN, 0, 2 },
                                            { "step", DTYPE_I64, 0, 0, 7, 0 },
                                            { 0 } });
        struct merge_report r = merge_well(1, DTYPE_OTHER);
        CHECK(r.modules == 1 && r.changed == 1 && r.copied == 3 && r.dialect == LORA_MUSUBI);
        check_merged("blocks.0.ffn.0.weight", kinds[i], 1);
        float *a = get_numbers(base_path, "blocks.1.ffn.0.weight", NULL);
        float *b = get_numbers(out_path, "blocks.1.ffn.0.weight", NULL);
        CHECK(a && b && !memcmp(a, b, OUT * IN * sizeof(float)));
        free(a), free(b);
        merge_well(-0.75, DTYPE_OTHER);
        check_merged("blocks.0.ffn.0.weight", kinds[i], -0.75);
    }
    merge_well(1, DTYPE_BF16);
    check_merged("blocks.0.ffn.0.weight", DTYPE_BF16, 1);
}

static void every_name_of_a_base_is_found(void)
{
    static const char *const names[] = { "blocks.0.ffn.0.weight",
                                         "model.diffusion_model.blocks.0.ffn.0.weight",
                                         "diffusion_model.blocks.0.ffn.0.weight",
                                         "model.model.blocks.0.ffn.0.weight",
                                         "model.blocks.0.ffn.0.weight",
                                         "net.blocks.0.ffn.0.weight",
                                         "blocks.0.ffn.net.0.proj.weight",
                                         "transformer.blocks.0.ffn.net.0.proj.weight" };
    put_lora(1);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        put_file(base_path, (struct put[]){ { names[i], DTYPE_F32, OUT, IN, 0, 2 }, { 0 } });
        merge_well(1, DTYPE_OTHER);
        check_merged(names[i], DTYPE_F32, 1);
    }
}

/* The golden change, added to nothing, is the golden change. */
static void the_golden_change_appears_in_a_zero_base(void)
{
    static const char *const goldens[] = { "lora/musubi.safetensors", "lora/comfy_ab.safetensors",
                                           "lora/musubi_other.safetensors", "lora/diffusers.safetensors" };
    static const char *const linears[] = { "self_attn.q",  "self_attn.k",  "self_attn.v",  "self_attn.o",
                                           "cross_attn.q", "cross_attn.k", "cross_attn.v", "cross_attn.o" };
    struct put rows[32] = { 0 };
    char names[32][64];
    size_t n = 0;
    for (int block = 0; block < 2; block++) {
        for (size_t i = 0; i < 8; i++, n++) {
            snprintf(names[n], 64, "blocks.%d.%s.weight", block, linears[i]);
            rows[n] = (struct put){ names[n], DTYPE_F32, 128, 128, 0, 0 };
        }
        snprintf(names[n], 64, "blocks.%d.ffn.0.weight", block);
        rows[n] = (struct put){ names[n], DTYPE_F32, 256, 128, 0, 0 }, n++;
        snprintf(names[n], 64, "blocks.%d.ffn.2.weight", block);
        rows[n] = (struct put){ names[n], DTYPE_F32, 128, 256, 0, 0 }, n++;
    }
    put_file(base_path, rows);
    for (size_t i = 0; i < ARRAY_LEN(goldens); i++) {
        strcpy(lora_path, check_data(goldens[i]));
        CHECK_INT(merge_well(1, DTYPE_OTHER).modules, 20);
        static const struct {
            const char *name;
            int n;
        } changes[] = { { "blocks.0.self_attn.q.weight", 128 * 128 },
                        { "blocks.1.ffn.2.weight", 128 * 256 } };
        for (size_t k = 0; k < 2; k++) {
            float *got = get_numbers(out_path, changes[k].name, NULL);
            float *want = get_numbers(check_data("lora/delta.safetensors"), changes[k].name, NULL);
            float bad = 0;
            REQUIRE(got && want);
            for (int e = 0; e < changes[k].n; e++)
                bad = fmaxf(bad, fabsf(got[e] - want[e]));
            CHECK(bad < 1e-6f);
            free(got), free(want);
        }
    }
    strcpy(lora_path, tree_path(&tree, "lora.safetensors"));
}

static float *dequantised(const char *path, const char *scale_name, uint64_t *n_scales)
{
    struct st_tensor what = { 0 };
    float *w = get_numbers(path, "blocks.0.ffn.0.weight", NULL), *s = get_numbers(path, scale_name, &what);
    *n_scales = what.elements;
    for (uint64_t i = 0; w && s && i < OUT * IN; i++)
        w[i] *= s[i / (OUT * IN / what.elements)];
    free(s);
    return w;
}

/* Each grain of scales; a small change keeps them, a large one makes them grow instead of saturating. */
static void check_scaled(uint64_t rows, uint64_t cols, const char *scale_name, enum dtype scale_type,
                         float spread, bool grows)
{
    put_lora(spread);
    put_file(base_path, (struct put[]){ { "blocks.0.ffn.0.weight", DTYPE_F8_E4M3, OUT, IN, 0, 440 },
                                        { scale_name, scale_type, rows, cols, 0.015625f, 0 },
                                        { "scaled_fp8", DTYPE_F8_E4M3, 2, 0, 1, 0 },
                                        { "blocks.0.ffn.0.scale_input", DTYPE_F32, 0, 0, 1, 0 },
                                        { 0 } });
    struct merge_report r = merge_well(1, DTYPE_OTHER);
    CHECK(r.changed == 1 && r.copied == 3 && r.rescaled == (grows ? 1u : 0u));
    uint64_t n = 0;
    float *w = dequantised(base_path, scale_name, &n), *got = dequantised(out_path, scale_name, &n);
    float *scales = get_numbers(out_path, scale_name, NULL);
    REQUIRE(w && got && scales);
    double *want = expect(w, 1);
    int bad = 0;
    for (uint64_t i = 0; i < OUT * IN; i++) {
        double s = (double)scales[i * n / (OUT * IN)];
        /* A scale in bf16 may be rounded down by one part in 512; what is then too large is clamped. */
        double room = s * step(DTYPE_F8_E4M3, want[i] / s) / 2 + fabs(want[i]) / 400 + 1e-6;
        if (fabs((double)got[i] - want[i]) > room && bad++ < 3)
            CHECK_FAIL_("%s[%d] is %g, want %g", scale_name, (int)i, (double)got[i], want[i]);
        CHECK(grows || s == 0.015625);
    }
    free(w), free(got), free(want), free(scales);

    merge_well(1, DTYPE_F32); /* wider: scales are applied and gone */
    w = dequantised(base_path, scale_name, &n), got = get_numbers(out_path, "blocks.0.ffn.0.weight", NULL);
    REQUIRE(w && got);
    want = expect(w, 1);
    for (int i = 0; i < OUT * IN; i++)
        CHECK(fabs((double)got[i] - want[i]) < 1e-6 + fabs(want[i]) * 1e-6);
    free(w), free(got), free(want);
    CHECK(!get_numbers(out_path, scale_name, NULL) && !get_numbers(out_path, "scaled_fp8", NULL));
}

static void scaled_fp8_is_merged_at_every_grain(void)
{
    for (int grows = 0; grows < 2; grows++) {
        float spread = grows ? 4 : 0.01f;
        check_scaled(0, 0, "blocks.0.ffn.0.scale_weight", DTYPE_F32, spread, grows);
        check_scaled(1, 0, "blocks.0.ffn.0.weight_scale", DTYPE_F32, spread, grows);
        check_scaled(OUT, 1, "blocks.0.ffn.0.scale_weight", DTYPE_F32, spread, grows);
        check_scaled(OUT, IN / 64, "blocks.0.ffn.0.scale_weight", DTYPE_BF16, spread, grows);
    }
    struct merge_options o = { .scale = 1, .dtype = DTYPE_F8_E5M2, .replace = true };
    struct merge_report report;
    struct cairn_error err = { 0 };
    CHECK(merge(&o, &report, &err) == -1);
    CHECK_HAS(err.msg, "fp8 weights with scales");
}

static void whole_differences_are_added(void)
{
    put_file(base_path, (struct put[]){ { "blocks.0.norm3.weight", DTYPE_F32, 8, 0, 0, 1 },
                                        { "blocks.0.norm3.bias", DTYPE_F32, 8, 0, 0, 1 },
                                        { 0 } });
    put_file(lora_path,
             (struct put[]){ { "diffusion_model.blocks.0.norm3.diff", DTYPE_F32, 8, 0, 0.5f, 0 },
                             { "diffusion_model.blocks.0.norm3.diff_b", DTYPE_F32, 8, 0, 0.25f, 0 },
                             { 0 } });
    CHECK_INT(merge_well(2, DTYPE_OTHER).changed, 2);
    float *w = get_numbers(base_path, "blocks.0.norm3.weight", NULL),
          *b = get_numbers(base_path, "blocks.0.norm3.bias", NULL);
    float *w2 = get_numbers(out_path, "blocks.0.norm3.weight", NULL),
          *b2 = get_numbers(out_path, "blocks.0.norm3.bias", NULL);
    REQUIRE(w && b && w2 && b2);
    for (int i = 0; i < 8; i++)
        CHECK(w2[i] == w[i] + 1 && b2[i] == b[i] + 0.5f);
    free(w), free(b), free(w2), free(b2);
}

static void what_does_not_fit_is_refused_by_name(void)
{
    put_lora(1);
    put_file(base_path, (struct put[]){ { "blocks.1.ffn.0.weight", DTYPE_F32, OUT, IN, 0, 1 }, { 0 } });
    merge_badly("1 of 1 modules");
    merge_badly("lacks: blocks.0.ffn.0");
    put_file(base_path, (struct put[]){ { "blocks.0.ffn.0.weight", DTYPE_F32, IN, OUT, 0, 1 }, { 0 } });
    merge_badly("blocks.0.ffn.0 is 6 x 128 in the LoRA, 128 x 6 in the base");
    put_file(base_path, (struct put[]){ { "blocks.0.ffn.0.weight", DTYPE_I64, OUT, IN, 1, 0 }, { 0 } });
    merge_badly("is I64");
    put_file(base_path, (struct put[]){ { "blocks.0.ffn.0.weight", DTYPE_F32, OUT, IN, 0, 1 },
                                        { "model.blocks.0.ffn.0.weight", DTYPE_F32, OUT, IN, 0, 1 },
                                        { 0 } });
    merge_badly("are both blocks.0.ffn.0");
    put_file(base_path, (struct put[]){ { "blocks.0.ffn.0.weight", DTYPE_F16, OUT, IN, 65504, 0 }, { 0 } });
    put_lora(20);
    merge_badly("overflows f16");
    put_file(base_path, (struct put[]){ { "blocks.0.ffn.0.weight", DTYPE_F8_E4M3, OUT, IN, 1, 0 },
                                        { "blocks.0.ffn.0.scale_weight", DTYPE_F32, 5, 0, 1, 0 },
                                        { 0 } });
    merge_badly("does not fit");
}

static void any_outside_call_may_fail(void)
{
    put_lora(1);
    put_file(base_path, (struct put[]){ { "blocks.0.ffn.0.weight", DTYPE_F8_E4M3, OUT, IN, 0, 440 },
                                        { "blocks.0.ffn.0.scale_weight", DTYPE_F32, 0, 0, 0.015625f, 0 },
                                        { "blocks.0.ffn.0.bias", DTYPE_BF16, OUT, 0, 0, 1 },
                                        { 0 } });
    tree_put(&tree, "out.safetensors", "old!");
    for (int nth = 1; nth < 1000; nth++) {
        struct merge_options o = { .scale = 1, .replace = true };
        struct merge_report report;
        struct cairn_error err = { 0 };
        char old[5] = "";
        fault_arm(nth, EIO);
        int r = merge(&o, &report, &err);
        if (!fault_disarm()) {
            CHECK(r == 0 && nth > 20);
            break;
        }
        CHECK_INT(count_files(tree.dir), 3);
        FILE *f = fopen(out_path, "r");
        bool whole = f && fread(old, 1, 4, f) == 4 && !strcmp(old, "old!");
        /* The last call flushes the directory, when the new name is there already. */
        if (r && !whole && !strstr(err.msg, "the file is written"))
            CHECK_FAIL_("call %d: the old file is gone: %s", nth, err.msg);
        fclose(f);
        tree_put(&tree, "out.safetensors", "old!");
    }
}

static void a_stop_leaves_the_old_file(void)
{
    sig_atomic_t stop = 1;
    struct merge_options o = { .scale = 1, .replace = true, .stop = &stop };
    struct merge_report report;
    struct cairn_error err = { 0 };
    tree_put(&tree, "out.safetensors", "old!");
    CHECK(merge(&o, &report, &err) == -1);
    CHECK_STR(err.msg, "stopped");
    CHECK_INT(count_files(tree.dir), 3);
}

static void the_product_is_right_and_the_same_on_every_cpu(void)
{
    static const size_t sizes[][3] = { { 1, 1, 1 },  { 4, 16, 8 },    { 5, 17, 3 },
                                       { 3, 33, 1 }, { 9, 100, 300 }, { 2, 15, 257 } };
    for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
        size_t rows = sizes[s][0], cols = sizes[s][1], rank = sizes[s][2];
        float *up = calloc(rows * rank, 4), *down = calloc(rank * cols, 4);
        float *plain = calloc(rows * cols, 4), *fast = calloc(rows * cols, 4);
        uint32_t state = 1;
        for (size_t i = 0; i < rows * rank; i++)
            up[i] = put_random(&state);
        for (size_t i = 0; i < rank * cols; i++)
            down[i] = put_random(&state);
        for (size_t i = 0; i < rows * cols; i++)
            plain[i] = put_random(&state);
        float *before = calloc(rows * cols, 4);
        memcpy(before, plain, rows * cols * 4);
        float *packed = calloc(lowrank_packed(cols, rank), 4);
        lowrank_pack(packed, down, cols, rank);
        const struct lowrank product = { rows, cols, rank, up, packed, 0.3f };
        lowrank_add_with(0, plain, &product);
        for (unsigned cpu = 1, have = dtype_cpu(); cpu <= have; cpu++) {
            memcpy(fast, before, rows * cols * 4);
            lowrank_add_with(cpu & have, fast, &product);
            CHECK(!memcmp(plain, fast, rows * cols * 4));
        }
        for (size_t i = 0; i < rows * cols; i++) {
            double sum = 0;
            for (size_t k = 0; k < rank; k++)
                sum += (double)up[i / cols * rank + k] * (double)down[k * cols + i % cols];
            CHECK(fabs((double)plain[i] - (double)before[i] - (double)0.3f * sum) <
                  1e-6 * (double)(rank + 1));
        }
        free(up), free(down), free(plain), free(fast), free(before), free(packed);
    }
}

int main(void)
{
    tree_make(&tree);
    strcpy(base_path, tree_path(&tree, "base.safetensors"));
    strcpy(lora_path, tree_path(&tree, "lora.safetensors"));
    strcpy(out_path, tree_path(&tree, "out.safetensors"));
    RUN(the_product_is_right_and_the_same_on_every_cpu);
    RUN(every_kind_of_base_gets_the_nearest_sum);
    RUN(every_name_of_a_base_is_found);
    RUN(the_golden_change_appears_in_a_zero_base);
    RUN(scaled_fp8_is_merged_at_every_grain);
    RUN(whole_differences_are_added);
    RUN(what_does_not_fit_is_refused_by_name);
    RUN(any_outside_call_may_fail);
    RUN(a_stop_leaves_the_old_file);
    tree_remove(&tree);
    return check_done();
}
