/* SPDX-License-Identifier: Apache-2.0 */
#include "train/wan_cache.h"

#include "base/parse.h"
#include "base/str.h"
#include "encode/encode_device.h"
#include "nn/umt5.h"
#include "nn/vae.h"
#include "os/info.h"
#include "os/list.h"
#include "video/cache_name.h"
#include <stdlib.h>
#include <string.h>

enum { STEP_22 = 32, FPS_22 = 24 }; /* of the 5B model, whose VAE is that of Wan 2.2 */

/* ---- the encoders ---- */

/* Of model.vae_path; nothing changes if that is not set. */
static int read_vae(const struct job_config *c, struct vae_info *out, struct cairn_error *err)
{
    const char *path = wan_keys(c)->model.vae_path;
    return path[0] && vae_read_info(path, out, err)
               ? config_wrap(c, "model.vae_path", "it takes the VAE of Wan: a file, or diffusers' folder vae",
                             err)
               : 0;
}

static int read_text_encoder(const struct job_config *c, struct umt5_info *out, struct cairn_error *err)
{
    const char *path = wan_keys(c)->model.text_encoder_path;
    return path[0] && umt5_read_info(path, out, err)
               ? config_wrap(c, "model.text_encoder_path",
                             "it takes umT5-XXL: a file, or diffusers' folder text_encoder", err)
               : 0;
}

static int check_tokenizer(const struct job_config *c, struct cairn_error *err)
{
    const char *path = wan_keys(c)->model.tokenizer_path;
    struct os_info info;
    if (!path[0] || !os_info(path, &info))
        return 0;
    cairn_fail_errno(err, "%s", path);
    return config_wrap(c, "model.tokenizer_path",
                       "it takes the tokenizer of umT5: tokenizer.json or spiece.model", err);
}

/* ---- what data.path is ---- */

static bool has_caches(const char *dir)
{
    CLEANUP(os_list_close) struct os_list *l = os_list_open(dir, 0);
    const char *name;
    struct cache_name parts;
    while (l && (name = os_list_next(l)))
        if (str_ends(name, ".safetensors") && cache_name_parse(name, &parts) && cache_name_is_wan(&parts))
            return true;
    return false;
}

static bool is_media_name(const char *name)
{
    static const char *const extensions[] = { ".png", ".jpg",  ".jpeg", ".webp", ".bmp", ".avif",
                                              ".mp4", ".webm", ".avi",  ".mkv",  ".mov", ".flv",
                                              ".wmv", ".m4v",  ".mpg",  ".mpeg" };
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < ARRAY_LEN(extensions); i++)
        if (!strcasecmp(dot, extensions[i]))
            return true;
    return false;
}

static bool has_media(const char *dir)
{
    CLEANUP(os_list_close) struct os_list *l = os_list_open(dir, 0);
    const char *name;
    while (l && (name = os_list_next(l)))
        if (is_media_name(name))
            return true;
    return false;
}

/* A dataset file; NULL: data.path are folders. */
static const char *dataset_file(const struct wan_keys *k)
{
    return k->data.path.n == 1 && os_is_file(k->data.path.item[0]) ? k->data.path.item[0] : NULL;
}

bool wan_cache_has_media(const struct job_config *c)
{
    const struct wan_keys *k = wan_keys(c);
    if (dataset_file(k))
        return true;
    for (size_t i = 0; i < k->data.path.n; i++)
        if (has_media(k->data.path.item[i]))
            return true;
    return false;
}

bool wan_cache_is_needed(const struct job_config *c)
{
    const struct wan_keys *k = wan_keys(c);
    if (dataset_file(k))
        return true;
    for (size_t i = 0; i < k->data.path.n; i++)
        if (!has_caches(k->data.path.item[i]) && has_media(k->data.path.item[i]))
            return true;
    return false;
}

int wan_cache_wrap(const struct job_config *c, struct cairn_error *err)
{
    return config_wrap(c, "data.path",
                       "it takes folders of images and clips, folders of caches, or a dataset file", err);
}

/* ---- the dataset ---- */

