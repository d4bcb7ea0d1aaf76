/* SPDX-License-Identifier: Apache-2.0
 * PEFT's adapters: their configuration, its patterns, and what a merge makes of them. */
#include "tensor/adapter_config.h"

#include "os/fault.h"
#include "base/str.h"
#include "check.h"
#include "lora_files.h"
#include "tensor/adapter_pattern.h"
#include "tensor/merge.h"
#include "tree.h"
#include <errno.h>
#include <math.h>

static struct tree tree;
static char base_path[128], lora_path[128], out_path[128];

/* ---- patterns ---- */

static void patterns_fit_as_in_python(void)
{
    static const struct {
        const char *pattern, *module;
        bool fits;
    } cases[] = {
        { "c_attn", "transformer.h.0.attn.c_attn", true },
        { "c_attn", "c_attn", true },
        { "attn", "transformer.h.0.attn.c_attn", false }, /* all of it behind a dot, not a part */
        { "tn.c_attn", "transformer.h.0.attn.c_attn", false },
        { "h.1.attn.c_attn", "h.0.h.1.attn.c_attn", true },
        { "h.1.attn", "h.1xattn", true }, /* a dot is any character */
        { "h\\.1\\.attn", "h.1xattn", false },
        { "^h.0.q", "h.0.q", true },
        { "^h.0.q", "model.h.0.q", false },
        { "layers\\.\\d+\\.q", "model.layers.17.q", true },
        { "layers\\.[\\d]\\.q", "model.layers.1.q", true },
        { "layers.[0-3].q", "layers.4.q", false },
        { "(?:q|k)_proj", "a.k_proj", true },
        { ".*", "anything.at.all", true },
        { "q{1,2}", "a.qq", true },
        { "q|k", "a.k", true }, /* an alternative is within the group */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        regex_t r;
        struct cairn_error err = { 0 };
        if (adapter_pattern_make(cases[i].pattern, &r, &err)) {
            CHECK_FAIL_("%s: %s", cases[i].pattern, err.msg);
            continue;
        }
        if (adapter_pattern_fits(&r, cases[i].module) != cases[i].fits)
            CHECK_FAIL_("%s and %s", cases[i].pattern, cases[i].module);
        regfree(&r);
    }
}

