/* SPDX-License-Identifier: Apache-2.0
 * Datasets of an ai-toolkit job. */
#include "media/dataset_keys.h"
#include "media/dataset_parts.h"
#include "os/info.h"
#include <stdlib.h>
#include <string.h>

struct toolkit {
    const char *folder_path, *dataset_path, *caption_ext, *caption_type, *default_caption, *trigger_word;
    const char *mask_path, *control_path;
    struct setting_counts resolution;
    bool buckets, shrink_video_to_frames, auto_frame_count, trim_auto_frame_count_tail, do_i2v;
    bool flip_x, flip_y, is_reg, alpha_mask, invert_mask;
    size_t num_frames, num_repeats, batch_size;
    double fps, caption_dropout_rate, network_weight, loss_multiplier, mask_min_value, scale;
};

#define ROW(key, type)                                         \
    {                                                          \
#key, SETTING_##type, 1, offsetof(struct toolkit, key) \
    }
#define UNUSED(key, type)                       \
    {                                           \
#key, SETTING_##type, 1, SETTING_UNUSED \
    }
#define NOT_HERE(key)               \
    {                               \
#key, SETTING_REFUSED, 1, 0 \
    }
const struct setting dataset_toolkit_keys[] = {
    ROW(folder_path, TEXT),
    ROW(dataset_path, TEXT),
    ROW(caption_ext, TEXT),
    ROW(caption_type, TEXT),
    ROW(default_caption, TEXT),
    ROW(trigger_word, TEXT),
    ROW(mask_path, TEXT),
    ROW(control_path, TEXT),
    ROW(resolution, COUNTS),
    ROW(buckets, BOOL),
    ROW(shrink_video_to_frames, BOOL),
    ROW(auto_frame_count, BOOL),
    ROW(trim_auto_frame_count_tail, BOOL),
    ROW(do_i2v, BOOL),
    ROW(flip_x, BOOL),
    ROW(flip_y, BOOL),
    ROW(is_reg, BOOL),
    ROW(alpha_mask, BOOL),
    ROW(invert_mask, BOOL),
    ROW(num_frames, COUNT),
    ROW(num_repeats, COUNT),
    ROW(batch_size, COUNT),
    ROW(fps, REAL),
    ROW(caption_dropout_rate, REAL),
    ROW(network_weight, REAL),
    ROW(loss_multiplier, REAL),
    ROW(mask_min_value, REAL),
    ROW(scale, REAL),
    /* The model's own step replaces the tolerance. */
    UNUSED(bucket_tolerance, COUNT),
    UNUSED(type, TEXT),
    UNUSED(prior_reg, BOOL),
    UNUSED(keep_tokens, INDEX),
    UNUSED(cache_latents, BOOL),
    UNUSED(cache_latents_to_disk, BOOL),
    UNUSED(cache_tensors_to_disk, BOOL),
    UNUSED(cache_clip_vision_to_disk, BOOL),
    UNUSED(cache_text_embeddings, BOOL),
    UNUSED(load_image_when_caching_latents, BOOL),
    UNUSED(cache_latents_num_workers, INDEX),
    UNUSED(num_workers, INDEX),
    UNUSED(prefetch_factor, INDEX),
    UNUSED(fast_image_size, BOOL),
    UNUSED(debug, BOOL),
    UNUSED(guidance_type, TEXT),
    UNUSED(replay_transforms, ANY),
    UNUSED(full_size_control_images, BOOL),
    UNUSED(control_transparent_color, LIST),
    UNUSED(random_triggers_max, INDEX),
    UNUSED(num_controls_from_same_folder, INDEX),
    UNUSED(audio_normalize, BOOL),
    UNUSED(audio_preserve_pitch, BOOL),
    UNUSED(clip_image_shuffle_augmentations, BOOL),
    UNUSED(diff_output_preservation_class, TEXT),
    /* What changes from step to step, or needs a model that is not Wan. */
    NOT_HERE(random_scale),
    NOT_HERE(random_crop),
    NOT_HERE(square_crop),
    NOT_HERE(shuffle_tokens),
    NOT_HERE(token_dropout_rate),
    NOT_HERE(augments),
    NOT_HERE(augmentations),
    NOT_HERE(shuffle_augmentations),
    NOT_HERE(controls),
    NOT_HERE(control_from_same_folder),
    NOT_HERE(inpaint_path),
    NOT_HERE(unconditional_path),
    NOT_HERE(clip_image_path),
    NOT_HERE(clip_image_from_same_folder),
    NOT_HERE(clip_image_augmentations),
    NOT_HERE(use_short_captions),
    NOT_HERE(standardize_images),
    NOT_HERE(random_triggers),
    NOT_HERE(replacements),
    NOT_HERE(extra_values),
    NOT_HERE(do_audio),
    NOT_HERE(poi),
    NOT_HERE(diff_output_preservation),
    NOT_HERE(control_path_1),
    NOT_HERE(control_path_2),
    NOT_HERE(control_path_3),
};
const size_t n_dataset_toolkit_keys = ARRAY_LEN(dataset_toolkit_keys);

