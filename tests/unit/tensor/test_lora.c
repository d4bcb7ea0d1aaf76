/* SPDX-License-Identifier: Apache-2.0
 * LoRA files: every dialect gives the same change of the weights, before and after it is rewritten. */
#include "tensor/lora.h"

#include "os/fault.h"
#include "check.h"
#include "lora_files.h"
#include "tree.h"
#include <errno.h>
#include <math.h>

static const char *const goldens[] = { "musubi", "comfy_ab", "musubi_other", "diffusers" };

static const char *golden(const char *name)
{
    char path[64];
    snprintf(path, sizeof(path), "lora/%s.safetensors", name);
    return check_data(path);
}

static const struct lora_module *find(const struct lora_file *l, const char *name)
{
    for (size_t i = 0; i < l->n_modules; i++)
        if (!strcmp(l->modules[i].name, name))
            return &l->modules[i];
    return NULL;
}

static float *numbers(const struct lora_file *l, const struct st_tensor *t)
{
    struct cairn_error err;
    float *v = calloc((size_t)t->elements, sizeof(float));
    if (source_read_as(&l->source, t, 0, t->elements, DTYPE_F32, v, &err))
        exit(99);
    return v;
}

/* The worst difference of scale * up * down from the wanted change, as a part of its largest entry. */
static double worst(const struct lora_file *l, const struct lora_module *m, const float *want)
{
    float *up = numbers(l, m->part[LORA_UP]), *down = numbers(l, m->part[LORA_DOWN]);
    double bad = 0, most = 0;
    for (uint64_t i = 0; i < m->out; i++) {
        for (uint64_t j = 0; j < m->in; j++) {
            double sum = 0;
            for (uint64_t k = 0; k < m->rank; k++)
                sum += (double)up[i * m->rank + k] * (double)down[k * m->in + j];
            bad = fmax(bad, fabs(sum * m->scale - (double)want[i * m->in + j]));
            most = fmax(most, fabs((double)want[i * m->in + j]));
        }
    }
    free(up), free(down);
    return bad / most;
}

static void check_delta(const char *path, double tolerance)
{
    static const char *const modules[] = { "blocks.0.self_attn.q", "blocks.1.ffn.2" };
    CLEANUP(lora_close) struct lora_file l = { 0 };
    struct cairn_error err = { 0 };
    if (lora_open(&l, path, &err))
        CHECK_FAIL_("%s", err.msg);
    CHECK_INT(l.n_modules, 20);
    for (size_t i = 0; i < 2; i++) {
        char name[64];
        snprintf(name, sizeof(name), "%s.weight", modules[i]);
        float *want = get_numbers(golden("delta"), name, NULL);
        const struct lora_module *m = find(&l, modules[i]);
        REQUIRE(m && want);
        double bad = worst(&l, m, want);
        if (bad > tolerance)
            CHECK_FAIL_("%s: %s is off by %g", path, name, bad);
        free(want);
    }
}

static void every_dialect_gives_the_change(void)
{
    static const enum lora_dialect dialects[] = { LORA_MUSUBI, LORA_COMFY, LORA_COMFY, LORA_DIFFUSERS };
    for (size_t i = 0; i < ARRAY_LEN(goldens); i++) {
        CLEANUP(lora_close) struct lora_file l = { 0 };
        struct cairn_error err = { 0 };
        REQUIRE(!lora_open(&l, golden(goldens[i]), &err));
        CHECK_INT(l.dialect, dialects[i]);
        CHECK_STR(l.modules[0].name, "blocks.0.self_attn.q");
        CHECK(l.modules[0].rank == 4 && l.modules[0].scale == (i ? 1 : 0.5));
        check_delta(golden(goldens[i]), 1e-6);
    }
}

static int convert(const char *in, const char *out, enum lora_dialect to, enum dtype dtype)
{
    struct lora_report report;
    struct cairn_error err = { 0 };
    int r = lora_convert(in, out, &(struct lora_rewrite){ .to = to, .dtype = dtype, .replace = true },
                         &report, &err);
    if (r)
        CHECK_FAIL_("%s", err.msg);
    return r;
}

