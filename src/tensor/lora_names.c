/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/lora_names.h"

#include "base/str.h"
#include <stdio.h>
#include <string.h>

/* The modules of Wan by the model's own name and by diffusers'.  N is a block's number.  Norms are numbered
 * in the order of execution by diffusers: its norm2 is the model's norm3, and only that one has
 * parameters. */
// clang-format off
static const struct module_row {
    const char *own, *diffusers;
} modules[] = {
    { "blocks.N.self_attn.q",           "blocks.N.attn1.to_q" },
    { "blocks.N.self_attn.k",           "blocks.N.attn1.to_k" },
    { "blocks.N.self_attn.v",           "blocks.N.attn1.to_v" },
    { "blocks.N.self_attn.o",           "blocks.N.attn1.to_out.0" },
    { "blocks.N.self_attn.norm_q",      "blocks.N.attn1.norm_q" },
    { "blocks.N.self_attn.norm_k",      "blocks.N.attn1.norm_k" },
    { "blocks.N.cross_attn.q",          "blocks.N.attn2.to_q" },
    { "blocks.N.cross_attn.k",          "blocks.N.attn2.to_k" },
    { "blocks.N.cross_attn.v",          "blocks.N.attn2.to_v" },
    { "blocks.N.cross_attn.o",          "blocks.N.attn2.to_out.0" },
    { "blocks.N.cross_attn.norm_q",     "blocks.N.attn2.norm_q" },
    { "blocks.N.cross_attn.norm_k",     "blocks.N.attn2.norm_k" },
    { "blocks.N.cross_attn.k_img",      "blocks.N.attn2.add_k_proj" },
    { "blocks.N.cross_attn.v_img",      "blocks.N.attn2.add_v_proj" },
    { "blocks.N.cross_attn.norm_k_img", "blocks.N.attn2.norm_added_k" },
    { "blocks.N.ffn.0",                 "blocks.N.ffn.net.0.proj" },
    { "blocks.N.ffn.2",                 "blocks.N.ffn.net.2" },
    { "blocks.N.norm3",                 "blocks.N.norm2" },
    { "patch_embedding",                "patch_embedding" },
    { "text_embedding.0",               "condition_embedder.text_embedder.linear_1" },
    { "text_embedding.2",               "condition_embedder.text_embedder.linear_2" },
    { "time_embedding.0",               "condition_embedder.time_embedder.linear_1" },
    { "time_embedding.2",               "condition_embedder.time_embedder.linear_2" },
    { "time_projection.1",              "condition_embedder.time_proj" },
    { "head.head",                      "proj_out" },
    { "img_emb.proj.0",                 "condition_embedder.image_embedder.norm1" },
    { "img_emb.proj.1",                 "condition_embedder.image_embedder.ff.net.0.proj" },
    { "img_emb.proj.3",                 "condition_embedder.image_embedder.ff.net.2" },
    { "img_emb.proj.4",                 "condition_embedder.image_embedder.norm2" },
};

/* How a key ends.  A part of LORA_PART_COUNT is known and refused, with the reason. */
static const struct {
    const char *text;
    enum lora_part part;
    const char *refused;
} suffixes[] = {
    { ".lora_down.weight",              LORA_DOWN,   NULL },
    { ".lora_up.weight",                LORA_UP,     NULL },
    { ".lora_A.weight",                 LORA_DOWN,   NULL },
    { ".lora_B.weight",                 LORA_UP,     NULL },
    { ".lora_A.default.weight",         LORA_DOWN,   NULL },
    { ".lora_B.default.weight",         LORA_UP,     NULL },
    { ".lora.down.weight",              LORA_DOWN,   NULL },
    { ".lora.up.weight",                LORA_UP,     NULL },
    { "_lora.down.weight",              LORA_DOWN,   NULL },
    { "_lora.up.weight",                LORA_UP,     NULL },
    { ".lora_linear_layer.down.weight", LORA_DOWN,   NULL },
    { ".lora_linear_layer.up.weight",   LORA_UP,     NULL },
    { ".lora_embedding_A",              LORA_DOWN,   NULL },
    { ".lora_embedding_B",              LORA_UP,     NULL },
    { ".lora_embedding_A.default",      LORA_DOWN,   NULL },
    { ".lora_embedding_B.default",      LORA_UP,     NULL },
    { ".lora_B.bias",                   LORA_UP_BIAS, NULL },
    { ".lora_B.default.bias",           LORA_UP_BIAS, NULL },
    { ".alpha",                         LORA_ALPHA,  NULL },
    { ".diff",                          LORA_DIFF,   NULL },
    { ".diff_b",                        LORA_DIFF_B, NULL },
    { ".dora_scale",                    LORA_PART_COUNT, "DoRA" },
    { ".lora_magnitude_vector",         LORA_PART_COUNT, "DoRA" },
    { ".lora_mid.weight",               LORA_PART_COUNT, "LoCon with a middle matrix" },
    { ".hada_w1_a",                     LORA_PART_COUNT, "LoHa" },
    { ".hada_w1_b",                     LORA_PART_COUNT, "LoHa" },
    { ".hada_w2_a",                     LORA_PART_COUNT, "LoHa" },
    { ".hada_w2_b",                     LORA_PART_COUNT, "LoHa" },
    { ".lokr_w1",                       LORA_PART_COUNT, "LoKr" },
    { ".lokr_w1_a",                     LORA_PART_COUNT, "LoKr" },
    { ".lokr_w1_b",                     LORA_PART_COUNT, "LoKr" },
    { ".lokr_w2",                       LORA_PART_COUNT, "LoKr" },
    { ".lokr_w2_a",                     LORA_PART_COUNT, "LoKr" },
    { ".lokr_w2_b",                     LORA_PART_COUNT, "LoKr" },
    { ".lokr_t2",                       LORA_PART_COUNT, "LoKr" },
};

