/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/lora_names.h"

#include "base/cleanup.h"
#include "check.h"

static struct lora_name parse(const char *key)
{
    struct lora_name n = { 0 };
    struct cairn_error err = { 0 };
    if (lora_name_parse(key, &n, &err))
        CHECK_FAIL_("%s: %s", key, err.msg);
    return n;
}

static const char *format(const char *module, enum lora_part part, enum lora_dialect d)
{
    static char key[512];
    struct cairn_error err = { 0 };
    return lora_name_format(module, part, d, key, sizeof(key), &err) ? "" : key;
}

/* As the three programs write them. */
static const struct {
    enum lora_part part;
    const char *module, *key[LORA_DIALECT_COUNT];
} rows[] = {
    { LORA_DOWN,
      "blocks.3.self_attn.q",
      { "", "lora_unet_blocks_3_self_attn_q.lora_down.weight",
        "diffusion_model.blocks.3.self_attn.q.lora_A.weight",
        "transformer.blocks.3.attn1.to_q.lora_A.weight" } },
    { LORA_UP,
      "blocks.39.cross_attn.o",
      { "", "lora_unet_blocks_39_cross_attn_o.lora_up.weight",
        "diffusion_model.blocks.39.cross_attn.o.lora_B.weight",
        "transformer.blocks.39.attn2.to_out.0.lora_B.weight" } },
    { LORA_DOWN,
      "blocks.0.cross_attn.k_img",
      { "", "lora_unet_blocks_0_cross_attn_k_img.lora_down.weight",
        "diffusion_model.blocks.0.cross_attn.k_img.lora_A.weight",
        "transformer.blocks.0.attn2.add_k_proj.lora_A.weight" } },
    { LORA_UP,
      "blocks.11.ffn.0",
      { "", "lora_unet_blocks_11_ffn_0.lora_up.weight", "diffusion_model.blocks.11.ffn.0.lora_B.weight",
        "transformer.blocks.11.ffn.net.0.proj.lora_B.weight" } },
    { LORA_DOWN,
      "blocks.11.ffn.2",
      { "", "lora_unet_blocks_11_ffn_2.lora_down.weight", "diffusion_model.blocks.11.ffn.2.lora_A.weight",
        "transformer.blocks.11.ffn.net.2.lora_A.weight" } },
    { LORA_DOWN,
      "time_projection.1",
      { "", "lora_unet_time_projection_1.lora_down.weight", "diffusion_model.time_projection.1.lora_A.weight",
        "transformer.condition_embedder.time_proj.lora_A.weight" } },
    { LORA_UP,
      "head.head",
      { "", "lora_unet_head_head.lora_up.weight", "diffusion_model.head.head.lora_B.weight",
        "transformer.proj_out.lora_B.weight" } },
    { LORA_DOWN,
      "patch_embedding",
      { "", "lora_unet_patch_embedding.lora_down.weight", "diffusion_model.patch_embedding.lora_A.weight",
        "transformer.patch_embedding.lora_A.weight" } },
};

static void each_dialect_reads_and_writes_its_keys(void)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (int d = LORA_MUSUBI; d < LORA_DIALECT_COUNT; d++) {
            struct lora_name n = parse(rows[i].key[d]);
            CHECK_STR(n.module, rows[i].module);
            CHECK(n.known && n.part == rows[i].part && n.dialect == (enum lora_dialect)d && n.expert == 0);
            CHECK_STR(format(rows[i].module, rows[i].part, (enum lora_dialect)d), rows[i].key[d]);
        }
    }
}

/* The rule by which others read musubi's names: every '_' a dot, then four words repaired. */
static void replace(char *text, const char *from, const char *to)
{
    char *at = strstr(text, from);
    if (at)
        memcpy(at, to, strlen(to));
}

