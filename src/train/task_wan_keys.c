/* SPDX-License-Identifier: Apache-2.0
 * Configuration of a LoRA for a Wan video model: keys, defaults and checks. */
#include "media/dataset.h"
#include "train/config_rows.h"
#include "train/task_wan.h"
#include "video/prompts.h"
#include <inttypes.h>
#include <string.h>

/* clang-format off */
const char *const wan_experts_words[] = { [WAN_TRAIN_AUTO] = "auto", [WAN_TRAIN_LOW] = "low", [WAN_TRAIN_HIGH] = "high",
    [WAN_TRAIN_BOTH] = "both", NULL };
static const char *const lora_experts[] = { [WAN_LORA_ONE] = "one", [WAN_LORA_TWO] = "two", NULL };
static const char *const recipes[] = { [FLOW_MUSUBI] = "musubi", [FLOW_AI_TOOLKIT] = "ai-toolkit", NULL };
static const char *const formats[] = { [WAN_SAVE_COMFY] = "comfy", [WAN_SAVE_MUSUBI] = "musubi",
    [WAN_SAVE_DIFFUSERS] = "diffusers", NULL };
static const char *const files[] = { [LORA_FILES_NONE] = "none", [LORA_FILES_AI_TOOLKIT] = "ai-toolkit",
    [LORA_FILES_MUSUBI] = "musubi", NULL };
static const char *const encoder_devices[] = { [WAN_ENCODER_AUTO] = "auto", [WAN_ENCODER_CPU] = "cpu", NULL };
static const char *const solvers[] = { [WAN_SAMPLE_UNIPC] = "unipc", [WAN_SAMPLE_EULER] = "euler", NULL };
static const char *const sample_formats[] = { [WAN_SAMPLE_AUTO] = "auto", [WAN_SAMPLE_PNG] = "png", [WAN_SAMPLE_JPEG] = "jpeg",
    [WAN_SAMPLE_WEBP] = "webp", [WAN_SAMPLE_MP4] = "mp4", NULL };
static const char *const dtypes[] = { [WAN_SAVE_BF16] = "bf16", [WAN_SAVE_F16] = "f16", [WAN_SAVE_F32] = "f32", NULL };

#define KEY(...) CONFIG_KEY(struct wan_keys, __VA_ARGS__)