/* How a key begins, the longer of two first.  LORA_ANY: the module's spelling tells the dialect. */
static const struct {
    const char *text;
    enum lora_dialect dialect;
    enum lora_expert expert;
} prefixes[] = {
    { "lora_unet__",                   LORA_MUSUBI, LORA_EXPERT_ANY }, /* Wan-Fun */
    { "lora_unet_",                    LORA_MUSUBI, LORA_EXPERT_ANY },
    { "diffusion_model.transformer_1.", LORA_COMFY, LORA_EXPERT_HIGH }, /* ai-toolkit, both experts in one file */
    { "diffusion_model.transformer_2.", LORA_COMFY, LORA_EXPERT_LOW },
    { "diffusion_model.",              LORA_COMFY, LORA_EXPERT_ANY },
    { "transformer_2.",                LORA_DIFFUSERS, LORA_EXPERT_LOW },
    { "transformer.",                  LORA_DIFFUSERS, LORA_EXPERT_ANY },
    { "base_model.model.",             LORA_ANY, LORA_EXPERT_ANY }, /* PEFT's own files */
    { "",                              LORA_ANY, LORA_EXPERT_ANY },
};

/* What PEFT puts before the name of a module, and into it. */
static const char peft_prefix[] = "base_model.model.";
static const char *const peft_wrappers[] = { ".base_layer", ".modules_to_save.default", ".modules_to_save" };

/* What stands before the names of a checkpoint, the longer first. */
static const char *const base_prefixes[] = {
    "model.diffusion_model.", "diffusion_model.", "model.model.", "model.", "net.", "transformer.", "",
};

static const struct {
    const char *name;
    enum lora_dialect dialect;
} dialect_names[] = {
    { "musubi", LORA_MUSUBI },       { "kohya", LORA_MUSUBI },
    { "comfy", LORA_COMFY },         { "comfyui", LORA_COMFY },
    { "diffusers", LORA_DIFFUSERS }, { "peft", LORA_DIFFUSERS },
};

/* What to call a part that a dialect does not have. */
static const char *const part_keys[LORA_PART_COUNT] = { ".lora_A.weight", ".lora_B.weight", ".alpha", ".diff",
                                                        ".diff_b", ".lora_B.bias", ".weight", ".bias" };

/* How each dialect writes: the prefix and the parts; NULL: it has no such key. */
static const struct {
    const char *prefix;
    const char *parts[LORA_PART_COUNT];
} dialects[LORA_DIALECT_COUNT] = {
    [LORA_MUSUBI]    = { "lora_unet_",       { ".lora_down.weight", ".lora_up.weight", ".alpha", ".diff", ".diff_b" } },
    [LORA_COMFY]     = { "diffusion_model.", { ".lora_A.weight", ".lora_B.weight", ".alpha", ".diff", ".diff_b" } },
    [LORA_DIFFUSERS] = { "transformer.",     { ".lora_A.weight", ".lora_B.weight", NULL, NULL, NULL } },
};
// clang-format on

const char *lora_dialect_name(enum lora_dialect d)
{
    for (size_t i = 0; i < ARRAY_LEN(dialect_names); i++)
        if (dialect_names[i].dialect == d)
            return dialect_names[i].name;
    return "any";
}

