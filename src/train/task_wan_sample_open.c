/* SPDX-License-Identifier: Apache-2.0
 * What the samples of a Wan job need: complete prompts, their texts in caches, the latents of their images, and the files
 * of further LoRAs. */
#include "base/str.h"
#include "encode/encode_image.h"
#include "gpu/pool.h"
#include "nn/vae.h"
#include "os/info.h"
#include "tensor/lora.h"
#include "train/task_wan_inside.h"
#include "train/wan_cache.h"
#include <stdlib.h>
#include <string.h>

enum { FRAMES_STEP = 4, MASK_CHANNELS = 4 };

static const struct job_config *config_of(const struct wan_job *t)
{
    return t->task.env.config;
}

/* ---- what a prompt does not say ---- */

/* Of the models' own configurations. */
static const struct {
    double cfg, cfg_high, shift;
} presets[WAN_TASKS] = {
    [WAN_T2V_1_3B] = { 5, 5, 5 },  [WAN_T2V_14B] = { 5, 5, 5 },      [WAN_I2V_14B] = { 5, 5, 5 },
    [WAN_T2V_A14B] = { 3, 4, 12 }, [WAN_I2V_A14B] = { 3.5, 3.5, 5 }, [WAN_TI2V_5B] = { 5, 5, 5 },
};

static size_t cell_pixels(const struct wan_job *t)
{
    return t->shape.out == 48 ? 16 : 8;
}

/* As musubi-tuner does: rounded down to what the model can. */
static void set_size(const struct wan_job *t, const struct wan_pixels *preset, struct sample_prompt *p)
{
    size_t patch = 2 * cell_pixels(t);
    size_t width = p->width ? p->width : preset->width, height = p->height ? p->height : preset->height;
    size_t frames = p->frames ? p->frames : preset->frames;
    p->width = width < patch ? patch : width / patch * patch;
    p->height = height < patch ? patch : height / patch * patch;
    p->frames = (frames - 1) / FRAMES_STEP * FRAMES_STEP + 1;
}

struct wan_size wan_sample_size(const struct wan_job *t, const struct sample_prompt *p)
{
    return (struct wan_size){ (p->frames - 1) / FRAMES_STEP + 1, p->height / cell_pixels(t),
                              p->width / cell_pixels(t) };
}

void wan_sample_guidance(const struct wan_job *t, const struct sample_prompt *p, struct wan_clip *c)
{
    double cfg = t->keys.sample.cfg, high = t->keys.sample.cfg_high, shift = t->keys.sample.shift;
    c->cfg = p->cfg >= 0 ? p->cfg : cfg > 0 ? cfg : presets[t->kind].cfg;
    c->cfg_high = p->cfg >= 0 ? 0 : high > 0 ? high : cfg > 0 ? 0 : presets[t->kind].cfg_high;
    c->shift = p->shift > 0 ? p->shift : shift > 0 ? shift : presets[t->kind].shift;
}

bool wan_sample_is_stopped(const struct wan_job *t)
{
    return t->task.env.stop && *t->task.env.stop;
}

void wan_sample_say_failed(struct wan_job *t, size_t i, const struct cairn_error *why)
{
    if (t->samples.said[i] || wan_sample_is_stopped(t))
        return;
    t->samples.said[i] = true;
    message_say(&t->task.env.sink, "warning: no sample of prompt %zu: %s%s%s", i, why->msg,
                why->hint[0] ? "; " : "", why->hint);
}

/* ---- images ---- */

struct decode_options wan_sample_vae(const struct wan_job *t)
{
    const struct task_env *e = &t->task.env;
    return (struct decode_options){
        .device = { .part = ENCODE_VAE,
                    .g = e->nn->g,
                    .on_cpu = t->keys.vae.device == WAN_ENCODER_CPU,
                    .storage = encode_storage_on(e->nn->g),
                    .budget = task_free_bytes(e),
                    .host_budget = e->host_bytes,
                    .sink = &e->sink },
        .vae = t->keys.model.vae_path,
    };
}

static bool is_i2v(const struct wan_job *t)
{
    return t->shape.in > t->shape.out;
}

/* What can be said of a prompt's image without reading it. */
static int check_image(const struct wan_job *t, const struct sample_prompt *p, struct cairn_error *err)
{
    struct os_info info;
    if (is_i2v(t) && !p->image) {
        cairn_fail(err, CAIRN_EUSAGE, "an image-to-video model needs an image for each prompt");
        return cairn_hint(err, "add --i FILE to the prompt, or --image FILE to cairn sample");
    }
    if (!p->image)
        return 0;
    if (!is_i2v(t) && t->kind != WAN_TI2V_5B)
        return cairn_fail(err, CAIRN_EUSAGE, "%s: a text-to-video model takes no image", p->image);
    return os_info(p->image, &info) ? cairn_fail_errno(err, "%s", p->image) : 0;
}