static const struct config_key keys[] = {
    KEY(model.high_noise_path, "", "high-noise expert of Wan 2.2 A14B, where model.path is not a folder with both", IS_PATH),
    KEY(model.task, "", "t2v-1.3B, t2v-14B, i2v-14B, t2v-A14B, i2v-A14B or ti2v-5B; empty: by the model's files"),
    KEY(model.expert, "auto", "expert of Wan 2.2 A14B to train; auto: both if both are there", .words = wan_experts_words),
    KEY(model.heads, "0", "attention heads; 0: a head size of 128, which all released models have", FROM(0, 1024)),
    KEY(model.vae_path, "", "VAE of Wan, a file or a folder: makes the caches of latents", IS_PATH),
    KEY(model.text_encoder_path, "", "umT5-XXL, a file or a folder: makes the caches of captions", IS_PATH),
    KEY(model.tokenizer_path, "", "tokenizer of umT5 (tokenizer.json, spiece.model); empty: in or beside the text encoder's files", IS_PATH),
    KEY(model.boundary, "0", "time between the experts, 0 to 1; 0: 0.875 for T2V, 0.9 for I2V", SHARE),

    KEY(lora.experts, "two", "with both experts: a LoRA for each, or one for both as musubi-tuner trains it",
        .words = lora_experts),
    KEY(lora.high_noise_path, "", "LoRA of the high-noise expert to start from, where lora.path is that of the other", IS_PATH),

    KEY(data.path, "[]", "required: folders of caches (*_wan.safetensors), folders of images and clips, or a dataset file of musubi-tuner or ai-toolkit", IS_PATH),
    KEY(data.size, "", "size of the largest clip in pixels, for a plan before there are caches: WIDTHxHEIGHTxFRAMES"),
    KEY(data.resolution, "[832x480]", "images and clips: WIDTHxHEIGHT or a side; buckets have its area; several: each file at each"),
    KEY(data.frames, "[81]", "clips: most frames of a sample, 4n+1; several: a sample of each length"),
    KEY(data.fps, "0", "clips: frame rate to train at; frames of faster clips are dropped; 0: that of the model", UNIT("frames per second"), FROM(0, 1000)),
    KEY(data.extraction, "", "clips: which frames; head, chunk, slide, uniform or full as in musubi-tuner; empty: full, up to data.frames"),
    KEY(data.buckets, "true", "images and clips keep about their aspect ratio; false: all are cropped to data.resolution"),
    KEY(data.upscale, "true", "enlarge images and clips that are smaller than their bucket; false: they keep their size"),
    KEY(data.flip, "false", "add a mirrored copy of each image and clip"),
    KEY(data.repeats, "1", "how often an item is in an epoch", FROM(1, 10000)),
    KEY(data.caption_extension, ".txt", "captions are in files with the stem of the image or clip and this extension"),
    KEY(data.caption_default, "", "caption of files that have none; empty: such files are left out"),
    KEY(data.caption_dropout, "0", "share of the samples that are trained with the empty caption, which `cairn cache` encodes too", UNIT("share"), SHARE),
    KEY(data.trigger, "", "trigger word: put in front of captions that do not have it, and in place of [trigger]"),
    KEY(data.val_split, "0", "share of the items held out for validation", UNIT("share"), SHARE),

    KEY(train.recipe, "musubi", "whose meaning of timesteps, weights and boundary applies", .words = recipes),
    KEY(train.timesteps, "", "distribution of timesteps; musubi: uniform, sigmoid, shift, flux_shift, qwen_shift, logsnr, qinglong_flux, qinglong_qwen or sigma; ai-toolkit: linear, weighted, sigmoid, shift, lognorm_blend, one_step, two_step, four_step or eight_step; empty: shift, or for ai-toolkit linear"),
    KEY(train.shift, "0", "shift of the timesteps towards noise; 0: 3 for Wan 2.1, 12 for T2V-A14B, else 5", FROM(0, 1000)),
    KEY(train.sigmoid_scale, "1", "timesteps sigmoid and shift: scale of the normal number", ABOVE_0(1000)),
    KEY(train.weighting, "none", "loss weight per timestep: none, sigma_sqrt or cosmap; for timesteps sigma also their density: logit_normal or mode"),
    KEY(train.logit_mean, "0", "mean of logit_normal and logsnr", FROM(-1000, 1000)),
    KEY(train.logit_std, "1", "standard deviation of logit_normal and logsnr", ABOVE_0(1000)),
    KEY(train.mode_scale, "1.29", "weighting mode: its scale", FROM(-1000, 1000)),
    KEY(train.min_timestep, "0", "smallest timestep", FROM(0, 1000)),
    KEY(train.max_timestep, "1000", "largest timestep", FROM(0, 1000)),
    KEY(train.preserve_distribution_shape, "false", "cut the distribution to min_timestep and max_timestep by drawing again; false: squeeze it into the range"),
    KEY(train.timestep_buckets, "0", "stratified timesteps: buckets per epoch; 0: none", FROM(0, 1000000)),
    KEY(train.content_or_style, "balanced", "ai-toolkit: content prefers much noise, style little"),
    KEY(train.switch_every, "0", "steps before the expert may change, with both experts; 0: 1, or 20 where the experts take turns in memory", UNIT("steps"),
        FROM(0, 1000000)),
    KEY(train.clean_first_frame, "false", "ti2v-5B: the first frame has no noise and no loss (image to video)"),

    KEY(cache.dir, "", "folder for caches; empty: _cairn_cache in each folder of images and clips", IS_PATH),
    KEY(cache.dtype, "bf16", "number format of caches", .words = dtypes),
    KEY(cache.repair, "false", "replace NaN and Inf in latents by 0, and count them; false: they are an error"),
    KEY(text_encoder.device, "auto", "auto: the device of the job; cpu", .words = encoder_devices),
    KEY(vae.device, "auto", "the same for the VAE", .words = encoder_devices),
    KEY(sample.first, "true", "make samples before the first step too"),
    KEY(sample.prompts, "[]", "prompts of samples; each may have musubi-tuner's options: \"a cat --w 832 --h 480 --f 33 --d 7 --n blurry --i first.png\""),
    KEY(sample.file, "", "file with more prompts, as musubi-tuner reads it (.txt, .toml, .json)", IS_PATH),
    KEY(sample.negative, "", "negative prompt of samples with CFG"),
    KEY(sample.size, "", "WIDTHxHEIGHTxFRAMES of samples; empty: that of the largest item of the data"),
    KEY(sample.fps, "0", "frame rate of the files; 0: that of the model, 16 or for ti2v-5B 24", UNIT("frames per second"), FROM(0, 1000)),
    KEY(sample.steps, "20", "steps from noise to a sample", UNIT("steps"), FROM(1, 1000)),
    KEY(sample.cfg, "0", "guidance scale (CFG); 1: off, which takes half the time; 0: 3 for t2v-A14B, 3.5 for i2v-A14B, else 5", FROM(0, 1000)),
    KEY(sample.cfg_high, "0", "the same for the high-noise expert; 0: 4 for t2v-A14B if sample.cfg is 0, else sample.cfg", FROM(0, 1000)),
    KEY(sample.shift, "0", "shift of the timesteps of samples; 0: 12 for t2v-A14B, else 5", FROM(0, 1000)),
    KEY(sample.solver, "unipc", "how a step is computed: unipc as in musubi-tuner and Wan, euler as in ai-toolkit", .words = solvers),
    KEY(sample.seed, "42", "random seed of samples; the same seed gives the same noise at every step", FROM(0, 9007199254740992)),
    KEY(sample.walk_seed, "false", "prompt number i, counted from 0, has the seed sample.seed + i"),
    KEY(sample.loras, "[]", "further LoRAs for samples alone, FILE or FILE:STRENGTH, such as one for few steps", IS_PATH),
    KEY(sample.format, "auto", "auto: png for one frame, mp4 for several; webp is animated; a clip as png or jpeg has its frames in one picture", .words = sample_formats),
    KEY(save.format, "comfy", "names in lora.safetensors, for ComfyUI, musubi-tuner or diffusers", .words = formats),
    KEY(save.dtype, "bf16", "number format of lora.safetensors; checkpoints keep the exact values too", .words = dtypes),
    KEY(save.files, "none", "puts each LoRA into the run's folder too, with the names and metadata of this program; none: only into checkpoints", .words = files),
    KEY(save.name, "", "what the names of those files begin with; empty: run.name"),
    KEY(save.split, "true", "with a LoRA for each expert: a file for each; false: one file for both, as in ai-toolkit"),
    KEY(save.epochs, "0", "also save after every so many epochs; 0: only as checkpoint.every says", UNIT("epochs"), FROM(0, 1000000)),
    KEY(save.meta, "[]", "more metadata for the files, each KEY=VALUE"),
};