static void musubi_names_mean_what_others_read(void)
{
    static const char *const linears[] = { "self_attn_q",  "self_attn_k",      "self_attn_v",
                                           "self_attn_o",  "cross_attn_q",     "cross_attn_k",
                                           "cross_attn_v", "cross_attn_o",     "ffn_0",
                                           "ffn_2",        "cross_attn_k_img", "cross_attn_v_img" };
    for (int block = 0; block < 40; block++) {
        for (size_t i = 0; i < ARRAY_LEN(linears); i++) {
            char key[128], want[64];
            snprintf(key, sizeof(key), "lora_unet_blocks_%d_%s.alpha", block, linears[i]);
            snprintf(want, sizeof(want), "blocks_%d_%s", block, linears[i]);
            for (char *p = want; *p; p++)
                if (*p == '_')
                    *p = '.';
            replace(want, "self.attn", "self_attn");
            replace(want, "cross.attn", "cross_attn");
            replace(want, "k.img", "k_img");
            replace(want, "v.img", "v_img");
            struct lora_name n = parse(key);
            CHECK_STR(n.module, want);
            CHECK(n.part == LORA_ALPHA);
            CHECK_STR(format(want, LORA_ALPHA, LORA_MUSUBI), key);
        }
    }
}

static void spellings_of_other_programs_are_read(void)
{
    static const struct {
        const char *key;
        enum lora_part part;
        enum lora_dialect dialect;
        enum lora_expert expert;
    } others[] = {
        { "diffusion_model.blocks.3.self_attn.q.lora_down.weight", LORA_DOWN, LORA_COMFY, 0 },
        { "diffusion_model.blocks.3.self_attn.q.lora.up.weight", LORA_UP, LORA_COMFY, 0 },
        { "diffusion_model.blocks.3.self_attn.q_lora.down.weight", LORA_DOWN, LORA_COMFY, 0 },
        { "diffusion_model.blocks.3.self_attn.q.alpha", LORA_ALPHA, LORA_COMFY, 0 },
        { "diffusion_model.blocks.3.self_attn.q.diff_b", LORA_DIFF_B, LORA_COMFY, 0 },
        { "diffusion_model.transformer_1.blocks.3.self_attn.q.lora_A.weight", LORA_DOWN, LORA_COMFY, 1 },
        { "diffusion_model.transformer_2.blocks.3.self_attn.q.lora_B.weight", LORA_UP, LORA_COMFY, 2 },
        { "transformer_2.blocks.3.attn1.to_q.lora_A.weight", LORA_DOWN, LORA_DIFFUSERS, 2 },
        { "transformer.blocks.3.attn1.to_q.lora_linear_layer.up.weight", LORA_UP, LORA_DIFFUSERS, 0 },
        { "base_model.model.blocks.3.attn1.to_q.lora_A.default.weight", LORA_DOWN, LORA_DIFFUSERS, 0 },
        { "blocks.3.self_attn.q.lora_B.default.weight", LORA_UP, LORA_COMFY, 0 },
        { "model.diffusion_model.blocks.3.self_attn.q.lora_B.weight", LORA_UP, LORA_COMFY, 0 },
        { "lora_unet__blocks_3_self_attn_q.lora_down.weight", LORA_DOWN, LORA_MUSUBI, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        struct lora_name n = parse(others[i].key);
        CHECK_STR(n.module, "blocks.3.self_attn.q");
        CHECK(n.known);
        if (n.part != others[i].part || n.dialect != others[i].dialect || n.expert != others[i].expert)
            CHECK_FAIL_("%s: part %d, dialect %d, expert %d", others[i].key, n.part, n.dialect, n.expert);
    }
    CHECK(parse("patch_embedding.lora_A.weight").dialect == LORA_ANY);
}

static void other_models_are_read_but_not_known(void)
{
    struct lora_name n = parse("diffusion_model.double_blocks.0.img_attn.qkv.lora_A.weight");
    CHECK_STR(n.module, "double_blocks.0.img_attn.qkv");
    CHECK(!n.known && n.dialect == LORA_COMFY);
    n = parse("lora_unet_double_blocks_0_img_attn_qkv.lora_up.weight");
    CHECK_STR(n.module, "double_blocks_0_img_attn_qkv");
    CHECK_INT(lora_module_compare(n.module, "double_blocks.0.img_attn.qkv"), 0);
    CHECK_STR(format("double_blocks.0.img_attn.qkv", LORA_DOWN, LORA_MUSUBI), "");
    /* A block's number has one spelling. */
    CHECK(!parse("diffusion_model.blocks.03.self_attn.q.lora_A.weight").known);
    CHECK(!parse("diffusion_model.blocks..self_attn.q.lora_A.weight").known);
    CHECK(!parse("diffusion_model.blocks.12345.self_attn.q.lora_A.weight").known);
}

static void what_is_no_lora_is_refused_by_name(void)
{
    static const struct {
        const char *key, *says;
    } bad[] = {
        { "diffusion_model.blocks.0.ffn.0.dora_scale", "DoRA" },
        { "lora_unet_blocks_0_ffn_0.lokr_w1", "LoKr" },
        { "lora_unet_blocks_0_ffn_0.hada_w2_b", "LoHa" },
        { "blocks.0.ffn.0.weight", "blocks.0.ffn.0.weight" },
        { "lora_unet_.alpha", "lora_unet_.alpha" },
        { "diffusion_model..lora_A.weight", "names no module" },
        { ".alpha", ".alpha" },
        { "", "\"\"" },
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct lora_name n;
        struct cairn_error err = { 0 };
        CHECK(lora_name_parse(bad[i].key, &n, &err) == -1);
        CHECK_HAS(err.msg, bad[i].says);
    }
    char longest[LORA_NAME_MAX + 64];
    memset(longest, 'a', sizeof(longest));
    strcpy(longest + sizeof(longest) - sizeof(".alpha"), ".alpha");
    struct lora_name n;
    struct cairn_error err = { 0 };
    CHECK(lora_name_parse(longest, &n, &err) == -1);
}

static void a_dialect_without_a_key_says_so(void)
{
    char key[64];
    struct cairn_error err = { 0 };
    CHECK(lora_name_format("blocks.0.ffn.0", LORA_DIFF, LORA_DIFFUSERS, key, sizeof(key), &err) == -1);
    CHECK_HAS(err.msg, "blocks.0.ffn.0");
    CHECK(lora_name_format("blocks.0.attn1.to_q", LORA_DOWN, LORA_MUSUBI, key, sizeof(key), &err) == -1);
    CHECK(lora_name_format("blocks.0.ffn.0", LORA_DOWN, LORA_MUSUBI, key, 8, &err) == -1);
}

static void base_keys_give_the_module(void)
{
    static const struct {
        const char *key, *module;
        bool bias;
    } keys[] = {
        { "blocks.7.ffn.2.weight", "blocks.7.ffn.2", false },
        { "blocks.7.ffn.2.bias", "blocks.7.ffn.2", true },
        { "model.diffusion_model.blocks.7.ffn.2.weight", "blocks.7.ffn.2", false },
        { "diffusion_model.blocks.7.ffn.2.weight", "blocks.7.ffn.2", false },
        { "model.model.blocks.7.ffn.2.weight", "blocks.7.ffn.2", false },
        { "net.blocks.7.ffn.2.weight", "blocks.7.ffn.2", false },
        { "blocks.7.ffn.net.2.weight", "blocks.7.ffn.2", false },
        { "blocks.7.attn2.add_v_proj.bias", "blocks.7.cross_attn.v_img", true },
        { "blocks.7.norm2.weight", "blocks.7.norm3", false }, /* diffusers counts norms as they run */
        { "blocks.7.norm3.weight", "blocks.7.norm3", false },
        { "condition_embedder.image_embedder.ff.net.0.proj.weight", "img_emb.proj.1", false },
    };
    char module[LORA_NAME_MAX];
    bool bias;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        CHECK(lora_base_name(keys[i].key, module, &bias));
        CHECK_STR(module, keys[i].module);
        CHECK(bias == keys[i].bias);
    }
    CHECK(!lora_base_name("blocks.7.modulation", module, &bias));
    CHECK(!lora_base_name("blocks.7.ffn.2.scale_weight", module, &bias));
    CHECK(!lora_base_name(".weight", module, &bias));
}

static void dialects_have_names(void)
{
    CHECK(lora_dialect_parse("musubi") == LORA_MUSUBI && lora_dialect_parse("kohya") == LORA_MUSUBI);
    CHECK(lora_dialect_parse("comfy") == LORA_COMFY && lora_dialect_parse("peft") == LORA_DIFFUSERS);
    CHECK(lora_dialect_parse("comf") == LORA_ANY);
    CHECK_STR(lora_dialect_name(LORA_DIFFUSERS), "diffusers");
}

int main(void)
{
    RUN(each_dialect_reads_and_writes_its_keys);
    RUN(musubi_names_mean_what_others_read);
    RUN(spellings_of_other_programs_are_read);
    RUN(other_models_are_read_but_not_known);
    RUN(what_is_no_lora_is_refused_by_name);
    RUN(a_dialect_without_a_key_says_so);
    RUN(base_keys_give_the_module);
    RUN(dialects_have_names);
    return check_done();
}