/* Image-to-video: a mask and the latents of the clip with grey behind the image.  TI2V: the latents of the image. */
int wan_sample_image(struct wan_job *t, size_t i, struct cairn_error *err)
{
    const struct sample_prompt *p = &t->samples.prompts[i];
    struct wan_size l = wan_sample_size(t, p);
    bool i2v = is_i2v(t);
    size_t area = l.height * l.width, channel = i2v ? l.frames * area : area;
    struct vae_size size = { i2v ? p->frames : 1, p->height, p->width };
    struct decode_options o = wan_sample_vae(t);
    if (check_image(t, p, err))
        return -1;
    if (!p->image || t->samples.images[i])
        return 0;
    size_t mask = i2v ? MASK_CHANNELS : 0, channels = i2v ? t->shape.in - t->shape.out : t->shape.out;
    CLEANUP(mem_free) float *at = malloc(channels * channel * sizeof(float));
    if (!at)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for the latents of %s", p->image);
    for (size_t k = 0; k < mask * channel; k++)
        at[k] = k % channel < area;
    if (encode_image(&o, p->image, &size, at + mask * channel, err))
        return -1;
    pool_release(gpu_pool(t->task.env.nn->g));
    t->samples.images[i] = TAKE(at);
    return 0;
}

/* ---- opening ---- */

const char *wan_sample_text(const struct wan_job *t, const char *text)
{
    for (size_t i = 0; i < t->samples.n_dirs; i++) {
        const char *path = cache_prompt_path(t->task.env.arena, t->samples.dirs[i], text);
        if (os_is_file(path))
            return path;
    }
    return NULL;
}

static bool has_texts(const struct wan_job *t)
{
    for (size_t i = 0; i < t->samples.n; i++)
        if (!wan_sample_text(t, t->samples.prompts[i].text) ||
            !wan_sample_text(t, t->samples.prompts[i].negative))
            return false;
    return true;
}

/* Prompts that no cache has are encoded into the run's folder. */
static int encode_texts(struct wan_job *t, const char *dir, struct cairn_error *err)
{
    const struct task_env *e = &t->task.env;
    CLEANUP(cache_result_release) struct cache_result result = { 0 };
    struct cache_job job;
    if (!t->keys.model.text_encoder_path[0]) {
        cairn_fail(err, CAIRN_EUSAGE,
                   "model.text_encoder_path is not set, which encodes prompts that are not cached");
        return cairn_hint(err, "set it in the configuration, or add --set model.text_encoder_path=FILE");
    }
    if (wan_cache_prompts(config_of(t), t->samples.prompts, t->samples.n, e->nn->g, e->arena, &job, err))
        return -1;
    job.budget = e->budget_bytes;
    job.host_budget = e->host_bytes;
    job.talk = e->talk;
    job.sink = e->sink;
    job.stop = e->stop;
    if (!cache_prompts_run(&job, dir, &result, err))
        return 0;
    if (!err->hint[0] && !wan_sample_is_stopped(t))
        cairn_hint(err, "model.text_encoder_path and model.tokenizer_path encode the prompts");
    return -1;
}

void wan_samples_say_off(struct wan_job *t, const char *why)
{
    message_say(&t->task.env.sink, "warning: no samples: %s", why);
    t->samples.off = true;
}

static int prepare_texts(struct wan_job *t, const char *dir, struct cairn_error *err)
{
    struct wan_samples *s = &t->samples;
    const char **dirs = ARENA_NEW(t->task.env.arena, const char *, s->n_dirs + 1);
    for (size_t i = 0; i < s->n_dirs; i++)
        dirs[i] = s->dirs[i];
    dirs[s->n_dirs++] = arena_printf(t->task.env.arena, "%s/prompts", dir);
    s->dirs = dirs;
    return has_texts(t) ? 0 : encode_texts(t, dirs[s->n_dirs - 1], err);
}