struct reader {
    const struct dataset_options *o;
    const char *path, *job; /* the job's name, for "[name]" */
    const char *trigger;    /* of the job */
    size_t step;
    struct arena *a;
    struct dataset_sources *out;
    struct cairn_error *err;
};

static int fail_at(const struct reader *r, const struct yaml_node *n, const char *what, const char *remedy)
{
    cairn_fail(r->err, CAIRN_EFORMAT, "%s:%d:%d: %s", r->path, n->line, n->column, what);
    return cairn_hint(r->err, "%s", remedy);
}

static const char *expand(const struct reader *r, const char *text)
{
    return settings_expand(text, r->job, r->a);
}

static void read_frames(const struct toolkit *t, struct dataset_source *s)
{
    bool clips = t->num_frames > 1 || t->auto_frame_count;
    s->find = DATASET_PICTURES | DATASET_SUBFOLDERS | (clips ? DATASET_CLIPS : 0u);
    s->extract = t->auto_frame_count         ? DATASET_LENGTH
                 : t->shrink_video_to_frames ? DATASET_SPREAD
                                             : DATASET_RATE;
    s->max_frames = t->num_frames;
    s->fps = t->fps;
    s->trim_tail = t->trim_auto_frame_count_tail;
    s->shrink = t->shrink_video_to_frames;
}

static void read_captions(const struct reader *r, const struct toolkit *t, struct dataset_source *s)
{
    const char *extension = t->caption_type && *t->caption_type ? t->caption_type : t->caption_ext;
    s->caption_extension = *extension && *extension != '.' ? arena_printf(r->a, ".%s", extension) : extension;
    s->caption_default = expand(r, t->default_caption);
    s->caption_optional = true;
    s->has_trigger = true;
    s->trigger = expand(r, t->trigger_word ? t->trigger_word : r->trigger);
}

static void add_source(const struct reader *r, const struct yaml_node *n, const struct toolkit *t,
                       size_t side)
{
    const char *key = t->dataset_path ? "dataset_path" : "folder_path";
    const char *place = expand(r, t->dataset_path ? t->dataset_path : t->folder_path);
    const char *resolved = dataset_resolve(place, r->path, r->o->folder, r->a);
    struct dataset_source *s = ARENA_PUSH(r->a, r->out->source, r->out->n);
    bool is_list = os_is_file(resolved);
    const char *below = t->resolution.n > 1 ? arena_printf(r->a, "/%zu", side) : "";
    const char *mask = expand(r, t->mask_path), *control = expand(r, t->control_path);
    s->relative_to = r->o->folder;
    s->folder = is_list ? NULL : resolved;
    s->list = is_list ? resolved : NULL;
    s->place = dataset_place(r->path, n, key, r->a);
    s->block = (struct dataset_block){
        .name = place,
        .cache_directory =
            arena_printf(r->a, "%s%s%s", resolved, is_list ? "_cairn_cache" : "/_cairn_cache", below),
        .batch = t->batch_size,
        .repeats = t->num_repeats,
        .caption_dropout = t->caption_dropout_rate,
        .first_frame = t->do_i2v,
        .is_regularisation = t->is_reg,
        .loss_multiplier = t->loss_multiplier,
        .network_weight = t->network_weight,
        .mask_minimum = t->mask_min_value,
        .alpha_mask = t->alpha_mask,
        .invert_mask = t->invert_mask,
        .weight_place = dataset_place(r->path, n, "network_weight", r->a),
        .mask_place = t->alpha_mask   ? dataset_place(r->path, n, "alpha_mask", r->a)
                      : mask && *mask ? dataset_place(r->path, n, "mask_path", r->a)
                                      : NULL,
    };
    s->mask_folder = mask && *mask ? dataset_resolve(mask, r->path, r->o->folder, r->a) : NULL;
    s->control_folder = control && *control ? dataset_resolve(control, r->path, r->o->folder, r->a) : NULL;
    s->by_area = true;
    s->square = !t->buckets;
    s->side = side;
    s->buckets.step = s->clip_buckets.step = r->step;
    s->flip_x = t->flip_x;
    s->flip_y = t->flip_y;
    read_frames(t, s);
    read_captions(r, t, s);
    /* A regularisation set does not learn the word. */
    if (t->is_reg)
        s->trigger = NULL;
}

