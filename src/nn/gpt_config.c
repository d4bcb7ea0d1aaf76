/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/gpt_config.h"
#include "base/file.h"
#include "base/str.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Which files have a key. */
enum { GPT2 = 1, LLAMA = 2, OWN = 4 };

enum { LAYERS_MAX = 1 << 12, COUNT_MAX = 1 << 24 };
static const struct {
    int kinds;
    const char *name;
    size_t at;
    size_t most;
} counts[] = {
    { GPT2 | LLAMA | OWN, "vocab_size", offsetof(struct gpt_shape, vocab), COUNT_MAX },
    { GPT2, "n_positions", offsetof(struct gpt_shape, context), COUNT_MAX },
    { GPT2, "n_embd", offsetof(struct gpt_shape, width), COUNT_MAX },
    { GPT2, "n_layer", offsetof(struct gpt_shape, layers), LAYERS_MAX },
    { GPT2, "n_head", offsetof(struct gpt_shape, heads), COUNT_MAX },
    { GPT2, "n_inner", offsetof(struct gpt_shape, ffn), COUNT_MAX },
    { LLAMA | OWN, "max_position_embeddings", offsetof(struct gpt_shape, context), COUNT_MAX },
    { LLAMA | OWN, "hidden_size", offsetof(struct gpt_shape, width), COUNT_MAX },
    { LLAMA | OWN, "intermediate_size", offsetof(struct gpt_shape, ffn), COUNT_MAX },
    { LLAMA | OWN, "num_hidden_layers", offsetof(struct gpt_shape, layers), LAYERS_MAX },
    { LLAMA | OWN, "num_attention_heads", offsetof(struct gpt_shape, heads), COUNT_MAX },
    { LLAMA | OWN, "num_key_value_heads", offsetof(struct gpt_shape, kv_heads), COUNT_MAX },
};

/* `otherwise` is what transformers takes where the key is missing. */
static const struct {
    int kinds;
    const char *name;
    size_t at;
    float otherwise;
} reals[] = {
    { GPT2, "layer_norm_epsilon", offsetof(struct gpt_shape, norm_epsilon), 1e-5f },
    { LLAMA, "rms_norm_eps", offsetof(struct gpt_shape, norm_epsilon), 1e-6f },
    { OWN, "norm_epsilon", offsetof(struct gpt_shape, norm_epsilon), 1e-5f },
    { LLAMA | OWN, "rope_theta", offsetof(struct gpt_shape, rope_theta), 10000 },
};

/* Keys whose other values ask for what is not done here.  A missing key and null are always allowed. */
enum { ALLOWED = 3 };
static const struct {
    int kinds;
    const char *name;
    const char *allowed[ALLOWED];
} refusals[] = {
    { GPT2 | LLAMA, "quantization_config", { NULL } },
    { GPT2 | LLAMA, "num_local_experts", { "0", "1" } },
    { GPT2 | LLAMA, "num_experts", { "0", "1" } },
    { GPT2, "activation_function", { "gelu_new", "gelu_pytorch_tanh", "gelu_fast" } },
    { GPT2, "scale_attn_weights", { "true" } },
    { GPT2, "scale_attn_by_inverse_layer_idx", { "false" } },
    { GPT2, "add_cross_attention", { "false" } },
    { LLAMA, "hidden_act", { "silu", "swish" } },
    { LLAMA, "partial_rotary_factor", { "1" } },
};

static size_t *count_at(struct gpt_shape *s, size_t at)
{
    return (size_t *)((char *)s + at);
}

static float *real_at(struct gpt_shape *s, size_t at)
{
    return (float *)((char *)s + at);
}

/* ---- files ---- */

int gpt_config_save(const struct json *v, const char *path, struct cairn_error *err)
{
    CLEANUP(mem_free) char *text = json_to_lines(v);
    return file_write(path, text, strlen(text), err);
}

void gpt_config_add_real(struct json *to, const char *key, float v)
{
    char text[32];
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, (double)v);
        if (strtof(text, NULL) == v)
            break;
    }
    json_add_real(to, key, strtod(text, NULL));
}

/* ---- reading ---- */

/* A value as one would write it, without quotes. */
static void value_text(const struct json *v, char *out, size_t size)
{
    double number = json_number(v, NAN);
    if (json_text(v))
        snprintf(out, size, "%s", json_text(v));
    else if (json_bool(v, true) == json_bool(v, false))
        snprintf(out, size, json_bool(v, true) ? "true" : "false");
    else if (isnan(number))
        snprintf(out, size, "{...}");
    else
        snprintf(out, size, "%g", number);
}

static int refuse(const char *path, const char *key, const struct json *v, struct cairn_error *err)
{
    char text[64];
    value_text(v, text, sizeof(text));
    return cairn_fail(err, CAIRN_EFORMAT, "%s: \"%s\": %s is not supported", path, key, text);
}

static bool is_allowed(const struct json *v, const char *const allowed[ALLOWED])
{
    char text[64];
    value_text(v, text, sizeof(text));
    for (int i = 0; i < ALLOWED && allowed[i]; i++)
        if (!strcmp(text, allowed[i]))
            return true;
    return false;
}

