/* SPDX-License-Identifier: Apache-2.0 */
#include "encode/encode_image.h"

#include "base/cleanup.h"
#include "media/media.h"
#include "media/resize.h"
#include <string.h>

struct first_frame {
    const struct vae_size *size;
    struct picture p;
};

static void first_frame_release(struct first_frame *f)
{
    picture_free(&f->p);
}

static int fit(void *ctx, size_t frame, const struct picture *p, struct cairn_error *err)
{
    struct first_frame *f = ctx;
    struct picture_fit how;
    (void)frame;
    picture_free(&f->p);
    return picture_fit_plan(&how, p->width, p->height, f->size->width, f->size->height, err) ||
                   picture_fit(p, &how, &f->p, err)
               ? -1
               : 0;
}

static int read_picture(const char *path, struct first_frame *f, struct cairn_error *err)
{
    static const size_t first[] = { 0 };
    struct media *m = NULL;
    int r = media_open(&m, NULL, err) || media_read(m, path, first, 1, fit, f, err);
    media_close(m);
    return r ? -1 : 0;
}

static int read_frames(void *ctx, size_t first, size_t n, float *out, struct cairn_error *err)
{
    const struct first_frame *f = ctx;
    size_t values = picture_bytes(&f->p);
    (void)err;
    memset(out, 0, n * values * sizeof(*out));
    for (size_t i = 0; !first && n && i < values; i++)
        out[i] = (float)f->p.at[i] / 127.5f - 1;
    return 0;
}

static int encode_once(struct encode_device *d, const char *path, const struct vae_size *size,
                       struct first_frame *f, float *latent, struct cairn_error *err)
{
    struct vae *vae = NULL;
    struct vae_layout layout;
    struct vae_source source = { read_frames, f };
    if (vae_open(&vae, &d->nn, path, true, false, err))
        return -1;
    uint64_t budget = encode_device_budget(d), weights = vae_weight_bytes(vae);
    if (budget != UINT64_MAX)
        budget = budget > weights ? budget - weights : 0;
    int r = vae_plan(vae, true, size, budget, &layout, err) ||
            vae_encode(vae, size, &layout, &source, latent, err);
    vae_close(vae);
    return r;
}

int encode_image(const struct decode_options *o, const char *picture, const struct vae_size *size,
                 float *latent, struct cairn_error *err)
{
    CLEANUP(first_frame_release) struct first_frame f = { .size = size };
    if (read_picture(picture, &f, err))
        return -1;
    CLEANUP(encode_device_close) struct encode_device d;
    if (encode_device_open(&d, &o->device, err))
        return -1;
    while (encode_once(&d, o->vae, size, &f, latent, err))
        if (encode_device_fall_back(&d, err))
            return -1;
    return 0;
}