static void patterns_that_would_be_misread_are_refused(void)
{
    static const char *const cases[] = {
        "",
        "(?!q).*",
        "(?P<a>q)",
        "q*?",
        "q+?",
        "\\1",
        "(q)\\1",
        "[[:alpha:]]",
        "[q",
        "(q",
        "q)",
        "q{1000}",
        "q{1,2",
        "[\\w]",
        "((q{9}){9}){9}",
        "\\A",
        "q\\",
        "q**",
        "[]q]",
        "q{2,1}",
        "q{2}?",
        "q{2}+",
        "q{1,2}*",
        "q{2}{2}",
        "(q*){9}",
        "((.*){1,99}){1,99}q",
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        regex_t r;
        struct cairn_error err = { 0 };
        if (!adapter_pattern_make(cases[i], &r, &err)) {
            CHECK_FAIL_("\"%s\" is taken", cases[i]);
            regfree(&r);
        }
    }
    char longer[600];
    regex_t r;
    struct cairn_error err = { 0 };
    memset(longer, 'q', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    CHECK(adapter_pattern_make(longer, &r, &err) == -1);
}

/* ---- the configuration ---- */

static void the_configuration_is_read(void)
{
    struct adapter_config c;
    struct cairn_error err = { 0 };
    tree_put(
        &tree, "config.json",
        "{\"peft_type\":\"LORA\",\"r\":4,\"lora_alpha\":6,\"use_rslora\":true,\"fan_in_fan_out\":true,"
        "\"bias\":\"lora_only\",\"lora_bias\":false,\"modules_to_save\":[\"lm_head\",\"score\"],\"later\":1,"
        "\"use_dora\":false,\"later_off\":null,\"init_lora_weights\":\"gaussian\","
        "\"rank_pattern\":{\"q\":8,\".*q\":9},\"alpha_pattern\":{\"h.0.k\":1.5}}");
    REQUIRE(!adapter_config_read(&c, tree_path(&tree, "config.json"), &err));
    CHECK(c.rank == 4 && c.alpha == 6 && c.alpha_is_said && c.rslora && !c.lora_bias);
    CHECK(c.layout == ADAPTER_LAYOUT_IN_OUT && c.bias == ADAPTER_BIAS_LORA_ONLY);
    CHECK_STR(c.unknown, "later");
    CHECK(adapter_config_rank(&c, "a.q") == 8 &&
          adapter_config_rank(&c, "a.k") == 4); /* the first that fits */
    CHECK(adapter_config_alpha(&c, "m.h.0.k") == 1.5 && adapter_config_alpha(&c, "m.h.1.k") == 6);
    CHECK(adapter_config_scale(&c, 6, 4) == 3);
    CHECK(adapter_config_saves(&c, "model.lm_head") && adapter_config_saves(&c, "score.dense"));
    CHECK(!adapter_config_saves(&c, "model.lm") && !adapter_config_saves(&c, "scores"));
    adapter_config_release(&c);
    tree_put(&tree, "config.json", "{\"peft_type\":\"LORA\"}");
    REQUIRE(!adapter_config_read(&c, tree_path(&tree, "config.json"), &err));
    CHECK(c.rank == 0 && c.alpha == 8 && !c.alpha_is_said && c.layout == ADAPTER_LAYOUT_UNKNOWN &&
          !c.unknown);
    CHECK(adapter_config_scale(&c, 8, 4) == 2);
    adapter_config_release(&c);
}

static void patterns_have_a_limit_together(void)
{
    CLEANUP(str_release) struct str text = { 0 };
    struct adapter_config c;
    struct cairn_error err = { 0 };
    str_add(&text, "{\"peft_type\":\"LORA\",\"rank_pattern\":{\"q\":1");
    for (int i = 0; i < 2000; i++)
        str_addf(&text, ",\"q{1,99}.{1,99}%d\":1", i);
    str_add(&text, "}}");
    tree_put(&tree, "config.json", text.s);
    CHECK(adapter_config_read(&c, tree_path(&tree, "config.json"), &err) == -1);
    CHECK_INT(err.code, CAIRN_EFORMAT);
}

static void what_is_no_plain_lora_is_refused_by_key(void)
{
    static const struct {
        const char *text, *key;
    } cases[] = {
        { "{\"r\":4}", "peft_type" },
        { "{\"peft_type\":\"LORA\",\"r\":0}", "\"r\"" },
        { "{\"peft_type\":\"LORA\",\"r\":2.5}", "\"r\"" },
        { "{\"peft_type\":\"LORA\",\"lora_alpha\":true}", "lora_alpha" },
        { "{\"peft_type\":\"LORA\",\"fan_in_fan_out\":\"yes\"}", "fan_in_fan_out" },
        { "{\"peft_type\":\"LORA\",\"rank_pattern\":[1]}", "rank_pattern" },
        { "{\"peft_type\":\"LORA\",\"rank_pattern\":{\"q\":-1}}", "rank_pattern" },
        { "{\"peft_type\":\"LORA\",\"alpha_pattern\":{\"(\":1}}", "alpha_pattern" },
        { "{\"peft_type\":\"LORA\",\"modules_to_save\":\"lm_head\"}", "modules_to_save" },
        { "{\"peft_type\":\"LORA\",\"use_dora\":true}", "use_dora" },
        { "{\"peft_type\":\"LORA\",\"layer_replication\":[[0,4]]}", "layer_replication" },
        { "{\"peft_type\":\"LORA\",\"target_parameters\":[\"a\"]}", "target_parameters" },
        { "{\"peft_type\":\"LORA\",\"init_lora_weights\":\"pissa_niter_4\"}", "init_lora_weights" },
        { "{\"peft_type\":\"LORA\",\"init_lora_weights\":3}", "init_lora_weights" },
        { "[]", "config.json" },
        { "", "config.json" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct adapter_config c;
        struct cairn_error err = { 0 };
        tree_put(&tree, "config.json", cases[i].text);
        CHECK(adapter_config_read(&c, tree_path(&tree, "config.json"), &err) == -1);
        CHECK_HAS(err.msg, "config.json");
        CHECK_HAS(err.msg, cases[i].key);
    }
}

/* ---- merging ---- */

#define PEFT "base_model.model."

static int merge(const struct merge_options *o, struct merge_report *report, struct cairn_error *err)
{
    CLEANUP(source_close) struct tensor_source base = { 0 };
    CLEANUP(lora_close) struct lora_file lora = { 0 };
    char folder[128];
    snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(lora_path, '/') - lora_path), lora_path);
    if (source_open(&base, base_path, err) || lora_open(&lora, folder, err))
        return -1;
    return merge_lora(&base, &lora, out_path, o, report, err);
}

