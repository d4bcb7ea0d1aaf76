/* SPDX-License-Identifier: Apache-2.0 */
#include "video/cache_write.h"

#include "tensor/safetensors.h"
#include "video/item.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MADE_FROM "cairn_made_from"
#define FORMAT_VERSION "1.0.1" /* of musubi-tuner's caches */

/* A tensor of f32 values that becomes one of the file. */
struct part {
    const char *name;
    const float *values;
    int rank;
    uint64_t shape[4];
};
struct contents {
    const char *path;
    enum dtype dtype;
    struct part parts[2];
    size_t n;
    const struct st_meta *meta;
    size_t n_meta;
};

static size_t part_values(const struct part *p)
{
    size_t n = 1;
    for (int i = 0; i < p->rank; i++)
        n *= (size_t)p->shape[i];
    return n;
}

static const char *torch_name(enum dtype t)
{
    return t == DTYPE_BF16 ? "bfloat16" : t == DTYPE_F16 ? "float16" : "float32";
}

static const char *file_dtype(enum dtype t)
{
    return t == DTYPE_BF16 ? "BF16" : t == DTYPE_F16 ? "F16" : "F32";
}

/* ---- writing ---- */

static int check_values(const char *path, const struct part *p, struct cairn_error *err)
{
    size_t n = part_values(p);
    bool varies = false;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(p->values[i]))
            return cairn_fail(err, CAIRN_EFORMAT, "%s: %s has %s at value %zu; nothing was written", path,
                              p->name, isnan(p->values[i]) ? "NaN" : "Inf", i);
        varies |= p->values[i] != p->values[0];
    }
    if (!varies)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: all values of %s are %g; nothing was written", path,
                          p->name, (double)p->values[0]);
    return 0;
}

/* The values in the format of the file.  A value beyond the range of f16 is an error, not Inf. */
static void *narrow(const struct contents *c, const struct part *p, struct cairn_error *err)
{
    size_t n = part_values(p);
    char *bytes = malloc(n * dtype_size(c->dtype));
    if (!bytes) {
        cairn_fail(err, CAIRN_ENOMEM, "%s: no memory for %zu values", c->path, n);
        return NULL;
    }
    for (size_t i = 0; i < n && c->dtype == DTYPE_F16; i++)
        if (fabsf(p->values[i]) >= 65520.0f) {
            free(bytes);
            cairn_fail(err, CAIRN_EFORMAT, "%s: %s has %g, which f16 cannot hold: set cache.dtype to bf16",
                       c->path, p->name, (double)p->values[i]);
            return NULL;
        }
    dtype_convert(bytes, c->dtype, p->values, DTYPE_F32, n, &(struct dtype_how){ 0 });
    return bytes;
}

static int write_part(struct st_writer *w, const struct contents *c, size_t i, struct cairn_error *err)
{
    const struct part *p = &c->parts[i];
    size_t size = part_values(p) * dtype_size(c->dtype);
    CLEANUP(mem_free) void *bytes = narrow(c, p, err);
    return !bytes || st_writer_put(w, i, 0, bytes, size, err) || st_writer_verify(w, i, 0, bytes, size, err)
               ? -1
               : 0;
}

static int write_file(const struct contents *c, struct cairn_error *err)
{
    struct st_tensor tensors[2] = { 0 };
    for (size_t i = 0; i < c->n; i++) {
        const struct part *p = &c->parts[i];
        tensors[i] = (struct st_tensor){ .name = p->name,
                                         .dtype = c->dtype,
                                         .dtype_text = file_dtype(c->dtype),
                                         .shape = p->shape,
                                         .rank = p->rank,
                                         .elements = part_values(p),
                                         .bytes = part_values(p) * dtype_size(c->dtype) };
    }
    struct st_contents all = {
        .tensors = tensors, .n = c->n, .meta = c->meta, .n_meta = c->n_meta, .order = ST_ORDER_REFERENCE
    };
    CLEANUP(st_writer_close) struct st_writer w = { .out = FILE_OUT_NONE };
    if (st_writer_open(&w, c->path, &all, true, err))
        return -1;
    for (size_t i = 0; i < c->n; i++)
        if (write_part(&w, c, i, err))
            return -1;
    return st_writer_commit(&w, err);
}

