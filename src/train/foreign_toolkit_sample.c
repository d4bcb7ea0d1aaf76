/* SPDX-License-Identifier: Apache-2.0
 * The samples of an ai-toolkit job, as prompts with options (video/prompts.h). */
#include "media/dataset_parts.h"
#include "train/foreign_toolkit_parts.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Options behind a prompt that ai-toolkit calls otherwise than musubi-tuner. */
static const char *with_our_options(const struct toolkit *t, const char *prompt)
{
    static const struct {
        const char *theirs, *ours;
    } options[] = { { " --m ", " --lm " },         { " --network_multiplier ", " --lm " },
                    { " --cfg ", " --l " },        { " --seed ", " --d " },
                    { " --steps ", " --s " },      { " --frames ", " --f " },
                    { " --num_frames ", " --f " }, { " --ctrl_img ", " --i " } };
    CLEANUP(str_release) struct str out = { 0 };
    for (const char *p = prompt; *p;) {
        size_t i = 0;
        while (i < ARRAY_LEN(options) && !str_starts(p, options[i].theirs))
            i++;
        str_addn(&out, i < ARRAY_LEN(options) ? options[i].ours : p,
                 i < ARRAY_LEN(options) ? strlen(options[i].ours) : 1);
        p += i < ARRAY_LEN(options) ? strlen(options[i].theirs) : 1;
    }
    return arena_strdup(t->a, out.s ? out.s : "");
}

/* [trigger] becomes the trigger word. */
static const char *with_trigger(const struct toolkit *t, const char *prompt)
{
    static const char mark[] = "[trigger]";
    const char *word = toolkit_text(t, "trigger_word", "");
    CLEANUP(str_release) struct str out = { 0 };
    for (const char *p = prompt; *p;) {
        bool is_mark = str_starts(p, mark);
        str_addn(&out, is_mark ? word : p, is_mark ? strlen(word) : 1);
        p += is_mark ? strlen(mark) : 1;
    }
    return arena_strdup(t->a, out.s ? out.s : "");
}

/* Line feeds would end the prompt of a file. */
static void flatten(char *text)
{
    for (; *text; text++)
        if (*text == '\n' || *text == '\r')
            *text = ' ';
}

static const char *prompt_of(const struct toolkit *t, const char *text)
{
    char *prompt = arena_strdup(t->a, with_our_options(t, with_trigger(t, toolkit_expand(t, text))));
    flatten(prompt);
    return prompt;
}

/* Wan's pipeline rounds to 4n+1. */
static double frames_of(double frames)
{
    return fmod(frames, 4) == 1 ? frames : floor(frames / 4) * 4 + 1;
}

static void add_option(struct str *out, const char *option, const char *value)
{
    if (!strcmp(option, "f"))
        str_addf(out, " --f %.0f", frames_of(strtod(value, NULL)));
    else
        str_addf(out, " --%s %s", option, value);
}

/* A sample with values of its own. */
static const char *sample_of(const struct toolkit *t, const struct yaml_node *sample)
{
    static const struct {
        const char *key, *option;
    } numbers[] = { { "width", "w" },        { "height", "h" },
                    { "num_frames", "f" },   { "seed", "d" },
                    { "sample_steps", "s" }, { "guidance_scale", "l" },
                    { "fps", "fps" },        { "network_multiplier", "lm" } };
    const struct yaml_node *prompt = toolkit_get_in(sample, "prompt"), *n;
    const struct yaml_node *image = toolkit_get_in(sample, "ctrl_img");
    CLEANUP(str_release) struct str out = { 0 };
    str_add(&out, prompt ? prompt_of(t, prompt->text) : "");
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        if ((n = toolkit_get_in(sample, numbers[i].key)))
            add_option(&out, numbers[i].option, n->text);
    n = toolkit_get_in(sample, "neg");
    if (n && *n->text && strcasecmp(n->text, "false"))
        str_addf(&out, " --n %s", prompt_of(t, n->text));
    if (!image)
        image = toolkit_get_in(sample, "ctrl_img_1");
    if (image && *image->text)
        str_addf(&out, " --i %s", dataset_resolve(toolkit_expand(t, image->text), t->path, NULL, t->a));
    return arena_strdup(t->a, out.s);
}