static struct merge_report merge_well(const char *config)
{
    struct merge_options o = { .scale = 1, .replace = true };
    struct merge_report report = { 0 };
    struct cairn_error err = { 0 };
    if (config)
        tree_put(&tree, "peft/adapter_config.json", config);
    else
        unlink(tree_path(&tree, "peft/adapter_config.json"));
    if (merge(&o, &report, &err))
        CHECK_FAIL_("%s", err.msg);
    return report;
}

static void merge_badly(const char *config, const char *says)
{
    struct merge_options o = { .scale = 1, .replace = true };
    struct merge_report report;
    struct cairn_error err = { 0 };
    tree_put(&tree, "peft/adapter_config.json", config);
    unlink(out_path);
    CHECK(merge(&o, &report, &err) == -1);
    CHECK_HAS(err.msg, says);
    CHECK(access(out_path, F_OK));
}

/* Is the merged weight base + scale * (up * down), or that with the product transposed? */
static bool is_sum(const char *weight, const char *down_name, const char *up_name, bool transposed,
                   double scale)
{
    struct st_tensor d = { 0 }, u = { 0 };
    float *w = get_numbers(base_path, weight, NULL), *got = get_numbers(out_path, weight, NULL);
    float *down = get_numbers(lora_path, down_name, &d), *up = get_numbers(lora_path, up_name, &u);
    bool good = w && got && down && up;
    size_t rank = 2, in = good ? (size_t)d.elements / rank : 0, out = good ? (size_t)u.elements / rank : 0;
    for (size_t i = 0; i < in * out; i++) {
        size_t o = transposed ? i % out : i / in, c = transposed ? i / out : i % in;
        double sum = (double)up[o * rank] * (double)down[c] + (double)up[o * rank + 1] * (double)down[in + c];
        good &= fabs((double)got[i] - (double)w[i] - scale * sum) < 1e-5;
    }
    free(w), free(got), free(down), free(up);
    return good;
}

static bool c_proj_is(bool transposed, double scale)
{
    return is_sum("h.0.attn.c_proj.weight", PEFT "h.0.attn.c_proj.lora_A.weight",
                  PEFT "h.0.attn.c_proj.lora_B.weight", transposed, scale);
}

static void put_square_lora(void)
{
    put_file(lora_path, (struct put[]){ { PEFT "h.0.attn.c_proj.lora_A.weight", DTYPE_F32, 2, 8, 0, 1 },
                                        { PEFT "h.0.attn.c_proj.lora_B.weight", DTYPE_F32, 8, 2, 0, 1 },
                                        { 0 } });
}

#define LORA_4(more) "{\"peft_type\":\"LORA\",\"r\":2,\"lora_alpha\":4" more "}"

