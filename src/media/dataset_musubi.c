/* SPDX-License-Identifier: Apache-2.0
 * Dataset files of musubi-tuner. */
#include "media/dataset_keys.h"
#include "media/dataset_parts.h"
#include "os/path.h"
#include <string.h>

struct musubi {
    struct bucket_size resolution;
    bool enable_bucket, bucket_no_upscale;
    const char *caption_extension, *cache_directory, *control_directory;
    const char *image_directory, *image_jsonl_file, *video_directory, *video_jsonl_file;
    size_t batch_size, num_repeats, frame_stride, frame_sample, max_frames;
    struct setting_counts target_frames;
    const char *frame_extraction;
    double source_fps;
};

enum {
    GENERAL = DATASET_MUSUBI_GENERAL,
    IMAGE = DATASET_MUSUBI_IMAGE,
    VIDEO = DATASET_MUSUBI_VIDEO,
    EVERYWHERE = GENERAL | IMAGE | VIDEO
};

#define ROW(key, type, where)                                     \
    {                                                             \
#key, SETTING_##type, where, offsetof(struct musubi, key) \
    }
#define NOT_HERE(key, where)            \
    {                                   \
#key, SETTING_REFUSED, where, 0 \
    }
const struct setting dataset_musubi_keys[] = {
    ROW(resolution, SIZE, EVERYWHERE),
    ROW(enable_bucket, BOOL, EVERYWHERE),
    ROW(bucket_no_upscale, BOOL, EVERYWHERE),
    ROW(caption_extension, TEXT, EVERYWHERE),
    ROW(batch_size, COUNT, EVERYWHERE),
    ROW(num_repeats, COUNT, EVERYWHERE),
    ROW(cache_directory, TEXT, IMAGE | VIDEO),
    ROW(control_directory, TEXT, IMAGE | VIDEO),
    ROW(image_directory, TEXT, IMAGE),
    ROW(image_jsonl_file, TEXT, IMAGE),
    ROW(video_directory, TEXT, VIDEO),
    ROW(video_jsonl_file, TEXT, VIDEO),
    ROW(target_frames, COUNTS, VIDEO),
    ROW(frame_extraction, TEXT, VIDEO),
    ROW(frame_stride, COUNT, VIDEO),
    ROW(frame_sample, COUNT, VIDEO),
    ROW(max_frames, COUNT, VIDEO),
    ROW(source_fps, REAL, VIDEO),
    /* Of FramePack, where Wan ignores it. */
    { "fp_latent_window_size", SETTING_COUNT, IMAGE | VIDEO, SETTING_UNUSED },
    NOT_HERE(multiple_target, IMAGE),
    NOT_HERE(fp_1f_clean_indices, IMAGE),
    NOT_HERE(fp_1f_target_index, IMAGE),
    NOT_HERE(fp_1f_no_post, IMAGE),
    NOT_HERE(no_resize_control, IMAGE),
    NOT_HERE(control_resolution, IMAGE),
};
const size_t n_dataset_musubi_keys = ARRAY_LEN(dataset_musubi_keys);

struct reader {
    const char *path;
    const struct dataset_options *o;
    struct arena *a;
    struct dataset_sources *out;
    struct cairn_error *err;
};

static int fail_at(const struct reader *r, const struct yaml_node *n, const char *what, const char *remedy)
{
    cairn_fail(r->err, CAIRN_EFORMAT, "%s:%d:%d: %s", r->path, n->line, n->column, what);
    return cairn_hint(r->err, "%s", remedy);
}

static int read_frames(const struct reader *r, const struct yaml_node *n, const struct musubi *m,
                       struct dataset_source *s)
{
    static const char *const names[] = { "head", "chunk", "slide", "uniform", "full" };
    const struct yaml_node *key = settings_get(n, "frame_extraction");
    size_t way = 0;
    while (way < ARRAY_LEN(names) && strcmp(names[way], m->frame_extraction))
        way++;
    if (way == ARRAY_LEN(names))
        return fail_at(r, key ? key : n, "frame_extraction: expected head, chunk, slide, uniform or full",
                       "head takes the first frames of each clip");
    if (m->source_fps < 0)
        return fail_at(r, settings_get(n, "source_fps"), "source_fps: expected a number above 0",
                       "leave it out: each clip says its own");
    s->extract = (enum dataset_extract)way;
    s->n_frames = m->target_frames.n;
    s->frames = dataset_frame_counts(m->target_frames.item, &s->n_frames, r->a);
    s->stride = m->frame_stride;
    s->samples = m->frame_sample;
    s->max_frames = m->max_frames;
    s->source_fps = m->source_fps;
    s->fps = m->source_fps > 0 ? r->o->model_fps > 0 ? r->o->model_fps : 16 : 0;
    return 0;
}

/* Clips are always cached with buckets, and without bucket_no_upscale. */
static int read_sizes(const struct reader *r, const struct yaml_node *n, const struct musubi *m,
                      struct dataset_source *s)
{
    size_t step = r->o->bucket_step ? r->o->bucket_step : 16;
    const struct yaml_node *key = settings_get(n, "resolution");
    if (!bucket_set_init(&s->buckets, m->resolution, step, m->enable_bucket, m->bucket_no_upscale, r->a,
                         r->err) &&
        !bucket_set_init(&s->clip_buckets, m->resolution, step, true, false, r->a, r->err))
        return 0;
    return cairn_wrap(r->err, "%s:%d:%d", r->path, (key ? key : n)->line, (key ? key : n)->column);
}

