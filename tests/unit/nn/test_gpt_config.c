/* SPDX-License-Identifier: Apache-2.0
 * What a config.json says of a shape, and what of it is refused. */
#include "nn/gpt_config.h"

#include "check.h"
#include "tree.h"

static struct tree tmp;

#define GPT2_KEYS \
    "\"model_type\":\"gpt2\",\"vocab_size\":50257,\"n_positions\":1024,\"n_embd\":768,\"n_layer\":12,\"n_head\":12"
#define LLAMA_KEYS                                                                                         \
    "\"vocab_size\":32000,\"max_position_embeddings\":2048,\"hidden_size\":2048,\"intermediate_size\":"    \
    "5632,\"num_hidden_layers\":22,\"num_attention_heads\":32,\"num_key_value_heads\":4,\"rms_norm_eps\":" \
    "1e-05"

static int shape_of_config(const char *config, struct gpt_shape *s, struct cairn_error *err)
{
    *s = (struct gpt_shape){ 0 };
    *err = (struct cairn_error){ 0 };
    tree_put(&tmp, "config.json", config);
    return gpt_config_read(tree_path(&tmp, "config.json"), s, err);
}

static void real_configurations_are_read(void)
{
    struct cairn_error err;
    struct gpt_shape s;
    /* As openai-community/gpt2 has it, with keys that say nothing of the shape. */
    CHECK(!shape_of_config("{" GPT2_KEYS
                           ",\"n_ctx\":1024,\"activation_function\":\"gelu_new\",\"attn_pdrop\":0.1,"
                           "\"architectures\":[\"GPT2LMHeadModel\"],\"layer_norm_epsilon\":1e-05,"
                           "\"task_specific_params\":{\"text-generation\":{\"max_length\":50}}}",
                           &s, &err));
    CHECK(gpt_is_gpt2(&s) && s.tied);
    CHECK_INT(s.ffn, 3072);
    CHECK_INT(s.context, 1024);
    /* TinyLlama. */
    CHECK(!shape_of_config(
        "{\"model_type\":\"llama\"," LLAMA_KEYS ",\"rope_scaling\":null,\"hidden_act\":\"silu\"}", &s, &err));
    CHECK(s.rope && s.swiglu && !s.tied && !s.bias && s.norm == NN_NORM_RMS);
    CHECK_INT(s.kv_heads, 4);
    CHECK(s.rope_theta == 10000 && s.norm_epsilon == 1e-5f);
    /* The way of transformers 5. */
    CHECK(!shape_of_config("{\"model_type\":\"llama\"," LLAMA_KEYS
                           ",\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":500000.0}}",
                           &s, &err));
    CHECK(s.rope_theta == 500000);
    CHECK(!shape_of_config(
        "{\"model_type\":\"mistral\"," LLAMA_KEYS ",\"sliding_window\":null,\"head_dim\":64}", &s, &err));
}

static void what_cannot_be_computed_is_refused_by_its_key(void)
{
    static const struct {
        const char *keys, *said;
    } rows[] = {
        { "\"model_type\":\"llama\",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2.0}",
          "\"rope_scaling\"" },
        { "\"model_type\":\"llama\",\"rope_parameters\":{\"rope_type\":\"llama3\",\"rope_theta\":1e4}",
          "\"rope_parameters\"" },
        { "\"model_type\":\"mistral\",\"sliding_window\":1024", "\"sliding_window\": 1024" },
        { "\"model_type\":\"mixtral\",\"num_local_experts\":8", "\"num_local_experts\": 8" },
        { "\"model_type\":\"llama\",\"head_dim\":128", "\"head_dim\": 128" },
        { "\"model_type\":\"llama\",\"hidden_act\":\"gelu\"", "\"hidden_act\": gelu" },
        { "\"model_type\":\"llama\",\"attention_bias\":true", "\"attention_bias\"" },
        { "\"model_type\":\"llama\",\"quantization_config\":{\"bits\":4}", "\"quantization_config\"" },
        { "\"model_type\":\"llama\",\"rope_theta\":-1", "\"rope_theta\"" },
        { "\"model_type\":\"qwen3\"", "qwen3" },
        { "\"architectures\":[]", "\"model_type\"" },
    };
    struct cairn_error err;
    struct gpt_shape s;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char config[1024];
        snprintf(config, sizeof(config), "{%s," LLAMA_KEYS "}", rows[i].keys);
        CHECK(shape_of_config(config, &s, &err));
        CHECK_HAS(err.msg, rows[i].said);
    }
    CHECK(shape_of_config("{" GPT2_KEYS ",\"activation_function\":\"relu\"}", &s, &err));
    CHECK_HAS(err.msg, "\"activation_function\": relu");
    CHECK(shape_of_config("{\"model_type\":\"gpt2\",\"vocab_size\":10}", &s, &err));
    CHECK_HAS(err.msg, "n_positions");
    CHECK(shape_of_config("{" GPT2_KEYS ",\"n_inner\":-3}", &s, &err));
    CHECK_HAS(err.msg, "\"n_inner\"");
    CHECK(shape_of_config("[1]", &s, &err));
    CHECK_HAS(err.msg, "not an object");
    CHECK(shape_of_config("{", &s, &err));
    CHECK_HAS(err.msg, "config.json");
}

int main(void)
{
    tree_make(&tmp);
    RUN(real_configurations_are_read);
    RUN(what_cannot_be_computed_is_refused_by_its_key);
    tree_remove(&tmp);
    return check_done();
}