static int check_refusals(const struct json *c, int kind, const char *path, struct cairn_error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        const struct json *v = json_get(c, refusals[i].name);
        if ((refusals[i].kinds & kind) && v && !json_is_null(v) && !is_allowed(v, refusals[i].allowed))
            return refuse(path, refusals[i].name, v, err);
    }
    return 0;
}

static int read_counts(const struct json *c, int kind, struct gpt_shape *s, const char *path,
                       struct cairn_error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        const struct json *v = json_get(c, counts[i].name);
        uint64_t n;
        if (!(counts[i].kinds & kind) || !v || json_is_null(v))
            continue;
        if (!json_to_u64(v, &n) || !n || n > counts[i].most)
            return cairn_fail(err, CAIRN_EFORMAT, "%s: \"%s\" must be an integer from 1 to %zu", path,
                              counts[i].name, counts[i].most);
        *count_at(s, counts[i].at) = (size_t)n;
    }
    s->ffn = s->ffn || kind != GPT2 ? s->ffn : 4 * s->width;
    s->kv_heads = s->kv_heads ? s->kv_heads : s->heads;
    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        if ((counts[i].kinds & kind) && !*count_at(s, counts[i].at))
            return cairn_fail(err, CAIRN_EFORMAT, "%s has no \"%s\"", path, counts[i].name);
    return 0;
}

static int read_reals(const struct json *c, int kind, struct gpt_shape *s, const char *path,
                      struct cairn_error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(reals); i++) {
        if (!(reals[i].kinds & kind))
            continue;
        const struct json *v = json_get(c, reals[i].name);
        double number = json_number(v, v && !json_is_null(v) ? -1 : (double)reals[i].otherwise);
        if (!(number > 0) || !isfinite((float)number) || (float)number == 0)
            return cairn_fail(err, CAIRN_EFORMAT, "%s: \"%s\" must be a number above 0", path, reals[i].name);
        *real_at(s, reals[i].at) = (float)number;
    }
    return 0;
}

static const char *rope_kind(const struct json *rope)
{
    const char *type = json_text(json_get(rope, "rope_type"));
    return type ? type : json_text(json_get(rope, "type"));
}

/* Older files have rope_theta at the top and rope_scaling beside it, newer ones both in rope_parameters. */
static int read_rope(const struct json *c, struct gpt_shape *s, const char *path, struct cairn_error *err)
{
    static const char *const places[] = { "rope_scaling", "rope_parameters" };
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        const struct json *rope = json_get(c, places[i]);
        if (!rope || json_is_null(rope))
            continue;
        const char *kind = rope_kind(rope);
        if (!kind || strcmp(kind, "default"))
            return cairn_fail(err, CAIRN_EFORMAT, "%s: \"%s\" of type %.40s is not supported", path,
                              places[i], kind ? kind : "unknown");
        if (json_get(rope, "partial_rotary_factor") &&
            json_number(json_get(rope, "partial_rotary_factor"), 0) != 1)
            return refuse(path, "partial_rotary_factor", json_get(rope, "partial_rotary_factor"), err);
        if (json_get(rope, "rope_theta"))
            s->rope_theta = (float)json_number(json_get(rope, "rope_theta"), 0);
    }
    if (!(s->rope_theta > 0) || !isfinite(s->rope_theta))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: \"rope_theta\" must be a number above 0", path);
    return 0;
}

static int read_llama(const struct json *c, struct gpt_shape *s, const char *path, struct cairn_error *err)
{
    const struct json *window = json_get(c, "sliding_window"), *size = json_get(c, "head_dim");
    bool attention = json_bool(json_get(c, "attention_bias"), false);
    s->norm = NN_NORM_RMS;
    s->rope = s->swiglu = true;
    s->tied = json_bool(json_get(c, "tie_word_embeddings"), false);
    s->bias = json_bool(json_get(c, "mlp_bias"), false);
    if (attention != s->bias)
        return cairn_fail(err, CAIRN_EFORMAT,
                          "%s: \"attention_bias\" and \"mlp_bias\" differ, which is not supported", path);
    if (window && !json_is_null(window) && json_int(window, 0) < (int64_t)s->context)
        return refuse(path, "sliding_window", window, err);
    if (size && !json_is_null(size) && json_int(size, 0) != (int64_t)gpt_head_size(s))
        return refuse(path, "head_dim", size, err);
    return read_rope(c, s, path, err);
}

static int read_own(const struct json *c, struct gpt_shape *s, const char *path, struct cairn_error *err)
{
    bool rms;
    const struct {
        const char *key, *no, *yes;
        bool *out;
    } words[] = {
        { "norm", "layer", "rms", &rms },
        { "position", "learned", "rope", &s->rope },
        { "mlp", "gelu", "swiglu", &s->swiglu },
    };
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        const char *word = json_text(json_get(c, words[i].key));
        if (!word || (strcmp(word, words[i].no) && strcmp(word, words[i].yes)))
            return cairn_fail(err, CAIRN_EFORMAT, "%s: \"%s\" must be \"%s\" or \"%s\"", path, words[i].key,
                              words[i].no, words[i].yes);
        *words[i].out = !strcmp(word, words[i].yes);
    }
    s->norm = rms ? NN_NORM_RMS : NN_NORM_LAYER;
    s->bias = json_bool(json_get(c, "bias"), false);
    s->tied = json_bool(json_get(c, "tie_word_embeddings"), false);
    return 0;
}