static int check_dataset(const struct reader *r, const struct yaml_node *n, const struct toolkit *t)
{
    if (!t->folder_path && !t->dataset_path)
        return fail_at(r, n, "a dataset needs folder_path", "set it to the folder of the images and clips");
    if (t->scale != 1)
        return fail_at(r, settings_get(n, "scale"), "cairn does not support scale", "leave it out");
    if (t->fps <= 0)
        return fail_at(r, settings_get(n, "fps"), "fps: expected a number above 0",
                       "16 is Wan's rate, 24 that of the 5B model");
    if (!t->buckets && (t->num_frames > 1 || t->auto_frame_count))
        return fail_at(r, settings_get(n, "buckets"), "clips need buckets",
                       "leave buckets out, or set num_frames to 1");
    if (t->loss_multiplier < 0)
        return fail_at(r, settings_get(n, "loss_multiplier"), "loss_multiplier: expected a number from 0 on",
                       "1 is usual; items with 0.5 count half");
    if (t->caption_dropout_rate < 0 || t->caption_dropout_rate > 1)
        return fail_at(r, settings_get(n, "caption_dropout_rate"),
                       "caption_dropout_rate: expected a number from 0 to 1",
                       "0.05 is usual: one caption of twenty is left out");
    return 0;
}

static int read_dataset(struct reader *r, const struct yaml_node *n)
{
    static size_t preset[] = { 512 };
    struct toolkit t = { .caption_ext = ".txt",
                         .resolution = { preset, 1 },
                         .buckets = true,
                         .shrink_video_to_frames = true,
                         .trim_auto_frame_count_tail = true,
                         .num_frames = 1,
                         .num_repeats = 1,
                         .batch_size = 1,
                         .fps = 24,
                         .network_weight = 1,
                         .loss_multiplier = 1,
                         .scale = 1 };
    struct settings keys = {
        .path = r->path, .row = dataset_toolkit_keys, .n = n_dataset_toolkit_keys, .arena = r->a
    };
    if (settings_read(&keys, n, 1, &t, r->err) || check_dataset(r, n, &t))
        return -1;
    for (size_t i = 0; i < t.resolution.n; i++) {
        if (t.resolution.item[i] < r->step || t.resolution.item[i] > 1 << 15)
            return fail_at(r, settings_get(n, "resolution"),
                           "resolution: expected a number of pixels, 32 to 32768", "512 and 768 are usual");
        add_source(r, n, &t, t.resolution.item[i]);
    }
    return 0;
}

static const char *text_of(const struct yaml_node *n)
{
    return n && n->kind == YAML_SCALAR && !yaml_is_null(n) ? n->text : NULL;
}

/* Datasets of one folder and resolution would write the same files. */
static void separate_caches(const struct reader *r)
{
    for (size_t i = 0; i < r->out->n; i++)
        for (size_t j = 0; j < i; j++)
            if (!strcmp(r->out->source[i].block.cache_directory, r->out->source[j].block.cache_directory)) {
                r->out->source[i].block.cache_directory =
                    arena_printf(r->a, "%s-%zu", r->out->source[i].block.cache_directory, i + 1);
                break;
            }
}

int dataset_read_toolkit(const char *path, const struct yaml_node *root, const struct dataset_options *o,
                         struct arena *a, struct dataset_sources *out, struct cairn_error *err)
{
    const struct yaml_node *config = settings_get(root, "config"), *list = settings_get(config, "process");
    const struct yaml_node *process = list && list->kind == YAML_LIST ? list->first : list;
    const struct yaml_node *datasets = settings_get(process, "datasets");
    const char *arch = text_of(settings_get(settings_get(process, "model"), "arch"));
    struct reader r = { .o = o, .path = path, .a = a, .out = out, .err = err };
    r.job = text_of(settings_get(config, "name"));
    r.trigger = text_of(settings_get(process, "trigger_word"));
    r.step = o->bucket_step ? o->bucket_step : arch && str_starts(arch, "wan22_5b") ? 32 : 16;
    if (!datasets || datasets->kind != YAML_LIST || !datasets->first) {
        cairn_fail(err, CAIRN_EFORMAT,
                   "%s: neither a dataset file of musubi-tuner nor an ai-toolkit job with datasets", path);
        return cairn_hint(
            err,
            "a dataset file of musubi-tuner has [[datasets]]; a folder of images and clips needs no file");
    }
    for (const struct yaml_node *n = datasets->first; n; n = n->next)
        if (read_dataset(&r, n))
            return -1;
    separate_caches(&r);
    return 0;
}