static void a_square_weight_lies_as_its_twins_do(void)
{
    put_square_lora();
    /* A twin with a bias: [in, out] whatever the configuration says. */
    put_file(base_path, (struct put[]){ { "h.0.attn.c_proj.weight", DTYPE_F32, 8, 8, 0, 1 },
                                        { "h.0.mlp.c_proj.weight", DTYPE_F32, 32, 8, 0, 1 },
                                        { "h.0.mlp.c_proj.bias", DTYPE_F32, 8, 0, 0, 1 },
                                        { 0 } });
    struct merge_report r = merge_well(LORA_4(",\"fan_in_fan_out\":false"));
    CHECK(c_proj_is(true, 2) && r.transposed == 1 && r.orientation_against == 1 && !r.orientation_guessed);
    r = merge_well(NULL);
    CHECK(c_proj_is(true, 1) && r.basis.alpha_guessed == 1 && !r.orientation_guessed);
    /* The same names as torch's Linear has them. */
    put_file(base_path, (struct put[]){ { "h.0.attn.c_proj.weight", DTYPE_F32, 8, 8, 0, 1 },
                                        { "h.0.mlp.c_proj.weight", DTYPE_F32, 8, 32, 0, 1 },
                                        { "h.0.mlp.c_proj.bias", DTYPE_F32, 8, 0, 0, 1 },
                                        { 0 } });
    r = merge_well(LORA_4(",\"fan_in_fan_out\":true"));
    CHECK(c_proj_is(false, 2) && r.transposed == 0 && r.orientation_against == 1);
}

static void else_as_the_configuration_says_or_most_others_lie(void)
{
    put_square_lora();
    put_file(base_path, (struct put[]){ { "h.0.attn.c_proj.weight", DTYPE_F32, 8, 8, 0, 1 },
                                        { "h.0.attn.c_attn.weight", DTYPE_F32, 8, 24, 0, 1 },
                                        { "h.0.attn.c_attn.bias", DTYPE_F32, 24, 0, 0, 1 },
                                        { 0 } });
    struct merge_report r = merge_well(LORA_4(",\"fan_in_fan_out\":false"));
    CHECK(c_proj_is(false, 2) && !r.orientation_guessed);
    r = merge_well(LORA_4(""));
    CHECK(c_proj_is(true, 2) && r.orientation_guessed == 1 && r.guessed_transposed);
    put_file(base_path, (struct put[]){ { "h.0.attn.c_proj.weight", DTYPE_F32, 8, 8, 0, 1 }, { 0 } });
    r = merge_well(LORA_4(",\"fan_in_fan_out\":true"));
    CHECK(c_proj_is(true, 2) && !r.orientation_guessed);
    r = merge_well(LORA_4(""));
    CHECK(c_proj_is(false, 2) && r.orientation_guessed == 1 && !r.guessed_transposed);
}

static void other_shapes_tell_themselves(void)
{
    put_file(lora_path, (struct put[]){ { PEFT "h.0.c_fc.lora_A.weight", DTYPE_BF16, 2, 8, 0, 1 },
                                        { PEFT "h.0.c_fc.lora_B.weight", DTYPE_BF16, 200, 2, 0, 1 },
                                        { 0 } });
    for (int transposed = 0; transposed < 2; transposed++) {
        put_file(base_path, (struct put[]){ { "transformer.h.0.c_fc.weight", DTYPE_F32, transposed ? 8 : 200,
                                              transposed ? 200 : 8, 0, 1 },
                                            { 0 } });
        struct merge_report r = merge_well(LORA_4(""));
        CHECK(r.transposed == (size_t)transposed && !r.orientation_guessed);
        CHECK(is_sum("transformer.h.0.c_fc.weight", PEFT "h.0.c_fc.lora_A.weight",
                     PEFT "h.0.c_fc.lora_B.weight", transposed, 2));
    }
    put_file(base_path, (struct put[]){ { "h.0.c_fc.weight", DTYPE_F32, 9, 8, 0, 1 }, { 0 } });
    merge_badly(LORA_4(""), "h.0.c_fc is 200 x 8 in the LoRA, 9 x 8 in the base");
}

