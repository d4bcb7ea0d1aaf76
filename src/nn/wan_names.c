/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/wan_names.h"
#include "base/str.h"
#include "tensor/fp8_scaled.h"
#include "tensor/lora_names.h"
#include <fnmatch.h>
#include <string.h>

/* ---- names ---- */

/* Parameters that belong to no module. */
static const struct {
    const char *official, *diffusers; /* how the name ends */
} tables[] = {
    { "head.modulation", "scale_shift_table" },
    { ".modulation", ".scale_shift_table" },
    { "img_emb.emb_pos", "condition_embedder.image_embedder.pos_embed" },
};

static const char *diffusers_name(struct arena *a, const char *official)
{
    static const char *const ends[] = { ".weight", ".bias" };
    size_t len = strlen(official);
    char module[LORA_NAME_MAX];
    for (size_t i = 0; i < ARRAY_LEN(tables); i++)
        if (str_ends(official, tables[i].official))
            return arena_printf(a, "%.*s%s", (int)(len - strlen(tables[i].official)), official,
                                tables[i].diffusers);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        if (!str_ends(official, ends[i]))
            continue;
        const char *own = arena_strndup(a, official, len - strlen(ends[i]));
        if (lora_module_diffusers(own, module, sizeof(module)))
            return arena_printf(a, "%s%s", module, ends[i]);
    }
    return official;
}

const char *wan_names_of(const struct wan_names *n, struct arena *a, const char *official)
{
    return arena_printf(a, "%s%s", n->prefix, n->diffusers ? diffusers_name(a, official) : official);
}

/* ---- files of something else ---- */

/* Patterns of names, "|" between alternatives, and what a file is that has one.  The first row that fits
 * decides. */
struct other_row {
    const char *globs, *what, *hint;
};

static const struct other_row others[] = {
    { "*.lora_A.*|*.lora_B.*|*.lora_down.*|*.lora_up.*|*.lora_A|*.lora_B|*.hada_w1_a|*.lokr_w1", "a LoRA",
      "model.path takes the base model; lora.path takes a LoRA to start from" },
    { "latents_*x*|latents_image_*|*varlen_t5_*|varlen_*", "a cache of latents or captions",
      "model.path takes the base model; data.path takes a folder of caches" },
    { "*encoder.downsamples.*|*decoder.upsamples.*|*encoder.down_blocks.*|*decoder.up_blocks.*|"
      "*decoder.up.0.*",
      "a VAE", "model.path takes the transformer; training from caches needs no VAE" },
    { "*visual.transformer.*|*vision_model.*|visual.*", "an image encoder (CLIP)",
      "model.path takes the transformer" },
    { "*text_model.*", "a text encoder (CLIP)", "model.path takes the transformer" },
    { "*double_blocks.*|*single_transformer_blocks.*", "a transformer of Flux or HunyuanVideo",
      "model.path takes a Wan 2.1 or 2.2 transformer" },
    { "*transformer_blocks.*attn1*|*input_blocks.*|*down_blocks.*", "a U-Net of Stable Diffusion or LTX",
      "model.path takes a Wan 2.1 or 2.2 transformer" },
    { "*transformer_blocks.*|*joint_blocks.*", "a transformer of another image or video model",
      "model.path takes a Wan 2.1 or 2.2 transformer" },
    { "*wte.weight|*.embed_tokens.weight|*.self_attn.q_proj.weight", "a language model",
      "model.kind: gpt trains language models" },
};

/* The text encoder is told apart by whether it is fp8. */
static const char text_encoder_globs[] = "*.SelfAttention.*|*blocks.0.pos_embedding.*|shared.weight|"
                                         "token_embedding.weight";

/* Models that are Wan and more. */
static const struct other_row relatives[] = {
    { "vace_*", "a VACE model", NULL },
    { "img_emb.emb_pos|condition_embedder.image_embedder.pos_embed", "an FLF2V model (first and last frame)",
      NULL },
    { "casual_audio_encoder.*|audio_injector.*|audio_proj.*|audio_model.*", "a speech-to-video model", NULL },
    { "face_adapter.*|face_encoder.*|motion_encoder.*", "an Animate model", NULL },
    { "control_adapter.*|ref_conv.*", "a Fun model with camera control or a reference image", NULL },
};

