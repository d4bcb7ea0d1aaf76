/* SPDX-License-Identifier: Apache-2.0 */
#include "video/item.h"

#include "base/file.h"
#include "base/str.h"
#include "tensor/safetensors.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keys of the parts, as musubi-tuner's loader makes them of the names of tensors. */
static const char *const keys[VIDEO_PARTS] = { "latents", "latents_image", "clip", "t5" };

/* ---- headers ---- */

/* The key of a tensor: its name without "varlen_", the dtype and, for latents, the size.  Returns its
 * length. */
static size_t key_of(const char *name, const char **key)
{
    static const char varlen[] = "varlen_";
    const char *start = str_starts(name, varlen) ? name + strlen(varlen) : name;
    size_t n = strlen(start);
    for (const char *p = strchr(start, '_'); p; p = strchr(p + 1, '_'))
        if (dtype_parse(p + 1) != DTYPE_OTHER) {
            n = (size_t)(p - start);
            break;
        }
    if (str_starts(start, "latents_"))
        while (n && start[--n] != '_')
            continue;
    *key = start;
    return n;
}

/* NULL without an error: there is none. */
static int find_part(const struct st_file *f, enum video_part part, const struct st_tensor **out,
                     struct cairn_error *err)
{
    *out = NULL;
    for (size_t i = 0; i < f->n_tensors; i++) {
        const char *key;
        size_t n = key_of(f->tensors[i].name, &key);
        if (n != strlen(keys[part]) || memcmp(key, keys[part], n))
            continue;
        if (*out)
            return cairn_fail(err, CAIRN_EFORMAT, "%s has two tensors \"%s\": %s and %s", f->shards[0].path,
                              keys[part], (*out)->name, f->tensors[i].name);
        *out = &f->tensors[i];
    }
    return 0;
}

static int set_part(struct video_item *item, enum video_part part, const struct st_file *f,
                    const struct st_tensor *t, int rank, struct cairn_error *err)
{
    const char *path = part == VIDEO_TEXT ? item->text_path : item->path;
    struct video_tensor *p = &item->parts[part];
    if (t->rank != rank || !t->elements)
        return cairn_fail(err, CAIRN_EFORMAT,
                          "%s: %s has %d dimensions and %llu values; %d dimensions are expected", path,
                          t->name, t->rank, (unsigned long long)t->elements, rank);
    if (!dtype_is_float(t->dtype))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: %s has the dtype %s, which is not a floating-point one",
                          path, t->name, t->dtype_text);
    *p = (struct video_tensor){
        .path = path, .dtype = t->dtype, .at = t->at, .file = f->shards[t->shard].size, .values = t->elements
    };
    snprintf(p->name, sizeof(p->name), "%s", t->name);
    return 0;
}

static int open_file(struct st_file *f, const char *path, struct cairn_error *err)
{
    if (!st_open(f, path, err))
        return 0;
    return err->code == CAIRN_EFORMAT
               ? cairn_hint(
                     err,
                     "a cache of latents is NAME_wan.safetensors; if this is one, delete it and run `cairn cache`")
               : -1;
}

static int check_latents(const struct video_item *item, const struct video_needs *needs,
                         struct cairn_error *err)
{
    if (needs->channels && item->channels != needs->channels) {
        cairn_fail(err, CAIRN_EUSAGE, "%s has latents of %zu channels; the model has %zu", item->path,
                   item->channels, needs->channels);
        if (item->channels == 48)
            return cairn_hint(err, "this cache was made with the Wan 2.2 VAE, for the 5B model");
        if (needs->channels == 48 && item->channels == 16)
            return cairn_hint(err,
                              "this cache was made with the Wan 2.1 VAE; the 5B model needs that of 2.2");
        return -1;
    }
    if (item->height % 2 || item->width % 2)
        return cairn_fail(err, CAIRN_EFORMAT, "%s has latents of %zux%zu; height and width must be even",
                          item->path, item->height, item->width);
    return 0;
}