enum lora_dialect lora_dialect_parse(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(dialect_names); i++)
        if (!strcmp(dialect_names[i].name, name))
            return dialect_names[i].dialect;
    return LORA_ANY;
}

/* A block's number: up to four digits, no zeros in front, so that writing it again gives the same text. */
static size_t number_span(const char *text)
{
    size_t n = strspn(text, "0123456789");
    return n > 4 || (n > 1 && *text == '0') ? 0 : n;
}

/* Does text read like the pattern, with `dot` standing for its dots?  *number is where N was. */
static bool matches(const char *pattern, const char *text, char dot, const char **number)
{
    for (; *pattern; pattern++) {
        if (*pattern == 'N') {
            size_t n = number_span(text);
            if (!n)
                return false;
            *number = text;
            text += n;
        } else if (*text++ != (*pattern == '.' ? dot : *pattern)) {
            return false;
        }
    }
    return !*text;
}

/* The pattern with the number in N's place and `dot` for its dots; false if it does not fit. */
static bool fill(const char *pattern, const char *number, char dot, char *out, size_t size)
{
    size_t n = number ? number_span(number) : 0, at = 0;
    for (; *pattern; pattern++) {
        if (at + n + 1 >= size)
            return false;
        if (*pattern == 'N') {
            memcpy(out + at, number, n);
            at += n;
        } else {
            out[at++] = *pattern == '.' ? dot : *pattern;
        }
    }
    out[at] = '\0';
    return true;
}

enum spelling { SPELLED_OWN = 1, SPELLED_DIFFUSERS = 2 };

/* Which row of the table a module's text is, and in which spellings; NULL: none. */
static const struct module_row *find_module(const char *text, char dot, const char **number,
                                            unsigned *spelling)
{
    for (size_t i = 0; i < ARRAY_LEN(modules); i++) {
        bool own = matches(modules[i].own, text, dot, number);
        bool diffusers = dot == '.' && matches(modules[i].diffusers, text, dot, number);
        *spelling = (own ? SPELLED_OWN : 0u) | (diffusers ? SPELLED_DIFFUSERS : 0u);
        if (*spelling)
            return &modules[i];
    }
    return NULL;
}

static const char *skip_base_prefix(const char *text)
{
    size_t i = 0;
    while (!str_starts(text, base_prefixes[i]))
        i++;
    return text + strlen(base_prefixes[i]); /* the last row is empty and fits everything */
}

/* The model's own name of a module; one that is in no table is taken as it is, without a checkpoint's
 * prefix. */
static bool own_name(const char *text, char dot, char *module, bool *known, unsigned *spelling)
{
    const char *number = NULL;
    const struct module_row *row = find_module(text, dot, &number, spelling);
    if (!row) {
        text = skip_base_prefix(text);
        row = find_module(text, '.', &number, spelling);
    }
    *known = row != NULL;
    if (row)
        return fill(row->own, number, '.', module, LORA_NAME_MAX);
    return *text && (size_t)snprintf(module, LORA_NAME_MAX, "%s", text) < LORA_NAME_MAX;
}

/* The key without its suffix, in out; the row of the suffix, or the count of rows. */
static size_t cut_suffix(const char *key, char *out)
{
    size_t len = strlen(key);
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        size_t n = strlen(suffixes[i].text);
        if (len <= n || len - n >= LORA_NAME_MAX || strcmp(key + len - n, suffixes[i].text))
            continue;
        memcpy(out, key, len - n);
        out[len - n] = '\0';
        return i;
    }
    return ARRAY_LEN(suffixes);
}

static size_t find_prefix(const char *key)
{
    size_t i = 0;
    while (!str_starts(key, prefixes[i].text))
        i++;
    return i; /* the last row is empty and fits everything */
}

static enum lora_dialect dialect_of(enum lora_dialect prefix, unsigned spelling)
{
    if (prefix != LORA_ANY)
        return prefix;
    return spelling == SPELLED_OWN ? LORA_COMFY : spelling == SPELLED_DIFFUSERS ? LORA_DIFFUSERS : LORA_ANY;
}

