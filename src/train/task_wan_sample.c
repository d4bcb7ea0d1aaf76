/* SPDX-License-Identifier: Apache-2.0
 * Samples of a Wan job: texts from the caches, latents by wan_generate, files by sample_files.
 *
 * A sample that fails costs only itself: it is said once, and training goes on. */
#include "base/file.h"
#include "base/str.h"
#include "encode/encode_image.h"
#include "gpu/pool.h"
#include "os/info.h"
#include "train/sample_files.h"
#include "train/task_wan_inside.h"
#include "train/wan_cache.h"
#include "train/wan_generate.h"
#include "train/wan_sample.h"
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

static struct wan_size size_of(const struct wan_job *t, const struct sample_prompt *p)
{
    return (struct wan_size){ (p->frames - 1) / FRAMES_STEP + 1, p->height / cell_pixels(t),
                              p->width / cell_pixels(t) };
}

static void set_guidance(const struct wan_job *t, const struct sample_prompt *p, struct wan_clip *c)
{
    double cfg = t->keys.sample.cfg, high = t->keys.sample.cfg_high, shift = t->keys.sample.shift;
    c->cfg = p->cfg >= 0 ? p->cfg : cfg > 0 ? cfg : presets[t->kind].cfg;
    c->cfg_high = p->cfg >= 0 ? 0 : high > 0 ? high : cfg > 0 ? 0 : presets[t->kind].cfg_high;
    c->shift = p->shift > 0 ? p->shift : shift > 0 ? shift : presets[t->kind].shift;
}

/* ---- opening ---- */

static const char *text_file(const struct wan_job *t, const char *text)
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
        if (!text_file(t, t->samples.prompts[i].text) || !text_file(t, t->samples.prompts[i].negative))
            return false;
    return true;
}

/* Prompts that no cache has are encoded into the run's folder. */
static int encode_texts(struct wan_job *t, const char *dir, struct cairn_error *err)
{
    const struct task_env *e = &t->task.env;
    CLEANUP(cache_result_release) struct cache_result result = { 0 };
    struct cache_job job;
    if (wan_cache_prompts(config_of(t), t->samples.prompts, t->samples.n, e->nn->g, e->arena, &job, err))
        return -1;
    job.budget = e->budget_bytes;
    job.host_budget = e->host_bytes;
    job.talk = e->talk;
    job.sink = e->sink;
    job.stop = e->stop;
    return cache_prompts_run(&job, dir, &result, err);
}

static void say_off(struct wan_job *t, const char *why)
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

static int parse_loras(struct wan_job *t, struct cairn_error *err)
{
    const struct config_list *l = &t->keys.sample.loras;
    struct wan_samples *s = &t->samples;
    s->lora_files = ARENA_NEW(t->task.env.arena, const char *, l->n + 1);
    s->lora_strengths = ARENA_NEW(t->task.env.arena, double, l->n + 1);
    s->n_loras = l->n;
    for (size_t i = 0; i < l->n; i++) {
        const char *colon = strrchr(l->item[i], ':');
        char *end = NULL;
        double strength = colon ? strtod(colon + 1, &end) : 1;
        bool has_strength = colon && end > colon + 1 && !*end;
        s->lora_strengths[i] = has_strength ? strength : 1;
        s->lora_files[i] = has_strength
                               ? arena_strndup(t->task.env.arena, l->item[i], (size_t)(colon - l->item[i]))
                               : l->item[i];
        if (!os_is_file(s->lora_files[i]))
            return cairn_fail(err, CAIRN_EIO, "sample.loras: %s does not exist", s->lora_files[i]);
    }
    return 0;
}

static int list_prompts(struct wan_job *t, struct cairn_error *err)
{
    struct wan_samples *s = &t->samples;
    struct wan_pixels preset = t->largest;
    if (wan_prompts(config_of(t), t->task.env.arena, &s->prompts, &s->n, err) || parse_loras(t, err))
        return -1;
    if (t->keys.sample.size[0] && wan_pixels_parse(t->keys.sample.size, &preset, err))
        return -1;
    if (!preset.width)
        preset = (struct wan_pixels){ 832, 480, 33 };
    s->made = ARENA_NEW(t->task.env.arena, struct sample_file, s->n + 1);
    s->images = ARENA_NEW(t->task.env.arena, float *, s->n + 1);
    s->said = ARENA_NEW(t->task.env.arena, bool, s->n + 1);
    for (size_t i = 0; i < s->n; i++)
        set_size(t, &preset, &s->prompts[i]);
    return 0;
}

int wan_samples_open(struct wan_job *t, struct cairn_error *err)
{
    const struct task_env *e = &t->task.env;
    struct cairn_error why = { 0 };
    if (!config_of(t)->sample.every)
        return 0;
    t->task.sample_alone = true;
    t->task.no_first_sample = !t->keys.sample.first;
    if (list_prompts(t, err))
        return -1;
    if (e->only_plan)
        return 0;
    if (!t->keys.model.vae_path[0])
        say_off(t, "model.vae_path is not set, which decodes them");
    else if (t->shape.clip_width)
        say_off(t, "the model needs CLIP features of an image, which cairn cannot make");
    else if (prepare_texts(t, e->dir, &why)) {
        if (e->stop && *e->stop) {
            *err = why;
            return -1;
        }
        say_off(t, arena_printf(e->arena, "a prompt is not cached: %s", why.msg));
    }
    return 0;
}

