/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/fp8_scaled.h"

#include "check.h"
#include "tensor/source.h"
#include <math.h>

static void grains(void)
{
    enum fp8_grain g = FP8_PLAIN;
    CHECK(fp8_grain_parse("tensor", &g) && g == FP8_TENSOR);
    CHECK(fp8_grain_parse("channel", &g) && g == FP8_CHANNEL);
    CHECK(fp8_grain_parse("block64", &g) && g == FP8_BLOCK64);
    CHECK(!fp8_grain_parse("plain", &g) && !fp8_grain_parse("", &g) && !fp8_grain_parse("block", &g));
}

static struct st_tensor matrix(const char *name, const uint64_t *shape, int rank)
{
    struct st_tensor t = { .name = name, .dtype = DTYPE_BF16, .shape = shape, .rank = rank, .elements = 1 };
    for (int i = 0; i < rank; i++)
        t.elements *= shape[i];
    return t;
}

static void names(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CHECK_STR(fp8_scale_name(&a, "blocks.0.q.weight"), "blocks.0.q.scale_weight");
    CHECK(!fp8_scale_name(&a, "blocks.0.q.bias") && !fp8_scale_name(&a, "weight"));
    CHECK_STR(fp8_weight_name(&a, "q.scale_weight"), "q.weight");
    CHECK_STR(fp8_weight_name(&a, "q.weight_scale"), "q.weight");
    CHECK_STR(fp8_weight_name(&a, "q.scale_input"), "q.weight");
    CHECK(!fp8_weight_name(&a, "q.weight"));
    CHECK(fp8_is_bookkeeping("scaled_fp8") && fp8_is_bookkeeping("q.comfy_quant") &&
          fp8_is_bookkeeping("q.input_scale"));
    CHECK(fp8_is_bookkeeping("model.scaled_fp8")); /* behind a prefix */
    CHECK(!fp8_is_bookkeeping("q.weight") && !fp8_is_bookkeeping("x_scaled_fp8"));
}

static void targets(void)
{
    static const uint64_t square[] = { 8, 8 }, row[] = { 1, 8 }, deep[] = { 8, 8, 3 };
    static const struct {
        const char *name;
        bool is;
    } rows[] = {
        { "blocks.0.self_attn.q.weight", true },
        { "model.diffusion_model.blocks.39.ffn.2.weight", true },
        { "encoder.block.3.layer.0.SelfAttention.o.weight", true },
        { "blocks.0.self_attn.q.bias", false },
        { "blocks.0.self_attn.norm_q.weight", false },
        { "blocks.0.modulation.weight", false },
        { "text_embedding.0.weight", false },
        { "time_projection.1.weight", false },
        { "img_emb.proj.1.weight", false },
        { "head.head.weight", false },
        { "wte.weight", false },
        { "patch_embedding.weight", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct st_tensor t = matrix(rows[i].name, square, 2);
        CHECK_INT(fp8_is_target(&t), rows[i].is);
    }
    struct st_tensor one_row = matrix("blocks.0.q.weight", row, 2),
                     conv = matrix("blocks.0.q.weight", deep, 3);
    CHECK(!fp8_is_target(&one_row) && !fp8_is_target(&conv));
}

/* Shapes that are there: what fits, and how many elements share a scale then. */
static void blocks_of_scales(void)
{
    static const uint64_t w[] = { 6, 192 }, vector[] = { 6 };
    static const struct {
        uint64_t shape[3];
        int rank;
        uint64_t block; /* 0: does not fit */
    } rows[] = {
        { { 0 }, 0, 1152 },    { { 1 }, 1, 1152 },     { { 1, 1 }, 2, 1152 },  { { 6 }, 1, 192 },
        { { 6, 1 }, 2, 192 },  { { 6, 3, 1 }, 3, 64 }, { { 6, 6, 1 }, 3, 32 }, { { 6, 192 }, 2, 1 },
        { { 6, 5, 1 }, 3, 0 }, { { 3, 6 }, 2, 0 },     { { 192 }, 1, 0 },      { { 6, 0 }, 2, 0 },
        { { 6, 400 }, 2, 0 },
    };
    struct st_tensor weight = matrix("q.weight", w, 2), bias = matrix("q.weight", vector, 1);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct st_tensor scale = matrix("q.scale_weight", rows[i].shape, rows[i].rank);
        struct cairn_error err = { 0 };
        uint64_t block = 0;
        CHECK_INT(fp8_block_of(&weight, &scale, &block, &err), rows[i].block ? 0 : -1);
        CHECK_INT(block, rows[i].block);
        CHECK(rows[i].block || strstr(err.msg, "does not fit q.weight [6, 192]"));
    }
    struct st_tensor scale = matrix("q.scale_weight", vector, 1);
    CHECK(fp8_block_of(&bias, &scale, &(uint64_t){ 0 }, &(struct cairn_error){ 0 }) == -1);
}