/* A folder that may not exist yet. */
static const char *below_folder(const struct reader *r, const char *path)
{
    return r->o->folder && !path_is_absolute(path) ? arena_printf(r->a, "%s/%s", r->o->folder, path) : path;
}

static int read_dataset(const struct reader *r, const struct yaml_node *n, const struct musubi *general)
{
    static size_t one_frame[] = { 1 };
    struct musubi m = *general;
    struct settings keys = {
        .path = r->path, .row = dataset_musubi_keys, .n = n_dataset_musubi_keys, .arena = r->a
    };
    bool clips = settings_get(n, "video_directory") || settings_get(n, "video_jsonl_file");
    m.target_frames = (struct setting_counts){ one_frame, 1 };
    m.frame_extraction = "head";
    m.frame_stride = m.frame_sample = 1;
    m.max_frames = 129;
    if (settings_read(&keys, n, clips ? VIDEO : IMAGE, &m, r->err))
        return -1;
    const char *folder = clips ? m.video_directory : m.image_directory;
    const char *list = clips ? m.video_jsonl_file : m.image_jsonl_file;
    if (!folder && !list)
        return fail_at(
            r, n, "a dataset needs image_directory, image_jsonl_file, video_directory or video_jsonl_file",
            "set video_directory to the folder of the clips, or image_directory to that of the images");
    if (!folder && !m.cache_directory && !r->o->cache_directory)
        return fail_at(r, n, "cache_directory is missing: a dataset by a .jsonl file needs it",
                       "set it to a folder for the caches");

    struct dataset_source *s = ARENA_PUSH(r->a, r->out->source, r->out->n);
    s->relative_to = r->o->folder;
    s->folder = folder ? dataset_resolve(folder, r->path, r->o->folder, r->a) : NULL;
    s->list = folder ? NULL : dataset_resolve(list, r->path, r->o->folder, r->a);
    s->place = dataset_place(r->path, n,
                             clips    ? folder ? "video_directory" : "video_jsonl_file"
                             : folder ? "image_directory"
                                      : "image_jsonl_file",
                             r->a);
    s->block = (struct dataset_block){
        .name = folder ? folder : list,
        .cache_directory = m.cache_directory ? below_folder(r, m.cache_directory) : s->folder,
        .batch = m.batch_size,
        .repeats = m.num_repeats,
        .loss_multiplier = 1,
        .network_weight = 1,
    };
    s->find = clips ? DATASET_CLIPS : DATASET_PICTURES;
    s->control_folder =
        m.control_directory ? dataset_resolve(m.control_directory, r->path, r->o->folder, r->a) : NULL;
    s->caption_extension = m.caption_extension;
    return read_sizes(r, n, &m, s) || (clips && read_frames(r, n, &m, s)) ? -1 : 0;
}

static int check_caches(const struct reader *r)
{
    for (size_t i = 0; i < r->out->n; i++)
        for (size_t j = 0; j < i && !r->o->cache_directory; j++)
            if (!strcmp(r->out->source[i].block.cache_directory, r->out->source[j].block.cache_directory)) {
                cairn_fail(r->err, CAIRN_EFORMAT,
                           "%s: datasets %zu and %zu have the same cache_directory, %s", r->path, j + 1,
                           i + 1, r->out->source[i].block.cache_directory);
                return cairn_hint(r->err, "set another cache_directory in one of them");
            }
    return 0;
}

int dataset_read_musubi(const char *path, const struct yaml_node *root, const struct dataset_options *o,
                        struct arena *a, struct dataset_sources *out, struct cairn_error *err)
{
    static const struct setting top[] = { { "general", SETTING_ANY, GENERAL, SETTING_UNUSED },
                                          { "datasets", SETTING_ANY, GENERAL, SETTING_UNUSED } };
    struct reader r = { .path = path, .o = o, .a = a, .out = out, .err = err };
    struct settings keys = { .path = path, .row = top, .n = ARRAY_LEN(top), .arena = a };
    struct musubi general = { .resolution = { 960, 544 }, .batch_size = 1, .num_repeats = 1 };
    const struct yaml_node *settings = settings_get(root, "general"), *list = settings_get(root, "datasets");
    if (settings_read(&keys, root, GENERAL, &general, err))
        return -1;
    keys.row = dataset_musubi_keys;
    keys.n = n_dataset_musubi_keys;
    if (settings && settings_read(&keys, settings, GENERAL, &general, err))
        return -1;
    if (!list || list->kind != YAML_LIST || !list->first) {
        cairn_fail(err, CAIRN_EFORMAT, "%s: no [[datasets]] in it", path);
        return cairn_hint(err,
                          "write [[datasets]], with two brackets, before video_directory or image_directory");
    }
    for (const struct yaml_node *n = list->first; n; n = n->next)
        if (read_dataset(&r, n, &general))
            return -1;
    return check_caches(&r);
}