/* "832x480", or "512" for a square. */
static int parse_resolution(const struct job_config *c, const char *text, struct bucket_size *out,
                            struct cairn_error *err)
{
    struct wan_pixels p;
    struct cairn_error why;
    uint64_t side;
    if (cairn_parse_u64(text, &side) && side >= 16 && side <= 16384) {
        *out = (struct bucket_size){ (size_t)side, (size_t)side };
        return 0;
    }
    if (wan_pixels_parse(text, &p, &why))
        return config_clash(c, "data.resolution", "data.resolution", err,
                            "data.resolution: \"%s\" is not WIDTHxHEIGHT, such as 832x480, or a side", text);
    *out = (struct bucket_size){ p.width, p.height };
    return 0;
}

static int parse_frames(const struct job_config *c, const char *text, size_t *out, struct cairn_error *err)
{
    uint64_t n;
    if (!cairn_parse_u64(text, &n) || !n || n > 100000)
        return config_clash(c, "data.frames", "data.frames", err,
                            "data.frames: \"%s\" is not a number of frames", text);
    *out = (size_t)n;
    return 0;
}

int wan_cache_largest(const struct job_config *c, struct arena *a, const char **out, struct cairn_error *err)
{
    const struct wan_keys *k = wan_keys(c);
    struct bucket_size size, most = { 0 };
    size_t frames = 0, longest = 1;
    for (size_t i = 0; i < k->data.resolution.n; i++) {
        if (parse_resolution(c, k->data.resolution.item[i], &size, err))
            return -1;
        if (size.width * size.height > most.width * most.height)
            most = size;
    }
    for (size_t i = 0; i < k->data.frames.n; i++) {
        if (parse_frames(c, k->data.frames.item[i], &frames, err))
            return -1;
        longest = frames > longest ? frames : longest;
    }
    *out = arena_printf(a, "%zux%zux%zu", most.width, most.height, (longest - 1) / 4 * 4 + 1);
    return 0;
}

static const char *or_null(const char *text)
{
    return text[0] ? text : NULL;
}

int wan_cache_dataset(const struct job_config *c, const struct dataset_progress *progress, bool decode,
                      struct dataset **out, struct cairn_error *err)
{
    const struct wan_keys *k = wan_keys(c);
    CLEANUP(arena_release) struct arena a = { 0 };
    struct bucket_size *sizes = ARENA_NEW(&a, struct bucket_size, k->data.resolution.n);
    size_t *frames = ARENA_NEW(&a, size_t, k->data.frames.n);
    struct vae_info vae = { .version = 21 };
    for (size_t i = 0; i < k->data.resolution.n; i++)
        if (parse_resolution(c, k->data.resolution.item[i], &sizes[i], err))
            return -1;
    for (size_t i = 0; i < k->data.frames.n; i++)
        if (parse_frames(c, k->data.frames.item[i], &frames[i], err))
            return -1;
    if (read_vae(c, &vae, err))
        return -1;
    bool is_22 = vae.version == 22;
    struct dataset_options o = {
        .config = dataset_file(k),
        .folder = c->folder,
        .paths = k->data.path.item,
        .n_paths = k->data.path.n,
        .resolutions = sizes,
        .n_resolutions = k->data.resolution.n,
        .no_buckets = !k->data.buckets,
        .no_upscale = !k->data.upscale,
        .frames = frames,
        .n_frames = k->data.frames.n,
        .extraction = or_null(k->data.extraction),
        .fps = k->data.fps > 0 ? k->data.fps
               : is_22         ? FPS_22
                               : 0,
        .caption_extension = or_null(k->data.caption_extension),
        .caption_default = or_null(k->data.caption_default),
        .trigger = or_null(k->data.trigger),
        .flip_x = k->data.flip,
        .repeats = (size_t)k->data.repeats,
        .cache_directory = or_null(k->cache.dir),
        .bucket_step = is_22 ? STEP_22 : 0,
        .model_fps = is_22 ? FPS_22 : 0,
        .decode = decode,
    };
    if (progress)
        o.progress = *progress;
    if (o.config && is_media_name(o.config)) {
        cairn_fail(err, CAIRN_EUSAGE, "%s is one image or clip", o.config);
        return config_wrap(c, "data.path", "it takes the folder with the images and clips", err);
    }
    if (!dataset_open(out, &o, err))
        return 0;
    return c->foreign ? -1
                      : wan_cache_wrap(c, err); /* its datasets are in the file of the job, or named by it */
}