static int open_latents(struct video_item *item, const struct st_file *f, const struct video_needs *needs,
                        struct cairn_error *err)
{
    const struct st_tensor *t, *one_frame = st_find(f, "f_indices_int32");
    if (find_part(f, VIDEO_LATENTS, &t, err))
        return -1;
    if (!t)
        return cairn_fail(err, CAIRN_EFORMAT, "%s has no tensor \"latents_FxHxW_DTYPE\"", item->path),
               cairn_hint(
                   err,
                   "a cache of latents is NAME_wan.safetensors, one of captions NAME_wan_te.safetensors");
    if (one_frame)
        return cairn_fail(err, CAIRN_EFORMAT,
                          "%s was cached for one-frame training, which cairn does not support", item->path);
    if (set_part(item, VIDEO_LATENTS, f, t, 4, err))
        return -1;
    item->channels = t->shape[0];
    item->frames = t->shape[1];
    item->height = t->shape[2];
    item->width = t->shape[3];
    return check_latents(item, needs, err);
}

static int open_image(struct video_item *item, const struct st_file *f, const struct video_needs *needs,
                      struct cairn_error *err)
{
    const struct st_tensor *t;
    if (find_part(f, VIDEO_IMAGE, &t, err))
        return -1;
    if (!t && needs->image_channels) {
        cairn_fail(err, CAIRN_EUSAGE, "%s has no tensor \"latents_image_FxHxW_DTYPE\"", item->path);
        return cairn_hint(err, "an I2V model needs it: cache the latents again with --i2v");
    }
    if (!t)
        return 0;
    if (set_part(item, VIDEO_IMAGE, f, t, 4, err))
        return -1;
    item->image_channels = t->shape[0];
    if (t->shape[1] != item->frames || t->shape[2] != item->height || t->shape[3] != item->width)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: %s and %s differ in size", item->path, t->name,
                          item->parts[VIDEO_LATENTS].name);
    if (needs->image_channels && item->image_channels != needs->image_channels)
        return cairn_fail(err, CAIRN_EUSAGE, "%s: %s has %zu channels; the model needs %zu", item->path,
                          t->name, item->image_channels, needs->image_channels);
    return 0;
}

static int open_clip(struct video_item *item, const struct st_file *f, const struct video_needs *needs,
                     struct cairn_error *err)
{
    const struct st_tensor *t;
    if (find_part(f, VIDEO_CLIP, &t, err))
        return -1;
    if (!t && needs->clip) {
        cairn_fail(err, CAIRN_EUSAGE, "%s has no tensor \"clip_DTYPE\"", item->path);
        return cairn_hint(err,
                          "I2V models of Wan 2.1 need it: cache the latents again with --i2v --clip FILE");
    }
    if (!t)
        return 0;
    if (set_part(item, VIDEO_CLIP, f, t, 2, err))
        return -1;
    item->clip_tokens = t->shape[0];
    item->clip_dim = t->shape[1];
    if (needs->clip && ((needs->clip_tokens && item->clip_tokens != needs->clip_tokens) ||
                        (needs->clip_dim && item->clip_dim != needs->clip_dim)))
        return cairn_fail(err, CAIRN_EUSAGE, "%s: %s is %zux%zu; the model needs %zux%zu", item->path,
                          t->name, item->clip_tokens, item->clip_dim, needs->clip_tokens, needs->clip_dim);
    return 0;
}

int video_item_open(struct video_item *item, const struct video_needs *needs, struct cairn_error *err)
{
    CLEANUP(st_close) struct st_file f = { 0 };
    if (open_file(&f, item->path, err))
        return -1;
    const char *arch = st_meta_find(&f, "architecture");
    if (arch && strcmp(arch, "wan"))
        return cairn_fail(err, CAIRN_EFORMAT, "%s was cached for the architecture \"%.40s\", not for Wan",
                          item->path, arch);
    item->is_clip = st_meta_find(&f, "frame_count") != NULL;
    return open_latents(item, &f, needs, err) || open_image(item, &f, needs, err) ||
                   open_clip(item, &f, needs, err)
               ? -1
               : 0;
}

