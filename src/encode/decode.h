/* SPDX-License-Identifier: Apache-2.0
 * Latents back to pixels: those of a cache to a PNG file of an image or of the frames of a clip side by side, or to an
 * MP4 file; those in memory to frames. */
#ifndef CAIRN_ENCODE_DECODE_H
#define CAIRN_ENCODE_DECODE_H

#include "encode/encode_device.h"
#include "media/picture.h"
#include "nn/vae.h"

struct decode_options {
    struct encode_device_options device;
    const char *vae; /* its file or folder */
};
struct decoder;
int decoder_open(struct decoder **out, const struct decode_options *o, struct cairn_error *err);
void decoder_close(struct decoder *d); /* accepts NULL */

struct decode_clip {
    const char *name;    /* for messages */
    const float *values; /* [channels][frames][height][width], normalised */
    size_t channels, frames, height, width;
};
/* Gets the frames in order, 8-bit RGB.  start comes again, from the first frame, after the device failed and the CPU took
 * over. */
struct decode_sink {
    int (*start)(void *ctx, const struct vae_size *size, double fps, struct cairn_error *err);
    int (*frame)(void *ctx, size_t frame, const struct picture *p, struct cairn_error *err);
    void *ctx;
};
/* fps is that of the model.  Memory stays within the device's budget: tiles and chunks are as small as needed. */
int decode_latents(struct decoder *d, const struct decode_clip *c, const struct decode_sink *to,
                   struct cairn_error *err);

/* Whether a cache holds several frames. */
int decode_is_clip(const char *latents, bool *is_clip, struct cairn_error *err);
/* From a cache of latents to a file that ends with .png or .mp4.  Fails if the cache is of another VAE. */
int decode_file(struct decoder *d, const char *latents, const char *out, struct cairn_error *err);

#endif