/* How much memory the LoRA of a file takes on the device. */
static int count_lora(const struct wan_job *t, const char *path, size_t *bytes, struct cairn_error *err)
{
    CLEANUP(lora_close) struct lora_file l = { 0 };
    struct cairn_error ignored = { 0 };
    uint64_t values = 0;
    if (lora_open_expert(&l, path, LORA_EXPERT_LOW, &ignored) &&
        lora_open_expert(&l, path, LORA_EXPERT_HIGH, err))
        return -1;
    for (size_t i = 0; i < l.n_modules; i++)
        values += l.modules[i].rank * (l.modules[i].in + l.modules[i].out);
    bool both = t->both && wan_expert_by_name(path) == WAN_EXPERT_NONE;
    *bytes += (size_t)values * storage_size(t->task.env.nn->storage) * (both ? WAN_EXPERTS : 1);
    return 0;
}

/* By its name, where the job has one expert. */
static void warn_of_other_expert(const struct wan_job *t, const char *path)
{
    enum wan_expert e = wan_expert_by_name(path);
    if ((t->side == FLOW_HIGH && e == WAN_EXPERT_LOW) || (t->side == FLOW_LOW && e == WAN_EXPERT_HIGH))
        message_say(&t->task.env.sink, "warning: %s is by its name for the %s, but the model is the %s", path,
                    wan_expert_name(e),
                    wan_expert_name(t->side == FLOW_HIGH ? WAN_EXPERT_HIGH : WAN_EXPERT_LOW));
}

static int parse_lora(struct wan_job *t, const char *key, const char *text, struct cairn_error *err)
{
    struct wan_samples *s = &t->samples;
    const char *colon = strrchr(text, ':');
    char *end = NULL;
    double strength = colon ? strtod(colon + 1, &end) : 1;
    bool has_strength = colon && end > colon + 1 && !*end;
    const char *path = has_strength ? arena_strndup(t->task.env.arena, text, (size_t)(colon - text)) : text;
    if (count_lora(t, path, &s->lora_bytes, err))
        return key ? config_wrap(config_of(t), key,
                                 "it takes a LoRA: a .safetensors file, a PEFT folder or a run", err)
                   : -1;
    s->lora_strengths[s->n_loras] = has_strength ? strength : 1;
    s->lora_files[s->n_loras++] = path;
    warn_of_other_expert(t, path);
    return 0;
}

/* saved: NULL for a job that trains. */
static int parse_loras(struct wan_job *t, const struct task_saved *saved, struct cairn_error *err)
{
    const struct config_list *l = &t->keys.sample.loras;
    struct wan_samples *s = &t->samples;
    s->n_own = saved ? saved->n_loras : 0;
    s->lora_files = ARENA_NEW(t->task.env.arena, const char *, s->n_own + l->n + 1);
    s->lora_strengths = ARENA_NEW(t->task.env.arena, double, s->n_own + l->n + 1);
    for (size_t i = 0; i < s->n_own; i++)
        if (parse_lora(t, NULL, saved->loras[i], err))
            return -1;
    for (size_t i = 0; i < l->n; i++)
        if (parse_lora(t, "sample.loras", l->item[i], err))
            return -1;
    return 0;
}

/* Two files are those of two experts, and their names say which is which. */
static int check_own_loras(const struct wan_job *t, struct cairn_error *err)
{
    const struct wan_samples *s = &t->samples;
    enum wan_expert names[WAN_EXPERTS] = { 0 };
    if (!t->both || s->n_own != WAN_EXPERTS)
        return 0;
    for (size_t i = 0; i < WAN_EXPERTS; i++)
        names[i] = wan_expert_by_name(s->lora_files[i]);
    if (names[0] != names[1])
        return 0;
    cairn_fail(err, CAIRN_EUSAGE, "which of %s and %s is for which expert is not clear from their names",
               s->lora_files[0], s->lora_files[1]);
    return cairn_hint(err, "the name of one should have high_noise in it, that of the other low_noise");
}

static int list_prompts(struct wan_job *t, const struct task_saved *saved, struct cairn_error *err)
{
    struct wan_samples *s = &t->samples;
    struct wan_pixels preset = t->largest;
    if (wan_prompts(config_of(t), t->task.env.arena, &s->prompts, &s->n, err) || parse_loras(t, saved, err) ||
        check_own_loras(t, err))
        return -1;
    if (t->keys.sample.size[0] && wan_pixels_parse(t->keys.sample.size, &preset, err)) {
        const char *place = config_place(config_of(t), "sample.size");
        return cairn_wrap(err, "%s", place && str_starts(place, "--") ? place : "sample.size");
    }
    if (!preset.width)
        preset = (struct wan_pixels){ 832, 480, 33 };
    s->made = ARENA_NEW(t->task.env.arena, struct sample_file, s->n + 1);
    s->images = ARENA_NEW(t->task.env.arena, float *, s->n + 1);
    s->said = ARENA_NEW(t->task.env.arena, bool, s->n + 1);
    for (size_t i = 0; i < s->n; i++) {
        struct sample_prompt *p = &s->prompts[i];
        set_size(t, &preset, p);
        p->image = saved && saved->image ? saved->image : p->image;
        p->lora_scale = saved && saved->lora_scale ? *saved->lora_scale : p->lora_scale;
    }
    return 0;
}

