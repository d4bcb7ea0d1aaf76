/* SPDX-License-Identifier: Apache-2.0
 * The pixels of items. */
#include "media/dataset.h"

#include "base/cleanup.h"
#include "base/int.h"
#include <stdlib.h>

struct reading {
    const struct dataset_item *item;
    struct picture_fit fit;
    const size_t *frames; /* those that are read, in order; may repeat */
    size_t first, n;      /* first: index of frames[0] in the item */
    size_t done;
    media_take *take;
    void *ctx;
};

/* The same part of a flipped picture. */
static void mirror(const struct dataset_item *item, struct picture_fit *f)
{
    if (item->flip_x)
        f->window.x = f->scaled_width - f->window.x - f->window.width;
    if (item->flip_y)
        f->window.y = f->scaled_height - f->window.y - f->window.height;
}

static int take_frame(void *ctx, size_t frame, const struct picture *p, struct cairn_error *err)
{
    struct reading *r = ctx;
    CLEANUP(picture_free) struct picture out = { 0 };
    /* Frames of a folder, controls and masks may have sizes of their own. */
    if (p->width != r->fit.from_width || p->height != r->fit.from_height) {
        if (picture_fit_plan(&r->fit, p->width, p->height, r->item->bucket.width, r->item->bucket.height,
                             err))
            return -1;
        mirror(r->item, &r->fit);
    }
    if (picture_fit(p, &r->fit, &out, err))
        return -1;
    if (r->item->flip_x)
        picture_flip_x(&out);
    if (r->item->flip_y)
        picture_flip_y(&out);
    for (; r->done < r->n && r->frames[r->done] == frame; r->done++)
        if (r->take(r->ctx, r->first + r->done, &out, err))
            return -1;
    return 0;
}

typedef int read_fn(struct media *m, const char *path, const size_t *frames, size_t n, media_take *take,
                    void *ctx, struct cairn_error *err);

static int read_frames(struct reading *r, const char *path, read_fn *read, struct media *m,
                       struct cairn_error *err)
{
    CLEANUP(mem_free) size_t *unique = malloc((r->n + 1) * sizeof(*unique));
    size_t n = 0;
    if (!unique)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu frame numbers", r->n);
    for (size_t i = 0; i < r->n; i++)
        if (!n || unique[n - 1] != r->frames[i])
            unique[n++] = r->frames[i];
    if (read(m, path, unique, n, take_frame, r, err))
        return -1;
    return r->done == r->n
               ? 0
               : cairn_fail(err, CAIRN_EFORMAT, "%s: %zu of %zu frames could be read", path, r->done, r->n);
}

int dataset_item_read_range(const struct dataset_item *item, size_t first, size_t n, struct media *m,
                            media_take *take, void *ctx, struct cairn_error *err)
{
    if (first > item->n_frames || n > item->n_frames - first)
        return cairn_fail(err, CAIRN_EUSAGE, "%s: frames %zu to %zu of %zu", item->path, first, first + n,
                          item->n_frames);
    struct reading r = { .item = item,
                         .fit = item->fit,
                         .frames = item->frames + first,
                         .first = first,
                         .n = n,
                         .take = take,
                         .ctx = ctx };
    mirror(item, &r.fit);
    return read_frames(&r, item->path, media_read, m, err);
}

int dataset_item_read(const struct dataset_item *item, struct media *m, media_take *take, void *ctx,
                      struct cairn_error *err)
{
    return dataset_item_read_range(item, 0, item->n_frames, m, take, ctx, err);
}

int dataset_item_read_control(const struct dataset_item *item, struct media *m, media_take *take, void *ctx,
                              struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct media_info info;
    if (media_probe(m, item->control_path, &a, &info, err))
        return -1;
    if (!info.frames)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: it has no frames", item->control_path);
    size_t *frames = ARENA_NEW(&a, size_t, item->n_frames);
    for (size_t i = 0; i < item->n_frames; i++)
        frames[i] = at_most(item->frames[i], info.frames - 1);
    struct reading r = {
        .item = item, .fit = item->fit, .frames = frames, .n = item->n_frames, .take = take, .ctx = ctx
    };
    mirror(item, &r.fit);
    return read_frames(&r, item->control_path, media_read, m, err);
}

int dataset_item_read_mask(const struct dataset_item *item, struct media *m, media_take *take, void *ctx,
                           struct cairn_error *err)
{
    static const size_t first_frame[] = { 0 };
    struct reading r = {
        .item = item, .fit = item->fit, .frames = first_frame, .n = 1, .take = take, .ctx = ctx
    };
    mirror(item, &r.fit);
    if (item->mask_path)
        return read_frames(&r, item->mask_path, media_read_grey, m, err);
    if (item->block->alpha_mask)
        return read_frames(&r, item->path, media_read_alpha, m, err);
    return cairn_fail(err, CAIRN_EUSAGE, "%s: it has no mask", item->path);
}