static bool fits(const char *name, const char *globs)
{
    for (const char *g = globs; *g;) {
        size_t n = strcspn(g, "|");
        char glob[128];
        if (n < sizeof(glob)) {
            memcpy(glob, g, n);
            glob[n] = '\0';
            if (!fnmatch(glob, name, 0))
                return true;
        }
        g += n + (g[n] == '|');
    }
    return false;
}

/* The first tensor whose name, after the prefix, fits one of the patterns. */
static const struct st_tensor *find_glob(const struct tensor_source *s, const char *prefix, const char *globs)
{
    for (size_t i = 0; i < s->n_tensors; i++)
        if (str_starts(s->tensors[i].name, prefix) && fits(s->tensors[i].name + strlen(prefix), globs))
            return &s->tensors[i];
    return NULL;
}

static bool has_fp8(const struct tensor_source *s)
{
    for (size_t i = 0; i < s->n_tensors; i++)
        if (fp8_is(s->tensors[i].dtype))
            return true;
    return false;
}

static int refuse_other(const struct tensor_source *s, struct cairn_error *err)
{
    const struct st_tensor *found = find_glob(s, "", text_encoder_globs);
    if (found) {
        cairn_fail(err, CAIRN_EFORMAT, "%s is %s text encoder (umT5), not a Wan transformer: it has %.80s",
                   s->path, has_fp8(s) ? "an fp8" : "a", found->name);
        return cairn_hint(err,
                          "model.path takes the transformer; training from caches needs no text encoder");
    }
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        found = find_glob(s, "", others[i].globs);
        if (found) {
            cairn_fail(err, CAIRN_EFORMAT, "%s is %s, not a Wan transformer: it has %.80s", s->path,
                       others[i].what, found->name);
            return cairn_hint(err, "%s", others[i].hint);
        }
    }
    cairn_fail(err, CAIRN_EFORMAT, "%s is not a Wan transformer: it has no head.modulation%s%.80s", s->path,
               s->n_tensors ? "; its first tensor is " : " and no tensor at all",
               s->n_tensors ? s->tensors[0].name : "");
    return cairn_hint(err, "model.path takes a Wan 2.1 or 2.2 transformer");
}

static int refuse_relative(const struct tensor_source *s, const struct wan_names *n, struct cairn_error *err)
{
    for (size_t i = 0; i < ARRAY_LEN(relatives); i++) {
        const struct st_tensor *found = find_glob(s, n->prefix, relatives[i].globs);
        if (found) {
            cairn_fail(err, CAIRN_EFORMAT, "%s is %s of Wan, which is not supported: it has %.80s", s->path,
                       relatives[i].what, found->name);
            return cairn_hint(err, "T2V, I2V and TI2V models can be trained");
        }
    }
    return 0;
}

/* ---- which names a file has ---- */

/* What stands before `end`, a whole part of the name; NULL: it does not end so. */
static const char *before_end(struct arena *a, const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    if (!str_ends(name, end) || (n > k && name[n - k - 1] != '.'))
        return NULL;
    return arena_strndup(a, name, n - k);
}

int wan_names_find(const struct tensor_source *s, struct arena *a, struct wan_names *out,
                   struct cairn_error *err)
{
    const char *first = NULL;
    for (size_t i = 0; i < s->n_tensors; i++) {
        const char *name = s->tensors[i].name;
        const char *official = before_end(a, name, "head.modulation");
        const char *diffusers = before_end(a, name, "condition_embedder.time_proj.weight");
        if (!official && !diffusers)
            continue;
        if (first)
            return cairn_fail(err, CAIRN_EFORMAT, "%s contains two models: %s and %s", s->path, first, name);
        first = name;
        *out = (struct wan_names){ official ? official : diffusers, !official };
    }
    return first ? refuse_relative(s, out, err) : refuse_other(s, err);
}
