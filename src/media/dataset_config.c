/* SPDX-License-Identifier: Apache-2.0
 * A dataset by a file, or by folders and options. */
#include "media/dataset_parts.h"

#include "base/toml.h"
#include "os/info.h"
#include "os/path.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void dataset_note(struct dataset_sources *s, struct arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    *ARENA_PUSH(a, s->notes, s->n_notes) = arena_vprintf(a, fmt, ap);
    va_end(ap);
}

const char *dataset_resolve(const char *path, const char *named_in, const char *folder, struct arena *a)
{
    struct os_info info;
    if (path_is_absolute(path))
        return arena_strdup(a, path);
    const char *there = folder ? arena_printf(a, "%s/%s", folder, path) : path;
    if (!os_info(there, &info))
        return folder ? there : arena_strdup(a, path);
    if (folder && !os_info(path, &info))
        return arena_strdup(a, path);
    CLEANUP(mem_free) char *named = path_folder(named_in);
    const char *beside = arena_printf(a, "%s/%s", named, path);
    return os_info(beside, &info) ? arena_strdup(a, there) : beside;
}

const char *dataset_place(const char *path, const struct yaml_node *map, const char *key, struct arena *a)
{
    const struct yaml_node *n = settings_get(map, key);
    return n ? arena_printf(a, "%s:%d:%d: %s", path, n->line, n->column, key) : NULL;
}

static bool has_suffix(const char *path, const char *suffix)
{
    size_t n = strlen(path), m = strlen(suffix);
    return n > m && !strcasecmp(path + n - m, suffix);
}

/* Sub-folders keep caches of different datasets apart: a picture's cache is named by the file alone. */
static void place_caches(const struct dataset_options *o, struct arena *a, struct dataset_sources *s)
{
    for (size_t i = 0; i < s->n; i++) {
        struct dataset_block *b = &s->source[i].block;
        if (o->cache_directory)
            b->cache_directory =
                s->n > 1 ? arena_printf(a, "%s/%zu", o->cache_directory, i + 1) : o->cache_directory;
    }
}

int dataset_read_config(const struct dataset_options *o, struct arena *a, struct dataset_sources *out,
                        struct cairn_error *err)
{
    struct yaml_node *root;
    bool toml = o->config && has_suffix(o->config, ".toml");
    int failed;
    *out = (struct dataset_sources){ 0 };
    if (!o->config)
        failed = dataset_read_folders(o, a, out, err);
    else if (toml ? toml_read(o->config, a, &root, err) : yaml_read(o->config, a, &root, err))
        failed = -1;
    else if (toml || settings_get(root, "datasets"))
        failed = dataset_read_musubi(o->config, root, o, a, out, err);
    else
        failed = dataset_read_toolkit(o->config, root, o, a, out, err);
    if (failed)
        return -1;
    place_caches(o, a, out);
    return 0;
}

/* ---- folders ---- */

enum { WAN_WIDTH = 832, WAN_HEIGHT = 480, WAN_FRAMES = 81, WAN_FPS = 16 };

int dataset_extract_parse(const char *word, enum dataset_extract *out, struct cairn_error *err)
{
    static const char *const names[] = { "head", "chunk", "slide", "uniform", "full" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (!strcmp(word, names[i])) {
            *out = (enum dataset_extract)i;
            return 0;
        }
    cairn_fail(err, CAIRN_EUSAGE, "the extraction \"%s\" is unknown", word);
    return cairn_hint(err, "use head, chunk, slide, uniform or full");
}

static int read_extraction(const struct dataset_options *o, struct dataset_source *s, struct arena *a,
                           struct cairn_error *err)
{
    static const size_t preset[] = { WAN_FRAMES };
    s->n_frames = o->n_frames ? o->n_frames : 1;
    for (size_t i = 0; i < o->n_frames; i++)
        if (!o->frames[i])
            return cairn_fail(err, CAIRN_EUSAGE, "a clip of 0 frames is not possible");
    s->frames = dataset_frame_counts(o->n_frames ? o->frames : preset, &s->n_frames, a);
    s->max_frames = s->frames[s->n_frames - 1];
    s->extract = DATASET_FULL;
    s->stride = o->stride ? o->stride : 1;
    s->samples = o->samples ? o->samples : 1;
    return o->extraction ? dataset_extract_parse(o->extraction, &s->extract, err) : 0;
}

static int fill_folder(const struct dataset_options *o, struct dataset_source *s, struct bucket_size size,
                       struct arena *a, struct cairn_error *err)
{
    size_t step = o->bucket_step ? o->bucket_step : 16;
    s->find = DATASET_PICTURES | DATASET_CLIPS;
    s->mask_folder = o->mask_path;
    s->fps = o->fps < 0 ? 0 : o->fps > 0 ? o->fps : o->model_fps > 0 ? o->model_fps : WAN_FPS;
    s->caption_extension = o->caption_extension ? o->caption_extension : ".txt";
    if (*s->caption_extension && *s->caption_extension != '.')
        s->caption_extension = arena_printf(a, ".%s", s->caption_extension);
    s->caption_default = o->caption_default;
    s->has_trigger = o->trigger && *o->trigger;
    s->trigger = o->trigger;
    s->flip_x = o->flip_x;
    s->flip_y = o->flip_y;
    if (read_extraction(o, s, a, err) ||
        bucket_set_init(&s->buckets, size, step, !o->no_buckets, o->no_upscale, a, err))
        return -1;
    s->clip_buckets = s->buckets;
    return 0;
}

int dataset_read_folders(const struct dataset_options *o, struct arena *a, struct dataset_sources *out,
                         struct cairn_error *err)
{
    static const struct bucket_size preset = { WAN_WIDTH, WAN_HEIGHT };
    size_t n = o->n_resolutions ? o->n_resolutions : 1;
    const struct bucket_size *sizes = o->n_resolutions ? o->resolutions : &preset;
    for (size_t i = 0; i < o->n_paths * n; i++) {
        const char *folder = o->paths[i / n];
        struct bucket_size size = sizes[i % n];
        struct dataset_source *s = ARENA_PUSH(a, out->source, out->n);
        const char *below = n > 1 ? arena_printf(a, "/%zux%zu", size.width, size.height) : "";
        s->folder = folder;
        s->block = (struct dataset_block){
            .name = folder,
            .cache_directory =
                arena_printf(a, "%s%s_cairn_cache%s", folder, str_ends(folder, "/") ? "" : "/", below),
            .batch = 1,
            .repeats = o->repeats ? o->repeats : 1,
            .loss_multiplier = 1,
            .network_weight = 1,
        };
        if (fill_folder(o, s, size, a, err))
            return -1;
    }
    return out->n ? 0 : cairn_fail(err, CAIRN_EUSAGE, "no folder of pictures and clips is named");
}