static const struct config_section sections[] = {
    { "cache", "latents and captions, encoded once" },
    { "text_encoder", "umT5, which encodes captions" },
    { "vae", "the VAE, which encodes pixels" },
    { "save", "the LoRA's files, for other programs" },
};

/* What people train these models with: alpha = rank keeps the strength the same at any rank. */
static const struct config_preset presets[] = {
    { "lora.rank", "32" },          { "train.batch", "1" },           { "train.steps", "2000" },
    { "train.lr", "1e-4" },         { "train.schedule", "constant" }, { "train.warmup", "100" },
    { "train.beta2", "0.999" },     { "train.weight_decay", "0.01" }, { "train.recompute", "blocks" },
    { "checkpoint.every", "250" },  { "eval.every", "250" },
};
/* clang-format on */

const struct wan_keys *wan_keys(const struct job_config *c)
{
    return c->own;
}

static int bad_word(const struct job_config *c, const char *key, const char *other,
                    const struct cairn_error *why, struct cairn_error *err)
{
    config_clash(c, key, other, err, "%s: %s", key, why->msg);
    return cairn_hint(err, "%s", why->hint);
}

static int check_words(const struct job_config *c, struct cairn_error *err)
{
    const struct wan_keys *k = wan_keys(c);
    struct cairn_error why = { 0 };
    enum flow_sampling sampling;
    enum flow_weighting weighting;
    enum flow_bias bias;
    enum dataset_extract extract;
    if (*k->data.extraction && dataset_extract_parse(k->data.extraction, &extract, &why))
        return bad_word(c, "data.extraction", "data.extraction", &why, err);
    if (*k->train.timesteps && flow_sampling_parse(k->train.recipe, k->train.timesteps, &sampling, &why))
        return bad_word(c, "train.timesteps", "train.recipe", &why, err);
    if (flow_weighting_parse(k->train.weighting, &weighting, &why))
        return bad_word(c, "train.weighting", "train.weighting", &why, err);
    if (flow_bias_parse(k->train.content_or_style, &bias, &why))
        return bad_word(c, "train.content_or_style", "train.content_or_style", &why, err);
    return 0;
}