static void shapes_to_be_made(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    static const uint64_t wide[] = { 8, 192 }, odd[] = { 8, 100 }, deep[] = { 2, 64, 64 };
    struct st_tensor w = matrix("x.weight", wide, 2), o = matrix("x.weight", odd, 2),
                     d = matrix("x.weight", deep, 3), s;
    CHECK_INT(fp8_block_for(&w, FP8_TENSOR), 8 * 192);
    CHECK_INT(fp8_block_for(&w, FP8_CHANNEL), 192);
    CHECK_INT(fp8_block_for(&w, FP8_BLOCK64), 64);
    CHECK_INT(fp8_block_for(&o, FP8_BLOCK64), 100);
    CHECK_INT(fp8_block_for(&d, FP8_BLOCK64), 2 * 64 * 64);
    fp8_scale_tensor(&a, &w, 64, &s);
    CHECK(s.rank == 3 && s.shape[0] == 8 && s.shape[1] == 3 && s.shape[2] == 1 && s.dtype == DTYPE_BF16 &&
          s.bytes == 48);
    fp8_scale_tensor(&a, &w, 192, &s);
    CHECK(s.rank == 2 && s.shape[0] == 8 && s.shape[1] == 1 && s.dtype == DTYPE_BF16 && s.bytes == 16);
    fp8_scale_tensor(&a, &w, 8 * 192, &s);
    CHECK(s.rank == 1 && s.shape[0] == 1 && s.dtype == DTYPE_F32 && s.bytes == 4);
    CHECK_STR(s.name, "x.scale_weight");
    w.dtype = DTYPE_F16; /* whose smallest numbers are larger than many scales */
    fp8_scale_tensor(&a, &w, 64, &s);
    CHECK(s.dtype == DTYPE_F32 && s.bytes == 96);
}

static void largest_magnitude(void)
{
    CHECK(fp8_absmax((float[]){ 1, -3, 2 }, 3) == 3 && fp8_absmax(NULL, 0) == 0);
    CHECK(isinf(fp8_absmax((float[]){ 1, -INFINITY }, 2)) && isinf(fp8_absmax((float[]){ -NAN, 1 }, 2)));
    CHECK(fp8_scale_for(448, DTYPE_F8_E4M3) == 1 && fp8_scale_for(57344, DTYPE_F8_E5M2) == 1);
    CHECK(fp8_scale_for(0, DTYPE_F8_E4M3) == 1e-8f);
}

/* Weights, scales, codes and their product from an independent program. */
struct reference {
    struct tensor_source file;
    float w[8 * 192], scale[24], want[8 * 192];
    uint8_t codes[8 * 192];
};

static bool reference_read(struct reference *r, const char *what, const char *scale, const char *product)
{
    struct cairn_error err = { 0 };
    char codes[32];
    snprintf(codes, sizeof(codes), "%s.q", what);
    const struct st_tensor *w = source_find(&r->file, "tensor.w"), *s = source_find(&r->file, scale);
    const struct st_tensor *q = source_find(&r->file, codes), *p = source_find(&r->file, product);
    return w && s && q && p && !source_read_as(&r->file, w, 0, 8 * 192, DTYPE_F32, r->w, &err) &&
           !source_read_as(&r->file, s, 0, s->elements, DTYPE_F32, r->scale, &err) &&
           !source_read(&r->file, q, 0, 8 * 192, r->codes, &err) &&
           !source_read(&r->file, p, 0, 8 * 192, r->want, &err);
}

static void check_codes(const struct reference *r, size_t block)
{
    for (size_t at = 0; at < 8 * 192; at += block) {
        float copy[8 * 192], scale = fp8_scale_for(fp8_absmax(r->w + at, block), DTYPE_F8_E4M3);
        uint8_t codes[8 * 192];
        memcpy(copy, r->w + at, block * sizeof(float));
        CHECK(scale == r->scale[at / block]);
        fp8_quantise(codes, DTYPE_F8_E4M3, copy, block, scale, &(struct dtype_how){ 0 });
        CHECK(!memcmp(codes, r->codes + at, block));
    }
}

static void check_product(const struct reference *r, size_t block)
{
    for (size_t at = 0; at < 8 * 192; at += block) {
        float got[8 * 192];
        fp8_dequantise(got, DTYPE_F32, r->codes + at, DTYPE_F8_E4M3, block, r->scale[at / block],
                       &(struct dtype_how){ 0 });
        CHECK(!memcmp(got, r->want + at, block * sizeof(float)));
    }
}

static void agrees_with_the_reference(void)
{
    struct reference r;
    struct cairn_error err = { 0 };
    REQUIRE(source_open(&r.file, check_data("tensor/fp8-scaled-reference.safetensors"), &err) == 0);
    REQUIRE(reference_read(&r, "tensor", "tensor.scale", "tensor.deq"));
    check_codes(&r, 8 * 192);
    check_product(&r, 8 * 192);
    REQUIRE(reference_read(&r, "block64", "block64.scale_f32", "block64.deq_bf16scale"));
    check_codes(&r, 64);
    REQUIRE(reference_read(&r, "block64", "block64.scale_weight", "block64.deq_bf16scale"));
    check_product(&r, 64);
    source_close(&r.file);
}

/* To bf16 the product is rounded once: from the exact value, not from its f32. */
static void one_rounding(void)
{
    enum { CODES = 256 };
    uint8_t codes[CODES];
    uint16_t got[CODES], want[CODES];
    for (size_t i = 0; i < CODES; i++)
        codes[i] = (uint8_t)i;
    for (uint32_t k = 0; k < 2000; k++) {
        float scale = (float)(k * 2654435761u % 16777216u) * 0x1p-30f;
        double exact[CODES];
        dtype_convert(exact, DTYPE_F64, codes, DTYPE_F8_E4M3, CODES, &(struct dtype_how){ 0 });
        for (size_t i = 0; i < CODES; i++)
            exact[i] *= scale;
        dtype_convert(want, DTYPE_BF16, exact, DTYPE_F64, CODES, &(struct dtype_how){ 0 });
        fp8_dequantise(got, DTYPE_BF16, codes, DTYPE_F8_E4M3, CODES, scale, &(struct dtype_how){ 0 });
        CHECK(!memcmp(got, want, sizeof(got)));
    }
}

int main(void)
{
    RUN(grains);
    RUN(names);
    RUN(targets);
    RUN(blocks_of_scales);
    RUN(shapes_to_be_made);
    RUN(largest_magnitude);
    RUN(agrees_with_the_reference);
    RUN(one_rounding);
    return check_done();
}
