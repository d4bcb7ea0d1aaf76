/* SPDX-License-Identifier: Apache-2.0
 * The latents of a picture, for samples of image-to-video models. */
#ifndef CAIRN_ENCODE_ENCODE_IMAGE_H
#define CAIRN_ENCODE_ENCODE_IMAGE_H

#include "encode/decode.h"

/* A clip of this size whose first frame is the picture, scaled and cropped, and whose others are grey: into latents
 * [channels][F][h][w].  Opens the VAE and closes it again. */
int encode_image(const struct decode_options *o, const char *picture, const struct vae_size *size,
                 float *latent, struct cairn_error *err);

#endif
