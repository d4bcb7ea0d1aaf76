/* SPDX-License-Identifier: Apache-2.0
 * Pictures and clips to caches of latents. */
#include "base/file.h"
#include "base/str.h"
#include "encode/cache_job_inside.h"
#include "encode/frames_ahead.h"
#include "nn/vae.h"
#include "os/info.h"
#include "video/cache_write.h"
#include <stdlib.h>
#include <string.h>

enum { MASK_CHANNELS = 4 }; /* of image latents, before those of the image */

struct latents_pass {
    const struct cache_job *job;
    struct cache_result *out;
    struct vae_info info;
    char model[33];                    /* identifies VAE, dtype and kind */
    const struct dataset_item **items; /* to be done */
    const char **made_from;
    size_t n;
    struct frames_ahead *frames;
    struct encode_device device;
    struct vae *vae;
    struct cache_progress progress;
    bool of_item; /* the last failure concerns one item; the others can go on */
};

static void release(struct latents_pass *p)
{
    frames_ahead_close(p->frames);
    vae_close(p->vae);
    if (p->device.o)
        encode_device_close(&p->device);
    cache_progress_end(&p->progress);
}

/* ---- what is to be done ---- */

static int identify(struct latents_pass *p, struct cairn_error *err)
{
    struct hash h;
    CLEANUP(str_release) struct str file = { 0 };
    if (vae_find(p->job->vae.path, &file, err) || vae_read_info(file.s, &p->info, err))
        return -1;
    hash_init(&h);
    hash_add_u64(&h, (uint64_t)p->job->dtype);
    hash_add_u64(&h, p->job->image);
    if (cache_hash_file(&h, file.s, err))
        return -1;
    hash_end_text(&h, p->model);
    return 0;
}

static int made_from(const struct latents_pass *p, const struct dataset_item *item, const char **out,
                     struct cairn_error *err)
{
    struct hash h;
    char text[33];
    hash_init(&h);
    hash_add_text(&h, p->model);
    if (cache_hash_file(&h, item->path, err))
        return -1;
    hash_add_u64(&h, item->bucket.width);
    hash_add_u64(&h, item->bucket.height);
    hash_add_u64(&h, item->flip_x | (uint64_t)item->flip_y << 1);
    for (size_t i = 0; i < item->n_frames; i++)
        hash_add_u64(&h, item->frames[i]);
    hash_end_text(&h, text);
    *out = arena_strdup(&p->out->arena, text);
    return 0;
}

static struct cache_of cache_of(const struct dataset_item *item)
{
    return (struct cache_of){ item->cache_stem, item->name_size.width, item->name_size.height,
                              item->is_clip,    item->start,           item->n_frames };
}

char *cache_item_path(struct arena *a, const struct dataset_item *item)
{
    struct cache_of of = cache_of(item);
    const char *dir = item->block->cache_directory;
    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/')
        n--;
    return arena_printf(a, "%.*s/%s", (int)n, dir, cache_name_latents(a, &of));
}

static struct vae_size pixels_of(const struct dataset_item *item)
{
    return (struct vae_size){ item->n_frames, item->bucket.height, item->bucket.width };
}

static bool is_current(const struct latents_pass *p, const struct dataset_item *item, const char *made)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct vae_size size = pixels_of(item), latent = vae_latent_size(&p->info, &size);
    const char *path = cache_item_path(&a, item);
    enum cache_file state = cache_file_state(path, made);
    return state == CACHE_CURRENT ||
           (state == CACHE_FOREIGN &&
            cache_has_size(path, p->info.channels, latent.frames, latent.height, latent.width));
}

static int list_items(struct latents_pass *p, struct cairn_error *err)
{
    size_t n = dataset_count(p->job->dataset);
    p->items = ARENA_NEW(&p->out->arena, const struct dataset_item *, n);
    p->made_from = ARENA_NEW(&p->out->arena, const char *, n);
    for (size_t i = 0; i < n; i++) {
        const struct dataset_item *item = dataset_item(p->job->dataset, i);
        const char *made;
        if (item->problem)
            continue;
        if (cache_job_stopped(p->job, err))
            return -1;
        if (made_from(p, item, &made, err)) {
            cache_job_fail_item(p->out, &p->out->latents, item->path, err);
            continue;
        }
        if (!p->job->again && is_current(p, item, made)) {
            p->out->latents.current++;
            continue;
        }
        p->items[p->n] = item;
        p->made_from[p->n++] = made;
    }
    return 0;
}