static void an_embedding_is_a_table_of_rows(void)
{
    put_file(base_path, (struct put[]){ { "model.embed_tokens.weight", DTYPE_F32, 8, 8, 0, 1 }, { 0 } });
    put_file(lora_path, (struct put[]){ { PEFT "model.embed_tokens.lora_embedding_A", DTYPE_F32, 2, 8, 0, 1 },
                                        { PEFT "model.embed_tokens.lora_embedding_B", DTYPE_F32, 8, 2, 0, 1 },
                                        { 0 } });
    merge_well(LORA_4(",\"fan_in_fan_out\":false"));
    CHECK(is_sum("model.embed_tokens.weight", PEFT "model.embed_tokens.lora_embedding_A",
                 PEFT "model.embed_tokens.lora_embedding_B", true, 2));
}

static bool all_are(const char *name, float want)
{
    struct st_tensor t = { 0 };
    float *v = get_numbers(out_path, name, &t);
    bool good = v != NULL;
    for (uint64_t i = 0; good && i < t.elements; i++)
        good = v[i] == want;
    free(v);
    return good;
}

static void whole_tensors_replace_those_of_the_base(void)
{
    put_file(base_path, (struct put[]){ { "q.weight", DTYPE_F32, 8, 4, 0, 1 },
                                        { "q.bias", DTYPE_F32, 8, 0, 1, 0 },
                                        { "lm_head.weight", DTYPE_BF16, 4, 8, 1, 0 },
                                        { "norm.bias", DTYPE_F32, 4, 0, 1, 0 },
                                        { 0 } });
    put_file(lora_path, (struct put[]){ { PEFT "q.lora_A.weight", DTYPE_F32, 2, 4, 0, 1 },
                                        { PEFT "q.lora_B.weight", DTYPE_F32, 8, 2, 0, 1 },
                                        { PEFT "q.lora_B.bias", DTYPE_F32, 8, 0, 0.5f, 0 },
                                        { PEFT "lm_head.weight", DTYPE_F32, 4, 8, 3, 0 },
                                        { PEFT "norm.base_layer.bias", DTYPE_F32, 4, 0, 7, 0 },
                                        { 0 } });
    struct merge_report r =
        merge_well(LORA_4(",\"modules_to_save\":[\"lm_head\"],\"bias\":\"all\",\"lora_bias\":true"));
    CHECK(r.replaced == 2 && r.changed == 4);
    CHECK(all_are("lm_head.weight", 3) && all_are("norm.bias", 7) && all_are("q.bias", 2));
    merge_badly(LORA_4(",\"modules_to_save\":[\"lm_head\"]"), "norm.base_layer.bias");
    put_file(base_path, (struct put[]){ { "q.weight", DTYPE_F32, 8, 4, 0, 1 },
                                        { "q.bias", DTYPE_F32, 8, 0, 1, 0 },
                                        { "lm_head.weight", DTYPE_BF16, 5, 8, 1, 0 },
                                        { "norm.bias", DTYPE_F32, 4, 0, 1, 0 },
                                        { 0 } });
    merge_badly(LORA_4(",\"modules_to_save\":[\"lm_head\"],\"bias\":\"all\""), "shape");
}

static void a_configuration_that_contradicts_is_refused(void)
{
    put_file(base_path, (struct put[]){ { "q.weight", DTYPE_F32, 8, 4, 0, 1 }, { 0 } });
    put_file(lora_path, (struct put[]){ { PEFT "q.lora_A.weight", DTYPE_F32, 2, 4, 0, 1 },
                                        { PEFT "q.lora_B.weight", DTYPE_F32, 8, 2, 0, 1 },
                                        { PEFT "q.alpha", DTYPE_F32, 0, 0, 5, 0 },
                                        { 0 } });
    merge_badly("{\"peft_type\":\"LORA\",\"r\":3,\"lora_alpha\":5}", "\"r\" is 3");
    merge_badly("{\"peft_type\":\"LORA\",\"rank_pattern\":{\"q\":4},\"r\":2,\"lora_alpha\":5}", "\"r\" is 4");
    merge_badly("{\"peft_type\":\"LORA\",\"r\":2,\"lora_alpha\":4}", "\"lora_alpha\" is 4");
    struct merge_report r =
        merge_well("{\"peft_type\":\"LORA\",\"r\":2}"); /* says nothing of alpha: the file's counts */
    CHECK(is_sum("q.weight", PEFT "q.lora_A.weight", PEFT "q.lora_B.weight", false, 2.5) &&
          !r.basis.alpha_default);
    merge_well("{\"peft_type\":\"LORA\",\"r\":2,\"lora_alpha\":5,\"use_rslora\":true}");
    CHECK(is_sum("q.weight", PEFT "q.lora_A.weight", PEFT "q.lora_B.weight", false, 5 / sqrt(2)));
}