int wan_samples_open_saved(struct wan_job *t, const char *dir, struct cairn_error *err)
{
    const struct wan_keys *k = &t->keys;
    if (k->data.size[0] && wan_pixels_parse(k->data.size, &t->largest, err))
        return -1;
    t->samples.dirs = k->data.path.item;
    t->samples.n_dirs = k->data.path.n;
    if (list_prompts(t, err))
        return -1;
    if (!t->samples.n) {
        cairn_fail(err, CAIRN_EUSAGE, "there is no prompt");
        return cairn_hint(err, "give one with --prompt, or set sample.prompts in the run's configuration");
    }
    if (!k->model.vae_path[0])
        return cairn_fail(err, CAIRN_EUSAGE,
                          "%s/config.yaml: model.vae_path is not set, which decodes samples", dir);
    if (t->shape.clip_width)
        return cairn_fail(err, CAIRN_EUSAGE,
                          "the model needs CLIP features of an image, which cairn cannot make");
    return prepare_texts(t, dir, err);
}

void wan_samples_close(struct wan_job *t)
{
    for (size_t i = 0; t->samples.images && i < t->samples.n; i++)
        free(t->samples.images[i]);
}

struct work_bytes wan_job_sample_bytes(const struct task *task)
{
    const struct wan_job *t = (const struct wan_job *)task;
    struct wan_size most = { 0 };
    for (size_t i = 0; i < t->samples.n; i++) {
        struct wan_size size = size_of(t, &t->samples.prompts[i]);
        most = wan_tokens(size) > wan_tokens(most) ? size : most;
    }
    return most.frames ? wan_generate_bytes(t->wan, most, false) : (struct work_bytes){ 0 };
}

/* ---- one sample ---- */

static struct decode_options vae_options(const struct wan_job *t)
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

static int read_text(const struct wan_job *t, const char *text, float **out, struct cairn_error *err)
{
    const struct wan_shape *s = &t->shape;
    struct video_item item = { .text_path = text_file(t, text) };
    struct video_needs needs = { .text_dim = s->text_width };
    if (!item.text_path)
        return cairn_fail(err, CAIRN_EIO, "the text of the prompt \"%s\" is not cached", text);
    if (video_item_open_text(&item, &needs, err))
        return -1;
    if (item.text_rows > s->text_rows)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: the text has %zu tokens, more than %zu", item.text_path,
                          item.text_rows, s->text_rows);
    if (!(*out = calloc(s->text_rows * s->text_width, sizeof(float))))
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for a prompt");
    return video_item_read(&item, VIDEO_TEXT, *out, err);
}

