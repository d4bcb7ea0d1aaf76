/* SPDX-License-Identifier: Apache-2.0
 * Samples of a Wan job: texts from the caches, latents by wan_generate, files by sample_files.
 *
 * A sample that fails costs only itself: it is said once, and training goes on. */
#include "base/progress.h"
#include "base/str.h"
#include "gpu/pool.h"
#include "train/sample_files.h"
#include "train/task_wan_inside.h"
#include "train/wan_generate.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct work_bytes wan_job_sample_bytes(const struct task *task)
{
    const struct wan_job *t = (const struct wan_job *)task;
    struct work_bytes most = { 0 };
    for (size_t i = 0; i < t->samples.n; i++) {
        const struct sample_prompt *p = &t->samples.prompts[i];
        struct wan_clip c;
        wan_sample_guidance(t, p, &c);
        bool guided = c.cfg != 1 || (c.cfg_high > 0 && c.cfg_high != 1);
        struct work_bytes b = wan_generate_bytes(t->wan, wan_sample_size(t, p), guided, false);
        most = b.own + b.packed > most.own + most.packed ? b : most;
    }
    most.own += t->samples.lora_bytes;
    return most;
}

/* ---- one sample ---- */

static int read_text(const struct wan_job *t, const char *text, float **out, struct cairn_error *err)
{
    const struct wan_shape *s = &t->shape;
    struct video_item item = { .text_path = wan_sample_text(t, text) };
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

/* "sample 2 of 4", for lines of progress. */
static const char *name_of(const struct wan_job *t, size_t i, const char *doing, char buf[64])
{
    snprintf(buf, 64, "%s %zu of %zu", doing, i + 1, t->samples.n);
    return buf;
}

static void show_progress(void *to, size_t step, size_t steps)
{
    (void)step, (void)steps;
    progress_add(to, 1);
}

static int generate(struct wan_job *t, size_t i, bool one_by_one, float *latents, struct cairn_error *err)
{
    const struct sample_prompt *p = &t->samples.prompts[i];
    CLEANUP(mem_free) float *text = NULL;
    CLEANUP(mem_free) float *negative = NULL;
    CLEANUP(progress_end) struct progress progress = { 0 };
    char name[64];
    if (wan_sample_image(t, i, err) || read_text(t, p->text, &text, err) ||
        read_text(t, p->negative, &negative, err))
        return -1;
    struct wan_clip c = {
        .size = wan_sample_size(t, p),
        .text = text,
        .negative = negative,
        .image = t->samples.images[i],
        .steps = p->steps,
        .boundary = t->keys.model.boundary > 0 ? t->keys.model.boundary : wan_task_info(t->kind)->boundary,
        .solver = t->keys.sample.solver == WAN_SAMPLE_EULER ? SOLVER_EULER : SOLVER_UNIPC,
        .seed = (uint64_t)p->seed,
        .lora_scale = p->lora_scale,
        .one_by_one = one_by_one,
        .progress = show_progress,
        .to = &progress,
        .stop = t->task.env.stop,
    };
    wan_sample_guidance(t, p, &c);
    progress_start_count(&progress, t->task.env.talk, name_of(t, i, "sample", name), "step", p->steps);
    return wan_generate(&t->task, &c, latents, err);
}

/* ---- all of them ---- */

static void free_all(float **at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(at[i]);
    free(at);
}

/* After an OOM: false if nothing is left that could give memory. */
static bool can_retry(struct wan_job *t, bool *one_by_one, struct cairn_error *why)
{
    if (why->code != CAIRN_ENOMEM || wan_sample_is_stopped(t) || gpu_lost(t->task.env.nn->g))
        return false;
    if (t->samples.shrink && !t->samples.shrink(t->samples.shrink_to, why))
        return true;
    bool was = *one_by_one;
    *one_by_one = true;
    return !was;
}

static int drop_loras(struct wan_job *t, struct cairn_error *err)
{
    if (!t->samples.loras_applied)
        return 0;
    t->samples.loras_applied = false;
    return wan_generate_drop_loras(&t->task, err);
}

/* With the strength that a prompt wants. */
static int use_loras(struct wan_job *t, double scale, struct cairn_error *err)
{
    struct wan_samples *s = &t->samples;
    if (!s->n_loras || (s->loras_applied && (!s->n_own || scale == s->applied_scale)))
        return 0;
    CLEANUP(mem_free) double *strengths = malloc(s->n_loras * sizeof(*strengths));
    if (!strengths)
        return cairn_fail(err, CAIRN_EIO, "no memory");
    for (size_t i = 0; i < s->n_loras; i++)
        strengths[i] = s->lora_strengths[i] * (i < s->n_own ? scale : 1);
    if (drop_loras(t, err) || wan_generate_use_loras(&t->task, s->lora_files, strengths, s->n_loras, err))
        return -1;
    s->loras_applied = true;
    s->applied_scale = scale;
    return 0;
}

static int generate_or_shrink(struct wan_job *t, size_t i, float *latents, struct cairn_error *err)
{
    bool one_by_one = false;
    for (;;) {
        *err = (struct cairn_error){ 0 };
        if (!use_loras(t, t->samples.prompts[i].lora_scale, err) && !generate(t, i, one_by_one, latents, err))
            return 0;
        if (!can_retry(t, &one_by_one, err))
            return -1;
    }
}

/* Latents that could not be made are NULL.  Fails only if the device is lost. */
static int generate_all(struct wan_job *t, float **latents, struct cairn_error *err)
{
    for (size_t i = 0; i < t->samples.n && !wan_sample_is_stopped(t); i++) {
        struct wan_size l = wan_sample_size(t, &t->samples.prompts[i]);
        struct cairn_error why = { 0 };
        latents[i] = malloc(t->shape.out * l.frames * l.height * l.width * sizeof(float));
        if (!latents[i])
            cairn_fail(&why, CAIRN_ENOMEM, "no memory for its latents");
        else if (!generate_or_shrink(t, i, latents[i], &why))
            continue;
        free(latents[i]);
        latents[i] = NULL;
        wan_sample_say_failed(t, i, &why);
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
    struct decode_options o = wan_sample_vae(t);
    struct decoder *d = NULL;
    struct cairn_error why = { 0 };
    size_t written = 0;
    for (size_t i = 0; i < t->samples.n && !wan_sample_is_stopped(t); i++) {
        const struct sample_prompt *p = &t->samples.prompts[i];
        struct wan_size l = wan_sample_size(t, p);
        struct decode_clip c = { "the sample", latents[i], t->shape.out, l.frames, l.height, l.width };
        char name[64];
        struct sample_file f = { .dir = dir,
                                 .step = step,
                                 .index = i,
                                 .prompt = p->text,
                                 .seed = p->seed,
                                 .fps = p->fps,
                                 .format = t->keys.sample.format,
                                 .talk = t->task.env.talk,
                                 .stop = t->task.env.stop,
                                 .doing = name_of(t, i, "decoding sample", name) };
        if (!latents[i])
            continue;
        why = (struct cairn_error){ 0 };
        if ((!d && decoder_open(&d, &o, &why)) || sample_file_write(d, &c, &f, &why)) {
            wan_sample_say_failed(t, i, &why);
            continue;
        }
        str_addf(text, "%s%s  %s", written++ ? "\n" : "", f.name, p->text);
        f.doing = NULL;
        t->samples.made[t->samples.n_made++] = f;
    }
    decoder_close(d);
    if (written && sample_sheet_write(dir, &why) && !t->samples.said_sheet) {
        t->samples.said_sheet = true;
        message_say(&t->task.env.sink, "warning: no sheet of samples: %s", why.msg);
    }
}

/* done: the model is needed for nothing else, and its memory is free for the VAE. */
static int make_all(struct wan_job *t, const char *dir, uint64_t step, bool done, struct str *text,
                    struct cairn_error *err)
{
    float **latents = calloc(t->samples.n + 1, sizeof(*latents));
    if (!latents)
        return cairn_fail(err, CAIRN_EIO, "no memory for samples");
    int r = generate_all(t, latents, err);
    struct cairn_error ignored = { 0 };
    if (drop_loras(t, r ? &ignored : err))
        r = -1;
    if (done)
        model_release(t->task.model);
    if (!r) {
        pool_release(gpu_pool(t->task.env.nn->g));
        write_all(t, latents, dir, step, text);
        pool_release(gpu_pool(t->task.env.nn->g));
    }
    free_all(latents, t->samples.n);
    return r;
}

int wan_job_sample(struct task *task, const char *dir, uint64_t step, struct str *text,
                   struct cairn_error *err)
{
    struct wan_job *t = (struct wan_job *)task;
    struct cairn_error why = { 0 };
    t->samples.n_made = 0;
    if (!t->samples.off && use_loras(t, 1, &why) && why.code != CAIRN_ENOMEM)
        wan_samples_say_off(t, why.msg);
    return t->samples.off ? 0 : make_all(t, dir, step, false, text, err);
}

int wan_samples_make(struct wan_job *t, const char *dir, uint64_t step, struct cairn_error *err)
{
    CLEANUP(str_release) struct str text = { 0 };
    struct cairn_error why = { 0 };
    if (use_loras(t, t->samples.prompts[0].lora_scale, &why) && why.code != CAIRN_ENOMEM) {
        *err = why;
        return -1;
    }
    return make_all(t, dir, step, true, &text, err);
}