/* ---- the two kinds ---- */

static struct part latents_part(struct arena *a, const char *key, const float *values, size_t channels,
                                const struct cache_latents *l)
{
    return (struct part){
        .name =
            arena_printf(a, "%s_%zux%zux%zu_%s", key, l->frames, l->height, l->width, torch_name(l->dtype)),
        .values = values,
        .rank = 4,
        .shape = { channels, l->frames, l->height, l->width },
    };
}

int cache_write_latents(const char *dir, const struct cache_latents *l, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    const struct st_meta meta[] = {
        { "architecture", CACHE_NAME_ARCH },
        { "width", arena_printf(&a, "%zu", l->of.width) },
        { "height", arena_printf(&a, "%zu", l->of.height) },
        { "format_version", FORMAT_VERSION },
        { MADE_FROM, l->made_from },
        { "frame_count", arena_printf(&a, "%zu", l->of.frames) },
    };
    struct contents c = {
        .path = arena_printf(&a, "%s/%s", dir, cache_name_latents(&a, &l->of)),
        .dtype = l->dtype,
        .parts = { latents_part(&a, "latents", l->values, l->channels, l) },
        .n = 1,
        .meta = meta,
        .n_meta = ARRAY_LEN(meta) - !l->of.clip,
    };
    if (l->image)
        c.parts[c.n++] = latents_part(&a, "latents_image", l->image, l->image_channels, l);
    for (size_t i = 0; i < c.n; i++)
        if (check_values(c.path, &c.parts[i], err))
            return -1;
    return write_file(&c, err);
}

int cache_write_text(const char *dir, const struct cache_text *t, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    const struct st_meta meta[] = {
        { "architecture", CACHE_NAME_ARCH },
        { "caption1", t->caption },
        { "format_version", FORMAT_VERSION },
        { MADE_FROM, t->made_from },
    };
    struct contents c = {
        .path = arena_printf(&a, "%s/%s", dir, cache_name_text(&a, t->stem)),
        .dtype = t->dtype,
        .parts = { { .name = arena_printf(&a, "varlen_t5_%s", torch_name(t->dtype)),
                     .values = t->values,
                     .rank = 2,
                     .shape = { t->rows, t->columns } } },
        .n = 1,
        .meta = meta,
        .n_meta = ARRAY_LEN(meta),
    };
    return check_values(c.path, &c.parts[0], err) ? -1 : write_file(&c, err);
}

const char *cache_made_from(struct arena *a, const char *path)
{
    CLEANUP(st_close) struct st_file f = { 0 };
    struct cairn_error ignored;
    if (st_open(&f, path, &ignored))
        return NULL;
    const char *made = st_meta_find(&f, MADE_FROM);
    return arena_strdup(a, made ? made : "");
}

bool cache_is_wan(const char *path)
{
    CLEANUP(st_close) struct st_file f = { 0 };
    struct cairn_error ignored;
    const char *is = st_open(&f, path, &ignored) ? NULL : st_meta_find(&f, "architecture");
    return is && !strcmp(is, CACHE_NAME_ARCH);
}

bool cache_has_caption(const char *path, const char *caption)
{
    CLEANUP(st_close) struct st_file f = { 0 };
    struct cairn_error ignored;
    const char *is = st_open(&f, path, &ignored) ? NULL : st_meta_find(&f, "caption1");
    return is && !strcmp(is, caption);
}

bool cache_has_size(const char *path, size_t channels, size_t frames, size_t height, size_t width)
{
    struct video_item item = { .path = path };
    struct cairn_error ignored;
    return !video_item_open(&item, &(struct video_needs){ .channels = channels }, &ignored) &&
           item.frames == frames && item.height == height && item.width == width;
}