int lora_name_parse(const char *key, struct lora_name *out, struct cairn_error *err)
{
    char rest[LORA_NAME_MAX];
    size_t s = cut_suffix(key, rest);
    if (s == ARRAY_LEN(suffixes))
        return cairn_fail(err, CAIRN_EFORMAT, "\"%.200s\" is not the name of a LoRA tensor", key);
    if (suffixes[s].refused)
        return cairn_fail(err, CAIRN_EFORMAT, "\"%.200s\" is %s, which is not supported", key,
                          suffixes[s].refused);
    size_t p = find_prefix(rest);
    struct lora_name name = { .part = suffixes[s].part, .expert = prefixes[p].expert };
    name.embedding = str_starts(suffixes[s].text, ".lora_embedding");
    char dot = prefixes[p].dialect == LORA_MUSUBI ? '_' : '.';
    unsigned spelling;
    if (!own_name(rest + strlen(prefixes[p].text), dot, name.module, &name.known, &spelling))
        return cairn_fail(err, CAIRN_EFORMAT, "\"%.200s\" names no module", key);
    name.dialect = dialect_of(prefixes[p].dialect, spelling);
    *out = name;
    return 0;
}

int lora_name_format(const char *module, enum lora_part part, enum lora_dialect d, char *key, size_t size,
                     struct cairn_error *err)
{
    const char *number = NULL, *suffix = dialects[d].parts[part];
    unsigned spelling;
    const struct module_row *row = find_module(module, '.', &number, &spelling);
    if (!row || !(spelling & SPELLED_OWN))
        return cairn_fail(err, CAIRN_EFORMAT, "%s has no name in the %s dialect", module,
                          lora_dialect_name(d));
    if (!suffix)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: the %s dialect has no \"%s\"", module,
                          lora_dialect_name(d), part_keys[part]);
    char name[LORA_NAME_MAX];
    const char *pattern = d == LORA_DIFFUSERS ? row->diffusers : row->own;
    if (!fill(pattern, number, d == LORA_MUSUBI ? '_' : '.', name, sizeof(name)) ||
        (size_t)snprintf(key, size, "%s%s%s", dialects[d].prefix, name, suffix) >= size)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: the name is too long", module);
    return 0;
}

bool lora_module_diffusers(const char *module, char *name, size_t size)
{
    const char *number = NULL;
    unsigned spelling;
    const struct module_row *row = find_module(module, '.', &number, &spelling);
    return row && (spelling & SPELLED_OWN) && fill(row->diffusers, number, '.', name, size);
}

bool lora_base_name(const char *key, char *module, bool *is_bias)
{
    static const char *const ends[] = { ".weight", ".bias" };
    key = skip_base_prefix(key);
    size_t len = strlen(key);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        size_t n = strlen(ends[i]);
        char text[LORA_NAME_MAX];
        bool known;
        unsigned spelling;
        if (!str_ends(key, ends[i]) || len <= n || len - n >= sizeof(text))
            continue;
        snprintf(text, sizeof(text), "%.*s", (int)(len - n), key);
        *is_bias = i == 1;
        return own_name(text, '.', module, &known, &spelling);
    }
    return false;
}

/* Without the modules that PEFT wraps around it. */
static void unwrap(char *path)
{
    for (size_t i = 0; i < ARRAY_LEN(peft_wrappers); i++) {
        char *at = strstr(path, peft_wrappers[i]);
        size_t n = strlen(peft_wrappers[i]);
        if (at && (at[n] == '.' || !at[n]))
            memmove(at, at + n, strlen(at + n) + 1);
    }
}

bool lora_name_parse_whole(const char *key, struct lora_name *out)
{
    char path[LORA_NAME_MAX];
    struct lora_name name = { 0 };
    bool is_bias;
    if (!str_starts(key, peft_prefix) ||
        (size_t)snprintf(path, sizeof(path), "%s", key + strlen(peft_prefix)) >= sizeof(path))
        return false;
    unwrap(path);
    if (!lora_base_name(path, name.module, &is_bias))
        return false;
    name.part = is_bias ? LORA_WHOLE_B : LORA_WHOLE;
    *out = name;
    return true;
}

void lora_name_path(const char *key, char *path)
{
    char rest[LORA_NAME_MAX];
    if (cut_suffix(key, rest) == ARRAY_LEN(suffixes)) {
        snprintf(rest, sizeof(rest), "%s", key);
        char *dot = strrchr(rest, '.');
        if (dot)
            *dot = '\0';
    }
    snprintf(path, LORA_NAME_MAX, "%s", str_starts(rest, peft_prefix) ? rest + strlen(peft_prefix) : rest);
    unwrap(path);
}

int lora_module_compare(const char *a, const char *b)
{
    for (;; a++, b++) {
        int x = *a == '.' ? '_' : (unsigned char)*a, y = *b == '.' ? '_' : (unsigned char)*b;
        if (x != y || !x)
            return x - y;
    }
}