static void add_prompts(const struct toolkit *t)
{
    const struct yaml_node *samples = toolkit_get(t, "sample.samples");
    const struct yaml_node *prompts = toolkit_get(t, "sample.prompts"), *list = samples ? samples : prompts;
    const char **items = NULL;
    size_t n = 0;
    for (const struct yaml_node *i = list ? list->first : NULL; i; i = i->next)
        *ARENA_PUSH(t->a, items, n) = samples ? sample_of(t, i) : prompt_of(t, i->text);
    if (n)
        foreign_add_list(t->job, t->a, "sample.prompts", items, n, toolkit_place(t, list),
                         samples ? "sample.samples" : "sample.prompts");
}

static void add_size(const struct toolkit *t)
{
    double width = toolkit_real(t, "sample.width", 512), height = toolkit_real(t, "sample.height", 512);
    double frames = frames_of(toolkit_real(t, "sample.num_frames", 1));
    toolkit_add(t, "sample.size", arena_printf(t->a, "%.0fx%.0fx%.0f", width, height, frames),
                "sample.width");
}

static int add_format(const struct toolkit *t)
{
    static const struct {
        const char *theirs, *ours;
    } formats[] = { { "jpg", "jpeg" }, { "jpeg", "jpeg" }, { "png", "png" }, { "webp", "webp" } };
    const char *format = toolkit_text(t, "sample.format", NULL);
    if (toolkit_real(t, "sample.num_frames", 1) > 1) {
        toolkit_add(t, "sample.format", "webp", NULL); /* as ai-toolkit writes clips */
        return 0;
    }
    for (size_t i = 0; format && i < ARRAY_LEN(formats); i++)
        if (!strcmp(format, formats[i].theirs)) {
            toolkit_add(t, "sample.format", formats[i].ours, "sample.format");
            return 0;
        }
    return format ? toolkit_refuse(t, "sample.format", "use jpg, png or webp", "cairn does not write %.100s",
                                   format)
                  : 0;
}

static bool has_prompts(const struct toolkit *t)
{
    const struct yaml_node *samples = toolkit_get(t, "sample.samples"),
                           *prompts = toolkit_get(t, "sample.prompts");
    return (samples && samples->first) || (!samples && prompts && prompts->first);
}

int toolkit_add_samples(const struct toolkit *t, const struct toolkit_model *m)
{
    bool off = toolkit_bool(t, "train.disable_sampling", false) || !has_prompts(t);
    const struct yaml_node *neg = toolkit_get(t, "sample.neg");
    const char *loras = toolkit_text(t, "model.inference_lora_path", NULL);
    bool first = toolkit_bool(t, "train.force_first_sample", false) ||
                 !toolkit_bool(t, "train.skip_first_sample", false);
    toolkit_add(t, "sample.every",
                off ? "0" : arena_printf(t->a, "%.0f", toolkit_real(t, "sample.sample_every", 100)),
                off ? "train.disable_sampling" : "sample.sample_every");
    if (off)
        return 0;
    toolkit_add(t, "sample.first", first ? "true" : "false",
                toolkit_get(t, "train.force_first_sample") ? "train.force_first_sample"
                                                           : "train.skip_first_sample");
    add_prompts(t);
    add_size(t);
    toolkit_add(t, "sample.shift", toolkit_shift(m), NULL);
    toolkit_add(t, "sample.solver", "euler", NULL);
    if (neg && strcasecmp(neg->text, "false"))
        toolkit_add(t, "sample.negative", prompt_of(t, neg->text), "sample.neg");
    toolkit_add(t, "sample.seed", arena_printf(t->a, "%.0f", toolkit_real(t, "sample.seed", 0)),
                "sample.seed");
    toolkit_add(t, "sample.cfg", arena_printf(t->a, "%.17g", toolkit_real(t, "sample.guidance_scale", 7)),
                "sample.guidance_scale");
    toolkit_add(t, "sample.steps", arena_printf(t->a, "%.0f", toolkit_real(t, "sample.sample_steps", 20)),
                "sample.sample_steps");
    if (loras)
        foreign_add_list(t->job, t->a, "sample.loras", &loras, 1,
                         toolkit_place(t, toolkit_get(t, "model.inference_lora_path")),
                         "model.inference_lora_path");
    return add_format(t);
}