/* ---- the job ---- */

int wan_cache_assume_task(struct job_config *c, bool *assumed, struct cairn_error *err)
{
    const struct wan_keys *k = wan_keys(c);
    struct vae_info vae = { .version = 21 };
    *assumed = false;
    if (c->model.path[0] || k->model.high_noise_path[0] || k->model.task[0])
        return 0;
    if (read_vae(c, &vae, err))
        return -1;
    *assumed = vae.version == 21;
    return config_set(c, "the default", "model.task", *assumed ? "t2v-A14B" : "ti2v-5B", err);
}

/* Image-to-video models read the first frame's latents beside the noisy ones, and those of Wan 2.1 its CLIP features. */
static int read_wants(const struct job_config *c, bool *image, bool *clip, struct cairn_error *err)
{
    const struct wan_keys *k = wan_keys(c);
    struct wan_request r = { c->model.path, k->model.high_noise_path, "", "auto", (size_t)k->model.heads };
    CLEANUP(wan_files_release) struct wan_files files = { 0 };
    *image = str_starts(k->model.task, "i2v");
    *clip = str_eq(k->model.task, "i2v-14B");
    if (k->model.task[0])
        return 0;
    if (wan_find(&r, &files, err))
        return cairn_hint(err, "caches need the transformer only for its kind: set model.task instead");
    const struct wan_shape *s = files.n ? &files.bases[0].info.shape : NULL;
    *image = s && s->in > s->out;
    *clip = s && s->clip_width;
    return 0;
}

static int lacks_clip(const struct job_config *c, struct cairn_error *err)
{
    cairn_fail(err, CAIRN_EUSAGE,
               "%s: caches for Wan 2.1 I2V need the CLIP vision encoder, which cairn does not have",
               c->model.path[0] ? c->model.path : "model.task");
    return cairn_hint(err,
                      "Wan 2.2 I2V (i2v-A14B, ti2v-5B) needs none; for Wan 2.1 I2V, make the caches with "
                      "musubi-tuner (--i2v --clip FILE) and set data.path to them");
}

int wan_cache_check_clip(const struct job_config *c, struct cairn_error *err)
{
    bool image, clip;
    if (read_wants(c, &image, &clip, err))
        return -1;
    return clip ? lacks_clip(c, err) : 0;
}

static int need_path(const char *path, const char *key, const char *option, const char *what,
                     struct cairn_error *err)
{
    if (path[0])
        return 0;
    cairn_fail(err, CAIRN_EUSAGE, "%s is not set, so that no caches of %s can be made", key, what);
    return cairn_hint(err, "set it in the configuration, or run `cairn cache` with %s FILE", option);
}

int wan_cache_check(const struct job_config *c, const struct video_needs *needs, struct cairn_error *err)
{
    const struct wan_keys *k = wan_keys(c);
    struct vae_info vae;
    struct umt5_info text;
    if (needs->clip && !dataset_file(k) && !k->cache.dir[0]) /* else they may be musubi-tuner's */
        return lacks_clip(c, err);
    if (read_vae(c, &vae, err) || read_text_encoder(c, &text, err))
        return -1;
    if (k->model.vae_path[0] && needs->channels && vae.channels != needs->channels) {
        cairn_fail(err, CAIRN_EUSAGE, "the latents of %s have %zu channels; the model has %zu",
                   k->model.vae_path, vae.channels, needs->channels);
        return config_wrap(c, "model.vae_path",
                           "the 5B model has the VAE of Wan 2.2; all others have that of Wan 2.1", err);
    }
    if (k->model.text_encoder_path[0] && needs->text_dim && text.dim != needs->text_dim) {
        cairn_fail(err, CAIRN_EUSAGE, "%s has the hidden size %zu; the model needs %zu",
                   k->model.text_encoder_path, text.dim, needs->text_dim);
        return config_wrap(c, "model.text_encoder_path", "Wan's text encoder is umT5-XXL, with 4096", err);
    }
    return 0;
}