/* ---- the encoder ---- */

static int read_frames(void *ctx, size_t first, size_t n, float *out, struct cairn_error *err)
{
    struct latents_pass *p = ctx;
    return cache_job_stopped(p->job, err) ? -1 : frames_ahead_read(p->frames, first, n, out, err);
}

/* The first frame, and grey behind it. */
struct first_frame {
    struct latents_pass *pass;
    size_t values; /* of a frame */
};

static int read_first_frame(void *ctx, size_t first, size_t n, float *out, struct cairn_error *err)
{
    const struct first_frame *f = ctx;
    memset(out, 0, n * f->values * sizeof(*out));
    return first ? 0 : read_frames(f->pass, 0, 1, out, err);
}

static int plan(const struct latents_pass *p, const struct vae_size *size, struct vae_layout *layout,
                struct cairn_error *err)
{
    uint64_t budget = encode_device_budget(&p->device), weights = vae_weight_bytes(p->vae);
    if (budget != UINT64_MAX)
        budget = budget > weights ? budget - weights : 0;
    return vae_plan(p->vae, true, size, budget, layout, err);
}

static size_t volume(const struct vae_size *size)
{
    return size->frames * size->height * size->width;
}

/* Of the largest item; an error is reported where it is encoded. */
static void say_layout(const struct latents_pass *p)
{
    struct vae_size most = { 0 };
    struct vae_layout l;
    struct cairn_error ignored;
    char tiles[64] = "no tiles", bytes[24];
    for (size_t i = 0; i < p->n; i++) {
        struct vae_size size = pixels_of(p->items[i]);
        most = volume(&size) > volume(&most) ? size : most;
    }
    if (plan(p, &most, &l, &ignored))
        return;
    if (l.tile_height < most.height || l.tile_width < most.width)
        snprintf(tiles, sizeof(tiles), "tiles of %zux%zu", l.tile_width, l.tile_height);
    message_say(&p->job->sink, "VAE: %s, %s, up to %zux%zux%zu in chunks of %zu, %s, %s%s",
                encode_device_name(&p->device), gpu_storage_name(p->device.nn.storage), most.width,
                most.height, most.frames, l.chunk, tiles,
                bytes_text((int64_t)(vae_weight_bytes(p->vae) + l.bytes), bytes),
                encode_device_note(&p->device));
}

static int open_vae(struct latents_pass *p, struct cairn_error *err)
{
    if (p->vae)
        return 0;
    if (vae_open(&p->vae, &p->device.nn, p->job->vae.path, true, false, err))
        return -1;
    vae_set_repair(p->vae, p->job->repair);
    say_layout(p);
    return 0;
}

static int encode_clip(struct latents_pass *p, const struct vae_size *size, const struct vae_source *from,
                       float *latent, struct cairn_error *err)
{
    struct vae_layout layout;
    uint64_t before = vae_repaired(p->vae);
    if (plan(p, size, &layout, err) || vae_encode(p->vae, size, &layout, from, latent, err))
        return -1;
    p->out->latents.repaired += vae_repaired(p->vae) - before;
    return 0;
}

/* Latents of the item, and behind them those of its first frame with their mask: 1 for the first latent frame. */
static int encode_item(struct latents_pass *p, const struct dataset_item *item, float *latent, float *image,
                       struct cairn_error *err)
{
    struct vae_size size = pixels_of(item), l = vae_latent_size(&p->info, &size);
    struct vae_source all = { read_frames, p };
    struct first_frame first = { p, size.height * size.width * 3 };
    struct vae_source only_first = { read_first_frame, &first };
    size_t area = l.height * l.width, channel = l.frames * area;
    if (open_vae(p, err))
        return -1;
    if (encode_clip(p, &size, &all, latent, err))
        return -1;
    for (size_t c = 0; image && c < MASK_CHANNELS; c++)
        for (size_t i = 0; i < channel; i++)
            image[c * channel + i] = i < area;
    return image ? encode_clip(p, &size, &only_first, image + MASK_CHANNELS * channel, err) : 0;
}