static void every_way_there_and_back_keeps_the_change(void)
{
    struct tree t;
    tree_make(&t);
    for (size_t i = 0; i < ARRAY_LEN(goldens); i++) {
        for (int a = LORA_MUSUBI; a < LORA_DIALECT_COUNT; a++) {
            for (int b = LORA_MUSUBI; b < LORA_DIALECT_COUNT; b++) {
                char there[128], back[128];
                strcpy(there, tree_path(&t, "there.safetensors"));
                strcpy(back, tree_path(&t, "back.safetensors"));
                REQUIRE(!convert(golden(goldens[i]), there, (enum lora_dialect)a, DTYPE_OTHER));
                check_delta(there, 1e-6);
                REQUIRE(!convert(there, back, (enum lora_dialect)b, DTYPE_OTHER));
                check_delta(back, 1e-6);
            }
        }
    }
    tree_remove(&t);
}

/* Same names in the same order, same numbers within a relative tolerance. */
static void check_same(const char *path, const char *want, float tolerance)
{
    CLEANUP(source_close) struct tensor_source a = { 0 }, b = { 0 };
    struct cairn_error err;
    REQUIRE(!source_open(&a, path, &err) && !source_open(&b, want, &err));
    CHECK_INT(a.n_tensors, b.n_tensors);
    for (size_t i = 0; i < b.n_tensors; i++) {
        CHECK_STR(a.tensors[i].name, b.tensors[i].name);
        float *x = get_numbers(path, b.tensors[i].name, NULL),
              *y = get_numbers(want, b.tensors[i].name, NULL);
        REQUIRE(x && y);
        for (uint64_t k = 0; k < b.tensors[i].elements; k++)
            if (fabsf(x[k] - y[k]) > tolerance * fabsf(y[k]))
                CHECK_FAIL_("%s[%d] is %.9g, want %.9g", b.tensors[i].name, (int)k, (double)x[k],
                            (double)y[k]);
        free(x), free(y);
    }
}

static void the_fold_is_that_of_the_other_programs(void)
{
    struct tree t;
    tree_make(&t);
    char out[128];
    strcpy(out, tree_path(&t, "out.safetensors"));
    REQUIRE(!convert(golden("musubi"), out, LORA_COMFY, DTYPE_OTHER));
    check_same(out, golden("musubi_other"), 1.2e-7f);
    REQUIRE(!convert(golden("musubi"), out, LORA_DIFFUSERS, DTYPE_OTHER));
    check_same(out, golden("diffusers"), 0);
    REQUIRE(!convert(golden("musubi"), out, LORA_MUSUBI, DTYPE_OTHER));
    check_same(out, golden("musubi"), 0);
    tree_remove(&t);
}

/* alpha 1, rank 32: diffusers moves powers of two to up while down's share is less than half of up's. */
static void diffusers_shares_the_scale_by_powers_of_two(void)
{
    struct tree t;
    tree_make(&t);
    char in[128], out[128];
    strcpy(in, tree_path(&t, "in.safetensors"));
    strcpy(out, tree_path(&t, "out.safetensors"));
    put_file(in, (struct put[]){ { "lora_unet_blocks_0_ffn_0.lora_down.weight", DTYPE_F32, 32, 3, 1, 0 },
                                 { "lora_unet_blocks_0_ffn_0.lora_up.weight", DTYPE_F32, 5, 32, 1, 0 },
                                 { "lora_unet_blocks_0_ffn_0.alpha", DTYPE_F32, 0, 0, 1, 0 },
                                 { 0 } });
    REQUIRE(!convert(in, out, LORA_DIFFUSERS, DTYPE_OTHER));
    float *down = get_numbers(out, "transformer.blocks.0.ffn.net.0.proj.lora_A.weight", NULL);
    float *up = get_numbers(out, "transformer.blocks.0.ffn.net.0.proj.lora_B.weight", NULL);
    REQUIRE(down && up);
    CHECK(down[0] == 0.125f && up[0] == 0.25f); /* 1/32 -> 1/16, 1/2 -> 1/8, 1/4; 1/4 < 1/4 is false */
    free(down), free(up);
    tree_remove(&t);
}