static int check_save(const struct job_config *c, struct cairn_error *err)
{
    const struct wan_keys *k = wan_keys(c);
    if (!k->save.split && k->save.format != WAN_SAVE_COMFY)
        return config_clash(c, "save.split", "save.format", err,
                            "save.split is false, but only save.format: comfy has files for both experts");
    if (k->save.name[0] == '.' || strchr(k->save.name, '/'))
        return config_clash(c, "save.name", "save.name", err,
                            "save.name is \"%.60s\"; it is part of a file name, without folders",
                            k->save.name);
    for (size_t i = 0; i < k->save.meta.n; i++) {
        const char *item = k->save.meta.item[i];
        size_t key = strcspn(item, "=");
        if (!key || !item[key])
            return config_clash(c, "save.meta", "save.meta", err, "save.meta: \"%.60s\" is not KEY=VALUE",
                                item);
    }
    return 0;
}

static int check_samples(const struct job_config *c, struct cairn_error *err)
{
    const struct wan_keys *k = wan_keys(c);
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error why = { 0 };
    struct wan_pixels size;
    struct sample_prompt prompt;
    if (c->sample.every && !k->sample.prompts.n && !k->sample.file[0])
        return config_clash(c, "sample.every", "sample.prompts", err,
                            "sample.every is %" PRId64 ", but there are no prompts: set sample.prompts",
                            c->sample.every);
    if (k->sample.size[0] && wan_pixels_parse(k->sample.size, &size, &why))
        return bad_word(c, "sample.size", "sample.size", &why, err);
    for (size_t i = 0; i < k->sample.prompts.n; i++)
        if (prompt_parse(k->sample.prompts.item[i], &a, &prompt, &why))
            return bad_word(c, "sample.prompts", "sample.prompts", &why, err);
    return 0;
}

static int check(const struct job_config *c, struct cairn_error *err)
{
    const struct wan_keys *k = wan_keys(c);
    struct cairn_error why = { 0 };
    struct wan_pixels size;
    bool has_data = k->data.path.n && k->data.path.item[0][0];
    if (!has_data && !k->data.size[0])
        return config_clash(c, "data.path", "data.path", err,
                            "data.path is missing: it names folders of caches, or of images and clips");
    if (k->data.size[0] && wan_pixels_parse(k->data.size, &size, &why))
        return config_clash(c, "data.size", "data.size", err, "data.size: %s", why.msg);
    if (!c->model.path[0] && !k->model.high_noise_path[0] && !k->model.task[0])
        return config_clash(c, "model.path", "model.path", err,
                            "model.path is missing: it names the Wan transformer");
    if (!c->lora.rank && !c->lora.path[0])
        return config_clash(c, "lora.rank", "lora.rank", err,
                            "lora.rank is 0, but a Wan model is trained through a LoRA only");
    if (k->lora.high_noise_path[0] && !c->lora.path[0])
        return config_clash(c, "lora.high_noise_path", "lora.path", err,
                            "lora.high_noise_path is set, but lora.path is not");
    if (check_samples(c, err))
        return -1;
    if (c->train.patience && k->data.val_split <= 0)
        return config_clash(c, "train.patience", "data.val_split", err,
                            "train.patience is %" PRId64
                            ", but there is no validation data: set data.val_split",
                            c->train.patience);
    if (k->train.min_timestep >= k->train.max_timestep)
        return config_clash(c, "train.min_timestep", "train.max_timestep", err,
                            "train.min_timestep is not below train.max_timestep");
    return check_save(c, err) || check_words(c, err) ? -1 : 0;
}

void wan_keys_warn(const struct job_config *c, const struct message_sink *sink)
{
    const struct wan_keys *k = wan_keys(c);
    bool musubi = k->train.recipe == FLOW_MUSUBI, weighs = strcmp(k->train.weighting, "none") != 0;
    bool draws = !strcmp(k->train.weighting, "logit_normal") || !strcmp(k->train.weighting, "mode");
    const struct {
        const char *key, *only;
        bool is_unused;
    } rows[] = {
        { "train.weighting", "train.recipe: musubi", weighs && !musubi },
        { "train.weighting", "train.timesteps: sigma",
          musubi && draws && strcmp(k->train.timesteps, "sigma") != 0 },
        { "train.timestep_buckets", "train.recipe: musubi", k->train.timestep_buckets && !musubi },
        { "train.preserve_distribution_shape", "train.recipe: musubi",
          k->train.preserve_distribution_shape && !musubi },
        { "train.content_or_style", "train.recipe: ai-toolkit",
          strcmp(k->train.content_or_style, "balanced") && musubi },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].is_unused)
            message_say(sink, "warning: %s has an effect only with %s", rows[i].key, rows[i].only);
}

const struct config_schema wan_schema = {
    .kind = "wan",
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .sections = sections,
    .n_sections = ARRAY_LEN(sections),
    .presets = presets,
    .n_presets = ARRAY_LEN(presets),
    .bytes = sizeof(struct wan_keys),
    .check = check,
};