static int kind_of(const struct json *c, const char *path, int *kind, struct cairn_error *err)
{
    const char *type = json_text(json_get(c, "model_type"));
    if (!type)
        return cairn_fail(err, CAIRN_EFORMAT, "%s has no \"model_type\"", path);
    *kind = !strcmp(type, "gpt2")                                ? GPT2
            : !strcmp(type, "llama") || !strcmp(type, "mistral") ? LLAMA
            : !strcmp(type, "cairn-gpt")                         ? OWN
                                                                 : 0;
    /* A mixture of experts is named by the key that says so. */
    if (!*kind && check_refusals(c, LLAMA, path, err))
        return -1;
    if (!*kind)
        return cairn_fail(err, CAIRN_EFORMAT,
                          "%s: \"model_type\" %.60s is not one of gpt2, llama, mistral, cairn-gpt", path,
                          type);
    return 0;
}

static int read_shape(const struct json *c, const char *path, struct gpt_shape *s, struct cairn_error *err)
{
    int kind;
    if (kind_of(c, path, &kind, err) || check_refusals(c, kind, path, err) ||
        read_counts(c, kind, s, path, err) || read_reals(c, kind, s, path, err))
        return -1;
    if (kind == LLAMA)
        return read_llama(c, s, path, err);
    if (kind == OWN)
        return read_own(c, s, path, err);
    s->bias = true;
    s->tied = json_bool(json_get(c, "tie_word_embeddings"), true);
    return 0;
}

int gpt_config_read(const char *path, struct gpt_shape *out, struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *c = NULL;
    struct gpt_shape s = { 0 };
    struct cairn_error why = { 0 };
    if (json_read_object(path, &c, err) || read_shape(c, path, &s, err))
        return -1;
    if (gpt_shape_check(&s, &why))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: %s", path, why.msg);
    *out = s;
    return 0;
}

/* ---- writing ---- */

static int kind_for(const struct gpt_shape *s)
{
    bool llama = s->rope && s->swiglu && s->norm == NN_NORM_RMS;
    return gpt_is_gpt2(s) ? GPT2 : llama ? LLAMA : OWN;
}

static const char *torch_name(enum dtype t)
{
    return t == DTYPE_F32 ? "float32" : t == DTYPE_F16 ? "float16" : "bfloat16";
}

static void add_numbers(struct json *c, int kind, const struct gpt_shape *s)
{
    struct gpt_shape copy = *s;
    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        if (counts[i].kinds & kind)
            json_add_int(c, counts[i].name, (int64_t)*count_at(&copy, counts[i].at));
    for (size_t i = 0; i < ARRAY_LEN(reals); i++) {
        float v = *real_at(&copy, reals[i].at);
        if ((reals[i].kinds & kind) && v > 0)
            gpt_config_add_real(c, reals[i].name, v);
    }
}

static void add_gpt2(struct json *c, const struct gpt_shape *s)
{
    json_add_text(c, "activation_function", "gelu_new");
    gpt_config_add_real(c, "resid_pdrop", s->dropout);
    gpt_config_add_real(c, "embd_pdrop", s->dropout);
    json_add_real(c, "attn_pdrop", 0);
}

static void add_llama(struct json *c, const struct gpt_shape *s)
{
    json_add_int(c, "head_dim", (int64_t)gpt_head_size(s));
    json_add_text(c, "hidden_act", "silu");
    json_add_bool(c, "attention_bias", s->bias);
    json_add_bool(c, "mlp_bias", s->bias);
}

static void add_own(struct json *c, const struct gpt_shape *s)
{
    json_add_text(c, "norm", s->norm == NN_NORM_RMS ? "rms" : "layer");
    json_add_text(c, "position", s->rope ? "rope" : "learned");
    json_add_text(c, "mlp", s->swiglu ? "swiglu" : "gelu");
    json_add_bool(c, "bias", s->bias);
}

int gpt_config_write(const struct gpt_shape *s, enum dtype dtype, const char *path, struct cairn_error *err)
{
    int kind = kind_for(s);
    CLEANUP(json_cleanup) struct json *c = json_new_object();
    if (kind != OWN)
        json_add_text(json_add_array(c, "architectures"), NULL,
                      kind == GPT2 ? "GPT2LMHeadModel" : "LlamaForCausalLM");
    json_add_text(c, "model_type", kind == GPT2 ? "gpt2" : kind == LLAMA ? "llama" : "cairn-gpt");
    add_numbers(c, kind, s);
    if (kind == GPT2)
        add_gpt2(c, s);
    else if (kind == LLAMA)
        add_llama(c, s);
    else
        add_own(c, s);
    json_add_bool(c, "tie_word_embeddings", s->tied);
    json_add_text(c, "torch_dtype", torch_name(dtype));
    return gpt_config_save(c, path, err);
}