/* Image-to-video: a mask and the latents of the clip with grey behind the image.  TI2V: the latents of the image. */
static int read_image(struct wan_job *t, size_t i, struct cairn_error *err)
{
    const struct sample_prompt *p = &t->samples.prompts[i];
    struct wan_size l = size_of(t, p);
    bool i2v = t->shape.in > t->shape.out;
    size_t area = l.height * l.width, channel = i2v ? l.frames * area : area;
    struct vae_size size = { i2v ? p->frames : 1, p->height, p->width };
    struct decode_options o = vae_options(t);
    if (i2v && !p->image) {
        cairn_fail(err, CAIRN_EUSAGE, "an image-to-video model needs an image for each prompt");
        return cairn_hint(err, "add --i FILE to the prompt");
    }
    if (!p->image || t->samples.images[i])
        return 0;
    if (!i2v && t->kind != WAN_TI2V_5B)
        return cairn_fail(err, CAIRN_EUSAGE, "%s: a text-to-video model takes no image", p->image);
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

struct progress {
    const struct wan_job *t;
    size_t index;
};

static void show_progress(void *to, size_t step, size_t steps)
{
    const struct progress *p = to;
    if (p->t->samples.progress)
        p->t->samples.progress(p->t->samples.to, p->index, step, steps);
}

static int generate(struct wan_job *t, size_t i, float *latents, struct cairn_error *err)
{
    const struct sample_prompt *p = &t->samples.prompts[i];
    CLEANUP(mem_free) float *text = NULL;
    CLEANUP(mem_free) float *negative = NULL;
    struct progress progress = { t, i };
    if (read_image(t, i, err) || read_text(t, p->text, &text, err) ||
        read_text(t, p->negative, &negative, err))
        return -1;
    struct wan_clip c = {
        .size = size_of(t, p),
        .text = text,
        .negative = negative,
        .image = t->samples.images[i],
        .steps = p->steps,
        .boundary = t->keys.model.boundary > 0 ? t->keys.model.boundary : wan_task_info(t->kind)->boundary,
        .solver = t->keys.sample.solver == WAN_SAMPLE_EULER ? SOLVER_EULER : SOLVER_UNIPC,
        .seed = (uint64_t)p->seed,
        .lora_scale = p->lora_scale,
        .progress = show_progress,
        .to = &progress,
        .stop = t->task.env.stop,
    };
    set_guidance(t, p, &c);
    return wan_generate(&t->task, &c, latents, err);
}

/* ---- all of them ---- */

static bool is_stopped(const struct wan_job *t)
{
    return t->task.env.stop && *t->task.env.stop;
}

static void say_failed(struct wan_job *t, size_t i, const struct cairn_error *why)
{
    if (t->samples.said[i] || is_stopped(t))
        return;
    t->samples.said[i] = true;
    message_say(&t->task.env.sink, "warning: no sample of prompt %zu: %s%s%s", i, why->msg,
                why->hint[0] ? "; " : "", why->hint);
}

static void free_all(float **at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(at[i]);
    free(at);
}

/* Latents that could not be made are NULL.  Fails only if the device is lost. */
static int generate_all(struct wan_job *t, float **latents, struct cairn_error *err)
{
    for (size_t i = 0; i < t->samples.n && !is_stopped(t); i++) {
        struct wan_size l = size_of(t, &t->samples.prompts[i]);
        struct cairn_error why = { 0 };
        latents[i] = malloc(t->shape.out * l.frames * l.height * l.width * sizeof(float));
        if (!latents[i])
            cairn_fail(&why, CAIRN_ENOMEM, "no memory for its latents");
        else if (!generate(t, i, latents[i], &why))
            continue;
        free(latents[i]);
        latents[i] = NULL;
        say_failed(t, i, &why);
        if (gpu_lost(t->task.env.nn->g) || t->task.data_failed) {
            *err = why;
            return -1;
        }
    }
    return 0;
}

static void write_all(struct wan_job *t, float *const *latents, const char *dir, uint64_t step,
                      struct str *text)
{
    struct decode_options o = vae_options(t);
    struct decoder *d = NULL;
    struct cairn_error why = { 0 };
    size_t written = 0;
    for (size_t i = 0; i < t->samples.n && !is_stopped(t); i++) {
        const struct sample_prompt *p = &t->samples.prompts[i];
        struct wan_size l = size_of(t, p);
        struct decode_clip c = { "the sample", latents[i], t->shape.out, l.frames, l.height, l.width };
        struct sample_file f = { .dir = dir,
                                 .step = step,
                                 .index = i,
                                 .prompt = p->text,
                                 .seed = p->seed,
                                 .fps = p->fps,
                                 .format = t->keys.sample.format };
        if (!latents[i])
            continue;
        why = (struct cairn_error){ 0 };
        if ((!d && decoder_open(&d, &o, &why)) || sample_file_write(d, &c, &f, &why)) {
            say_failed(t, i, &why);
            continue;
        }
        str_addf(text, "%s%s  %s", written++ ? "\n" : "", f.name, p->text);
        t->samples.made[t->samples.n_made++] = f;
    }
    decoder_close(d);
    if (written && sample_sheet_write(dir, &why) && !t->samples.said_sheet) {
        t->samples.said_sheet = true;
        message_say(&t->task.env.sink, "warning: no sheet of samples: %s", why.msg);
    }
}

int wan_job_sample(struct task *task, const char *dir, uint64_t step, struct str *text,
                   struct cairn_error *err)
{
    struct wan_job *t = (struct wan_job *)task;
    struct wan_samples *s = &t->samples;
    struct cairn_error why = { 0 };
    s->n_made = 0;
    float **latents = calloc(s->n + 1, sizeof(*latents));
    if (s->off || !latents) {
        free(latents);
        return 0;
    }
    int r = 0;
    if (s->n_loras && wan_generate_use_loras(task, s->lora_files, s->lora_strengths, s->n_loras, &why))
        say_off(t, why.msg);
    else
        r = generate_all(t, latents, err);
    if (s->n_loras && !r && wan_generate_drop_loras(task, err))
        r = -1;
    if (!r && !s->off) {
        pool_release(gpu_pool(task->env.nn->g));
        write_all(t, latents, dir, step, text);
        pool_release(gpu_pool(task->env.nn->g));
    }
    free_all(latents, s->n);
    return r;
}

int wan_sample_saved(struct task *task, const struct wan_sample_job *job, const struct sample_file **made,
                     size_t *n_made, size_t *n_asked, struct cairn_error *err)
{
    struct wan_job *t = (struct wan_job *)task;
    CLEANUP(str_release) struct str text = { 0 };
    t->samples.progress = job->progress;
    t->samples.to = job->to;
    if (file_make_dir(job->dir, 0777, err) || wan_job_sample(task, job->dir, job->step, &text, err))
        return -1;
    *made = t->samples.made;
    *n_made = t->samples.n_made;
    *n_asked = t->samples.n;
    return 0;
}