int wan_cache_check_use(const struct dataset *d, struct cairn_error *err)
{
    for (size_t i = 0; i < dataset_count(d); i++) {
        const struct dataset_block *b = dataset_item(d, i)->block;
        if (b->network_weight != 1) {
            cairn_fail(err, CAIRN_EUSAGE, "%s: cairn cannot train with it: the LoRA has one strength",
                       b->weight_place);
            return cairn_hint(err, "remove it; loss_multiplier makes items count more or less");
        }
        if (b->mask_place) {
            cairn_fail(err, CAIRN_EUSAGE, "%s: cairn cannot train with it: the loss has no mask",
                       b->mask_place);
            return cairn_hint(err, "remove it, or crop the images to what is to be learned");
        }
    }
    return 0;
}

int wan_cache_prompts(const struct job_config *c, const struct sample_prompt *prompts, size_t n,
                      struct gpu *g, struct arena *a, struct cache_job *out, struct cairn_error *err)
{
    static const enum dtype dtypes[] = {
        [WAN_SAVE_BF16] = DTYPE_BF16, [WAN_SAVE_F16] = DTYPE_F16, [WAN_SAVE_F32] = DTYPE_F32
    };
    const struct wan_keys *k = wan_keys(c);
    struct umt5_info info;
    if (need_path(k->model.text_encoder_path, "model.text_encoder_path", "--text-encoder", "captions", err) ||
        read_text_encoder(c, &info, err) || check_tokenizer(c, err))
        return -1;
    *out = (struct cache_job){
        .text = { k->model.text_encoder_path, k->text_encoder.device == WAN_ENCODER_CPU,
                  encode_storage_on(g) },
        .tokenizer_path = or_null(k->model.tokenizer_path),
        .dtype = dtypes[k->cache.dtype],
        .g = g,
    };
    out->prompts = wan_prompts_texts(prompts, n, a, &out->n_prompts);
    return 0;
}

int wan_cache_job(const struct job_config *c, const struct dataset *d, struct gpu *g, struct arena *a,
                  struct cache_job *out, struct cairn_error *err)
{
    const struct wan_keys *k = wan_keys(c);
    struct sample_prompt *prompts;
    size_t n;
    bool wants_image, wants_clip;
    if (need_path(k->model.vae_path, "model.vae_path", "--vae", "latents", err) ||
        wan_prompts(c, a, &prompts, &n, err) || wan_cache_prompts(c, prompts, n, g, a, out, err) ||
        read_wants(c, &wants_image, &wants_clip, err))
        return -1;
    out->dataset = d;
    out->vae =
        (struct cache_encoder){ k->model.vae_path, k->vae.device == WAN_ENCODER_CPU, encode_storage_on(g) };
    out->image = wants_image;
    out->repair = k->cache.repair;
    return 0;
}

static bool is_listed(const char *const *list, size_t n, const char *text)
{
    for (size_t i = n; i-- > 0;)
        if (!strcmp(list[i], text))
            return true;
    return false;
}

static int by_path(const void *a, const void *b)
{
    const struct video_cache_wanted *x = a, *y = b;
    return strcmp(x->path, y->path);
}

/* As ai-toolkit trains: every loss has its dataset's multiplier, whether or not it is of a regularisation set. */
static struct video_use use_of(const struct dataset_block *b)
{
    return (struct video_use){
        .repeats = b->repeats,
        .weight = b->loss_multiplier,
        .caption_dropout = b->caption_dropout,
        .clean_first_frame = b->first_frame,
        .is_regularisation = b->is_regularisation,
    };
}

void wan_cache_list(const struct dataset *d, struct arena *a, struct video_cache_options *out)
{
    size_t n = dataset_count(d), n_paths = 0, n_wanted = 0;
    const char **paths = ARENA_NEW(a, const char *, n + 1);
    struct video_cache_wanted *wanted = ARENA_NEW(a, struct video_cache_wanted, n + 1);
    for (size_t i = 0; i < n; i++) {
        const struct dataset_item *item = dataset_item(d, i);
        if (item->problem)
            continue;
        if (!is_listed(paths, n_paths, item->block->cache_directory))
            paths[n_paths++] = arena_strdup(a, item->block->cache_directory);
        wanted[n_wanted++] = (struct video_cache_wanted){ cache_item_path(a, item), use_of(item->block) };
    }
    qsort(wanted, n_wanted, sizeof(*wanted), by_path);
    out->paths = paths;
    out->n_paths = n_paths;
    out->wanted = wanted;
    out->n_wanted = n_wanted;
}