static void alpha_and_dtype_are_kept(void)
{
    struct tree t;
    tree_make(&t);
    char in[128], out[128];
    struct st_tensor what;
    strcpy(in, tree_path(&t, "in.safetensors"));
    strcpy(out, tree_path(&t, "out.safetensors"));
    /* One module has no alpha, the other's is a whole number; not all modules of the block are there. */
    put_file(in, (struct put[]){ { "diffusion_model.blocks.4.ffn.2.lora_A.weight", DTYPE_BF16, 3, 5, 0, 1 },
                                 { "diffusion_model.blocks.4.ffn.2.lora_B.weight", DTYPE_BF16, 7, 3, 0, 1 },
                                 { "diffusion_model.blocks.9.ffn.0.lora_B.weight", DTYPE_F16, 2, 3, 0, 1 },
                                 { "diffusion_model.blocks.9.ffn.0.lora_A.weight", DTYPE_F16, 3, 5, 0, 1 },
                                 { "diffusion_model.blocks.9.ffn.0.alpha", DTYPE_I64, 0, 0, 6, 0 },
                                 { 0 } });
    REQUIRE(!convert(in, out, LORA_MUSUBI, DTYPE_OTHER));
    float *alpha = get_numbers(out, "lora_unet_blocks_4_ffn_2.alpha", &what);
    REQUIRE(alpha);
    CHECK(alpha[0] == 3 && what.rank == 0 && what.dtype == DTYPE_F32);
    free(alpha);
    free(get_numbers(out, "lora_unet_blocks_4_ffn_2.lora_up.weight", &what));
    CHECK(what.dtype == DTYPE_BF16);

    CLEANUP(lora_close) struct lora_file l = { 0 };
    struct cairn_error err = { 0 };
    REQUIRE(!lora_open(&l, out, &err));
    const struct lora_module *second = find(&l, "blocks.9.ffn.0");
    CHECK(l.n_modules == 2 && second && second->scale == 2 && second->part[LORA_ALPHA]->dtype == DTYPE_I64);
    CHECK_STR(source_meta_find(&l.source, "format"), "pt");
    CHECK(!source_meta_find(&l.source, "sshs_model_hash"));
    for (size_t i = 0; i < l.source.n_tensors; i++) /* torch maps them as they lie */
        CHECK((l.source.tensors[i].at - l.source.tensors[0].at) % dtype_size(l.source.tensors[i].dtype) == 0);

    REQUIRE(!convert(in, out, LORA_COMFY, DTYPE_F32));
    free(get_numbers(out, "diffusion_model.blocks.9.ffn.0.lora_A.weight", &what));
    CHECK(what.dtype == DTYPE_F32);
    CHECK(!get_numbers(out, "diffusion_model.blocks.9.ffn.0.alpha", NULL)); /* folded */
    tree_remove(&t);
}

/* ComfyUI reads an alpha too: 16 bits are not rounded to fold it. */
static void alpha_is_folded_only_where_nothing_is_lost(void)
{
    static const struct {
        enum dtype from, to;
        float alpha;
        bool kept;
    } rows[] = {
        { DTYPE_BF16, DTYPE_OTHER, 1, true },  { DTYPE_BF16, DTYPE_OTHER, 2, false },
        { DTYPE_BF16, DTYPE_F32, 1, false },   { DTYPE_F32, DTYPE_F16, 3, true },
        { DTYPE_F32, DTYPE_OTHER, 3, false },  { DTYPE_F16, DTYPE_OTHER, 8, false },
        { DTYPE_F16, DTYPE_OTHER, -2, false }, { DTYPE_F16, DTYPE_OTHER, 32, false },
    };
    struct tree t;
    tree_make(&t);
    char in[128], out[128];
    strcpy(in, tree_path(&t, "in.safetensors"));
    strcpy(out, tree_path(&t, "out.safetensors"));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct put file[] = { { "lora_unet_blocks_0_ffn_0.lora_down.weight", rows[i].from, 8, 3, 0, 1 },
                              { "lora_unet_blocks_0_ffn_0.lora_up.weight", rows[i].from, 5, 8, 0, 1 },
                              { "lora_unet_blocks_0_ffn_0.alpha", DTYPE_F32, 0, 0, rows[i].alpha, 0 },
                              { 0 } };
        put_file(in, file);
        REQUIRE(!convert(in, out, LORA_COMFY, rows[i].to));
        float *alpha = get_numbers(out, "diffusion_model.blocks.0.ffn.0.alpha", NULL);
        CHECK_INT(alpha != NULL, rows[i].kept);
        CHECK(!alpha || alpha[0] == rows[i].alpha);
        free(alpha);
    }
    tree_remove(&t);
}