/* diffusers' keys in the file itself. */
static void metadata_is_a_configuration_too(void)
{
    static const char text[] =
        "{\"transformer.r\": 4, \"transformer.lora_alpha\": 6, \"text_encoder.lora_alpha\": 9,"
        "\"transformer.alpha_pattern\": {\"q\": 2}, \"text_encoder.use_dora\": true}";
    struct adapter_config c;
    struct cairn_error err = { 0 };
    REQUIRE(!adapter_config_parse(&c, "f", text, "transformer.", &err));
    CHECK(c.path && c.rank == 4 && c.alpha == 6 && adapter_config_alpha(&c, "blocks.0.q") == 2);
    adapter_config_release(&c);
    CHECK(adapter_config_parse(&c, "f", text, "text_encoder.", &err) == -1);
    CHECK_HAS(err.msg, "use_dora");
    REQUIRE(!adapter_config_parse(&c, "f", text, "unet.", &err));
    CHECK(!c.path);
    REQUIRE(!adapter_config_parse(&c, "f", "{\"peft_type\": \"LORA\", \"lora_alpha\": 3}", "blocks.", &err));
    CHECK(c.path && c.alpha == 3);
    adapter_config_release(&c);
    CHECK(adapter_config_parse(&c, "f", "[1]", "", &err) == -1);
    CHECK(adapter_config_parse(&c, "f", "{", "", &err) == -1);
}

static void any_outside_call_may_fail(void)
{
    put_square_lora();
    put_file(base_path, (struct put[]){ { "h.0.attn.c_proj.weight", DTYPE_F32, 8, 8, 0, 1 }, { 0 } });
    tree_put(&tree, "peft/adapter_config.json", LORA_4(",\"rank_pattern\":{\"c_proj\":2}"));
    for (int nth = 1; nth < 1000; nth++) {
        struct merge_options o = { .scale = 1, .replace = true };
        struct merge_report report;
        struct cairn_error err = { 0 };
        fault_arm(nth, EIO);
        int r = merge(&o, &report, &err);
        if (!fault_disarm()) {
            CHECK(r == 0 && c_proj_is(report.transposed, 2));
            break;
        }
        if (!r || !err.msg[0])
            CHECK_FAIL_("call %d: nothing is said", nth);
    }
}

int main(void)
{
    tree_make(&tree);
    strcpy(base_path, tree_path(&tree, "base.safetensors"));
    strcpy(lora_path, tree_path(&tree, "peft/adapter_model.safetensors"));
    strcpy(out_path, tree_path(&tree, "out.safetensors"));
    RUN(patterns_fit_as_in_python);
    RUN(patterns_that_would_be_misread_are_refused);
    RUN(the_configuration_is_read);
    RUN(patterns_have_a_limit_together);
    RUN(what_is_no_plain_lora_is_refused_by_key);
    RUN(a_square_weight_lies_as_its_twins_do);
    RUN(else_as_the_configuration_says_or_most_others_lie);
    RUN(other_shapes_tell_themselves);
    RUN(an_embedding_is_a_table_of_rows);
    RUN(whole_tensors_replace_those_of_the_base);
    RUN(a_configuration_that_contradicts_is_refused);
    RUN(metadata_is_a_configuration_too);
    RUN(any_outside_call_may_fail);
    tree_remove(&tree);
    return check_done();
}