int video_item_open_text(struct video_item *item, const struct video_needs *needs, struct cairn_error *err)
{
    CLEANUP(st_close) struct st_file f = { 0 };
    const struct st_tensor *t;
    if (open_file(&f, item->text_path, err) || find_part(&f, VIDEO_TEXT, &t, err))
        return -1;
    if (!t)
        return cairn_fail(err, CAIRN_EFORMAT, "%s has no tensor \"varlen_t5_DTYPE\"", item->text_path);
    if (set_part(item, VIDEO_TEXT, &f, t, 2, err))
        return -1;
    item->text_rows = t->shape[0];
    item->text_dim = t->shape[1];
    if (needs->text_dim && item->text_dim != needs->text_dim)
        return cairn_fail(err, CAIRN_EUSAGE, "%s: %s has rows of %zu values; the model needs %zu",
                          item->text_path, t->name, item->text_dim, needs->text_dim);
    return 0;
}

int video_item_compare_size(const struct video_item *a, const struct video_item *b)
{
    if (a->frames != b->frames)
        return a->frames < b->frames ? -1 : 1;
    if (a->height != b->height)
        return a->height < b->height ? -1 : 1;
    return a->width < b->width ? -1 : a->width > b->width;
}

/* ---- values ---- */

static int check_values(const struct video_tensor *t, const float *v, struct cairn_error *err)
{
    uint64_t bad = 0, other = 0;
    for (uint64_t i = 0; i < t->values; i++) {
        bad += !isfinite(v[i]);
        other += v[i] != v[0];
    }
    if (bad)
        cairn_fail(err, CAIRN_EFORMAT, "%s: %llu of %llu values of %s are NaN or infinite", t->path,
                   (unsigned long long)bad, (unsigned long long)t->values, t->name);
    else if (t->values > 1 && !other)
        cairn_fail(err, CAIRN_EFORMAT, "%s: every value of %s is %g", t->path, t->name, (double)v[0]);
    else
        return 0;
    return cairn_hint(err, "caching this item went wrong: delete the file and cache it again");
}

int video_item_read(const struct video_item *item, enum video_part part, float *out, struct cairn_error *err)
{
    const struct video_tensor *t = &item->parts[part];
    CLEANUP(fd_close) int fd = -1;
    CLEANUP(mem_free) void *raw = NULL;
    uint64_t size;
    size_t bytes = t->values * dtype_size(t->dtype);
    if (file_open(t->path, &fd, &size, err))
        return cairn_hint(err, "the caches must stay in place while training runs");
    if (size != t->file)
        return cairn_fail(err, CAIRN_EFORMAT, "%s changed while training used it: %llu bytes, before %llu",
                          t->path, (unsigned long long)size, (unsigned long long)t->file);
    if (t->dtype != DTYPE_F32 && !(raw = malloc(bytes)))
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory for %zu bytes", t->path, bytes);
    if (file_read_at(fd, t->path, raw ? raw : out, bytes, t->at, err))
        return -1;
    if (raw)
        dtype_convert(out, DTYPE_F32, raw, t->dtype, t->values, &(struct dtype_how){ 0 });
    return check_values(t, out, err);
}

int video_item_check(const struct video_item *item, const struct video_needs *needs, struct cairn_error *err)
{
    const bool needed[VIDEO_PARTS] = { true, needs->image_channels > 0, needs->clip, true };
    for (int part = 0; part < VIDEO_PARTS; part++) {
        if (!needed[part])
            continue;
        CLEANUP(mem_free) float *values = malloc(item->parts[part].values * sizeof(*values));
        if (!values)
            return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory to check it", item->path);
        if (video_item_read(item, (enum video_part)part, values, err))
            return -1;
    }
    return 0;
}