static void rank_and_alpha_are_read(void)
{
    static const struct {
        struct put rows[7];
        uint64_t rank; /* 0: refused */
        double alpha;
    } files[] = {
        { { { "lora_unet_blocks_0_ffn_0.lora_down.weight", DTYPE_F32, 4, 3, 0, 1 },
            { "lora_unet_blocks_0_ffn_0.lora_up.weight", DTYPE_F32, 5, 4, 0, 1 },
            { "lora_unet_blocks_0_ffn_0.alpha", DTYPE_F32, 0, 0, 3, 0 } },
          4,
          3 },
        { { { "diffusion_model.transformer_1.blocks.0.ffn.0.lora_A.weight", DTYPE_F32, 2, 3, 0, 1 },
            { "diffusion_model.transformer_1.blocks.0.ffn.0.lora_B.weight", DTYPE_F32, 5, 2, 0, 1 },
            { "diffusion_model.transformer_2.blocks.0.ffn.0.lora_A.weight", DTYPE_F32, 2, 3, 0, 1 },
            { "diffusion_model.transformer_2.blocks.0.ffn.0.lora_B.weight", DTYPE_F32, 5, 2, 0, 1 } },
          2,
          2 },
        { { { "diffusion_model.blocks.0.ffn.0.lora_A.weight", DTYPE_F32, 2, 3, 0, 1 },
            { "diffusion_model.blocks.0.ffn.0.lora_B.weight", DTYPE_F32, 5, 2, 0, 1 },
            { "diffusion_model.blocks.1.ffn.0.lora_A.weight", DTYPE_F32, 2, 3, 0, 1 },
            { "diffusion_model.blocks.1.ffn.0.lora_B.weight", DTYPE_F32, 5, 2, 0, 1 },
            { "diffusion_model.blocks.1.ffn.0.alpha", DTYPE_F32, 0, 0, 1, 0 } },
          2,
          0 },
        { { { "diffusion_model.blocks.0.ffn.0.lora_A.weight", DTYPE_F32, 2, 3, 0, 1 },
            { "diffusion_model.blocks.0.ffn.0.lora_B.weight", DTYPE_F32, 5, 2, 0, 1 },
            { "diffusion_model.blocks.1.ffn.0.lora_A.weight", DTYPE_F32, 3, 3, 0, 1 },
            { "diffusion_model.blocks.1.ffn.0.lora_B.weight", DTYPE_F32, 5, 3, 0, 1 } },
          0,
          0 },
        { { { "diffusion_model.blocks.0.norm3.diff", DTYPE_F32, 4, 0, 0, 1 } }, 0, 0 },
        { { { "blocks.0.norm3.weight", DTYPE_F32, 4, 0, 0, 1 } }, 0, 0 },
    };
    struct tree t;
    tree_make(&t);
    char in[128];
    strcpy(in, tree_path(&t, "in.safetensors"));
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        struct cairn_error err = { 0 };
        uint64_t rank = 0;
        double alpha = -1;
        put_file(in, files[i].rows);
        int r = lora_read_strength(in, &rank, &alpha, &err);
        CHECK_INT(r, files[i].rank ? 0 : -1);
        if (r)
            CHECK_HAS(err.msg, in);
        else
            CHECK(rank == files[i].rank && alpha == files[i].alpha);
    }
    tree_remove(&t);
}

#define DOWN(m, r, c)                             \
    {                                             \
        m ".lora_A.weight", DTYPE_F32, r, c, 0, 1 \
    }
#define UP(m, r, c)                               \
    {                                             \
        m ".lora_B.weight", DTYPE_F32, r, c, 0, 1 \
    }