/* Wan 2.1 I2V attends to the features of its image. */
static int check_clip(const struct wan_job *t, struct cairn_error *err)
{
    if (!t->shape.clip_width)
        return 0;
    cairn_fail(err, CAIRN_EUSAGE, "%s: samples of %s need the CLIP vision encoder, which cairn does not have",
               t->files.bases[0].path, wan_task_info(t->kind)->title);
    return cairn_hint(
        err, "Wan 2.2 I2V (i2v-A14B, ti2v-5B) needs none; LoRAs of Wan 2.1 I2V can be sampled with ComfyUI "
             "or musubi-tuner");
}

/* Before the base is loaded, which takes long. */
static int check_vae(const struct wan_job *t, struct cairn_error *err)
{
    const char *path = t->keys.model.vae_path;
    struct vae_info info;
    if (!path[0]) {
        cairn_fail(err, CAIRN_EUSAGE, "model.vae_path is not set, which decodes samples");
        return cairn_hint(err, "set it in the configuration, or add --set model.vae_path=FILE");
    }
    if (vae_read_info(path, &info, err)) {
        if (!err->hint[0])
            cairn_hint(err, "model.vae_path takes the VAE of Wan: a file or a folder");
        return cairn_wrap(err, "model.vae_path");
    }
    if (info.channels == t->shape.out)
        return 0;
    cairn_fail(err, CAIRN_EUSAGE,
               "model.vae_path: the latents of %s have %zu channels, those of the model %zu", path,
               info.channels, t->shape.out);
    return cairn_hint(err, "ti2v-5B needs Wan2.2_VAE.pth, all other models Wan2.1_VAE.pth");
}

int wan_samples_open(struct wan_job *t, struct cairn_error *err)
{
    const struct task_env *e = &t->task.env;
    struct cairn_error why = { 0 };
    if (!config_of(t)->sample.every)
        return 0;
    t->task.sample_alone = true;
    t->task.no_first_sample = !t->keys.sample.first;
    if (list_prompts(t, NULL, err))
        return -1;
    if (e->only_plan)
        return 0;
    if (check_clip(t, &why) || check_vae(t, &why))
        wan_samples_say_off(t, arena_printf(e->arena, "%s%s%s", why.msg, why.hint[0] ? "; " : "", why.hint));
    else if (prepare_texts(t, e->dir, &why)) {
        if (e->stop && *e->stop) {
            *err = why;
            return -1;
        }
        wan_samples_say_off(t, arena_printf(e->arena, "a prompt is not cached: %s", why.msg));
    }
    for (size_t i = 0; i < t->samples.n && !t->samples.off; i++)
        if (wan_sample_image(t, i, &why))
            wan_sample_say_failed(t, i, &why);
    return 0;
}

int wan_samples_open_saved(struct wan_job *t, const struct task_saved *saved, struct cairn_error *err)
{
    const struct wan_keys *k = &t->keys;
    if (k->data.size[0] && wan_pixels_parse(k->data.size, &t->largest, err))
        return -1;
    t->samples.dirs = k->data.path.item;
    t->samples.n_dirs = k->data.path.n;
    if (list_prompts(t, saved, err))
        return -1;
    if (!t->samples.n) {
        cairn_fail(err, CAIRN_EUSAGE, "there is no prompt");
        return cairn_hint(err, "give one with --prompt, or set sample.prompts in the configuration");
    }
    if (check_clip(t, err))
        return -1;
    if (check_vae(t, err)) {
        const char *place = config_place(config_of(t), "model.vae_path");
        place = place ? place : config_of(t)->file;
        return place ? cairn_wrap(err, "%s", place) : -1;
    }
    for (size_t i = 0; i < t->samples.n; i++)
        if (check_image(t, &t->samples.prompts[i], err))
            return cairn_wrap(err, "prompt %zu", i);
    for (size_t i = 0; i < t->samples.n; i++)
        if (wan_sample_image(t, i, err))
            return cairn_wrap(err, "prompt %zu", i);
    return prepare_texts(t, saved->dir, err);
}

void wan_samples_close(struct wan_job *t)
{
    for (size_t i = 0; t->samples.images && i < t->samples.n; i++)
        free(t->samples.images[i]);
}
