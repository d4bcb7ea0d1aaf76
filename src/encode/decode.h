/* SPDX-License-Identifier: Apache-2.0
 * Latents of a cache back to pixels: a PNG file of an image or of the frames of a clip side by side, or an MP4 file. */
#ifndef CAIRN_ENCODE_DECODE_H
#define CAIRN_ENCODE_DECODE_H

#include "encode/encode_device.h"

struct decode_options {
    struct encode_device_options device;
    const char *vae; /* its file or folder */
};
struct decoder;
int decoder_open(struct decoder **out, const struct decode_options *o, struct cairn_error *err);
void decoder_close(struct decoder *d); /* accepts NULL */

/* Whether a cache holds several frames. */
int decode_is_clip(const char *latents, bool *is_clip, struct cairn_error *err);
/* From a cache of latents to a file that ends with .png or .mp4.  Fails if the cache is of another VAE. */
int decode_file(struct decoder *d, const char *latents, const char *out, struct cairn_error *err);

#endif