#define Q "diffusion_model.blocks.0.self_attn.q"

static const struct {
    const char *says;
    struct put rows[8];
} bad[] = {
    { Q ".lora_A.weight has no ", { DOWN(Q, 2, 3) } },
    { Q ".alpha has no ", { { Q ".alpha", DTYPE_F32, 0, 0, 1, 0 } } },
    { "has rank 2, " Q ".lora_B.weight has 4", { DOWN(Q, 2, 3), UP(Q, 3, 4) } },
    { "not two matrices", { { Q ".lora_A.weight", DTYPE_F32, 2, 0, 0, 1 }, UP(Q, 3, 2) } },
    { "mixes dialects: transformer.blocks.0.attn1.to_q.lora_B.weight is diffusers",
      { DOWN(Q, 2, 3), UP("transformer.blocks.0.attn1.to_q", 3, 2) } },
    { "two models",
      { DOWN("diffusion_model.transformer_1.blocks.0.ffn.0", 2, 3),
        UP("diffusion_model.transformer_2.blocks.0.ffn.0", 3, 2) } },
    { "same part", { DOWN(Q, 2, 3), UP(Q, 3, 2), { Q ".lora_down.weight", DTYPE_F32, 2, 3, 0, 1 } } },
    { "is I64", { DOWN(Q, 2, 3), { Q ".lora_B.weight", DTYPE_I64, 3, 2, 1, 0 } } },
    { "has 2 elements", { DOWN(Q, 2, 3), UP(Q, 3, 2), { Q ".alpha", DTYPE_F32, 2, 0, 1, 0 } } },
    { "not a finite number", { DOWN(Q, 2, 3), UP(Q, 3, 2), { Q ".alpha", DTYPE_F32, 0, 0, (float)NAN, 0 } } },
    { "\"text_encoder.weight\" is not",
      { DOWN(Q, 2, 3), UP(Q, 3, 2), { "text_encoder.weight", DTYPE_F32, 2, 2, 0, 1 } } },
    { "DoRA", { DOWN(Q, 2, 3), UP(Q, 3, 2), { Q ".dora_scale", DTYPE_F32, 2, 2, 0, 1 } } },
    { "diffusion_model.else.0.lora_A.weight is ",
      { DOWN("diffusion_model.else.0", 2, 3), UP("diffusion_model.else.0", 3, 2) } },
    { "no tensors", { { 0 } } },
};

static void a_bad_file_is_refused_and_nothing_written(void)
{
    struct tree t;
    tree_make(&t);
    char in[128], out[128];
    strcpy(in, tree_path(&t, "in.safetensors"));
    strcpy(out, tree_path(&t, "out.safetensors"));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct lora_report report;
        struct cairn_error err = { 0 };
        put_file(in, bad[i].rows);
        CHECK(lora_convert(in, out,
                           &(struct lora_rewrite){ .to = LORA_MUSUBI, .dtype = DTYPE_OTHER, .replace = true },
                           &report, &err) == -1);
        CHECK_HAS(err.msg, bad[i].says);
        CHECK_HAS(err.msg, in);
        CHECK_INT(count_files(t.dir), 1);
    }
    tree_remove(&t);
}

static void a_number_too_large_for_the_dtype_is_refused(void)
{
    struct tree t;
    tree_make(&t);
    char in[128], out[128];
    strcpy(in, tree_path(&t, "in.safetensors"));
    strcpy(out, tree_path(&t, "out.safetensors"));
    put_file(in, (struct put[]){ { Q ".lora_A.weight", DTYPE_BF16, 2, 3, 70000, 0 }, UP(Q, 3, 2), { 0 } });
    struct lora_report report;
    struct cairn_error err = { 0 };
    CHECK(lora_convert(in, out,
                       &(struct lora_rewrite){ .to = LORA_MUSUBI, .dtype = DTYPE_F16, .replace = true },
                       &report, &err) == -1);
    CHECK_HAS(err.msg, Q ".lora_A.weight");
    CHECK_HAS(err.msg, "f16");
    CHECK_INT(count_files(t.dir), 1);
    CHECK_INT(convert(in, out, LORA_MUSUBI, DTYPE_F32), 0);
    tree_remove(&t);
}