static int encode_or_fall_back(struct latents_pass *p, const struct dataset_item *item, float *latent,
                               float *image, struct cairn_error *err)
{
    while (encode_item(p, item, latent, image, err)) {
        if (err->code == CAIRN_EFORMAT || err->code == CAIRN_EIO || (p->job->stop && *p->job->stop))
            return -1; /* of this item's file */
        vae_close(p->vae);
        p->vae = NULL;
        if (encode_device_fall_back(&p->device, err))
            return -1;
    }
    return 0;
}

static int make_item(struct latents_pass *p, size_t i, struct cairn_error *err)
{
    const struct dataset_item *item = p->items[i];
    const char *dir = item->block->cache_directory;
    struct vae_size size = pixels_of(item), l = vae_latent_size(&p->info, &size);
    size_t channel = l.frames * l.height * l.width, image_channels = MASK_CHANNELS + p->info.channels;
    CLEANUP(mem_free) float *latent = malloc(p->info.channels * channel * sizeof(float));
    CLEANUP(mem_free) float *image = p->job->image ? malloc(image_channels * channel * sizeof(float)) : NULL;
    if (!latent || (p->job->image && !image))
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory for its latents", item->path);
    p->of_item = true;
    if (frames_ahead_next(p->frames, i, err)) {
        p->of_item = err->code != CAIRN_ELACK; /* no cairn-media */
        return -1;
    }
    if (encode_or_fall_back(p, item, latent, image, err)) {
        /* A VAE that cannot be opened concerns all items. */
        p->of_item = p->vae && (err->code == CAIRN_EFORMAT || err->code == CAIRN_EIO);
        return -1;
    }
    struct cache_latents c = {
        .of = cache_of(item),
        .channels = p->info.channels,
        .frames = l.frames,
        .height = l.height,
        .width = l.width,
        .values = latent,
        .image = image,
        .image_channels = image_channels,
        .dtype = p->job->dtype,
        .made_from = p->made_from[i],
    };
    if (!file_make_dir(dir, 0777, err) && !cache_write_latents(dir, &c, err))
        return 0;
    p->of_item = err->code == CAIRN_EFORMAT; /* latents that were refused; else the disk */
    return -1;
}

static int make_items(struct latents_pass *p, struct cairn_error *err)
{
    struct cache_count *count = &p->out->latents;
    for (size_t i = 0; i < p->n; i++) {
        if (cache_job_stopped(p->job, err))
            return -1;
        if (!make_item(p, i, err))
            count->made++;
        else if (p->of_item && !(p->job->stop && *p->job->stop))
            cache_job_fail_item(p->out, count, p->items[i]->path, err);
        else
            return p->job->stop && *p->job->stop ? cache_job_stopped(p->job, err) : -1;
        cache_progress_step(&p->progress, i + 1);
    }
    return 0;
}

int cache_job_latents(const struct cache_job *job, struct cache_result *out, struct cairn_error *err)
{
    struct encode_device_options o = { ENCODE_VAE,  job->g,           job->vae.on_cpu, job->vae.storage,
                                       job->budget, job->host_budget, &job->sink };
    CLEANUP(release) struct latents_pass p = { .job = job, .out = out };
    if (identify(&p, err) || list_items(&p, err))
        return -1;
    if (!p.n || !job->g)
        return 0;
    struct frames_ahead_options ahead = { .items = p.items, .n = p.n };
    if (encode_device_open(&p.device, &o, err) || frames_ahead_open(&p.frames, &ahead, err))
        return -1;
    cache_progress_start(&p.progress, job->talk, "latents", p.n);
    return make_items(&p, err);
}