static void a_whole_difference_goes_where_it_has_a_name(void)
{
    struct tree t;
    tree_make(&t);
    char in[128], out[128];
    strcpy(in, tree_path(&t, "in.safetensors"));
    strcpy(out, tree_path(&t, "out.safetensors"));
    put_file(in, (struct put[]){ { "diffusion_model.blocks.0.norm3.diff", DTYPE_F32, 4, 0, 0, 1 },
                                 { "diffusion_model.blocks.0.norm3.diff_b", DTYPE_F32, 4, 0, 0, 1 },
                                 { 0 } });
    REQUIRE(!convert(in, out, LORA_MUSUBI, DTYPE_OTHER));
    float *a = get_numbers(in, "diffusion_model.blocks.0.norm3.diff_b", NULL);
    float *b = get_numbers(out, "lora_unet_blocks_0_norm3.diff_b", NULL);
    REQUIRE(a && b);
    CHECK(!memcmp(a, b, 4 * sizeof(float)));
    free(a), free(b);
    struct lora_report report;
    struct cairn_error err = { 0 };
    CHECK(lora_convert(in, out,
                       &(struct lora_rewrite){ .to = LORA_DIFFUSERS, .dtype = DTYPE_OTHER, .replace = true },
                       &report, &err) == -1);
    CHECK_HAS(err.msg, "diffusion_model.blocks.0.norm3.diff");
    tree_remove(&t);
}

static void any_outside_call_may_fail(void)
{
    struct tree t;
    tree_make(&t);
    char out[128], old[5] = "";
    strcpy(out, tree_path(&t, "out.safetensors"));
    tree_put(&t, "out.safetensors", "old!");
    for (int nth = 1; nth < 10000; nth++) {
        struct lora_report report;
        struct cairn_error err = { 0 };
        fault_arm(nth, EIO);
        int r = lora_convert(golden("musubi"), out,
                             &(struct lora_rewrite){ .to = LORA_COMFY, .dtype = DTYPE_BF16, .replace = true },
                             &report, &err);
        if (!fault_disarm()) {
            CHECK(r == 0 && nth > 100);
            break;
        }
        CHECK_INT(count_files(t.dir), 1);
        if (r == 0)
            continue; /* a disk without reservation */
        CHECK(err.msg[0]);
        FILE *f = fopen(out, "r");
        bool whole = f && fread(old, 1, 4, f) == 4 && !strcmp(old, "old!");
        /* The very last call flushes the directory, when the new name is there already. */
        if (!whole && !strstr(err.msg, "the file is written"))
            CHECK_FAIL_("call %d: the old file is gone: %s", nth, err.msg);
        fclose(f);
        tree_put(&t, "out.safetensors", "old!");
    }
    tree_remove(&t);
}

static void a_stop_leaves_nothing(void)
{
    sig_atomic_t stop = 1;
    struct lora_report report;
    struct cairn_error err = { 0 };
    struct tree t;
    tree_make(&t);
    CHECK(lora_convert(golden("musubi"), tree_path(&t, "out.safetensors"),
                       &(struct lora_rewrite){ .to = LORA_COMFY, .stop = &stop }, &report, &err) == -1);
    CHECK_STR(err.msg, "stopped");
    CHECK_INT(count_files(t.dir), 0);
    tree_remove(&t);
}

int main(void)
{
    RUN(every_dialect_gives_the_change);
    RUN(every_way_there_and_back_keeps_the_change);
    RUN(the_fold_is_that_of_the_other_programs);
    RUN(diffusers_shares_the_scale_by_powers_of_two);
    RUN(alpha_and_dtype_are_kept);
    RUN(rank_and_alpha_are_read);
    RUN(alpha_is_folded_only_where_nothing_is_lost);
    RUN(a_bad_file_is_refused_and_nothing_written);
    RUN(a_number_too_large_for_the_dtype_is_refused);
    RUN(a_whole_difference_goes_where_it_has_a_name);
    RUN(any_outside_call_may_fail);
    RUN(a_stop_leaves_nothing);
    return check_done();
}
